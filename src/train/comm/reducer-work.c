/* reducer-work.c - chunks: handed in, claimed, summed, done.  See reducer-internal.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/reducer-internal.h"
#include "train/comm/sum.h"

#include <time.h>

int64_t reducer_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static bool is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

/* Twice as many chunks as sharers, so that one who comes late does less; whole pages. */
uint32_t reducer_cut(struct reducer_part *part, int sharers, int64_t piece_bytes)
{
    const size_t page = 1024, most = (size_t)piece_bytes / sizeof(float);
    size_t count = part->span.count, each = count / (2 * (size_t)sharers) + 1;

    each = (each + page - 1) / page * page;
    if (each > most)
        each = most;
    if (each < REDUCER_LEAST_FLOATS)
        each = REDUCER_LEAST_FLOATS;
    part->chunk_floats = each;
    return (uint32_t)((count + each - 1) / each);
}

int reducer_sharers(const struct reducer *reducer)
{
    return reducer->hosts > 1 ? mpi_way_lanes(reducer->comm->mpi)
                              : reducer->comm->facts.local_ranks;
}

float *reducer_arena_of(const struct reducer *reducer, int local)
{
    return reducer->arena[local].at;
}

/* --- handing in ------------------------------------------------------------------------------
 */

static uint32_t least_ready(struct reducer *reducer)
{
    struct reducer_shared *shared = reducer->shared;
    uint32_t least = atomic_load(&shared->rank[0].ready);

    for (int i = 1; i < reducer->comm->facts.local_ranks; i++) {
        uint32_t ready = atomic_load(&shared->rank[i].ready);

        if (is_before(ready, least))
            least = ready;
    }
    return least;
}

/* Every rank looks at all after it has handed in, so the last of them sees that all have. */
static bool raise_available(struct reducer *reducer)
{
    struct bell *available = &reducer->shared->available;
    uint32_t least = least_ready(reducer), now = bell_value(available);

    while (is_before(now, least))
        if (atomic_compare_exchange_weak(&available->value, &now, least)) {
            bell_wake(available);
            return true;
        }
    return false;
}

void reducer_hand_in(struct reducer *reducer, int bucket, bool calls)
{
    struct reducer_part *part = &reducer->parts[bucket];
    struct bell *work = &reducer->shared->work;
    uint32_t chunks = atomic_load(&part->chunks);

    atomic_store(&part->first, reducer->started);
    atomic_fetch_add(&part->target, chunks);
    atomic_store(&part->is_known, true);
    reducer->started += chunks;
    atomic_store(&reducer->shared->rank[reducer->local].ready, reducer->started);
    if (raise_available(reducer) && calls) {
        bell_add(work, 1);
        bell_wake(work);
    }
}

/* --- summing ---------------------------------------------------------------------------------
 */

/* chunks before first: reducer_sum() changes both, in the other order. */
static int find_bucket(struct reducer *reducer, uint32_t chunk)
{
    for (int b = reducer->count; b > 0; b--) {
        struct reducer_part *part = &reducer->parts[b];
        uint32_t chunks = atomic_load(&part->chunks);

        if (atomic_load(&part->is_known) && chunk - atomic_load(&part->first) < chunks)
            return b;
    }
    return 0;
}

/* Only chunks of buckets that this rank has handed in, too, are ever claimed: so it has them.
 */
void reducer_find(struct reducer *reducer, uint32_t chunk, struct reducer_piece *ret_piece)
{
    int bucket = find_bucket(reducer, chunk);
    struct reducer_part *part = &reducer->parts[bucket];
    uint32_t number = chunk - atomic_load(&part->first);
    size_t from = number * part->chunk_floats, left = part->span.count - from;
    bool is_sum = bucket == reducer->count;

    ret_piece->bucket = bucket;
    ret_piece->is_first = number == 0;
    ret_piece->count = left < part->chunk_floats ? left : part->chunk_floats;
    ret_piece->target = atomic_load(&part->target);
    for (int i = 0; i < reducer->comm->facts.local_ranks; i++)
        ret_piece->at[i] =
            from + (is_sum ? atomic_load(&reducer->shared->rank[i].sum_at) : part->span.offset);
}

/* piece->target was read before: from the moment the last chunk is done, the step thread may
 * hand the bucket in again. */
void reducer_mark_done(struct reducer *reducer, const struct reducer_piece *piece)
{
    struct reducer_bucket *bucket = &reducer->shared->bucket[piece->bucket];

    atomic_store_explicit(&bucket->done_ns, reducer_now_ns(), memory_order_relaxed);
    if (bell_add(&bucket->done, 1) == piece->target)
        bell_wake(&bucket->done);
}

