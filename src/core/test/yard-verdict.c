/* What each end means, and what is said about it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "yard-bench.h"

struct row {
    const char *name; /* for the reader */
    enum stop_reason stop;
    struct attempt_result result;
    enum job_event event;
    int exit_code;
    const char *code, *message;
    const char *verdict;
};

static const char job_failed[] = "Job failed with non-zero exit code";
static const char terminated[] = "The specified job has been terminated by the user";

static const struct row rows[] = {
    {"exit 0",
     STOP_NONE,
     {.end = ENDED_EXITED, .exit_code = 0, .rank = -1},
     JOB_EV_SUCCEED,
     0,
     NULL,
     NULL,
     ""},
    {"exit 3 of a rank",
     STOP_NONE,
     {.end = ENDED_EXITED,
      .exit_code = 3,
      .rank = 1,
      .node = "tvm-3-7",
      .tail = "a\nboom: x\n\n"},
     JOB_EV_FAIL,
     3,
     "JobFailed",
     job_failed,
     "rank 1 on node tvm-3-7 failed with exit code 3; last line: boom: x"},
    {"a signal, with a control sequence in the log",
     STOP_NONE,
     {.end = ENDED_EXITED,
      .exit_code = -1,
      .signal = 11,
      .rank = 0,
      .node = "n",
      .tail = "\x1b[2Jx"},
     JOB_EV_FAIL,
     139,
     "JobFailed",
     job_failed,
     "rank 0 on node n was killed by SIGSEGV; last line: ?[2Jx"},
    {"a signal without a name",
     STOP_NONE,
     {.end = ENDED_EXITED, .exit_code = -1, .signal = 40, .rank = -1},
     JOB_EV_FAIL,
     168,
     "JobFailed",
     job_failed,
     "its command was killed by signal 40"},
    {"out of memory",
     STOP_NONE,
     {.end = ENDED_EXITED,
      .exit_code = -1,
      .signal = 9,
      .out_of_memory = true,
      .rank = 2,
      .node = "n"},
     JOB_EV_FAIL,
     137,
     "JobFailed",
     job_failed,
     "rank 2 on node n ran out of memory and was killed by SIGKILL"},
    {"an exit without a code is unknown, never 0",
     STOP_NONE,
     {.end = ENDED_EXITED, .exit_code = -1, .rank = -1},
     JOB_EV_FAIL,
     -1,
     "JobStateUnknown",
     "Nobody knows how the job ended",
     "nobody knows how it ended: the supervisor of its command died before it could say"},
    {"preparation",
     STOP_NONE,
     {.end = ENDED_PREPARATION, .exit_code = 1, .rank = -1, .node = "n", .tail = "E: no pip"},
     JOB_EV_FAIL,
     1,
     "JobPreparationFailed",
     "Job preparation task failed with non-zero exit code",
     "preparation on node n failed with exit code 1; last line: E: no pip"},
    {"mount",
     STOP_NONE,
     {.end = ENDED_SETUP,
      .exit_code = -1,
      .rank = -1,
      .node = "n",
      .code = "AZFMountError",
      .message = "Unable to mount Azure File",
      .info = "no share \"logs\""},
     JOB_EV_FAIL,
     -1,
     "AZFMountError",
     "Unable to mount Azure File",
     "could not be set up on node n: Unable to mount Azure File: no share \"logs\""},
    {"unknown",
     STOP_NONE,
     {.end = ENDED_UNKNOWN, .exit_code = -1, .rank = 1, .node = "n"},
     JOB_EV_FAIL,
     -1,
     "JobStateUnknown",
     "Nobody knows how the job ended",
     "nobody knows how it ended: the supervisor of rank 1 on node n died before it could say"},
    {"stopped though nobody asked",
     STOP_NONE,
     {.end = ENDED_STOPPED, .exit_code = 0, .rank = -1},
     JOB_EV_FAIL,
     -1,
     "JobStateUnknown",
     "Nobody knows how the job ended",
     "nobody knows how it ended: the supervisor of its command died before it could say"},
    {"lost",
     STOP_NONE,
     {.end = ENDED_NODE_LOST, .exit_code = -1, .rank = -1, .node = "n"},
     JOB_EV_REQUEUE,
     -1,
     NULL,
     NULL,
     "attempt 1: node n was lost; queued again"},
    {"a broken connection after the node was lost",
     STOP_NODE_LOST,
     {.end = ENDED_EXITED, .exit_code = 1, .rank = -1},
     JOB_EV_REQUEUE,
     -1,
     NULL,
     NULL,
     "attempt 1: a node was lost; queued again"},
    {"done before the loss mattered",
     STOP_NODE_LOST,
     {.end = ENDED_EXITED, .exit_code = 0, .rank = -1},
     JOB_EV_SUCCEED,
     0,
     NULL,
     NULL,
     ""},
    {"user",
     STOP_USER,
     {.end = ENDED_STOPPED, .exit_code = -1, .rank = -1},
     JOB_EV_FAIL,
     -1,
     "JobTerminated",
     terminated,
     "terminated by the user while it ran"},
    {"user, lost on the way",
     STOP_USER,
     {.end = ENDED_NODE_LOST, .exit_code = -1, .rank = -1},
     JOB_EV_FAIL,
     -1,
     "JobTerminated",
     terminated,
     "terminated by the user while it ran"},
    {"cluster deleted",
     STOP_DELETED,
     {.end = ENDED_STOPPED, .exit_code = -1, .rank = -1},
     JOB_EV_FAIL,
     -1,
     "ClusterDeleted",
     "The cluster of the job was deleted",
     "ended while it ran: its cluster was deleted"},
    {"wall clock",
     STOP_WALL_CLOCK,
     {.end = ENDED_STOPPED, .exit_code = -1, .rank = -1, .tail = "epoch 9"},
     JOB_EV_FAIL,
     -1,
     "JobExceededMaxWallClockTime",
     "The job ran longer than its maxWallClockTime",
     "stopped at its wall-clock limit of 1 h 30 min; last line: epoch 9"},
    {"requeue",
     STOP_REQUEUE,
     {.end = ENDED_STOPPED, .exit_code = -1, .rank = -1},
     JOB_EV_REQUEUE,
     -1,
     NULL,
     NULL,
     "attempt 1 was stopped: its nodes were wanted back; queued again"},
    {"requeue that crossed a failure",
     STOP_REQUEUE,
     {.end = ENDED_EXITED, .exit_code = 2, .rank = -1},
     JOB_EV_FAIL,
     2,
     "JobFailed",
     job_failed,
     "its command failed with exit code 2"},
};

