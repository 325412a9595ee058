/* reducer-sum.c - reducer_sum(): any memory, and the caller does the work himself.
 *
 * Three ways on one host:
 *   in the arena         as a bucket of its own: nothing is copied
 *   small, or two ranks  everybody puts a copy on his stage and adds up all stages: one meeting
 *   else                 everybody adds up his slice, on all stages, and takes his own: two
 * Stages are used in turn.  Who puts something on a stage for the turn after next knows that
 * all have read it: they came to the meeting in between.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/hop.h"
#include "train/comm/reducer-internal.h"
#include "train/comm/sum.h"

#include <string.h>

static float *stage_of(const struct reducer *reducer, int local)
{
    return (float *)reducer->stage[local].at +
           (reducer->sum_turn % 2) * (size_t)REDUCER_STAGE_FLOATS;
}

/* A few look at each other: no line of memory goes to and fro that two of them write. */
static int meet_few(struct reducer *reducer, struct err *e)
{
    struct reducer_rank *rank = reducer->shared->rank;
    uint32_t turn = bell_value(&rank[reducer->local].staged) + 1;

    bell_set(&rank[reducer->local].staged, turn);
    for (int i = 0; i < reducer->ranks; i++)
        while (bell_value(&rank[i].staged) - turn > UINT32_MAX / 2)
            if (bell_wait(&rank[i].staged, turn - 1, &reducer->patience, e) < 0)
                return -1;
    return 0;
}

static int meet(struct reducer *reducer, struct err *e)
{
    if (reducer->ranks <= REDUCER_FEW_RANKS)
        return meet_few(reducer, e);
    return gate_pass(&reducer->shared->gate, (uint32_t)reducer->ranks, &reducer->patience, e);
}

static void add_up_all(const struct reducer *reducer, float *values, size_t count)
{
    const float *all[GROUP_MOST];

    for (int i = 0; i < reducer->ranks; i++)
        all[i] = i == reducer->local ? values : stage_of(reducer, i);
    sum_spread(all, reducer->ranks, &values, 1, count);
}

static void add_up_slice(const struct reducer *reducer, size_t count)
{
    size_t from = hop_block(count, reducer->ranks, reducer->local);
    size_t to = hop_block(count, reducer->ranks, reducer->local + 1);
    float *all[GROUP_MOST];

    for (int i = 0; i < reducer->ranks; i++)
        all[i] = stage_of(reducer, i) + from;
    sum_spread((const float *const *)all, reducer->ranks, all, reducer->ranks, to - from);
}

static int sum_staged(struct reducer *reducer, float *values, size_t count, struct err *e)
{
    bool is_whole = reducer->ranks == 2 || count <= REDUCER_SMALL_FLOATS;

    memcpy(stage_of(reducer, reducer->local), values, count * sizeof *values);
    if (meet(reducer, e) < 0)
        return -1;
    if (is_whole) {
        add_up_all(reducer, values, count);
    } else {
        add_up_slice(reducer, count);
        if (meet(reducer, e) < 0)
            return -1;
        memcpy(values, stage_of(reducer, reducer->local), count * sizeof *values);
    }
    reducer->sum_turn++;
    return 0;
}

static bool is_in_arena(const struct reducer *reducer, const float *values, size_t count)
{
    const float *arena = reducer_arena_of(reducer, reducer->local);

    return arena && values >= arena && values + count <= arena + reducer->arena_floats;
}

static int sum_in_arena(struct reducer *reducer, size_t at, size_t count, struct err *e)
{
    struct reducer_part *part = &reducer->parts[reducer->count];

    /* A claimer that looks through the parts now must not find old chunks here. */
    atomic_store(&part->first, reducer->started);
    part->span = (struct reducer_span){0, count};
    part->chunks = reducer_cut(part, reducer_sharers(reducer), reducer->options.piece_bytes);
    atomic_store(&reducer->shared->rank[reducer->local].sum_at, at);
    reducer_hand_in(reducer, reducer->count, reducer->hosts > 1);
    return reducer_finish(reducer, reducer->count, e);
}

/* Over several hosts: through the stage behind the arena. */
static int sum_far(struct reducer *reducer, float *values, size_t count, struct err *e)
{
    size_t at = reducer->arena[reducer->local].bytes / sizeof(float) - REDUCER_STAGE_FLOATS;
    float *stage = reducer_arena_of(reducer, reducer->local) + at;

    memcpy(stage, values, count * sizeof *values);
    if (sum_in_arena(reducer, at, count, e) < 0)
        return -1;
    memcpy(values, stage, count * sizeof *values);
    return 0;
}

int reducer_sum(struct reducer *reducer, float *values, size_t count, struct err *e)
{
    if (reducer->is_alone || count == 0)
        return 0;
    if (reducer->hosts > 1 && !reducer->has_thread)
        return err_set(e, ERR_METHOD,
                       "cannot sum over several hosts before the buckets are said");
    if (is_in_arena(reducer, values, count) && count > REDUCER_SMALL_FLOATS)
        return sum_in_arena(
            reducer, (size_t)(values - reducer_arena_of(reducer, reducer->local)), count, e);
    while (count > 0) {
        size_t part = count < REDUCER_STAGE_FLOATS ? count : REDUCER_STAGE_FLOATS;

        if (reducer->hosts > 1 ? sum_far(reducer, values, part, e) < 0
                               : sum_staged(reducer, values, part, e) < 0)
            return -1;
        values += part;
        count -= part;
    }
    return 0;
}
