/* SPDX-License-Identifier: Apache-2.0 */
#include "train/record/tfrecord.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void checksums_are_castagnolis(void **state)
{
    uint8_t bytes[32] = {0};

    (void)state;
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283); /* RFC 3720, appendix B.4 */
    assert_int_equal(crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof(bytes));
    assert_int_equal(crc32c(0, bytes, 32), 0x62a8ab43);
    assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

static void tables_and_instruction_agree(void **state)
{
    uint8_t bytes[257];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    for (size_t len = 0; len <= 64; len++)
        for (size_t from = 0; from < 9; from++)
            assert_int_equal(crc32c(7, bytes + from, len), crc32c_tables(7, bytes + from, len));
    assert_int_equal(crc32c(0, bytes, sizeof(bytes)), crc32c_tables(0, bytes, sizeof(bytes)));
}

/* Three records: "", "a", "hello". */
static void make(struct str *out)
{
    tfrecord_add(out, "", 0);
    tfrecord_add(out, "a", 1);
    tfrecord_add(out, "hello", 5);
}

static void records_come_back(void **state)
{
    static const char *const expected[] = {"", "a", "hello"};
    auto_str file = {0};
    size_t at = 0;

    (void)state;
    make(&file);
    for (int i = 0; i < 3; i++) {
        const void *data;
        size_t len, next, skipped;

        assert_int_equal(tfrecord_skip(file.data, file.len, at, &skipped, NULL), 0);
        assert_int_equal(tfrecord_at(file.data, file.len, at, &data, &len, &next, NULL), 0);
        assert_int_equal(len, strlen(expected[i]));
        assert_memory_equal(data, expected[i], len);
        assert_int_equal(next, skipped);
        at = next;
    }
    assert_int_equal(at, file.len);
}

static void damage_is_told_apart(void **state)
{
    auto_str file = {0};
    const void *data;
    size_t len, next;
    struct err e;

    (void)state;
    make(&file);
    file.data[16 + 12] ^= 1; /* the "a" */
    assert_int_equal(tfrecord_at(file.data, file.len, 16, &data, &len, &next, &e), -1);
    assert_non_null(strstr(e.msg, "checksum of the data at offset 16"));
    assert_int_equal(next, 33); /* that one alone is lost */
    file.data[16] ^= 1;         /* its length */
    assert_int_equal(tfrecord_at(file.data, file.len, 16, &data, &len, &next, &e), -1);
    assert_non_null(strstr(e.msg, "checksum of the length at offset 16"));
    assert_int_equal(next, 0);
    assert_int_equal(tfrecord_at(file.data, file.len - 1, 33, &data, &len, &next, &e), -1);
    assert_non_null(strstr(e.msg, "cut short"));
    assert_int_equal(tfrecord_at(file.data, file.len, file.len - 3, &data, &len, &next, &e),
                     -1);
    assert_int_equal(tfrecord_at(file.data, file.len, file.len + 9, &data, &len, &next, &e),
                     -1);
}

static void a_length_beyond_the_bound_is_refused(void **state)
{
    uint8_t head[32] = {0};
    uint64_t huge = TFRECORD_MOST_BYTES + 1ULL;
    uint32_t crc;
    const void *data;
    size_t len, next;
    struct err e;

    (void)state;
    memcpy(head, &huge, sizeof(huge));
    crc = crc32c_mask(crc32c(0, head, 8));
    memcpy(head + 8, &crc, sizeof(crc));
    assert_int_equal(tfrecord_at(head, sizeof(head), 0, &data, &len, &next, &e), -1);
    assert_non_null(strstr(e.msg, "too long"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_are_castagnolis),
        cmocka_unit_test(tables_and_instruction_agree),
        cmocka_unit_test(records_come_back),
        cmocka_unit_test(damage_is_told_apart),
        cmocka_unit_test(a_length_beyond_the_bound_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
