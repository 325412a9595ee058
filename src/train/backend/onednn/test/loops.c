/* SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/loops.h"

#include "base/mem.h"
#include "train/backend/onednn/norm-loops.h"
#include "train/num/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

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

enum {
    PIXELS = 6,
    PLANE = PIXELS * 16, /* floats, with blocks of sixteen channels at most */
    LINE = 16,           /* floats of a line of the cache */
};

/* One plane through norm_apply, checked by definition; what lies around it must stay. */
static void
apply_far(float *room, int64_t block, const float *add, bool has_relu, int64_t offset)
{
    struct norm_plane p = {.pixels = PIXELS, .block = block, .add = add, .is_far = true};
    float x[PLANE], scale[16], shift[16];

    for (int i = 0; i < PLANE; i++)
        x[i] = (float)(i % 7 - 3);
    for (int i = 0; i < 16; i++) {
        scale[i] = (float)(i + 1);
        shift[i] = (float)(5 - i);
    }
    for (int i = 0; i < PLANE + 3 * LINE; i++)
        room[i] = -7;
    p.x = x;
    p.scale = scale;
    p.shift = shift;
    p.has_relu = has_relu;
    p.to = room + LINE + offset;
    loops()->norm_apply(&p);
    for (int64_t i = 0; i < PIXELS * block; i++) {
        float y = x[i] * scale[i % block] + shift[i % block] + (add ? add[i] : 0);

        assert_true(p.to[i] == (has_relu && y < 0 ? 0 : y));
    }
    assert_true(p.to[-1] == -7 && p.to[PIXELS * block] == -7);
}

/* Small whole numbers: exact in whatever order. */
static void planes_written_past_the_caches_are_whole(void **state)
{
    static const int64_t blocks[] = {16, 8, 4, 1};
    auto_free float *room = aligned_alloc(64, (PLANE + 3 * LINE) * sizeof *room);
    float add[PLANE];

    (void)state;
    for (int i = 0; i < PLANE; i++)
        add[i] = (float)(i % 5);
    for (size_t b = 0; b < ARRAY_SIZE(blocks); b++)
        for (int relu = 0; relu < 2; relu++)
            for (int64_t offset = 0; offset < LINE; offset += 5) {
                apply_far(room, blocks[b], add, relu, offset);
                apply_far(room, blocks[b], NULL, relu, offset);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_is_the_same_wherever_a_row_begins_and_ends),
        cmocka_unit_test(nothing_and_everything_can_be_dropped),
        cmocka_unit_test(planes_written_past_the_caches_are_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
