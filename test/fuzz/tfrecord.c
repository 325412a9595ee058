/* tfrecord.c - fuzz target: record files and the tf.Example in their records.
 *
 * What must hold beyond not crashing: walking always gets on, and what was read is what would
 * be written.  A record with the right checksums is made of every input too, or nothing would
 * get beyond them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/record/tfrecord.h"

#include "train/data/data-internal.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void try_record(const uint8_t *file, size_t at, const void *data, size_t len)
{
    auto_str again = {0};
    struct example example;

    tfrecord_add(&again, data, len);
    if (memcmp(again.data, file + at, again.len) != 0)
        abort();
    if (example_parse(&example, data, len, NULL) < 0)
        return;
    if (example.encoded < (const uint8_t *)data ||
        example.encoded + example.encoded_len > (const uint8_t *)data + len ||
        example.label < 0 || example.box_count > EXAMPLE_MOST_BOXES)
        abort();
}

static void walk(const uint8_t *file, size_t len)
{
    size_t at = 0;

    while (at < len) {
        const void *data;
        size_t size, next, skipped;

        if (tfrecord_at(file, len, at, &data, &size, &next, NULL) == 0)
            try_record(file, at, data, size);
        if (!next)
            return;
        if (next <= at || tfrecord_skip(file, len, at, &skipped, NULL) < 0 || skipped != next)
            abort();
        at = next;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    auto_str sound = {0};

    walk(bytes, len);
    tfrecord_add(&sound, bytes, len);
    walk((const uint8_t *)sound.data, sound.len);
    return 0;
}
