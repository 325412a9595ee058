/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job-find.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static json_t *job_of(const char *properties)
{
    json_t *job = NULL;
    auto_free char *text = xasprintf("{\"properties\":%s}", properties);
    struct err e;

    if (json_parse(text, strlen(text), &job, &e) < 0)
        fail_msg("%s: %s", text, e.msg);
    return job;
}

static void the_exit_status_is_the_jobs(void **state)
{
    static const struct row {
        const char *properties;
        bool has_ended;
        int status;
    } rows[] = {
        {"{\"executionState\":\"succeeded\",\"executionInfo\":{\"exitCode\":0}}", true, 0},
        {"{\"executionState\":\"failed\",\"executionInfo\":{\"exitCode\":42}}", true, 42},
        {"{\"executionState\":\"failed\",\"executionInfo\":{\"exitCode\":256}}", true, 1},
        {"{\"executionState\":\"failed\",\"executionInfo\":{\"exitCode\":-1}}", true, 255},
        {"{\"executionState\":\"failed\",\"executionInfo\":{}}", true, 255},
        {"{\"executionState\":\"failed\"}", true, 255},
        {"{\"executionState\":\"running\"}", false, 255},
        {"{}", false, 255},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_json json_t *job = job_of(rows[i].properties);

        assert_int_equal(job_has_ended(job), rows[i].has_ended);
        assert_int_equal(job_exit_status(job), rows[i].status);
    }
}

static void times_are_told_in_the_largest_units(void **state)
{
    static const struct row {
        long long seconds;
        const char *want;
    } rows[] = {
        {-1, "-"},           {0, "0 s"},          {59, "59 s"},
        {61, "1 min 1 s"},   {3600, "1 h 0 min"}, {90000, "25 h 0 min"},
        {864000, "10 days"},
    };
    auto_json json_t *job = job_of("{\"executionInfo\":{\"startTime\":\"2018-06-07T22:08:30Z\","
                                   "\"endTime\":\"2018-06-07T22:09:31.4Z\"}}");
    auto_json json_t *none = job_of("{}");
    char buf[32];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_string_equal(job_format_span(rows[i].seconds, buf), rows[i].want);
    assert_int_equal(job_run_seconds(job), 61);
    assert_int_equal(job_run_seconds(none), -1);
}

static void an_id_has_a_short_name(void **state)
{
    auto_free char *name = job_short_name("/subscriptions/s/resourceGroups/g/providers/p/"
                                          "workspaces/w/experiments/e/jobs/j");
    auto_free char *none = job_short_name("");

    (void)state;
    assert_string_equal(name, "e/j");
    assert_string_equal(none, "?/?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exit_status_is_the_jobs),
        cmocka_unit_test(times_are_told_in_the_largest_units),
        cmocka_unit_test(an_id_has_a_short_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
