/* How clusters grow and shrink.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "yard-bench.h"

static void a_manual_cluster_gets_its_nodes_and_is_steady_while_they_are_prepared(void **state)
{
    autoptr(yard) y = yard_new(&bench_limits);
    struct yard_cluster c = bench_manual(2);

    (void)state;
    yard_put_cluster(y, &c, 5);
    assert_actions(y, "add 1, add 2");
    assert_nodes(y, 1, "2 preparing, steady");
    assert_string_equal(yard_node(y, 1)->name, "tvm-1-1");
    bench_up(y, 1, 2, 9);
    assert_actions(y, "");
    assert_nodes(y, 1, "2 idle, steady");
    assert_int_equal(yard_cluster(y, 1)->steady_ms, 5);
}

static void a_cluster_of_nothing_is_steady_at_once(void **state)
{
    autoptr(yard) y = yard_new(&bench_limits);
    struct yard_cluster c = bench_manual(0);

    (void)state;
    yard_put_cluster(y, &c, 5);
    assert_actions(y, "");
    assert_nodes(y, 1, "steady");
}

static void shrinking_is_resizing_until_the_nodes_are_gone(void **state)
{
    autoptr(yard) y = bench_with(2);
    struct yard_cluster c = bench_manual(0);

    (void)state;
    yard_put_cluster(y, &c, BENCH_BEGIN + 1);
    assert_actions(y, "remove 2, remove 1");
    assert_nodes(y, 1, "2 leaving, resizing");
    assert_int_equal(yard_node_gone(y, 1, BENCH_BEGIN + 2, NULL), 0);
    assert_nodes(y, 1, "1 leaving, resizing");
    assert_int_equal(yard_node_gone(y, 2, BENCH_BEGIN + 3, NULL), 0);
    assert_nodes(y, 1, "steady");
    assert_null(yard_node(y, 1));
    c.target = 1;
    yard_put_cluster(y, &c, BENCH_BEGIN + 4);
    assert_actions(y, "add 3"); /* an id is never used again */
}

/* Two nodes work on job 1, one is idle; the target becomes 1. */
static struct yard *shrunk(enum deallocation option)
{
    struct yard *y = bench_with(3);
    struct yard_cluster c = bench_manual(1);

    c.deallocation = option;
    bench_submit(y, 1, 2, BENCH_BEGIN);
    assert_actions(y, "start 1");
    yard_put_cluster(y, &c, BENCH_BEGIN + 1);
    return y;
}

static void requeue_stops_the_job_and_puts_it_back(void **state)
{
    autoptr(yard) y = shrunk(DEALLOCATE_REQUEUE);

    (void)state;
    assert_actions(y, "remove 3, stop 1");
    assert_string_equal(bench_state(y, 1), "running");
    bench_end(y, 1, ENDED_STOPPED, -1, BENCH_BEGIN + 2);
    assert_actions(y, "remove 2");
    assert_string_equal(bench_state(y, 1), "queued");
    assert_int_equal(yard_job(y, 1)->started_ms, 0);
    assert_int_equal(yard_job(y, 1)->losses, 0);
    assert_nodes(y, 1, "1 idle, 2 leaving, resizing");
}

static void terminate_ends_the_job_for_good(void **state)
{
    autoptr(yard) y = shrunk(DEALLOCATE_TERMINATE);

    (void)state;
    assert_actions(y, "remove 3, stop 1");
    assert_string_equal(bench_state(y, 1), "terminating");
    bench_end(y, 1, ENDED_STOPPED, -1, BENCH_BEGIN + 2);
    assert_actions(y, "remove 2");
    assert_string_equal(bench_state(y, 1), "failed");
    assert_string_equal(yard_job(y, 1)->error_code, "JobTerminated");
}

static void wait_lets_the_job_end_and_starts_nothing_on_its_nodes(void **state)
{
    autoptr(yard) y = shrunk(DEALLOCATE_WAIT);

    (void)state;
    assert_actions(y, "remove 3");
    bench_submit(y, 2, 1, BENCH_BEGIN + 1);
    assert_actions(y, "");
    bench_end(y, 1, ENDED_EXITED, 0, BENCH_BEGIN + 2);
    assert_actions(y, "remove 2, start 2");
    assert_string_equal(bench_state(y, 1), "succeeded");
}

