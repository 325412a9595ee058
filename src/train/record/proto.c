/* SPDX-License-Identifier: Apache-2.0 */
#include "train/record/proto.h"

#include "base/str.h"

#include <endian.h>
#include <string.h>

enum {
    WIRE_BITS = 3, /* of a tag; the field's number is above them */
    MOST_FIELD = (1 << 29) - 1,
};

static void add_varint(struct str *out, uint64_t value)
{
    while (value >= 0x80) {
        str_add_char(out, (char)(0x80 | (value & 0x7f)));
        value >>= 7;
    }
    str_add_char(out, (char)value);
}

static void add_tag(struct str *out, int field, enum proto_wire wire)
{
    add_varint(out, ((uint64_t)field << WIRE_BITS) | (uint64_t)wire);
}

void proto_add_int(struct str *out, int field, int64_t value)
{
    add_tag(out, field, PROTO_VARINT);
    add_varint(out, (uint64_t)value);
}

void proto_add_double(struct str *out, int field, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    bits = htole64(bits);
    add_tag(out, field, PROTO_64);
    str_add_len(out, &bits, sizeof(bits));
}

void proto_add_float(struct str *out, int field, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    bits = htole32(bits);
    add_tag(out, field, PROTO_32);
    str_add_len(out, &bits, sizeof(bits));
}

void proto_add_bytes(struct str *out, int field, const void *bytes, size_t len)
{
    add_tag(out, field, PROTO_BYTES);
    add_varint(out, len);
    str_add_len(out, bytes, len);
}

void proto_add_text(struct str *out, int field, const char *text)
{
    proto_add_bytes(out, field, text, strlen(text));
}

int proto_next_varint(const uint8_t **at,
                      const uint8_t *end,
                      uint64_t *ret_value,
                      struct err *e)
{
    const uint8_t *p = *at;
    uint64_t value = 0;

    if (p == end)
        return 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (p == end)
            return err_set(e, ERR_INVALID, "a number is cut short");
        value |= (uint64_t)(*p & 0x7f) << shift;
        if (!(*p++ & 0x80)) {
            *at = p;
            *ret_value = value;
            return 1;
        }
    }
    return err_set(e, ERR_INVALID, "a number is longer than 64 bits");
}

/* As above where the message must not end. */
static int
need_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret_value, struct err *e)
{
    int got = proto_next_varint(at, end, ret_value, e);

    return got ? got : err_set(e, ERR_INVALID, "a field has no value");
}

static int take_fixed(
    const uint8_t **at, const uint8_t *end, size_t len, uint64_t *ret_value, struct err *e)
{
    uint64_t value = 0;

    if ((size_t)(end - *at) < len)
        return err_set(e, ERR_INVALID, "a number is cut short");
    memcpy(&value, *at, len);
    *at += len;
    *ret_value = le64toh(value);
    return 1;
}

static int
take_bytes(const uint8_t **at, const uint8_t *end, struct proto_field *field, struct err *e)
{
    uint64_t len;

    if (need_varint(at, end, &len, e) < 0)
        return -1;
    if (len > (uint64_t)(end - *at))
        return err_set(e, ERR_INVALID, "field %d is cut short", field->number);
    field->bytes = *at;
    field->len = (size_t)len;
    *at += len;
    return 1;
}

int proto_next(const uint8_t **at,
               const uint8_t *end,
               struct proto_field *ret_field,
               struct err *e)
{
    uint64_t tag;
    int got = proto_next_varint(at, end, &tag, e);

    if (got <= 0)
        return got;
    if (tag >> WIRE_BITS < 1 || tag >> WIRE_BITS > MOST_FIELD)
        return err_set(e, ERR_INVALID, "a field has a number that no field can have");
    *ret_field = (struct proto_field){.number = (int)(tag >> WIRE_BITS)};
    switch (tag & ((1 << WIRE_BITS) - 1)) {
    case PROTO_VARINT:
        ret_field->wire = PROTO_VARINT;
        return need_varint(at, end, &ret_field->value, e);
    case PROTO_64:
        ret_field->wire = PROTO_64;
        return take_fixed(at, end, sizeof(uint64_t), &ret_field->value, e);
    case PROTO_BYTES:
        ret_field->wire = PROTO_BYTES;
        return take_bytes(at, end, ret_field, e);
    case PROTO_32:
        ret_field->wire = PROTO_32;
        return take_fixed(at, end, sizeof(uint32_t), &ret_field->value, e);
    default:
        return err_set(e, ERR_INVALID, "field %d has an unknown form", ret_field->number);
    }
}