static void sum_chunk(struct reducer *reducer, uint32_t chunk)
{
    struct reducer_piece piece = {0};
    float *all[GROUP_MOST];
    int ranks = reducer->comm->facts.local_ranks;
    int64_t begun = reducer_now_ns();

    reducer_find(reducer, chunk, &piece);
    for (int i = 0; i < ranks; i++)
        all[i] = reducer_arena_of(reducer, i) + piece.at[i];
    if (piece.is_first)
        atomic_store_explicit(&reducer->shared->bucket[piece.bucket].begun_ns, begun,
                              memory_order_relaxed);
    sum_spread((const float *const *)all, ranks, all, ranks, piece.count);
    reducer_mark_done(reducer, &piece);
    atomic_fetch_add_explicit(&reducer->busy_ns, reducer_now_ns() - begun,
                              memory_order_relaxed);
}

static bool claim(struct reducer *reducer, uint32_t *ret_chunk)
{
    struct reducer_shared *shared = reducer->shared;
    uint32_t chunk = atomic_load(&shared->claimed);

    while (is_before(chunk, bell_value(&shared->available)))
        if (atomic_compare_exchange_weak(&shared->claimed, &chunk, chunk + 1)) {
            *ret_chunk = chunk;
            return true;
        }
    return false;
}

/* --- the step thread -------------------------------------------------------------------------
 */

/* Nothing to claim: what will change first? */
static int wait_for_more(struct reducer *reducer, int bucket, uint32_t available, struct err *e)
{
    struct reducer_part *part = &reducer->parts[bucket];
    struct bell *done = &reducer->shared->bucket[bucket].done;
    uint32_t end = atomic_load(&part->first) + part->chunks, seen = bell_value(done);

    if (is_before(available, end))
        return bell_wait(&reducer->shared->available, available, &reducer->patience, e);
    if (is_before(seen, atomic_load(&part->target)))
        return bell_wait(done, seen, &reducer->patience, e);
    return 0;
}

static int wait_and_help(struct reducer *reducer, int bucket, struct err *e)
{
    struct bell *done = &reducer->shared->bucket[bucket].done;
    uint32_t target = atomic_load(&reducer->parts[bucket].target), chunk;

    while (is_before(bell_value(done), target)) {
        uint32_t available = bell_value(&reducer->shared->available);

        if (claim(reducer, &chunk))
            sum_chunk(reducer, chunk);
        else if (wait_for_more(reducer, bucket, available, e) < 0)
            return -1;
    }
    return 0;
}

static int wait_only(struct reducer *reducer, int bucket, struct err *e)
{
    struct bell *done = &reducer->shared->bucket[bucket].done;
    uint32_t target = atomic_load(&reducer->parts[bucket].target), seen;

    while (is_before(seen = bell_value(done), target))
        if (bell_wait(done, seen, &reducer->patience, e) < 0)
            return -1;
    return 0;
}

int reducer_finish(struct reducer *reducer, int bucket, struct err *e)
{
    struct reducer_shared *shared = reducer->shared;
    int rc;

    if (reducer->hosts > 1)
        return wait_only(reducer, bucket, e);
    atomic_store(&reducer->helps, true);
    rc = wait_and_help(reducer, bucket, e);
    atomic_store(&reducer->helps, false);
    if (is_before(atomic_load(&shared->claimed), bell_value(&shared->available))) {
        bell_add(&shared->work, 1);
        bell_wake(&shared->work);
    }
    return rc;
}

/* --- the progress thread ---------------------------------------------------------------------
 */

static void wait_for_company(const struct reducer *reducer)
{
    int64_t ns = (int64_t)(reducer->options.cycle_ms * 1e6);
    struct timespec nap = {ns / 1000000000, ns % 1000000000};

    if (ns > 0)
        nanosleep(&nap, NULL);
}

/* While the step thread is at it, this one would only take its core away. */
void *reducer_progress(void *arg)
{
    struct reducer *reducer = arg;
    struct bell *work = &reducer->shared->work;
    bool is_idle = true;
    uint32_t chunk;

    while (!atomic_load(&reducer->stops)) {
        uint32_t seen = bell_value(work);

        if (is_idle && is_before(atomic_load(&reducer->shared->claimed),
                                 bell_value(&reducer->shared->available)))
            wait_for_company(reducer);
        is_idle = atomic_load(&reducer->helps) || !claim(reducer, &chunk);
        if (!is_idle)
            sum_chunk(reducer, chunk);
        else if (!atomic_load(&reducer->stops))
            bell_sleep(work, seen, -1);
    }
    atomic_store(&reducer->has_stopped, true);
    return NULL;
}