static void the_lowest_and_youngest_work_is_stopped_first(void **state)
{
    autoptr(yard) y = bench_with(3);
    struct yard_cluster c = bench_manual(2);
    struct yard_job low = bench_job(1, 1);

    (void)state;
    low.priority = PRIORITY_LOW;
    yard_put_job(y, &low, BENCH_BEGIN);
    bench_submit(y, 2, 1, BENCH_BEGIN);
    bench_submit(y, 3, 1, BENCH_BEGIN);
    assert_actions(y, "start 1, start 2, start 3");
    yard_put_cluster(y, &c, BENCH_BEGIN + 1);
    assert_actions(y, "stop 1");
    yard_put_cluster(y, &c, BENCH_BEGIN + 2); /* said twice, done once */
    assert_actions(y, "");
    c.target = 1;
    yard_put_cluster(y, &c, BENCH_BEGIN + 3);
    assert_actions(y, "stop 3");
}

static void an_automatic_cluster_follows_its_jobs(void **state)
{
    autoptr(yard) y = yard_new(&bench_limits);
    struct yard_cluster c = bench_automatic(0, 3);
    int64_t now = BENCH_BEGIN;

    (void)state;
    yard_put_cluster(y, &c, now);
    assert_actions(y, "");
    bench_submit(y, 1, 2, now);
    bench_submit(y, 2, 4, now); /* more than it can ever have: no reason to grow */
    assert_actions(y, "add 1, add 2");
    bench_up(y, 1, 2, now);
    assert_actions(y, "start 1");
    bench_end(y, 1, ENDED_EXITED, 0, now + 1000);
    assert_int_equal(yard_next_tick(y), now + 1000 + c.idle_ms);
    yard_tick(y, now + c.idle_ms);
    assert_actions(y, "");
    yard_tick(y, now + 1000 + c.idle_ms);
    assert_actions(y, "remove 2, remove 1");
    assert_nodes(y, 1, "2 leaving, resizing");
    assert_int_equal(yard_next_tick(y), INT64_MAX);
}

static void an_automatic_cluster_keeps_its_least_and_begins_with_its_initial(void **state)
{
    autoptr(yard) y = yard_new(&bench_limits);
    struct yard_cluster c = bench_automatic(1, 5);
    int64_t now = BENCH_BEGIN;

    (void)state;
    c.initial = 3;
    yard_put_cluster(y, &c, now);
    assert_actions(y, "add 1, add 2, add 3");
    bench_up(y, 1, 3, now);
    yard_put_cluster(y, &c, now); /* initial is for the first time */
    yard_tick(y, now + c.idle_ms);
    assert_actions(y, "remove 3, remove 2");
    assert_nodes(y, 1, "1 idle, 2 leaving, resizing");
}

static void a_node_whose_set_up_failed_stays_and_is_not_replaced(void **state)
{
    autoptr(yard) y = yard_new(&bench_limits);
    struct yard_cluster c = bench_manual(2);

    (void)state;
    yard_put_cluster(y, &c, 5);
    bench_up(y, 1, 1, 6);
    bench_actions(y);
    assert_int_equal(yard_node_failed(y, 2, "NodeSetupFailed", "exit 3", "apt", 7, NULL), 0);
    assert_actions(y, "");
    assert_nodes(y, 1, "1 idle, 1 unusable, steady");
    assert_string_equal(yard_node(y, 2)->error_code, "NodeSetupFailed");
    assert_int_equal(yard_node_up(y, 2, 8, NULL), -1);
    c.target = 0; /* the remedy: to nothing and back */
    yard_put_cluster(y, &c, 9);
    assert_actions(y, "remove 2, remove 1");
    c.target = 2;
    yard_put_cluster(y, &c, 10);
    assert_actions(y, "add 3, add 4");
}

/* Jobs wait, and another node may do what the broken one cannot: up to the maximum. */
static void an_automatic_cluster_grows_past_a_broken_node(void **state)
{
    autoptr(yard) y = yard_new(&bench_limits);
    struct yard_cluster c = bench_automatic(0, 3);
    int64_t now = BENCH_BEGIN;

    (void)state;
    yard_put_cluster(y, &c, now);
    bench_submit(y, 1, 2, now);
    assert_actions(y, "add 1, add 2");
    bench_up(y, 1, 1, now);
    assert_int_equal(yard_node_failed(y, 2, "NodeSetupFailed", "exit 3", "", now, NULL), 0);
    assert_actions(y, "add 3");
    assert_nodes(y, 1, "1 idle, 1 preparing, 1 unusable, steady");
    assert_int_equal(yard_node_failed(y, 3, "NodeSetupFailed", "exit 3", "", now, NULL), 0);
    assert_actions(y, ""); /* three is all it may have */
    yard_tick(y, now + c.idle_ms);
    assert_actions(y, "remove 2, remove 3"); /* the idle one is needed */
    yard_node_gone(y, 2, now + c.idle_ms, NULL);
    assert_actions(y, "add 4");
    bench_up(y, 4, 4, now + c.idle_ms);
    assert_actions(y, "start 1");
    yard_node_gone(y, 3, now + c.idle_ms, NULL);
    assert_actions(y, ""); /* nobody waits */
    assert_nodes(y, 1, "2 running, steady");
}

