/* SPDX-License-Identifier: Apache-2.0 */
#include "train/num/half.h"

#include "base/mem.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct {
    float value;
    uint16_t half, bf16;
} table[] = {
    {0.0f, 0x0000, 0x0000},
    {-0.0f, 0x8000, 0x8000},
    {1.0f, 0x3c00, 0x3f80},
    {-2.0f, 0xc000, 0xc000},
    {65504.0f, 0x7bff, 0x4780}, /* the largest half */
    {65519.0f, 0x7bff, 0x4780}, /* just below what rounds up */
    {65520.0f, 0x7c00, 0x4780}, /* overflows */
    {INFINITY, 0x7c00, 0x7f80},
    {0x1p-14f, 0x0400, 0x3880},                   /* the smallest normal half */
    {0x1p-24f, 0x0001, 0x3380},                   /* the smallest one at all */
    {0x1p-25f, 0x0000, 0x3300},                   /* half of it: to even */
    {0x1.8p-25f, 0x0001, 0x3340},                 /* more than half of it */
    {1.0f + 0x1p-11f, 0x3c00, 0x3f80},            /* a tie: to even, down */
    {1.0f + 0x1p-10f + 0x1p-11f, 0x3c02, 0x3f80}, /* a tie: to even, up */
    {1.0f + 0x1p-8f, 0x3c04, 0x3f80},             /* bf16: a tie, down */
    {1.0f + 0x1p-7f + 0x1p-8f, 0x3c0c, 0x3f82},   /* bf16: a tie, up */
};

static void floats_round_to_the_nearest_even(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        assert_int_equal(half_from_float(table[i].value), table[i].half);
        assert_int_equal(bf16_from_float(table[i].value), table[i].bf16);
    }
}

static void every_16_bit_number_survives(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float half = half_to_float((uint16_t)bits), bf16 = bf16_to_float((uint16_t)bits);

        if (isnan(half))
            assert_true(isnan(half_to_float(half_from_float(half))));
        else
            assert_int_equal(half_from_float(half), bits);
        if (isnan(bf16))
            assert_true(isnan(bf16_to_float(bf16_from_float(bf16))));
        else
            assert_int_equal(bf16_from_float(bf16), bits);
    }
}

static void arrays_are_element_by_element(void **state)
{
    const float from[3] = {1, -2, 0.5f};
    uint16_t half[3], bf16[3];
    float back[3];

    (void)state;
    half_from_floats(half, from, 3);
    half_to_floats(back, half, 3);
    for (int i = 0; i < 3; i++)
        assert_true(back[i] == from[i]);
    bf16_from_floats(bf16, from, 3);
    bf16_to_floats(back, bf16, 3);
    for (int i = 0; i < 3; i++)
        assert_true(back[i] == from[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_round_to_the_nearest_even),
        cmocka_unit_test(every_16_bit_number_survives),
        cmocka_unit_test(arrays_are_element_by_element),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