static void each_end_has_its_outcome(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct row *row = &rows[i];
        struct yard_job job = {.most_attempts = 2, .wall_ms = 90 * BENCH_MINUTE};
        struct yard_attempt attempt = {.number = 1, .stop = row->stop, .result = row->result};
        struct outcome o;

        outcome_of_attempt(&job, &attempt, &o);
        assert_int_equal(o.event, row->event);
        assert_int_equal(o.exit_code, row->exit_code);
        assert_string_equal(o.code ? o.code : "", row->code ? row->code : "");
        assert_string_equal(o.message, row->message ? row->message : "");
        assert_string_equal(o.verdict, row->verdict);
    }
}

static void the_detail_of_a_mount_error_is_kept(void **state)
{
    struct yard_job job = {0};
    struct yard_attempt attempt = {
        .result = {
            .end = ENDED_SETUP, .exit_code = -1, .code = "X", .info = "what mount said"}};
    struct outcome o;

    (void)state;
    outcome_of_attempt(&job, &attempt, &o);
    assert_string_equal(o.info, "what mount said");
}

static void the_last_loss_is_final(void **state)
{
    struct yard_job job = {.most_attempts = 3, .losses = 2};
    struct yard_attempt attempt = {
        .number = 5,
        .result = {.end = ENDED_NODE_LOST, .exit_code = -1, .rank = -1, .node = "n"}};
    struct outcome o;

    (void)state;
    outcome_of_attempt(&job, &attempt, &o);
    assert_int_equal(o.event, JOB_EV_FAIL);
    assert_string_equal(o.code, "NodeLost");
    assert_string_equal(o.verdict, "attempt 5: node n was lost; that was the last of 3 tries");
}

static void a_verdict_is_one_line_however_long_the_last_one_was(void **state)
{
    struct yard_job job = {0};
    struct yard_attempt attempt = {
        .result = {.end = ENDED_EXITED, .exit_code = 1, .rank = -1, .code = ""}};
    struct outcome o;

    (void)state;
    memset(attempt.result.tail, 'x', sizeof(attempt.result.tail) - 1);
    outcome_of_attempt(&job, &attempt, &o);
    assert_true(strlen(o.verdict) < 400);
    assert_string_equal(o.verdict + strlen(o.verdict) - 4, "x...");
}

static void before_it_began_it_has_its_cause_too(void **state)
{
    struct yard_job job = {0}, deleted = {.is_deleting = true};
    struct outcome o;

    (void)state;
    outcome_of_queued(&job, STOP_USER, &o);
    assert_string_equal(o.verdict, "terminated by the user before it started");
    outcome_of_queued(&job, STOP_DELETED, &o);
    assert_string_equal(o.code, "ClusterDeleted");
    outcome_of_queued(&deleted, STOP_DELETED, &o);
    assert_string_equal(o.code, "JobTerminated");
    assert_string_equal(o.verdict, "ended before it started: it is being deleted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_end_has_its_outcome),
        cmocka_unit_test(the_detail_of_a_mount_error_is_kept),
        cmocka_unit_test(the_last_loss_is_final),
        cmocka_unit_test(a_verdict_is_one_line_however_long_the_last_one_was),
        cmocka_unit_test(before_it_began_it_has_its_cause_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