static void a_broken_node_is_not_replaced_at_once_however_short_the_idle_time(void **state)
{
    autoptr(yard) y = yard_new(&bench_limits);
    struct yard_cluster c = bench_automatic(0, 1);

    (void)state;
    c.idle_ms = 0;
    yard_put_cluster(y, &c, BENCH_BEGIN);
    bench_submit(y, 1, 1, BENCH_BEGIN);
    assert_actions(y, "add 1");
    yard_node_failed(y, 1, "NodeSetupFailed", "exit 3", "", BENCH_BEGIN, NULL);
    assert_int_equal(yard_next_tick(y), BENCH_BEGIN + MIND_HEAL_MS);
    yard_tick(y, BENCH_BEGIN + 1);
    assert_actions(y, "");
    yard_tick(y, BENCH_BEGIN + MIND_HEAL_MS);
    assert_actions(y, "remove 1");
}

static void an_idle_node_that_is_lost_is_replaced(void **state)
{
    autoptr(yard) y = bench_with(2);

    (void)state;
    assert_int_equal(yard_node_failed(y, 1, "NodeLost", "dead", "", BENCH_BEGIN, NULL), 0);
    assert_actions(y, "remove 1, add 3");
    assert_nodes(y, 1, "1 idle, 1 preparing, 1 leaving, resizing");
    assert_int_equal(yard_node_up(y, 1, BENCH_BEGIN, NULL), -1); /* it flaps */
    assert_int_equal(yard_node_failed(y, 1, "", "", "", BENCH_BEGIN, NULL), -1);
    assert_actions(y, "");
}

static void a_cluster_short_of_cores_says_so_and_tries_again(void **state)
{
    struct yard_limits limits = {.cores = 8, .most_nodes = 10};
    autoptr(yard) y = yard_new(&limits);
    struct yard_cluster first = bench_manual(1), second = bench_manual(2);

    (void)state;
    first.cores = second.cores = 4;
    second.id = 2;
    yard_put_cluster(y, &first, 5);
    yard_put_cluster(y, &second, 6);
    assert_actions(y, "add 1, add 2");
    assert_nodes(y, 2, "1 preparing, steady");
    assert_string_equal(yard_cluster(y, 2)->error_code, "CoreQuotaReached");
    assert_string_equal(
        yard_cluster(y, 2)->error_message,
        "the cluster has 1 of 2 nodes: each takes 4 cores, and 0 of the yard's 8 are free");
    first.target = 0;
    yard_put_cluster(y, &first, 7);
    assert_actions(y, "remove 1"); /* not free before it is gone */
    yard_node_gone(y, 1, 8, NULL);
    assert_actions(y, "add 3");
    assert_string_equal(yard_cluster(y, 2)->error_code, "");
}

