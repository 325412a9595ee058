/* shim_spec.c - fuzz target: the spec of a run folder.
 *
 * What must hold beyond not crashing: what is taken reads back the same when it is written.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "shim/spec.h"

#include "base/str.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    autoptr(arena) arena = arena_new();
    struct shim_spec spec, again;
    auto_str first = {0}, second = {0};
    struct err e = {0};

    if (shim_spec_parse((const char *)bytes, len, arena, &spec, &e) < 0) {
        require(e.code == ERR_INVALID || e.code == ERR_TOO_LARGE);
        return 0;
    }
    shim_spec_format(&spec, &first);
    require(shim_spec_parse(first.data, first.len, arena, &again, NULL) == 0);
    shim_spec_format(&again, &second);
    require(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    return 0;
}
