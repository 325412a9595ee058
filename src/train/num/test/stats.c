/* SPDX-License-Identifier: Apache-2.0 */
#include "train/num/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void is(double found, double expected)
{
    if (fabs(found - expected) > 1e-12)
        fail_msg("%g, not %g", found, expected);
}

/* Expected values from NumPy. */
static void figures_are_numpys(void **state)
{
    const double even[] = {4, 1, 3, 10}, odd[] = {5, -1, 2}, one[] = {7};

    (void)state;
    is(stats_mean(even, 4), 4.5);
    is(stats_stddev(even, 4), 3.3541019662496847);
    is(stats_median(even, 4), 3.5);
    is(stats_median(odd, 3), 2);
    is(stats_median_deviation(even, 4), 1.5);
    is(stats_median_deviation(odd, 3), 3);
    is(stats_quantile(even, 4, 0.25), 2.5);
    is(stats_quantile(even, 4, 1), 10);
    is(stats_quantile(even, 4, 0), 1);
    is(stats_median(one, 1), 7);
    is(stats_stddev(one, 1), 0);
    is(stats_median_deviation(one, 1), 0);
    is(even[0], 4); /* not sorted in place */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_numpys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
