/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shape.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void times_are_written_as_python_does(void **state)
{
    static const struct row {
        const char *wire, *want;
    } rows[] = {
        {"2018-06-16T01:24:13.629Z", "2018-06-16T01:24:13.629000+00:00"},
        {"2018-06-16T01:24:13.03Z", "2018-06-16T01:24:13.030000+00:00"},
        {"2018-06-16T01:24:13Z", "2018-06-16T01:24:13+00:00"},
        {"2018-06-16T01:24:13.0Z", "2018-06-16T01:24:13+00:00"},
        {"2018-06-16T01:24:13.1234567Z", "2018-06-16T01:24:13.123456+00:00"},
        {"2018-06-16T01:24:13.5+02:00", "2018-06-16T01:24:13.500000+02:00"},
        {"not a time at all, really", NULL},
        {"2018-06-16", NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_free char *got = shape_time(rows[i].wire);

        if (!str_equal(got, rows[i].want))
            fail_msg("%s: %s", rows[i].wire, got ? got : "(null)");
    }
}

static void durations_are_written_as_python_does(void **state)
{
    static const struct row {
        const char *wire, *want;
    } rows[] = {
        {"P7D", "7 days, 0:00:00"},      {"P1D", "1 day, 0:00:00"},         {"PT1H", "1:00:00"},
        {"PT90M0.5S", "1:30:00.500000"}, {"7.00:00:00", "7 days, 0:00:00"}, {"soon", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_free char *got = shape_duration(rows[i].wire);

        if (!str_equal(got, rows[i].want))
            fail_msg("%s: %s", rows[i].wire, got ? got : "(null)");
    }
}

static void check(const struct shape *shape, const char *wire, const char *want)
{
    auto_json json_t *value = NULL, *shaped = NULL;
    auto_free char *got = NULL, *before = NULL, *after = NULL;
    struct err e;

    if (json_parse(wire, strlen(wire), &value, &e) < 0)
        fail_msg("%s: %s", wire, e.msg);
    before = json_canonical(value);
    shaped = shape_apply(shape, value);
    got = json_canonical(shaped);
    assert_string_equal(got, want);
    after = json_canonical(value);
    assert_string_equal(after, before);
}

static void properties_are_lifted_and_members_filled(void **state)
{
    static const struct shape shape = {
        .flat = true,
        .members = "creationTime name resourceGroup tags",
        .times = "creationTime",
        .renames = "acls=rules",
    };

    (void)state;
    check(&shape,
          "{\"name\":\"w\",\"properties\":{\"creationTime\":\"2018-06-16T01:24:13.6Z\","
          "\"acls\":[1],\"name\":\"inner\"},"
          "\"id\":\"/subscriptions/s/resourceGroups/g/providers/P/ws/w\"}",
          "{\"creationTime\":\"2018-06-16T01:24:13.600000+00:00\","
          "\"id\":\"/subscriptions/s/resourceGroups/g/providers/P/ws/w\",\"name\":\"w\","
          "\"resourceGroup\":\"g\",\"rules\":[1],\"tags\":null}");
    check(&shape, "[{\"name\":\"a\"},{\"name\":\"b\",\"tags\":{}}]",
          "[{\"creationTime\":null,\"name\":\"a\",\"resourceGroup\":null,\"tags\":null},"
          "{\"creationTime\":null,\"name\":\"b\",\"resourceGroup\":null,\"tags\":{}}]");
    check(&shape, "\"text\"", "\"text\"");
    check(&shape, "{\"properties\":\"no object\"}",
          "{\"creationTime\":null,\"name\":null,\"properties\":\"no object\","
          "\"resourceGroup\":null,\"tags\":null}");
}

static void resource_ids_get_their_group(void **state)
{
    static const struct shape shape = {.flat = true};

    (void)state;
    check(
        &shape,
        "{\"id\":\"/subscriptions/s/resourceGroups/g.1/providers/P/ws/w\","
        "\"cluster\":{\"id\":\"/subscriptions/s/resourcegroups/h/providers/P/ws/w/c/x\"}}",
        "{\"cluster\":{\"id\":\"/subscriptions/s/resourcegroups/h/providers/P/ws/w/c/x\","
        "\"resourceGroup\":\"h\"},\"id\":\"/subscriptions/s/resourceGroups/g.1/providers/P/ws/"
        "w\",\"resourceGroup\":\"g.1\"}");
    /* The id of a group itself has none to show. */
    check(&shape, "{\"id\":\"/subscriptions/s/resourceGroups/g\"}",
          "{\"id\":\"/subscriptions/s/resourceGroups/g\"}");
    check(&shape, "{\"id\":5}", "{\"id\":5}");
}

static void sorting_reaches_every_level(void **state)
{
    auto_json json_t *value = json_pack("{s:[{s:i,s:i}],s:i}", "z", "y", 1, "x", 2, "a", 3);
    auto_json json_t *sorted = shape_sorted(value);
    auto_str text = {0};

    (void)state;
    json_write(&text, sorted);
    assert_string_equal(str_text(&text), "{\"a\":3,\"z\":[{\"x\":2,\"y\":1}]}");
}

static void what_is_within_is_filled_and_renamed(void **state)
{
    static const struct shape_part parts[] = {
        {.at = "list", .members = "a b"},
        {.at = "one/list", .members = "c"},
        {.at = "disks", .members = "sizeInGb", .renames = "sizeInGB=sizeInGb"},
        {0},
    };
    static const struct shape shape = {.flat = true, .durations = "time", .parts = parts};

    (void)state;
    check(&shape,
          "{\"properties\":{\"list\":[{\"a\":1},2],\"one\":{\"list\":{\"time\":\"P1D\"}},"
          "\"disks\":{\"sizeInGB\":3}}}",
          "{\"disks\":{\"sizeInGb\":3},\"list\":[{\"a\":1,\"b\":null},2],\"one\":{\"list\":"
          "{\"a\":null,\"b\":null,\"c\":null,\"time\":\"1 day, 0:00:00\"}}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_within_is_filled_and_renamed),
        cmocka_unit_test(durations_are_written_as_python_does),
        cmocka_unit_test(times_are_written_as_python_does),
        cmocka_unit_test(properties_are_lifted_and_members_filled),
        cmocka_unit_test(resource_ids_get_their_group),
        cmocka_unit_test(sorting_reaches_every_level),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
