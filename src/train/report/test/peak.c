/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/peak.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* No machine is slower or faster than this; what it really is, nobody can assert. */
static void test_a_core_has_a_believable_peak(void **state)
{
    double one = peak_flops(1);

    (void)state;
    printf("one core: %.1f GFLOP/s\n", one / 1e9);
    assert_true(one > 1e7 && one < 1e12);
}

static void test_memory_has_a_believable_bandwidth(void **state)
{
    double bytes = peak_bandwidth(2);

    (void)state;
    printf("two threads: %.1f GB/s\n", bytes / 1e9);
    assert_true(bytes > 1e7 && bytes < 1e13);
}

static void test_odd_numbers_of_threads_are_taken(void **state)
{
    (void)state;
    assert_true(peak_flops(0) > 0);
    assert_true(peak_flops(3) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_core_has_a_believable_peak),
        cmocka_unit_test(test_memory_has_a_believable_bandwidth),
        cmocka_unit_test(test_odd_numbers_of_threads_are_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
