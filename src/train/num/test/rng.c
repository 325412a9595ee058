/* SPDX-License-Identifier: Apache-2.0 */
#include "train/num/rng.h"

#include "base/mem.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The known answers of Random123 (kat_vectors, philox4x32 of 10 and of 7 rounds). */
static const struct {
    uint64_t key, hi, lo;
    uint32_t ten[4], seven[4];
} known[] = {
    {0,
     0,
     0,
     {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
     {0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}},
    {0xffffffffffffffff,
     0xffffffffffffffff,
     0xffffffffffffffff,
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
     {0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}},
    {0x299f31d0a4093822,
     0x0370734413198a2e,
     0x85a308d3243f6a88,
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
     {0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}},
};

static void philox_has_the_known_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        uint32_t ten[4], seven[4];

        rng_philox(known[i].key, known[i].hi, known[i].lo, ten);
        rng_dropout(known[i].key, known[i].hi, known[i].lo, seven);
        for (int j = 0; j < 4; j++) {
            assert_int_equal(ten[j], known[i].ten[j]);
            assert_int_equal(seven[j], known[i].seven[j]);
        }
    }
}

static void dropout_takes_the_lower_half_of_a_word_first(void **state)
{
    static const uint32_t halves[] = {0xb709, 0x5f6f, 0x3f64, 0x0d89,
                                      0x1f81, 0x4f12, 0x0a48, 0x4f73};

    (void)state;
    for (uint64_t i = 0; i < ARRAY_SIZE(halves); i++) {
        assert_int_equal(rng_dropout_half(known[0].seven, i), halves[i]);
        assert_int_equal(rng_dropout_half(known[0].seven, 8000 + i), halves[i]);
    }
}

static void dropout_keeps_its_share(void **state)
{
    static const float rates[] = {0, 0.1f, 0.5f, 0.75f};

    (void)state;
    for (size_t r = 0; r < ARRAY_SIZE(rates); r++) {
        enum { DRAWS = 20000 };
        uint32_t words[4], limit = rng_dropout_limit(rates[r]);
        int kept[8] = {0};

        for (uint64_t at = 0; at < DRAWS; at++) {
            rng_dropout(9, 4, at, words);
            for (uint64_t i = 0; i < 8; i++)
                kept[i] += rng_dropout_half(words, i) >= limit;
        }
        /* four standard deviations of a fair coin: 4 * sqrt(20000) / 2 */
        for (int i = 0; i < 8; i++)
            assert_true(abs(kept[i] - (int)((1 - rates[r]) * DRAWS)) <= 283);
    }
    assert_int_equal(rng_dropout_limit(0), 0);
    assert_int_equal(rng_dropout_limit(0.1f), 6554);
    assert_int_equal(rng_dropout_limit(0.5f), 0x8000);
}

static void a_stream_is_the_hash_of_its_name(void **state)
{
    (void)state;
    assert_true(rng_stream("") == 0xcbf29ce484222325u);
    assert_true(rng_stream("a") == 0xaf63dc4c8601ec8cu);
    assert_true(rng_stream("foobar") == 0x85944171f73967e8u);
}

static void streams_do_not_depend_on_each_other(void **state)
{
    struct rng a, b, again;
    uint32_t first[9];

    (void)state;
    rng_init(&a, 7, rng_stream("a"));
    for (int i = 0; i < 9; i++)
        first[i] = rng_u32(&a);
    rng_init(&b, 7, rng_stream("b"));
    rng_init(&again, 7, rng_stream("a"));
    for (int i = 0; i < 9; i++) {
        assert_int_not_equal(rng_u32(&b), first[i]);
        assert_int_equal(rng_u32(&again), first[i]);
    }
}

static void numbers_have_their_distributions(void **state)
{
    enum { COUNT = 40000 };
    double sum = 0, square = 0, cut = 0;
    int below[7] = {0};
    struct rng rng;

    (void)state;
    rng_init(&rng, 1, 2);
    for (int i = 0; i < COUNT; i++) {
        float z = rng_normal(&rng), t = rng_truncated_normal(&rng, 0, 3);

        sum += (double)z;
        square += (double)z * (double)z;
        cut += (double)t * (double)t / 9;
        assert_true(fabsf(t) <= 6);
        below[rng_below(&rng, 7)]++;
        float u = rng_uniform(&rng);
        assert_true(u >= 0 && u < 1);
    }
    assert_true(fabs(sum / COUNT) < 0.02);
    assert_true(fabs(square / COUNT - 1) < 0.03);
    assert_true(fabs(sqrt(cut / COUNT) - 0.8796) < 0.02);
    for (int i = 0; i < 7; i++)
        assert_true(abs(below[i] - COUNT / 7) < 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_has_the_known_answers),
        cmocka_unit_test(dropout_takes_the_lower_half_of_a_word_first),
        cmocka_unit_test(dropout_keeps_its_share),
        cmocka_unit_test(a_stream_is_the_hash_of_its_name),
        cmocka_unit_test(streams_do_not_depend_on_each_other),
        cmocka_unit_test(numbers_have_their_distributions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
