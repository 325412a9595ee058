/* The check finds what is wrong: each invariant is broken by hand.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "yard-bench.h"

/* Node 1 runs job 1 by attempt 1, node 2 is idle, job 2 waits, job 3 has ended. */
static struct yard *sound(void)
{
    struct yard *y = bench_with(2);

    bench_submit(y, 3, 1, BENCH_BEGIN);
    bench_end(y, 1, ENDED_EXITED, 0, BENCH_BEGIN);
    bench_submit(y, 1, 1, BENCH_BEGIN);
    bench_submit(y, 2, 2, BENCH_BEGIN);
    bench_check(y);
    return y;
}

static void two_attempts(struct yard *y)
{
    mind_job(y, 1)->it.attempt_id = 77;
}

static void wrong_number(struct yard *y)
{
    mind_job(y, 1)->it.attempts = 5;
}

static void live_and_final(struct yard *y)
{
    mind_job(y, 1)->it.state = JOB_FAILED;
}

static void queued_nowhere(struct yard *y)
{
    ordered_remove(&mind_cluster(y, 1)->queue, &mind_job(y, 2)->plan.link);
}

static void invented_zero(struct yard *y)
{
    mind_job(y, 3)->it.state = JOB_FAILED;
}

static void success_without_code(struct yard *y)
{
    mind_job(y, 3)->it.exit_code = -1;
}

static void held_by_two(struct yard *y)
{
    mind_node(y, 1)->it.attempt_id = 99;
}

static void runs_nothing(struct yard *y)
{
    mind_node(y, 2)->it.state = NODE_RUNNING;
}

static void miscounted(struct yard *y)
{
    mind_cluster(y, 1)->held++;
}

static void forgotten_cores(struct yard *y)
{
    y->cores--;
}

static const struct row {
    void (*damage)(struct yard *y);
    const char *says;
} rows[] = {
    {two_attempts, "I2: job 1 has two live attempts"},
    {wrong_number, "I2: attempt 2 has the wrong number"},
    {live_and_final, "I2: job 1 is failed with a live attempt"},
    {queued_nowhere, "I2: job 2 is in no queue, or in one by mistake"},
    {invented_zero, "I3: job 3 failed without a cause"},
    {success_without_code, "I3: job 3 succeeded without exit code 0"},
    {held_by_two, "I6: attempt 2 does not hold its node 1"},
    {runs_nothing, "I6: node tvm-1-2 runs nothing"},
    {miscounted, "I6: nc6 has nodes that are neither"},
    {forgotten_cores, "I6: what nodes take is counted wrongly"},
};

static void each_damage_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoptr(yard) y = sound();
        struct err e = {0};

        rows[i].damage(y);
        assert_int_equal(yard_check(y, &e), -1);
        assert_int_equal(e.code, ERR_INTERNAL);
        assert_string_equal(e.msg, rows[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_damage_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