static void every_limit_counts(void **state)
{
    static const struct row {
        struct yard_limits limits;
        int cores, gpus, got;
        const char *code;
    } rows[] = {
        {{.cores = 8, .gpus = 0, .most_nodes = 9}, 2, 0, 4, "CoreQuotaReached"},
        {{.cores = 8, .gpus = 0, .most_nodes = 9, .oversubscribe = true}, 2, 0, 6, ""},
        {{.cores = 8, .gpus = 2, .most_nodes = 9, .oversubscribe = true},
         2,
         1,
         2,
         "GpuQuotaReached"},
        {{.cores = 99, .gpus = 0, .most_nodes = 3}, 2, 0, 3, "NodeQuotaReached"},
        {{.cores = 1, .gpus = 0, .most_nodes = 9}, 2, 0, 0, "CoreQuotaReached"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoptr(yard) y = yard_new(&rows[i].limits);
        struct yard_cluster c = bench_manual(6);
        struct node_counts n;

        c.cores = rows[i].cores;
        c.gpus = rows[i].gpus;
        yard_put_cluster(y, &c, 5);
        yard_count_nodes(y, 1, &n);
        assert_int_equal(n.preparing, rows[i].got);
        assert_string_equal(yard_cluster(y, 1)->error_code, rows[i].code);
        assert_true(yard_cluster(y, 1)->is_steady);
    }
}

/* Two automatic clusters on a machine for four nodes, two each, and each with a job for four:
 * neither may wait for the other for ever. */
static void two_clusters_do_not_hold_half_each_for_ever(void **state)
{
    struct yard_limits limits = {.cores = 4, .most_nodes = 9};
    autoptr(yard) y = yard_new(&limits);
    struct yard_cluster first = bench_automatic(0, 4), second = bench_automatic(0, 4);
    int64_t now = BENCH_BEGIN, idle_ms = first.idle_ms;

    (void)state;
    second.id = 2;
    yard_put_cluster(y, &first, now);
    yard_put_cluster(y, &second, now);
    for (int64_t id = 1; id <= 4; id++) {
        struct yard_job job = bench_job(id, id <= 2 ? 2 : 4);

        job.cluster_id = id % 2 == 1 ? 1 : 2;
        yard_put_job(y, &job, now);
    }
    assert_actions(y, "add 1, add 2, add 3, add 4");
    bench_up(y, 1, 4, now);
    assert_actions(y, "start 1, start 2");
    bench_end(y, 1, ENDED_EXITED, 0, now);
    bench_end(y, 2, ENDED_EXITED, 0, now);
    assert_actions(y, ""); /* two idle here, two there */
    yard_tick(y, now + idle_ms);
    assert_actions(y, "remove 2, remove 1, remove 4, remove 3");
    for (int64_t id = 1; id <= 4; id++)
        yard_node_gone(y, id, now + idle_ms, NULL);
    assert_actions(y, "add 5, add 6, add 7, add 8"); /* all for the older job */
    bench_up(y, 5, 8, now + idle_ms);
    assert_string_equal(bench_state(y, 3), "running");
}

static void deleting_a_cluster_ends_its_jobs_and_lets_its_nodes_go(void **state)
{
    autoptr(yard) y = bench_with(2);
    struct yard_cluster c = bench_manual(2);

    (void)state;
    bench_submit(y, 1, 1, BENCH_BEGIN);
    bench_submit(y, 2, 2, BENCH_BEGIN);
    bench_actions(y);
    c.is_deleting = true;
    yard_put_cluster(y, &c, BENCH_BEGIN + 1);
    assert_actions(y, "stop 1, remove 2");
    assert_string_equal(bench_state(y, 1), "terminating");
    assert_string_equal(bench_state(y, 2), "failed");
    assert_string_equal(yard_job(y, 2)->error_code, "ClusterDeleted");
    assert_int_equal(yard_forget_cluster(y, 1, NULL), -1);
    bench_end(y, 1, ENDED_STOPPED, -1, BENCH_BEGIN + 2);
    assert_actions(y, "remove 1");
    assert_string_equal(yard_job(y, 1)->error_code, "ClusterDeleted");
    yard_node_gone(y, 1, BENCH_BEGIN + 3, NULL);
    yard_node_gone(y, 2, BENCH_BEGIN + 3, NULL);
    bench_submit(y, 3, 1, BENCH_BEGIN + 4);
    assert_string_equal(yard_job(y, 3)->error_code, "ClusterDeleted");
    assert_int_equal(yard_forget_cluster(y, 1, NULL), 0);
    assert_null(yard_cluster(y, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manual_cluster_gets_its_nodes_and_is_steady_while_they_are_prepared),
        cmocka_unit_test(a_cluster_of_nothing_is_steady_at_once),
        cmocka_unit_test(shrinking_is_resizing_until_the_nodes_are_gone),
        cmocka_unit_test(requeue_stops_the_job_and_puts_it_back),
        cmocka_unit_test(terminate_ends_the_job_for_good),
        cmocka_unit_test(wait_lets_the_job_end_and_starts_nothing_on_its_nodes),
        cmocka_unit_test(the_lowest_and_youngest_work_is_stopped_first),
        cmocka_unit_test(an_automatic_cluster_follows_its_jobs),
        cmocka_unit_test(an_automatic_cluster_keeps_its_least_and_begins_with_its_initial),
        cmocka_unit_test(a_node_whose_set_up_failed_stays_and_is_not_replaced),
        cmocka_unit_test(an_automatic_cluster_grows_past_a_broken_node),
        cmocka_unit_test(a_broken_node_is_not_replaced_at_once_however_short_the_idle_time),
        cmocka_unit_test(an_idle_node_that_is_lost_is_replaced),
        cmocka_unit_test(a_cluster_short_of_cores_says_so_and_tries_again),
        cmocka_unit_test(every_limit_counts),
        cmocka_unit_test(two_clusters_do_not_hold_half_each_for_ever),
        cmocka_unit_test(deleting_a_cluster_ends_its_jobs_and_lets_its_nodes_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
