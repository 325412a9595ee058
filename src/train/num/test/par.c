/* SPDX-License-Identifier: Apache-2.0 */
#include "train/num/par.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum {
    MOST = 1000,
};

static int seen[MOST];

static void count(void *arg, int64_t from, int64_t to)
{
    (void)arg;
    for (int64_t i = from; i < to; i++)
        seen[i]++;
}

static void every_item_is_done_once(void **state)
{
    static const int64_t counts[] = {1, 2, 7, 64, 999, MOST}, grains[] = {1, 3, 100, 5000};

    (void)state;
    for (int threads = 1; threads <= 3; threads++)
        for (int c = 0; c < 6; c++)
            for (int g = 0; g < 4; g++) {
                par_init(threads);
                for (int i = 0; i < MOST; i++)
                    seen[i] = 0;
                par_for(counts[c], grains[g], count, NULL);
                for (int i = 0; i < MOST; i++)
                    assert_int_equal(seen[i], i < counts[c]);
            }
}

static void nothing_is_nothing_to_do(void **state)
{
    (void)state;
    seen[0] = 0;
    par_for(0, 1, count, NULL);
    assert_int_equal(seen[0], 0);
}

static void pieces_cover_all_and_keep_the_grain(void **state)
{
    (void)state;
    par_init(3);
    for (int64_t items = 1; items < 200; items += 7)
        for (int64_t grain = 1; grain < 50; grain += 6) {
            int pieces = par_pieces(items, grain);
            int64_t from, to, at = 0;

            assert_true(pieces >= 1 && pieces <= par_threads());
            for (int i = 0; i < pieces; i++) {
                par_piece(items, grain, i, &from, &to);
                assert_int_equal(from, at);
                assert_true(pieces == 1 || to - from >= grain);
                at = to;
            }
            assert_int_equal(at, items);
        }
}

static void denormals_are_flushed(void **state)
{
    volatile float tiny = 1e-38f, zero;

    (void)state;
    par_init(1);
    zero = tiny * 0.01f;
    assert_true(zero == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_is_done_once),
        cmocka_unit_test(nothing_is_nothing_to_do),
        cmocka_unit_test(pieces_cover_all_and_keep_the_grain),
        cmocka_unit_test(denormals_are_flushed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
