/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/hop.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum {
    MOST_HOSTS = 17,
};

/* Bit h of sums[g][b]: host g's block b has host h's share in it. */
static uint32_t sums[MOST_HOSTS][MOST_HOSTS];

static void take(int to, int from, int block, bool adds, uint32_t old[MOST_HOSTS][MOST_HOSTS])
{
    if (adds) {
        assert_int_equal(old[to][block] & old[from][block], 0); /* nothing twice */
        sums[to][block] = old[to][block] | old[from][block];
    } else {
        sums[to][block] = old[from][block];
    }
}

static void do_step(int hosts, int step)
{
    uint32_t old[MOST_HOSTS][MOST_HOSTS];

    memcpy(old, sums, sizeof old);
    for (int h = 0; h < hosts; h++) {
        struct hop mine, theirs;

        hop_at(hosts, h, step, &mine);
        hop_at(hosts, mine.from, step, &theirs);
        assert_int_equal(theirs.to, h);
        assert_int_equal(theirs.send_first, mine.receive_first);
        assert_int_equal(theirs.send_count, mine.receive_count);
        for (int b = 0; b < mine.receive_count; b++)
            take(h, mine.from, mine.receive_first + b, mine.adds, old);
    }
}

static void test_everybody_ends_with_everything_once(void **state)
{
    (void)state;
    for (int hosts = 1; hosts <= MOST_HOSTS; hosts++) {
        for (int h = 0; h < hosts; h++)
            for (int b = 0; b < hosts; b++)
                sums[h][b] = 1u << h;
        for (int step = 0; step < hop_count(hosts); step++)
            do_step(hosts, step);
        for (int h = 0; h < hosts; h++)
            for (int b = 0; b < hosts; b++)
                assert_int_equal(sums[h][b], (1u << hosts) - 1);
    }
}

static void test_powers_of_two_take_logarithmic_steps(void **state)
{
    (void)state;
    assert_int_equal(hop_count(1), 0);
    assert_int_equal(hop_count(2), 2);
    assert_int_equal(hop_count(16), 8);
    assert_int_equal(hop_count(4096), 24);
    assert_int_equal(hop_count(5), 8);
}

static void test_blocks_cover_the_array(void **state)
{
    (void)state;
    for (size_t count = 0; count < 40; count++)
        for (int blocks = 1; blocks < 9; blocks++) {
            assert_int_equal(hop_block(count, blocks, 0), 0);
            assert_int_equal(hop_block(count, blocks, blocks), count);
            for (int b = 0; b < blocks; b++)
                assert_true(hop_block(count, blocks, b) <= hop_block(count, blocks, b + 1));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everybody_ends_with_everything_once),
        cmocka_unit_test(test_powers_of_two_take_logarithmic_steps),
        cmocka_unit_test(test_blocks_cover_the_array),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
