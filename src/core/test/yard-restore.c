/* A mind built again goes on where the first one stood.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "yard-bench.h"

/* One cluster, node 1 running job 1 (attempt 1), node 2 idle, node 3 on its way, node 4
 * leaving, node 5 unusable; job 2 queued. */
static struct yard *rows(void)
{
    static const enum node_state states[] = {NODE_RUNNING, NODE_IDLE, NODE_CREATING,
                                             NODE_LEAVING, NODE_UNUSABLE};
    struct yard *y = yard_new(&bench_limits);
    struct yard_cluster c = bench_manual(4);
    struct yard_job running = bench_job(1, 1), queued = bench_job(2, 3);
    int64_t nodes[] = {1};
    struct yard_attempt a = {
        .id = 7, .job_id = 1, .number = 2, .nodes = nodes, .node_count = 1};

    running.state = JOB_RUNNING;
    running.attempts = 2;
    running.attempt_id = 7;
    running.started_ms = a.created_ms = 500;
    running.exit_code = queued.exit_code = -1;
    a.state = ATTEMPT_RUNNING;
    c.steady_ms = 5;
    yard_restore_attempt(y, &a); /* before what it belongs to */
    yard_restore_job(y, &queued);
    yard_restore_job(y, &running);
    for (int64_t id = 1; id <= 5; id++) {
        struct yard_node n = {.id = id, .cluster_id = 1, .state = states[id - 1]};

        n.attempt_id = id == 1 ? 7 : 0;
        yard_restore_node(y, &n);
    }
    yard_restore_cluster(y, &c);
    yard_restore_ids(y, 20, 30);
    return y;
}

static void what_is_under_way_is_said_again(void **state)
{
    autoptr(yard) y = rows();

    (void)state;
    yard_resume(y, 1000);
    assert_actions(y, "add 1, add 2, add 3, remove 4, start 7");
    bench_up(y, 1, 2, 1000); /* no news */
    assert_actions(y, "");
    bench_end(y, 7, ENDED_EXITED, 0, 1000);
    assert_string_equal(bench_state(y, 1), "succeeded");
    yard_node_up(y, 3, 1000, NULL);
    assert_actions(y, "start 31"); /* no id twice */
    assert_string_equal(bench_state(y, 2), "running");
}

static void a_stopping_attempt_is_said_with_both_words(void **state)
{
    autoptr(yard) y = rows();
    struct yard_job job = bench_job(3, 1);
    int64_t nodes[] = {2};
    struct yard_attempt a = {
        .id = 8, .job_id = 3, .number = 1, .nodes = nodes, .node_count = 1};
    struct yard_node n = {.id = 6, .cluster_id = 1, .state = NODE_RUNNING, .attempt_id = 8};

    (void)state;
    nodes[0] = 6;
    job.state = JOB_TERMINATING;
    job.attempts = 1;
    job.attempt_id = 8;
    job.exit_code = -1;
    a.state = ATTEMPT_STOPPING;
    a.stop = STOP_USER;
    yard_restore_attempt(y, &a);
    yard_restore_job(y, &job);
    yard_restore_node(y, &n);
    yard_resume(y, 1000);
    assert_actions(y,
                   "add 1, add 2, add 3, remove 4, add 6, start 7, start 8, stop 8, remove 5");
}

static void wishes_and_time_that_passed_meanwhile_are_heeded(void **state)
{
    autoptr(yard) y = rows();

    (void)state;
    mind_job(y, 2)->it.is_unwanted = true;
    yard_resume(y, 500 + BENCH_HOUR);
    assert_actions(y, "add 1, add 2, add 3, remove 4, start 7, stop 7");
    assert_string_equal(bench_state(y, 2), "failed");
}

static void rows_that_the_mind_never_saw_are_new(void **state)
{
    autoptr(yard) y = yard_new(&bench_limits);
    struct yard_cluster c = bench_automatic(0, 5);
    struct yard_job job = bench_job(1, 1);

    (void)state;
    c.initial = 2;
    yard_restore_cluster(y, &c);
    yard_restore_job(y, &job);
    yard_resume(y, 1000);
    assert_actions(y, "add 1, add 2");
    assert_string_equal(bench_state(y, 1), "queued");
}

static void what_does_not_fit_together_is_mended(void **state)
{
    autoptr(yard) y = yard_new(&bench_limits);
    struct yard_cluster c = bench_manual(1);
    struct yard_job job = bench_job(1, 1), orphan = bench_job(2, 1);
    struct yard_node n = {.id = 1, .cluster_id = 1, .state = NODE_RUNNING, .attempt_id = 9};
    struct yard_node stray = {.id = 2, .cluster_id = 77};

    (void)state;
    job.state = JOB_RUNNING; /* its attempt is not there */
    job.attempts = 1;
    job.attempt_id = 9;
    job.started_ms = 1;
    orphan.cluster_id = 77;
    c.steady_ms = 5;
    yard_restore_cluster(y, &c);
    yard_restore_job(y, &job);
    yard_restore_job(y, &orphan);
    yard_restore_node(y, &n);
    yard_restore_node(y, &stray);
    yard_resume(y, 1000);
    bench_check(y);
    assert_string_equal(yard_job(y, 1)->error_code, "JobStateUnknown");
    assert_string_equal(yard_job(y, 2)->error_code, "ClusterDeleted");
    assert_nodes(y, 1, "1 idle, steady");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_under_way_is_said_again),
        cmocka_unit_test(a_stopping_attempt_is_said_with_both_words),
        cmocka_unit_test(wishes_and_time_that_passed_meanwhile_are_heeded),
        cmocka_unit_test(rows_that_the_mind_never_saw_are_new),
        cmocka_unit_test(what_does_not_fit_together_is_mended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
