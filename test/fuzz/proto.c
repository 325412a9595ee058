/* proto.c - fuzz target: the wire form of protocol buffers.
 *
 * What must hold beyond not crashing: every field gets on and lies within the message, and a
 * message that was read whole reads the same again after it was written.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/record/proto.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void add(struct str *out, const struct proto_field *f)
{
    uint32_t bits = (uint32_t)f->value;
    double wide;
    float narrow;

    memcpy(&wide, &f->value, sizeof(wide));
    memcpy(&narrow, &bits, sizeof(narrow));
    if (f->wire == PROTO_VARINT)
        proto_add_int(out, f->number, (int64_t)f->value);
    else if (f->wire == PROTO_BYTES)
        proto_add_bytes(out, f->number, f->bytes, f->len);
    else if (f->wire == PROTO_64)
        proto_add_double(out, f->number, wide);
    else
        proto_add_float(out, f->number, narrow);
}

/* Write what is read; returns the last answer of proto_next. */
static int rewrite(const uint8_t *bytes, size_t len, struct str *out)
{
    const uint8_t *at = bytes, *end = bytes + len;
    struct proto_field f;
    int got;

    for (;;) {
        const uint8_t *before = at;

        got = proto_next(&at, end, &f, NULL);
        if (got <= 0)
            return got;
        if (at <= before || at > end ||
            (f.wire == PROTO_BYTES && (f.bytes < before || f.bytes + f.len > end)))
            abort();
        add(out, &f);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    auto_str once = {0}, twice = {0};

    if (rewrite(bytes, len, &once) < 0)
        return 0;
    if (rewrite((const uint8_t *)str_text(&once), once.len, &twice) < 0 ||
        once.len != twice.len || (once.len && memcmp(once.data, twice.data, once.len) != 0))
        abort();
    return 0;
}
