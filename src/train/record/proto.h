/* proto.h - the wire form of protocol buffers, as much of it as tf.Example and TensorBoard's
 * Event need: varints, 32 and 64 bit numbers, bytes, messages.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_RECORD_PROTO_H
#define TRAIN_RECORD_PROTO_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct str;

/* Writing: field by field, in any order. */
void proto_add_int(struct str *out, int field, int64_t value); /* int32, int64, bool, enum */
void proto_add_double(struct str *out, int field, double value);
void proto_add_float(struct str *out, int field, float value);
void proto_add_bytes(struct str *out, int field, const void *bytes, size_t len);
void proto_add_text(struct str *out, int field, const char *text);

enum proto_wire {
    PROTO_VARINT = 0,
    PROTO_64 = 1,
    PROTO_BYTES = 2, /* strings, messages, packed numbers */
    PROTO_32 = 5,
};

struct proto_field {
    int number;
    enum proto_wire wire;
    uint64_t value;       /* of the numbers, as bits */
    const uint8_t *bytes; /* of PROTO_BYTES: borrowed from the message */
    size_t len;
};

/* Reading: `at` and `end` bound what is left of a message; each call takes one field off.
 * Returns 1 with *ret_field, 0 at the end, -1 when the bytes are no message. */
int proto_next(const uint8_t **at,
               const uint8_t *end,
               struct proto_field *ret_field,
               struct err *e);
/* One varint off a packed field; the same answers. */
int proto_next_varint(const uint8_t **at,
                      const uint8_t *end,
                      uint64_t *ret_value,
                      struct err *e);

#endif
