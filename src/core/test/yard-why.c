/* One line about a job.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "yard-bench.h"

static const char *name_of(int64_t job_id, void *context)
{
    static const char *const names[] = {NULL, "a", "b", "c"};

    (void)context;
    return job_id < 4 ? names[job_id] : NULL;
}

static const char *why(const struct yard *y, int64_t job_id, int64_t now_ms)
{
    static char text[1024];
    auto_str out = {0};

    yard_why(y, job_id, now_ms, name_of, NULL, &out);
    snprintf(text, sizeof(text), "%s", str_text(&out));
    return text;
}

static void a_queued_job_knows_what_it_waits_for(void **state)
{
    autoptr(yard) y = bench_with(4);
    int64_t now = BENCH_BEGIN;

    (void)state;
    bench_submit(y, 1, 3, now);
    bench_submit(y, 2, 3, now);
    bench_submit(y, 3, 1, now);
    bench_submit(y, 4, 1, now);
    assert_string_equal(bench_state(y, 3), "running"); /* before job 2: it does not need it */
    assert_string_equal(
        why(y, 2, now),
        "waits for 3 of 3 nodes of cluster nc6; job a (running, 3 nodes) "
        "and job c (running, 1 node) hold them; place 1 of 2; starts at the latest "
        "in 1 h");
    assert_string_equal(
        why(y, 4, now),
        "waits for 1 of 1 node of cluster nc6; job a (running, 3 nodes) "
        "and job c (running, 1 node) hold them; place 2 of 2; starts in about 1 h");
}

static void idle_nodes_that_are_kept_for_another_are_explained(void **state)
{
    autoptr(yard) y = bench_with(3);
    int64_t now = BENCH_BEGIN;

    (void)state;
    bench_submit(y, 1, 2, now);
    bench_submit(y, 2, 3, now + 1000);
    bench_submit(y, 3, 1, now + 2000);
    assert_string_equal(
        why(y, 3, now + 2000),
        "waits for its turn on cluster nc6: the idle nodes are kept for job b; place 2 of 2; "
        "starts in about 2 h 1 min");
}

static void what_can_never_run_says_what_to_do(void **state)
{
    autoptr(yard) y = bench_with(2);
    struct yard_cluster c = bench_automatic(0, 99);

    (void)state;
    bench_submit(y, 1, 5, BENCH_BEGIN);
    assert_string_equal(why(y, 1, BENCH_BEGIN),
                        "needs 5 nodes, but cluster nc6 has a target of 2: resize it; place 1 "
                        "of 1");
    bench_submit(y, 2, 40, BENCH_BEGIN);
    yard_put_cluster(y, &c, BENCH_BEGIN);
    assert_string_equal(why(y, 2, BENCH_BEGIN),
                        "needs 40 nodes, but the yard has room for 32 of the size of cluster "
                        "nc6; place 2 of 2");
}

static void a_node_larger_than_the_machine_is_told(void **state)
{
    static const struct yard_limits limits = {.cores = 2, .most_nodes = 9};
    autoptr(yard) y = yard_new(&limits);
    struct yard_cluster c = bench_automatic(0, 4);

    (void)state;
    c.cores = 6;
    yard_put_cluster(y, &c, BENCH_BEGIN);
    bench_submit(y, 1, 1, BENCH_BEGIN);
    assert_string_equal(why(y, 1, BENCH_BEGIN),
                        "needs 1 node, but the yard has room for 0 of the size of cluster nc6: "
                        "a node takes 6 cores, and there are 2; place 1 of 1");
}

/* A yard of so many busy nodes with so many jobs that wait, each for one. */
static struct yard *crowd(int nodes, int jobs)
{
    struct yard_limits limits = {.cores = nodes, .most_nodes = nodes};
    struct yard *y = yard_new(&limits);
    struct yard_cluster c = bench_manual(nodes);
    struct yard_changes changes;

    yard_put_cluster(y, &c, BENCH_BEGIN);
    bench_up(y, 1, nodes, BENCH_BEGIN);
    for (int i = 1; i <= nodes + jobs; i++) {
        struct yard_job job = bench_job(i, 1);

        job.wall_ms = BENCH_HOUR + i % 7 * BENCH_MINUTE;
        yard_put_job(y, &job, BENCH_BEGIN);
        yard_take_changes(y, &changes);
    }
    return y;
}

/* The same by looking for the earliest each time. */
static int64_t reckon(int nodes, int jobs)
{
    auto_free int64_t *free_ms = xcalloc((size_t)nodes, sizeof(*free_ms));
    int64_t start_ms = 0;

    for (int i = 1; i <= nodes + jobs; i++) {
        int first = 0;

        for (int n = 1; n < nodes; n++)
            if (free_ms[n] < free_ms[first])
                first = n;
        start_ms = free_ms[first];
        free_ms[first] += BENCH_HOUR + i % 7 * BENCH_MINUTE + MIND_STOP_MS;
    }
    return start_ms;
}

