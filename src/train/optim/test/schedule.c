/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void pieces_hold_from_their_epoch_on(void **state)
{
    struct schedule s = {.steps_per_epoch = 10};

    (void)state;
    assert_int_equal(schedule_parse_pieces(&s, "0.3;10;0.2;25;0.1", NULL), 0);
    assert_float_equal(schedule_rate(&s, 0), 0.3, 0);
    assert_float_equal(schedule_rate(&s, 99), 0.3, 0);
    assert_float_equal(schedule_rate(&s, 100), 0.2, 0);
    assert_float_equal(schedule_rate(&s, 249), 0.2, 0);
    assert_float_equal(schedule_rate(&s, 250), 0.1, 0);
    assert_float_equal(schedule_rate(&s, 1000000), 0.1, 0);
}

static void bad_pieces_are_refused(void **state)
{
    static const char *const bad[] = {
        "",   "x",   "0.1;30",          "0.1;3;",   "0.1;x;0.2", "0.1;30;0.2;30;1",
        "-1", "nan", "0.1;5;0.2;3;0.1", "0.1 ;2;3",
    };
    struct schedule s = {.steps_per_epoch = 1};
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(schedule_parse_pieces(&s, bad[i], &e), -1);
}

static void warm_up_rises_from_zero(void **state)
{
    struct schedule s = {
        .kind = SCHEDULE_CONSTANT, .rate = 1, .steps_per_epoch = 10, .warmup_epochs = 2};

    (void)state;
    assert_float_equal(schedule_rate(&s, 0), 0, 0);
    assert_float_equal(schedule_rate(&s, 5), 0.25, 1e-12);
    assert_float_equal(schedule_rate(&s, 20), 1, 0);
}

static void stairs_do_not_fall_below_the_floor(void **state)
{
    struct schedule s = {.kind = SCHEDULE_EXPONENTIAL,
                         .rate = 1,
                         .factor = 0.1,
                         .decay_epochs = 2,
                         .floor = 0.05,
                         .steps_per_epoch = 10};

    (void)state;
    assert_float_equal(schedule_rate(&s, 19), 1, 0);
    assert_float_equal(schedule_rate(&s, 20), 0.1, 1e-12);
    assert_float_equal(schedule_rate(&s, 40), 0.05, 0);
}

static void curves_end_at_the_floor(void **state)
{
    struct schedule s = {.kind = SCHEDULE_COSINE,
                         .rate = 1,
                         .floor = 0.2,
                         .power = 1,
                         .warmup_epochs = 1,
                         .steps_per_epoch = 10,
                         .steps = 110};

    (void)state;
    assert_float_equal(schedule_rate(&s, 10), 1, 0);
    assert_float_equal(schedule_rate(&s, 60), 0.6, 1e-12);
    assert_float_equal(schedule_rate(&s, 110), 0.2, 1e-12);
    assert_float_equal(schedule_rate(&s, 500), 0.2, 1e-12);
    s.kind = SCHEDULE_POLYNOMIAL;
    assert_float_equal(schedule_rate(&s, 60), 0.6, 1e-12);
    assert_float_equal(schedule_rate(&s, 35), 0.8, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_hold_from_their_epoch_on),
        cmocka_unit_test(bad_pieces_are_refused),
        cmocka_unit_test(warm_up_rises_from_zero),
        cmocka_unit_test(stairs_do_not_fall_below_the_floor),
        cmocka_unit_test(curves_end_at_the_floor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
