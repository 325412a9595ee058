/* shim_record.c - fuzz target: the exit record of a run folder.
 *
 * What must hold beyond not crashing: what is taken is what would be written, to the byte.  The
 * checksum is put right for half of the inputs, or none would get beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "shim/record.h"

#include "base/crc64.h"
#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void try_text(const char *text)
{
    struct shim_record record;
    auto_str again = {0};

    if (shim_record_parse(text, &record, NULL) < 0)
        return;
    shim_record_format(&record, &again);
    if (!str_equal(text, str_text(&again)) || (record.code >= 0 && record.signal))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    auto_free char *text = xstrndup((const char *)bytes, len);
    auto_str sound = {0};

    try_text(text);
    str_add_len(&sound, text, strcspn(text, "\n"));
    str_addf(&sound, " crc=%016" PRIx64 "\n", crc64(0, str_text(&sound), sound.len));
    try_text(str_text(&sound));
    return 0;
}
