/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void written_forms(void **state)
{
    static const struct {
        int64_t wall_ms;
        const char *iso, *http;
    } table[] = {
        {0, "1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 GMT"},
        {1528310366490, "2018-06-06T18:39:26.49Z", "Wed, 06 Jun 2018 18:39:26 GMT"},
        {1528310366400, "2018-06-06T18:39:26.4Z", "Wed, 06 Jun 2018 18:39:26 GMT"},
        {1528310366007, "2018-06-06T18:39:26.007Z", "Wed, 06 Jun 2018 18:39:26 GMT"},
        {1528310360000, "2018-06-06T18:39:20Z", "Wed, 06 Jun 2018 18:39:20 GMT"},
        {951782400000, "2000-02-29T00:00:00Z", "Tue, 29 Feb 2000 00:00:00 GMT"},
        {253402300799999, "9999-12-31T23:59:59.999Z", "Fri, 31 Dec 9999 23:59:59 GMT"},
        {-1, "1969-12-31T23:59:59.999Z", "Wed, 31 Dec 1969 23:59:59 GMT"},
        {-62135596800000, "0001-01-01T00:00:00Z", "Mon, 01 Jan 0001 00:00:00 GMT"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char iso[CLOCK_ISO_BYTES], http[CLOCK_HTTP_BYTES];

        assert_string_equal(clock_format_iso(table[i].wall_ms, iso), table[i].iso);
        assert_string_equal(clock_format_http(table[i].wall_ms, http), table[i].http);
    }
}

static void no_time_overruns_its_buffer(void **state)
{
    static const int64_t table[] = {INT64_MAX, INT64_MIN, INT64_MAX / 1000, INT64_MIN / 1000};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char iso[CLOCK_ISO_BYTES], http[CLOCK_HTTP_BYTES];

        assert_true(strlen(clock_format_iso(table[i], iso)) < sizeof(iso));
        assert_true(strlen(clock_format_http(table[i], http)) < sizeof(http));
    }
}

static void parsed_forms(void **state)
{
    static const struct {
        const char *text;
        int64_t wall_ms;
    } table[] = {
        {"1970-01-01", 0},
        {"1970-01-01T00:00Z", 0},
        {"1970-01-01T00:00:00", 0},
        {"2018-06-06T18:39:26.49Z", 1528310366490},
        {"2018-06-06T18:39:26.4901234Z", 1528310366490}, /* seven digits, as .NET writes */
        {"2018-06-06T20:39:26+02:00", 1528310366000},
        {"2018-06-06T13:09:26-05:30", 1528310366000},
        {"2018-06-06T18:39:26+00:00", 1528310366000},
        {"2000-02-29", 951782400000},
        {"2024-02-29T00:00:00Z", 1709164800000},
        {"2016-12-31T23:59:60Z", 1483228800000}, /* a leap second is the next one */
        {"1969-12-31T23:59:59.999Z", -1},
        {"0001-01-01T00:00:00Z", -62135596800000},
        {"9999-12-31T23:59:59.999Z", 253402300799999},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        int64_t wall_ms = 42;
        struct err e = {0};

        if (clock_parse_iso(table[i].text, &wall_ms, &e) < 0)
            fail_msg("%s", e.msg);
        assert_int_equal(wall_ms, table[i].wall_ms);
    }
}

static void what_is_no_time_is_refused(void **state)
{
    static const char *const table[] = {
        "",
        "now",
        "2018",
        "2018-06",
        "2018-6-06",
        "18-06-06",
        "2018-13-01",
        "2018-00-01",
        "2018-01-00",
        "2018-01-32",
        "2018-04-31",
        "2023-02-29",
        "1900-02-29",
        "2018-06-06T",
        "2018-06-06T18",
        "2018-06-06T24:00",
        "2018-06-06T18:60",
        "2018-06-06T18:39:61",
        "2018-06-06T18:39:26.",
        "2018-06-06T18:39:26.Z",
        "2018-06-06T18:39:26Zx",
        "2018-06-06T18:39:26+0200",
        "2018-06-06T18:39:26+24:00",
        "2018-06-06T18:39:26+02:60",
        "2018-06-06T18:39:26+99:99",
        "2018-06-06 18:39:26",
        " 2018-06-06",
        "2018-06-06 ",
        "-018-06-06",
        "2018-06-06T-1:00",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        int64_t wall_ms = 42;
        struct err e = {0};

        if (clock_parse_iso(table[i], &wall_ms, &e) == 0)
            fail_msg("accepted: %s", table[i]);
        assert_int_equal(e.code, ERR_INVALID);
        assert_int_equal(wall_ms, 42);
    }
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    for (int64_t ms = -5000000000; ms < 5000000000000; ms += 86399999 * 37LL) {
        char iso[CLOCK_ISO_BYTES];
        int64_t back = 0;

        assert_int_equal(clock_parse_iso(clock_format_iso(ms, iso), &back, NULL), 0);
        assert_int_equal(back, ms);
    }
}

static void http_dates_are_read_back_and_others_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "x",
                                      "Wed, 06 Jun 2018 18:39:26",
                                      "Wed, 06 Jun 2018 18:39:26 GMT ",
                                      "Wed, 06 Jun 2018 18:39:26 UTC",
                                      "Wed, 6 Jun 2018 18:39:26 GMT",
                                      "Wed, 31 Jun 2018 18:39:26 GMT",
                                      "Wed, 06 Jux 2018 18:39:26 GMT",
                                      "Wed, 06 Jun 2018 24:39:26 GMT",
                                      "2018-06-06T18:39:26Z"};

    (void)state;
    for (int64_t ms = 0; ms < 5000000000000; ms += 86399000 * 37LL) {
        char text[CLOCK_HTTP_BYTES];
        int64_t back = -1;

        assert_int_equal(clock_parse_http(clock_format_http(ms, text), &back, NULL), 0);
        assert_int_equal(back, ms);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        int64_t wall_ms = 42;
        struct err e = {0};

        if (clock_parse_http(bad[i], &wall_ms, &e) == 0)
            fail_msg("accepted: %s", bad[i]);
        assert_int_equal(e.code, ERR_INVALID);
        assert_int_equal(wall_ms, 42);
    }
}

static void clocks_run(void **state)
{
    int64_t us = clock_mono_us(), ms = clock_mono_ms();

    (void)state;
    assert_true(clock_wall_ms() > 1700000000000); /* after 2023 */
    assert_true(ms - us / 1000 >= 0 && ms - us / 1000 < 10000);
    assert_true(clock_mono_us() >= us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_forms),
        cmocka_unit_test(no_time_overruns_its_buffer),
        cmocka_unit_test(parsed_forms),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(http_dates_are_read_back_and_others_refused),
        cmocka_unit_test(clocks_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
