/* safetensors.c - fuzz target: checkpoint files.
 *
 * What must hold beyond not crashing: every tensor lies within the file and is as long as its
 * shape says.  Half of the inputs are taken as a header, with the length put before it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint/safetensors.h"

#include "base/str.h"
#include "train/checkpoint/safetensors-internal.h"

#include <endian.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum {
    DATA_BYTES = 16,
};

static void check(const struct safetensor *t, const char *bytes, size_t len)
{
    volatile uint8_t sum = 0;

    if (!t->name || !t->dtype || (const char *)t->data < bytes ||
        (const char *)t->data + t->bytes > bytes + len)
        abort();
    for (size_t i = 0; i < t->bytes; i++)
        sum ^= ((const uint8_t *)t->data)[i];
    (void)sum;
}

static void try_file(const void *bytes, size_t len)
{
    autoptr(safetensors) file = NULL;

    if (safetensors_parse(bytes, len, &file, NULL) < 0)
        return;
    for (int i = 0; i < safetensors_count(file); i++)
        check(safetensors_at(file, i), bytes, len);
    (void)safetensors_meta(file, "format");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    uint64_t length = htole64((uint64_t)len);
    auto_str whole = {0};

    try_file(bytes, len);
    str_add_len(&whole, &length, sizeof(length));
    str_add_len(&whole, bytes, len);
    for (int i = 0; i < DATA_BYTES; i++)
        str_add_char(&whole, (char)i);
    try_file(whole.data, whole.len);
    return 0;
}
