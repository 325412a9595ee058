/* A job's life, and what crosses in it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "yard-bench.h"

static void a_job_runs_and_succeeds(void **state)
{
    autoptr(yard) y = bench_with(2);
    const struct yard_job *j;
    int64_t now = BENCH_BEGIN;
    struct attempt_result result = bench_result(ENDED_EXITED, 0);

    (void)state;
    bench_submit(y, 1, 2, now + 10);
    assert_actions(y, "start 1");
    assert_nodes(y, 1, "2 running, steady");
    assert_int_equal(yard_attempt(y, 1)->number, 1);
    assert_int_equal(yard_attempt(y, 1)->nodes[0], 1);
    assert_int_equal(yard_attempt_running(y, 1, now + 20, NULL), 0);
    assert_int_equal(yard_attempt(y, 1)->state, ATTEMPT_RUNNING);
    /* The daemon was away: it ended long before it is told. */
    assert_int_equal(yard_attempt_ended(y, 1, &result, now + 20, now + 30, now + 9999, NULL),
                     0);
    j = yard_job(y, 1);
    assert_int_equal(j->state, JOB_SUCCEEDED);
    assert_int_equal(j->started_ms, now + 10);
    assert_int_equal(j->ended_ms, now + 30);
    assert_int_equal(j->state_ms, now + 30);
    assert_int_equal(j->exit_code, 0);
    assert_null(j->error_code);
    assert_nodes(y, 1, "2 idle, steady");
}

static void a_late_or_second_report_is_refused(void **state)
{
    autoptr(yard) y = bench_with(1);
    int64_t now = BENCH_BEGIN;

    (void)state;
    bench_submit(y, 1, 1, now);
    assert_int_equal(bench_end(y, 1, ENDED_EXITED, 3, now), 0);
    assert_int_equal(bench_end(y, 1, ENDED_EXITED, 0, now), -1);
    assert_int_equal(yard_attempt_running(y, 1, now, NULL), -1);
    assert_int_equal(bench_end(y, 77, ENDED_EXITED, 0, now), -1);
    assert_int_equal(yard_job(y, 1)->exit_code, 3);
    assert_string_equal(bench_state(y, 1), "failed");
}

static void terminating_a_queued_job_ends_it_at_once(void **state)
{
    autoptr(yard) y = bench_with(1);

    (void)state;
    bench_submit(y, 1, 1, BENCH_BEGIN);
    bench_submit(y, 2, 1, BENCH_BEGIN);
    bench_terminate(y, 2, BENCH_BEGIN + 5);
    assert_actions(y, "start 1");
    assert_string_equal(bench_state(y, 2), "failed");
    assert_string_equal(yard_job(y, 2)->error_code, "JobTerminated");
    assert_string_equal(yard_job(y, 2)->error_message,
                        "The specified job has been terminated by the user");
    assert_int_equal(yard_job(y, 2)->exit_code, -1);
    assert_int_equal(yard_job(y, 2)->started_ms, BENCH_BEGIN + 5);
    assert_int_equal(yard_job(y, 2)->ended_ms, BENCH_BEGIN + 5);
}

static void terminating_works_while_starting_running_and_stopping(void **state)
{
    (void)state;
    for (int when = 0; when < 3; when++) {
        autoptr(yard) y = bench_with(1);
        struct yard_cluster none = bench_manual(0);

        bench_submit(y, 1, 1, BENCH_BEGIN);
        bench_actions(y);
        if (when == 1)
            yard_attempt_running(y, 1, BENCH_BEGIN, NULL);
        if (when == 2)
            yard_put_cluster(y, &none, BENCH_BEGIN); /* stopping, to be queued again */
        bench_terminate(y, 1, BENCH_BEGIN + 5);
        bench_terminate(y, 1, BENCH_BEGIN + 6);
        assert_actions(y, "stop 1"); /* once, whoever asks how often */
        assert_string_equal(bench_state(y, 1), "terminating");
        bench_end(y, 1, ENDED_STOPPED, -1, BENCH_BEGIN + 7);
        assert_string_equal(bench_state(y, 1), "failed");
        assert_string_equal(yard_job(y, 1)->error_code, "JobTerminated");
    }
}

