/* SPDX-License-Identifier: Apache-2.0 */
#include "train/graph/memplan.h"

#include "base/mem.h"
#include "train/num/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static bool overlap(const struct memplan_item *a, const struct memplan_item *b)
{
    bool in_time = a->first <= b->last && b->first <= a->last;
    bool in_place = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;

    return in_time && in_place;
}

static void what_lives_together_lies_apart(void **state)
{
    struct memplan_item items[200];
    struct rng rng;

    (void)state;
    rng_init(&rng, 1, 1);
    for (int round = 0; round < 20; round++) {
        struct memplan plan;

        for (int i = 0; i < 200; i++) {
            int first = (int)rng_below(&rng, 100);

            items[i] = (struct memplan_item){.bytes = 1 + rng_below(&rng, 5000),
                                             .first = first,
                                             .last = first + (int)rng_below(&rng, 20),
                                             .shares = -1};
        }
        memplan_make(items, 200, 64, &plan);
        for (int i = 0; i < 200; i++) {
            assert_true(items[i].offset % 64 == 0);
            assert_true(items[i].offset + items[i].bytes <= plan.bytes);
            for (int j = 0; j < i; j++)
                assert_false(overlap(&items[i], &items[j]));
        }
        assert_true(plan.bytes >= plan.at_least);
        assert_true(plan.bytes < plan.at_least + plan.at_least / 4);
    }
}

static void what_shares_lies_in_one_place_for_both_lives(void **state)
{
    struct memplan_item items[] = {
        {100, 0, 1, -1, 0},
        {200, 1, 5, 0, 0}, /* in the place of the first */
        {300, 3, 4, -1, 0},
        {50, 5, 6, 1, 0}, /* ... and again */
    };
    struct memplan plan;

    (void)state;
    memplan_make(items, 4, 64, &plan);
    assert_true(items[0].offset == items[1].offset && items[3].offset == items[0].offset);
    assert_true(plan.bytes == 256 + 320);
    assert_true(items[2].offset >= 256 || items[0].offset >= 320);
}

/* Forward values that live until the backward pass comes back to them: the form of training. */
static void nested_lives_need_no_more_than_their_sum(void **state)
{
    enum { LAYERS = 50 };
    struct memplan_item items[2 * LAYERS];
    struct memplan plan;

    (void)state;
    for (int i = 0; i < LAYERS; i++) {
        items[i] = (struct memplan_item){
            .bytes = 640, .first = i, .last = 2 * LAYERS - i, .shares = -1};
        items[LAYERS + i] = (struct memplan_item){
            .bytes = 640, .first = 2 * LAYERS - i, .last = 2 * LAYERS - i + 1, .shares = -1};
    }
    memplan_make(items, 2 * LAYERS, 64, &plan);
    assert_true(plan.bytes <= plan.at_least + plan.at_least / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_lives_together_lies_apart),
        cmocka_unit_test(what_shares_lies_in_one_place_for_both_lives),
        cmocka_unit_test(nested_lives_need_no_more_than_their_sum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
