/* SPDX-License-Identifier: Apache-2.0 */
#include "train/preflight/processor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char sold_with_clock[] =
    "processor\t: 0\n"
    "model name\t: Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz\n"
    "cpu MHz\t\t: 800.000\n"
    "flags\t\t: fpu sse2 fma avx avx2 avx512f\n"
    "\n"
    "processor\t: 1\n"
    "model name\t: another\n";

static const char sold_without[] = "model name\t: AMD EPYC 7763 64-Core Processor\n"
                                   "cpu MHz\t\t: 2445.404\n"
                                   "flags\t\t: fpu fma4x avx\n";

static void test_the_clock_that_is_sold_counts(void **state)
{
    struct processor p;

    (void)state;
    processor_parse(sold_with_clock, &p);
    assert_string_equal(p.name, "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz");
    assert_true(fabs(p.nominal_hz - 2.8e9) < 1);
    assert_int_equal(p.flops_per_cycle, 32);
    assert_true(fabs(processor_fma_floor(&p, 4) - PROCESSOR_FMA_SHARE * 4 * 2.8e9 * 32) < 1e3);
}

static void test_else_the_clock_of_now(void **state)
{
    struct processor p;

    (void)state;
    processor_parse(sold_without, &p);
    assert_true(fabs(p.nominal_hz - 2445.404e6) < 1);
    assert_int_equal(p.flops_per_cycle, 8); /* "fma4x" is no "fma" */
}

static void test_an_unknown_processor_has_no_floor(void **state)
{
    struct processor p;

    (void)state;
    processor_parse("", &p);
    assert_true(isnan(p.nominal_hz));
    assert_true(isnan(processor_fma_floor(&p, 4)));
    processor_parse("cpu MHz\t: quick\nmodel name : x @ y", &p);
    assert_true(isnan(p.nominal_hz));
}

/* Each rank gets its share of what a host gives at the least. */
static void test_memory_is_shared_by_the_ranks_of_a_host(void **state)
{
    (void)state;
    assert_true(fabs(processor_memory_floor(2, 2) - 8e9) < 1);
    assert_true(fabs(processor_memory_floor(64, 64) - 40e9) < 1);
    assert_true(fabs(processor_memory_floor(8, 64) - 5e9) < 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_clock_that_is_sold_counts),
        cmocka_unit_test(test_else_the_clock_of_now),
        cmocka_unit_test(test_an_unknown_processor_has_no_floor),
        cmocka_unit_test(test_memory_is_shared_by_the_ranks_of_a_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