static void terminating_what_is_over_changes_nothing(void **state)
{
    autoptr(yard) y = bench_with(1);

    (void)state;
    bench_submit(y, 1, 1, BENCH_BEGIN);
    bench_end(y, 1, ENDED_EXITED, 0, BENCH_BEGIN + 5);
    bench_actions(y);
    bench_terminate(y, 1, BENCH_BEGIN + 6);
    assert_actions(y, "");
    assert_string_equal(bench_state(y, 1), "succeeded");
    assert_int_equal(yard_job(y, 1)->state_ms, BENCH_BEGIN + 5);
}

static void what_was_called_terminating_never_succeeds(void **state)
{
    autoptr(yard) y = bench_with(1);

    (void)state;
    bench_submit(y, 1, 1, BENCH_BEGIN);
    bench_terminate(y, 1, BENCH_BEGIN + 5);
    bench_end(y, 1, ENDED_EXITED, 0, BENCH_BEGIN + 6);
    assert_string_equal(bench_state(y, 1), "failed");
    assert_string_equal(yard_job(y, 1)->error_code, "JobTerminated");
    assert_int_equal(yard_job(y, 1)->exit_code, -1);
    assert_string_equal(
        yard_job(y, 1)->verdict,
        "terminated by the user while it ran; it had just ended by itself with exit code 0");
}

static void deleting_a_job_ends_it_and_then_it_can_be_forgotten(void **state)
{
    autoptr(yard) y = bench_with(1);
    struct yard_job job = bench_job(1, 1);

    (void)state;
    bench_submit(y, 1, 1, BENCH_BEGIN);
    bench_actions(y);
    job.is_deleting = true;
    yard_put_job(y, &job, BENCH_BEGIN + 1);
    assert_actions(y, "stop 1");
    assert_int_equal(yard_forget_job(y, 1, NULL), -1);
    bench_end(y, 1, ENDED_STOPPED, -1, BENCH_BEGIN + 2);
    assert_string_equal(yard_job(y, 1)->error_code, "JobTerminated");
    assert_int_equal(yard_forget_job(y, 1, NULL), 0);
    assert_null(yard_job(y, 1));
    assert_int_equal(yard_forget_job(y, 1, NULL), -1);
}

static void the_wall_clock_stops_a_job(void **state)
{
    autoptr(yard) y = bench_with(1);

    (void)state;
    bench_submit(y, 1, 1, BENCH_BEGIN);
    bench_actions(y);
    yard_attempt_running(y, 1, BENCH_BEGIN + 9, NULL);
    assert_int_equal(yard_next_tick(y), BENCH_BEGIN + BENCH_HOUR);
    yard_tick(y, BENCH_BEGIN + BENCH_HOUR - 1);
    assert_actions(y, "");
    yard_tick(y, BENCH_BEGIN + BENCH_HOUR);
    assert_actions(y, "stop 1");
    assert_string_equal(bench_state(y, 1), "running");
    assert_int_equal(yard_next_tick(y), INT64_MAX);
    bench_end(y, 1, ENDED_STOPPED, -1, BENCH_BEGIN + BENCH_HOUR + 5);
    assert_string_equal(yard_job(y, 1)->error_code, "JobExceededMaxWallClockTime");
}

/* Told to make room and queued again; meanwhile its time is over. */
static struct yard *requeued_at_its_limit(void)
{
    struct yard *y = bench_with(1);
    struct yard_cluster none = bench_manual(0);

    bench_submit(y, 1, 1, BENCH_BEGIN);
    yard_attempt_running(y, 1, BENCH_BEGIN, NULL);
    bench_actions(y);
    yard_put_cluster(y, &none, BENCH_BEGIN + BENCH_HOUR - 1000);
    assert_actions(y, "stop 1");
    assert_int_equal(yard_attempt(y, 1)->stop, STOP_REQUEUE);
    assert_int_equal(yard_next_tick(y), BENCH_BEGIN + BENCH_HOUR);
    return y;
}

