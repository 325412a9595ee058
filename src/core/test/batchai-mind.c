/* What the mind of the yard takes from the kept form.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/mem.h"
#include "core/batchai.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct yard_cluster cluster_of(const char *kept)
{
    auto_json json_t *spec = json_loads(kept, 0, NULL);
    struct yard_cluster cluster = {.id = 7, .idle_ms = 60};

    assert_non_null(spec);
    batchai_fill_cluster(spec, &cluster);
    assert_int_equal(cluster.id, 7);
    assert_int_equal(cluster.idle_ms, 60);
    return cluster;
}

static void a_manual_cluster_is_told(void **state)
{
    struct yard_cluster cluster =
        cluster_of("{\"vmSize\": \"host\", \"scaleSettings\": {\"manual\": "
                   "{\"targetNodeCount\": 3, \"nodeDeallocationOption\": \"terminate\"}}}");

    (void)state;
    assert_false(cluster.is_automatic);
    assert_int_equal(cluster.target, 3);
    assert_int_equal(cluster.deallocation, DEALLOCATE_TERMINATE);
}

static void an_automatic_cluster_is_told(void **state)
{
    struct yard_cluster cluster = cluster_of(
        "{\"vmSize\": \"host\", \"scaleSettings\": {\"autoScale\": {\"minimumNodeCount\": 1, "
        "\"maximumNodeCount\": 5, \"initialNodeCount\": 2}}}");

    (void)state;
    assert_true(cluster.is_automatic);
    assert_int_equal(cluster.least, 1);
    assert_int_equal(cluster.most, 5);
    assert_int_equal(cluster.initial, 2);
    assert_int_equal(cluster.deallocation, DEALLOCATE_REQUEUE);
}

static struct yard_job job_of(const char *kept)
{
    auto_json json_t *spec = json_loads(kept, 0, NULL);
    struct yard_job job = {.id = 7, .most_attempts = 4};

    assert_non_null(spec);
    batchai_fill_job(spec, &job);
    assert_int_equal(job.id, 7);
    return job;
}

static void a_job_is_told_with_what_the_yard_says_otherwise(void **state)
{
    struct yard_job job = job_of("{\"nodeCount\": 2}");

    (void)state;
    assert_int_equal(job.node_count, 2);
    assert_int_equal(job.priority, PRIORITY_NORMAL);
    assert_int_equal(job.wall_ms, (int64_t)7 * 24 * 3600 * 1000);
    assert_int_equal(job.most_attempts, 4);
}

static void a_job_s_own_limits_win(void **state)
{
    struct yard_job job =
        job_of("{\"nodeCount\": 1, \"schedulingPriority\": \"high\", \"constraints\": "
               "{\"maxWallClockTime\": \"PT90S\", \"maxAttempts\": 1}}");

    (void)state;
    assert_int_equal(job.priority, PRIORITY_HIGH);
    assert_int_equal(job.wall_ms, 90000);
    assert_int_equal(job.most_attempts, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manual_cluster_is_told),
        cmocka_unit_test(an_automatic_cluster_is_told),
        cmocka_unit_test(a_job_is_told_with_what_the_yard_says_otherwise),
        cmocka_unit_test(a_job_s_own_limits_win),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