static void the_last_of_many_has_an_estimate(void **state)
{
    static const int nodes = 31, jobs = 2000;
    autoptr(yard) y = crowd(nodes, jobs);
    auto_str wanted = {0};

    (void)state;
    str_addf(&wanted, "place %d of %d; starts in about ", jobs, jobs);
    mind_add_duration(&wanted, reckon(nodes, jobs));
    if (!strstr(why(y, nodes + jobs, BENCH_BEGIN), str_text(&wanted)))
        fail_msg("%s, and not %s", why(y, nodes + jobs, BENCH_BEGIN), str_text(&wanted));
}

/* Whoever asks does not hold up everybody. */
static void an_estimate_that_would_take_long_is_not_made(void **state)
{
    autoptr(yard) y = crowd(1000, 5000);

    (void)state;
    assert_non_null(strstr(why(y, 1000 + 100, BENCH_BEGIN), "; starts in about "));
    assert_non_null(strstr(why(y, 6000, BENCH_BEGIN), "; place 5000 of 5000"));
    assert_null(strstr(why(y, 6000, BENCH_BEGIN), "starts"));
}

static void nodes_on_their_way_and_broken_ones_are_named(void **state)
{
    autoptr(yard) y = yard_new(&bench_limits);
    struct yard_cluster c = bench_manual(3);

    (void)state;
    yard_put_cluster(y, &c, BENCH_BEGIN);
    bench_submit(y, 1, 3, BENCH_BEGIN);
    yard_node_up(y, 1, BENCH_BEGIN, NULL);
    yard_node_failed(y, 2, "NodeSetupFailed", "apt failed", "", BENCH_BEGIN, NULL);
    assert_string_equal(why(y, 1, BENCH_BEGIN),
                        "waits for 2 of 3 nodes of cluster nc6; 1 being prepared; 1 unusable "
                        "(tvm-1-2: apt failed); place 1 of 1");
}

static void a_live_job_says_what_it_does(void **state)
{
    autoptr(yard) y = bench_with(2);
    int64_t now = BENCH_BEGIN;

    (void)state;
    bench_submit(y, 1, 2, now);
    assert_string_equal(why(y, 1, now + 5000),
                        "is set up for 5 s on 2 nodes of cluster nc6 (attempt 1); its limit is "
                        "in 59 min 55 s");
    yard_attempt_running(y, 1, now + 5000, NULL);
    assert_string_equal(why(y, 1, now + 65000),
                        "runs for 1 min on 2 nodes of cluster nc6 (attempt 1); its limit is in "
                        "58 min 55 s");
    bench_terminate(y, 1, now + 65000);
    assert_string_equal(
        why(y, 1, now + 65000),
        "is being stopped: terminated by the user on 2 nodes of cluster nc6 (attempt 1)");
    bench_end(y, 1, ENDED_STOPPED, -1, now + 66000);
    assert_string_equal(why(y, 1, now + 99000), "terminated by the user while it ran");
    bench_submit(y, 2, 1, now + 70000);
    bench_end(y, 2, ENDED_EXITED, 0, now + 70000 + 2 * 86400000ll);
    assert_string_equal(why(y, 2, now), "succeeded after 2 d");
    assert_string_equal(why(y, 99, now), "there is no such job");
}

static void a_job_that_was_requeued_says_why(void **state)
{
    autoptr(yard) y = bench_with(1);

    (void)state;
    bench_submit(y, 1, 1, BENCH_BEGIN);
    yard_node_failed(y, 1, "NodeLost", "dead", "", BENCH_BEGIN, NULL);
    bench_end(y, 1, ENDED_STOPPED, -1, BENCH_BEGIN);
    assert_string_equal(why(y, 1, BENCH_BEGIN),
                        "waits for 1 of 1 node of cluster nc6; 1 being prepared; place 1 of 1; "
                        "before: attempt 1: node tvm-1-1 was lost; queued again");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queued_job_knows_what_it_waits_for),
        cmocka_unit_test(idle_nodes_that_are_kept_for_another_are_explained),
        cmocka_unit_test(what_can_never_run_says_what_to_do),
        cmocka_unit_test(a_node_larger_than_the_machine_is_told),
        cmocka_unit_test(the_last_of_many_has_an_estimate),
        cmocka_unit_test(an_estimate_that_would_take_long_is_not_made),
        cmocka_unit_test(nodes_on_their_way_and_broken_ones_are_named),
        cmocka_unit_test(a_live_job_says_what_it_does),
        cmocka_unit_test(a_job_that_was_requeued_says_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
