/* SPDX-License-Identifier: Apache-2.0 */
#include "train/record/proto.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void fields_come_back(void **state)
{
    auto_str out = {0};
    const uint8_t *at, *end;
    struct proto_field f;
    float number;

    (void)state;
    proto_add_int(&out, 1, -2);
    proto_add_double(&out, 2, 1.5);
    proto_add_float(&out, 3, 0.25F);
    proto_add_text(&out, 536870911, "tag"); /* the largest number a field can have */
    at = (const uint8_t *)out.data;
    end = at + out.len;
    assert_int_equal(proto_next(&at, end, &f, NULL), 1);
    assert_int_equal(f.number, 1);
    assert_int_equal((int64_t)f.value, -2);
    assert_int_equal(proto_next(&at, end, &f, NULL), 1);
    assert_int_equal(f.wire, PROTO_64);
    assert_int_equal(f.value, 0x3ff8000000000000);
    assert_int_equal(proto_next(&at, end, &f, NULL), 1);
    memcpy(&number, &f.value, sizeof(number));
    assert_float_equal(number, 0.25F, 0);
    assert_int_equal(proto_next(&at, end, &f, NULL), 1);
    assert_int_equal(f.number, 536870911);
    assert_int_equal(f.len, 3);
    assert_memory_equal(f.bytes, "tag", 3);
    assert_int_equal(proto_next(&at, end, &f, NULL), 0);
}

static void bytes_on_the_wire_are_googles(void **state)
{
    auto_str out = {0};

    (void)state;
    proto_add_int(&out, 1, 150); /* the example of the format's own description */
    proto_add_text(&out, 2, "testing");
    assert_int_equal(out.len, 12);
    assert_memory_equal(out.data, "\x08\x96\x01\x12\x07testing", 12);
}

static void what_is_no_message_is_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {
        {"\x08", 1},                                              /* no value */
        {"\x08\x96", 2},                                          /* a number cut short */
        {"\x12\x07test", 6},                                      /* a text cut short */
        {"\x0d\x01\x02", 3},                                      /* 32 bits cut short */
        {"\x09\x01\x02\x03\x04\x05\x06\x07", 8},                  /* 64 bits cut short */
        {"\x00\x01", 2},                                          /* field 0 */
        {"\x0b", 1},                                              /* a group */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* more than 64 bits */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const uint8_t *at = (const uint8_t *)bad[i].bytes;
        struct proto_field f;
        struct err e;

        assert_int_equal(proto_next(&at, at + bad[i].len, &f, &e), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_come_back),
        cmocka_unit_test(bytes_on_the_wire_are_googles),
        cmocka_unit_test(what_is_no_message_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
