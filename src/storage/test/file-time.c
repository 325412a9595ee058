/* SPDX-License-Identifier: Apache-2.0 */
#include "share-yard.h"
#include "storage/file-ops.h"

static void times_are_written_in_steps_of_100_ns(void **state)
{
    static const struct {
        int64_t ns;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00.0000000Z"},
        {1500000000123456789, "2017-07-14T02:40:00.1234567Z"},
        {-1, "1969-12-31T23:59:59.9999999Z"},
        {-1000000000, "1969-12-31T23:59:59.0000000Z"},
        {951827696000000100, "2000-02-29T12:34:56.0000001Z"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[FILE_TIME_BYTES];

        assert_string_equal(file_time_format(rows[i].ns, text), rows[i].text);
    }
}

static void times_are_read_to_the_last_digit(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t ns;
    } rows[] = {
        {"1970-01-01T00:00:00Z", true, 0},
        {"2017-07-14T02:40:00.1234567Z", true, 1500000000123456700},
        {"2017-07-14T02:40:00.5Z", true, 1500000000500000000},
        {"1969-12-31T23:59:59.9999999Z", true, -100},
        {"1969-12-31T23:59:59.25Z", true, -750000000},
        {"2017-07-14T04:40:00.1234567+02:00", true, 1500000000123456700},
        {"1601-01-01T00:00:00Z", false, 0},
        {"9999-12-31T23:59:59Z", false, 0},
        {"now", false, 0},
        {"", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct err e = {0};
        int64_t ns = 0;

        assert_int_equal(file_time_parse(rows[i].text, &ns, &e) == 0, rows[i].ok);
        assert_int_equal(ns, rows[i].ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_written_in_steps_of_100_ns),
        cmocka_unit_test(times_are_read_to_the_last_digit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
