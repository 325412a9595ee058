/* SPDX-License-Identifier: Apache-2.0 */
#include "train/num/rng.h"

#include "base/mem.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The known answers of Random123 (kat_vectors, philox4x32 10). */
static const struct {
    uint64_t key, hi, lo;
    uint32_t words[4];
} known[] = {
    {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {0xffffffffffffffff,
     0xffffffffffffffff,
     0xffffffffffffffff,
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {0x299f31d0a4093822,
     0x0370734413198a2e,
     0x85a308d3243f6a88,
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void philox_has_the_known_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        uint32_t words[4];

        rng_philox(known[i].key, known[i].hi, known[i].lo, words);
        for (int j = 0; j < 4; j++)
            assert_int_equal(words[j], known[i].words[j]);
    }
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
        cmocka_unit_test(a_stream_is_the_hash_of_its_name),
        cmocka_unit_test(streams_do_not_depend_on_each_other),
        cmocka_unit_test(numbers_have_their_distributions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