static void the_wall_clock_overrides_a_requeue(void **state)
{
    autoptr(yard) y = requeued_at_its_limit();

    (void)state;
    yard_tick(y, BENCH_BEGIN + BENCH_HOUR);
    assert_actions(y, ""); /* it is stopping already */
    assert_int_equal(yard_attempt(y, 1)->stop, STOP_WALL_CLOCK);
    assert_int_equal(yard_next_tick(y), INT64_MAX);
    bench_end(y, 1, ENDED_STOPPED, -1, BENCH_BEGIN + BENCH_HOUR + 5);
    assert_string_equal(bench_state(y, 1), "failed");
    assert_string_equal(yard_job(y, 1)->error_code, "JobExceededMaxWallClockTime");
}

static void a_requeue_that_ends_in_time_is_one(void **state)
{
    autoptr(yard) y = requeued_at_its_limit();

    (void)state;
    bench_end(y, 1, ENDED_STOPPED, -1, BENCH_BEGIN + BENCH_HOUR - 1);
    assert_string_equal(bench_state(y, 1), "queued");
    assert_int_equal(yard_next_tick(y), INT64_MAX);
}

static void a_requeue_does_not_override_the_wall_clock(void **state)
{
    autoptr(yard) y = bench_with(1);
    struct yard_cluster none = bench_manual(0);

    (void)state;
    bench_submit(y, 1, 1, BENCH_BEGIN);
    yard_tick(y, BENCH_BEGIN + BENCH_HOUR);
    yard_put_cluster(y, &none, BENCH_BEGIN + BENCH_HOUR + 1);
    bench_end(y, 1, ENDED_STOPPED, -1, BENCH_BEGIN + BENCH_HOUR + 5);
    assert_string_equal(yard_job(y, 1)->error_code, "JobExceededMaxWallClockTime");
}

static void an_end_that_crosses_an_unannounced_stop_counts(void **state)
{
    autoptr(yard) y = bench_with(1);

    (void)state;
    bench_submit(y, 1, 1, BENCH_BEGIN);
    yard_tick(y, BENCH_BEGIN + BENCH_HOUR);
    bench_end(y, 1, ENDED_EXITED, 0, BENCH_BEGIN + BENCH_HOUR);
    assert_string_equal(bench_state(y, 1), "succeeded");
}

static void a_lost_node_sends_its_job_elsewhere(void **state)
{
    autoptr(yard) y = bench_with(3);
    int64_t now = BENCH_BEGIN;

    (void)state;
    bench_submit(y, 1, 2, now);
    bench_actions(y);
    assert_int_equal(yard_node_failed(y, 2, "NodeLost", "dead", "", now, NULL), 0);
    assert_actions(y, "stop 1, add 4"); /* the others wait for it in vain */
    assert_string_equal(bench_state(y, 1), "running");
    assert_nodes(y, 1, "1 idle, 1 running, 1 preparing, 1 unusable, resizing");
    bench_end(y, 1, ENDED_STOPPED, -1, now + 5);
    assert_actions(y, "remove 2, start 2");
    assert_int_equal(yard_job(y, 1)->attempts, 2);
    assert_int_equal(yard_job(y, 1)->losses, 1);
    assert_int_equal(yard_job(y, 1)->excluded_count, 1);
    assert_int_equal(yard_job(y, 1)->excluded[0], 2);
    assert_int_equal(yard_attempt(y, 2)->number, 2);
    assert_null(yard_attempt(y, 1));
}

static void a_node_that_the_attempt_reports_lost_is_let_go(void **state)
{
    autoptr(yard) y = bench_with(1);
    struct attempt_result result = bench_result(ENDED_NODE_LOST, -1);

    (void)state;
    result.bad_node = 1;
    bench_submit(y, 1, 1, BENCH_BEGIN);
    bench_actions(y);
    yard_attempt_ended(y, 1, &result, 0, 0, BENCH_BEGIN + 5, NULL);
    assert_actions(y, "remove 1, add 2");
    assert_string_equal(bench_state(y, 1), "queued");
}

