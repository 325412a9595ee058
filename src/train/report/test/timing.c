/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/timing.h"

#include "base/mem.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Expected values: NumPy with the original's get_perf_timing(32, times, ewma). */
static void speeds_are_the_originals(void **state)
{
    static const double times[] = {0.5, 0.4, 0.8, 0.45, 0.41};
    struct timing timing = {0};
    struct timing_speed speed;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(times); i++)
        timing_add(&timing, times[i]);
    timing_speed(&timing, 32, NAN, &speed);
    assert_float_equal(speed.mean, 62.5, 1e-9);
    assert_float_equal(speed.uncertainty, 6.466218632400395, 1e-9);
    assert_float_equal(speed.jitter, 10.542933333333337, 1e-9);
    timing_speed(&timing, 32, 0.3, &speed);
    assert_float_equal(speed.mean, 64.57282153902129, 1e-9);
    timing_done(&timing);
}

static void one_step_has_no_uncertainty(void **state)
{
    struct timing timing = {0};
    struct timing_speed speed;

    (void)state;
    timing_speed(&timing, 32, NAN, &speed); /* none at all: zeros, no division by zero */
    assert_float_equal(speed.mean, 0, 0);
    timing_add(&timing, 0.25);
    timing_speed(&timing, 32, NAN, &speed);
    assert_float_equal(speed.mean, 128, 0);
    assert_float_equal(speed.uncertainty, 0, 0);
    assert_float_equal(speed.jitter, 0, 0);
    timing_done(&timing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speeds_are_the_originals),
        cmocka_unit_test(one_step_has_no_uncertainty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
