/* example.c - the fields of a tf.Example that ImageNet's scripts write.
 *
 * Example: 1 features; Features: 1 feature (a map: 1 key, 2 value); Feature: 1 bytes_list,
 * 2 float_list, 3 int64_list, each a list in field 1, numbers packed or not.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/data-internal.h"
#include "train/record/proto.h"

#include <string.h>

enum {
    FLOATS = 2,
    INTS = 3,
};

struct span {
    const uint8_t *bytes;
    size_t len;
};

static bool is_key(const struct span *key, const char *name)
{
    return key->len == strlen(name) && memcmp(key->bytes, name, key->len) == 0;
}

static int take_bytes(struct example *x, const struct span *list, struct err *e)
{
    const uint8_t *at = list->bytes, *end = at + list->len;
    struct proto_field f;
    int got;

    while ((got = proto_next(&at, end, &f, e)) > 0) {
        if (f.number == 1 && f.wire == PROTO_BYTES) {
            x->encoded = f.bytes;
            x->encoded_len = f.len;
        }
    }
    return got;
}

static int take_label(struct example *x, const struct span *list, struct err *e)
{
    const uint8_t *at = list->bytes, *end = at + list->len;
    struct proto_field f;
    uint64_t value;
    int got;

    while ((got = proto_next(&at, end, &f, e)) > 0) {
        if (f.number != 1)
            continue;
        value = f.value;
        if (f.wire == PROTO_BYTES) {
            const uint8_t *packed = f.bytes;

            if (proto_next_varint(&packed, f.bytes + f.len, &value, e) <= 0)
                return err_set(e, ERR_INVALID, "the label has no number");
        }
        x->label = (int64_t)value;
    }
    return got;
}

static void put_side(struct example *x, int box, int side, const uint8_t *bits)
{
    float *sides[] = {&x->boxes[box].ymin, &x->boxes[box].xmin, &x->boxes[box].ymax,
                      &x->boxes[box].xmax};

    memcpy(sides[side], bits, sizeof(float));
}

/* One side of all boxes; returns how many there are, or -1. */
static int take_sides(struct example *x, int side, const struct span *list, struct err *e)
{
    const uint8_t *at = list->bytes, *end = at + list->len;
    struct proto_field f;
    int count = 0, got;

    while ((got = proto_next(&at, end, &f, e)) > 0) {
        uint32_t bits = (uint32_t)f.value;
        const uint8_t *p = f.wire == PROTO_BYTES ? f.bytes : (const uint8_t *)&bits;
        size_t len = f.wire == PROTO_BYTES ? f.len : f.wire == PROTO_32 ? sizeof(bits) : 0;

        for (; len >= sizeof(float); p += sizeof(float), len -= sizeof(float))
            if (count < EXAMPLE_MOST_BOXES)
                put_side(x, count++, side, p);
    }
    return got < 0 ? -1 : count;
}

static int
take_box(struct example *x, const struct span *key, const struct span *list, struct err *e)
{
    static const char *const names[] = {"image/object/bbox/ymin", "image/object/bbox/xmin",
                                        "image/object/bbox/ymax", "image/object/bbox/xmax"};

    for (int side = 0; side < 4; side++) {
        int count;

        if (!is_key(key, names[side]))
            continue;
        count = take_sides(x, side, list, e);
        if (count < 0)
            return -1;
        x->box_count = count;
    }
    return 0;
}

static int
take_value(struct example *x, const struct span *key, const struct span *value, struct err *e)
{
    const uint8_t *at = value->bytes, *end = at + value->len;
    struct proto_field f;
    int got;

    while ((got = proto_next(&at, end, &f, e)) > 0) {
        struct span list = {f.bytes, f.len};
        int rc = 0;

        if (f.wire != PROTO_BYTES)
            continue;
        if (is_key(key, "image/encoded"))
            rc = take_bytes(x, &list, e);
        else if (is_key(key, "image/class/label") && f.number == INTS)
            rc = take_label(x, &list, e);
        else if (f.number == FLOATS)
            rc = take_box(x, key, &list, e);
        if (rc < 0)
            return -1;
    }
    return got;
}

static int take_feature(struct example *x, const struct proto_field *entry, struct err *e)
{
    const uint8_t *at = entry->bytes, *end = at + entry->len;
    struct span key = {(const uint8_t *)"", 0}, value = {(const uint8_t *)"", 0};
    struct proto_field f;
    int got;

    while ((got = proto_next(&at, end, &f, e)) > 0) {
        if (f.wire == PROTO_BYTES && f.number == 1)
            key = (struct span){f.bytes, f.len};
        else if (f.wire == PROTO_BYTES && f.number == 2)
            value = (struct span){f.bytes, f.len};
    }
    return got < 0 ? -1 : take_value(x, &key, &value, e);
}

static int take_features(struct example *x, const struct proto_field *features, struct err *e)
{
    const uint8_t *at = features->bytes, *end = at + features->len;
    struct proto_field f;
    int got;

    while ((got = proto_next(&at, end, &f, e)) > 0)
        if (f.number == 1 && f.wire == PROTO_BYTES && take_feature(x, &f, e) < 0)
            return -1;
    return got;
}

int example_parse(struct example *example, const void *bytes, size_t len, struct err *e)
{
    const uint8_t *at = bytes, *end = at + len;
    struct proto_field f;
    int got;

    *example = (struct example){.label = -1};
    while ((got = proto_next(&at, end, &f, e)) > 0)
        if (f.number == 1 && f.wire == PROTO_BYTES && take_features(example, &f, e) < 0)
            return -1;
    if (got < 0)
        return -1;
    if (!example->encoded)
        return err_set(e, ERR_INVALID, "it has no image/encoded");
    if (example->label < 0)
        return err_set(e, ERR_INVALID, "it has no image/class/label");
    return 0;
}