static void a_job_gives_up_after_its_last_loss(void **state)
{
    autoptr(yard) y = bench_with(1);
    int64_t now = BENCH_BEGIN;

    (void)state;
    bench_submit(y, 1, 1, now);
    for (int64_t attempt = 1; attempt <= 3; attempt++) {
        struct attempt_result result = bench_result(ENDED_NODE_LOST, -1);

        result.bad_node = yard_attempt(y, attempt)->nodes[0];
        yard_attempt_ended(y, attempt, &result, 0, 0, now, NULL);
        bench_check(y);
        yard_node_up(y, attempt + 1, now, NULL);
    }
    assert_string_equal(bench_state(y, 1), "failed");
    assert_string_equal(yard_job(y, 1)->error_code, "NodeLost");
    assert_int_equal(yard_job(y, 1)->attempts, 3);
    assert_int_equal(yard_job(y, 1)->exit_code, -1);
}

static void a_late_wish_does_not_run_a_forgotten_job_again(void **state)
{
    autoptr(yard) y = bench_with(1);
    struct yard_job job;

    (void)state;
    bench_submit(y, 1, 1, BENCH_BEGIN);
    bench_end(y, 1, ENDED_EXITED, 0, BENCH_BEGIN);
    job = *yard_job(y, 1);
    assert_int_equal(yard_forget_job(y, 1, NULL), 0);
    bench_actions(y);
    job.is_unwanted = true;
    yard_put_job(y, &job, BENCH_BEGIN);
    assert_actions(y, "");
    assert_null(yard_job(y, 1));
}

static void changes_name_each_thing_once_and_then_no_more(void **state)
{
    autoptr(yard) y = bench_with(2);
    struct yard_changes changes;

    (void)state;
    bench_submit(y, 1, 2, BENCH_BEGIN);
    yard_attempt_running(y, 1, BENCH_BEGIN, NULL);
    yard_take_changes(y, &changes);
    assert_int_equal(changes.job_count, 1);
    assert_int_equal(changes.attempt_count, 1);
    assert_int_equal(changes.node_count, 2);
    yard_take_changes(y, &changes);
    assert_int_equal(changes.job_count + changes.attempt_count + changes.node_count, 0);
    bench_end(y, 1, ENDED_EXITED, 0, BENCH_BEGIN);
    yard_take_changes(y, &changes); /* what is over is still named, once */
    assert_int_equal(changes.attempts[0]->state, ATTEMPT_ENDED);
    assert_int_equal(changes.jobs[0]->state, JOB_SUCCEEDED);
}

static void time_that_goes_back_stands_still(void **state)
{
    autoptr(yard) y = bench_with(1);

    (void)state;
    bench_submit(y, 1, 1, BENCH_BEGIN + 50);
    bench_end(y, 1, ENDED_EXITED, 0, 7);
    assert_int_equal(yard_job(y, 1)->ended_ms, BENCH_BEGIN + 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_runs_and_succeeds),
        cmocka_unit_test(a_late_or_second_report_is_refused),
        cmocka_unit_test(terminating_a_queued_job_ends_it_at_once),
        cmocka_unit_test(terminating_works_while_starting_running_and_stopping),
        cmocka_unit_test(terminating_what_is_over_changes_nothing),
        cmocka_unit_test(what_was_called_terminating_never_succeeds),
        cmocka_unit_test(deleting_a_job_ends_it_and_then_it_can_be_forgotten),
        cmocka_unit_test(the_wall_clock_stops_a_job),
        cmocka_unit_test(the_wall_clock_overrides_a_requeue),
        cmocka_unit_test(a_requeue_that_ends_in_time_is_one),
        cmocka_unit_test(a_requeue_does_not_override_the_wall_clock),
        cmocka_unit_test(an_end_that_crosses_an_unannounced_stop_counts),
        cmocka_unit_test(a_lost_node_sends_its_job_elsewhere),
        cmocka_unit_test(a_node_that_the_attempt_reports_lost_is_let_go),
        cmocka_unit_test(a_job_gives_up_after_its_last_loss),
        cmocka_unit_test(a_late_wish_does_not_run_a_forgotten_job_again),
        cmocka_unit_test(changes_name_each_thing_once_and_then_no_more),
        cmocka_unit_test(time_that_goes_back_stands_still),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
