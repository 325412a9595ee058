/* SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/loops.h"

#include "base/mem.h"
#include "train/num/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum {
    ROOM = 300, /* two whole draws of 128, and some */
};

static float factor_of(const struct keep *k, uint64_t element)
{
    uint32_t drawn[4];

    rng_dropout(k->key, k->hi, element / 8, drawn);
    return rng_dropout_half(drawn, element) >= k->limit ? k->scale : 0;
}

static void compare(const struct keep *k, uint64_t first, int64_t count)
{
    float to[ROOM + 2];

    to[0] = to[count + 1] = 7;
    loops()->keep(k, first, count, to + 1);
    assert_true(to[0] == 7 && to[count + 1] == 7);
    for (int64_t i = 0; i < count; i++)
        assert_true(to[i + 1] == factor_of(k, first + (uint64_t)i));
}

static void dropout_is_the_same_wherever_a_row_begins_and_ends(void **state)
{
    const struct keep k = {.key = 0x123456789abcdef0,
                           .hi = (uint64_t)3 << 48 | 5,
                           .limit = rng_dropout_limit(0.4f),
                           .scale = 2};
    /* the last: where the lower half of the counter runs over */
    static const uint64_t begins[] = {0, 1000, ((uint64_t)1 << 35) - 168};

    (void)state;
    for (size_t b = 0; b < ARRAY_SIZE(begins); b++)
        for (uint64_t offset = 0; offset < 8; offset++)
            for (int64_t count = 0; count <= ROOM; count += count < 20 ? 1 : 13)
                compare(&k, begins[b] + offset, count);
}

static void nothing_and_everything_can_be_dropped(void **state)
{
    struct keep none = {.key = 1, .limit = rng_dropout_limit(0), .scale = 1};
    struct keep all = {.key = 1, .limit = 65536, .scale = 1};
    float to[ROOM];

    (void)state;
    loops()->keep(&none, 3, ROOM, to);
    for (int i = 0; i < ROOM; i++)
        assert_true(to[i] == 1);
    loops()->keep(&all, 3, ROOM, to);
    for (int i = 0; i < ROOM; i++)
        assert_true(to[i] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_is_the_same_wherever_a_row_begins_and_ends),
        cmocka_unit_test(nothing_and_everything_can_be_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
