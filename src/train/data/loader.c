/* loader.c - a ring of batches, filled by threads in the order of the examples.
 *
 * Batch b lies in slot b % ring.  A thread takes a few examples of the batch that is being
 * filled, decodes them without the lock, and counts them off; who counts off the last one
 * makes the batch ready.  The next batch is begun as soon as its slot is free, so threads do
 * not wait for each other at the end of a batch.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/loader.h"

#include "base/clock.h"
#include "train/data/data-internal.h"
#include "train/num/par.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

enum {
    CHUNK = 4, /* examples taken at once: a lock for each few hundred microseconds of work */
};

struct slot {
    uint8_t *images;
    int32_t *labels;
    int64_t batch;    /* that lies here or is being filled; -1 = free */
    int64_t examples; /* without padding */
    int64_t left;     /* to decode */
};

struct loader {
    const struct dataset *dataset;
    struct dataset_facts facts;
    struct loader_options o;
    size_t pixels; /* bytes of one picture */
    float *synthetic;
    struct slot *slots;
    int ring, thread_count;
    pthread_t *threads;
    pthread_mutex_t lock;
    pthread_cond_t work, ready;
    int64_t fill_batch, fill_at; /* the next example to take */
    int64_t next_batch;          /* the next one to give out */
    int64_t end_batch;           /* of an evaluation; INT64_MAX when training */
    int64_t *corrupt;            /* numbers of the examples that were skipped */
    int64_t corrupt_count, corrupt_room;
    bool is_ending, has_failed, was_given;
    struct err failure;
    double waited_s;
};

/* --- which example --- */

/* The example at place k of this rank, and its epoch. */
static int64_t example_at(const struct loader *l, int64_t k, int64_t *ret_epoch)
{
    int64_t position = k * l->o.ranks + l->o.rank;
    int64_t epoch = position / l->facts.count;
    uint64_t at = (uint64_t)(position % l->facts.count);

    *ret_epoch = epoch;
    if (!l->o.is_shuffled)
        return (int64_t)at;
    return (int64_t)permute(at, (uint64_t)l->facts.count, l->o.seed, (uint64_t)epoch);
}

/* How many examples an evaluation has for this rank. */
static int64_t share(const struct loader *l)
{
    return (l->facts.count - l->o.rank + l->o.ranks - 1) / l->o.ranks;
}

/* --- corrupt examples --- */

static bool is_known(const struct loader *l, int64_t number)
{
    for (int64_t i = 0; i < l->corrupt_count; i++)
        if (l->corrupt[i] == number)
            return true;
    return false;
}

/* Remember and report; fails beyond the limit. */
static int add_corrupt(struct loader *l, int64_t number, const struct err *why)
{
    if (is_known(l, number))
        return 0;
    fprintf(stderr, "yardbench: %s; skipped\n", why->msg);
    if (l->corrupt_count == l->corrupt_room) {
        l->corrupt_room = l->corrupt_room ? 2 * l->corrupt_room : 64;
        l->corrupt = xreallocarray(l->corrupt, (size_t)l->corrupt_room, sizeof(*l->corrupt));
    }
    l->corrupt[l->corrupt_count++] = number;
    if (l->corrupt_count <= l->o.most_corrupt)
        return 0;
    if (!l->has_failed)
        err_set(&l->failure, why->code,
                "%" PRId64 " corrupt examples are more than --most_corrupt=%d allows; the last "
                "one: %s",
                l->corrupt_count, l->o.most_corrupt, why->msg);
    l->has_failed = true;
    return -1;
}

static int note_corrupt(struct loader *l, int64_t number, const struct err *why)
{
    int rc;

    pthread_mutex_lock(&l->lock);
    rc = add_corrupt(l, number, why);
    pthread_mutex_unlock(&l->lock);
    return rc;
}

static bool was_corrupt(struct loader *l, int64_t number)
{
    bool is;

    pthread_mutex_lock(&l->lock);
    is = is_known(l, number);
    pthread_mutex_unlock(&l->lock);
    return is;
}

static int fail_all(struct loader *l)
{
    pthread_mutex_lock(&l->lock);
    if (!l->has_failed)
        err_set(&l->failure, ERR_INVALID, "every example is corrupt");
    l->has_failed = true;
    pthread_mutex_unlock(&l->lock);
    return -1;
}

/* --- threads --- */

/* Example k into place i of a slot.  A corrupt one is replaced by the next of this rank; in an
 * evaluation, where each counts once, it counts nowhere. */
static int decode_one(struct loader *l, struct slot *slot, int64_t i, int64_t k)
{
    uint8_t *pixels = slot->images + (size_t)i * l->pixels;

    for (int64_t tries = 0;; k++, tries++) {
        int64_t epoch, number = example_at(l, k, &epoch);
        struct err why;

        if (!was_corrupt(l, number)) {
            if (dataset_decode(l->dataset, number, epoch, &l->o.decode, pixels,
                               &slot->labels[i], &why) == 0)
                return 0;
            if (note_corrupt(l, number, &why) < 0)
                return -1;
        }
        if (!l->o.decode.is_training) {
            slot->labels[i] = -1;
            return 0;
        }
        if (tries > l->facts.count)
            return fail_all(l);
    }
}

static void begin_batch(struct loader *l, struct slot *slot)
{
    int64_t first = l->fill_batch * l->o.batch;
    int64_t most = l->o.decode.is_training ? INT64_MAX : share(l) - first;

    slot->batch = l->fill_batch;
    slot->examples = most < l->o.batch ? most : l->o.batch;
    slot->left = slot->examples;
    for (int64_t i = slot->examples; i < l->o.batch; i++)
        slot->labels[i] = -1;
}

/* Take a few examples, with the lock held; 0 = there are none now. */
static int64_t take_work(struct loader *l, struct slot **ret_slot, int64_t *ret_at)
{
    struct slot *slot = &l->slots[l->fill_batch % l->ring];
    int64_t count;

    if (l->fill_batch >= l->end_batch || (l->o.repeats_sample && l->fill_batch))
        return 0;
    if (l->fill_at == 0) {
        if (slot->batch >= 0 || l->fill_batch > l->next_batch + l->o.ahead)
            return 0;
        begin_batch(l, slot);
    }
    count = slot->examples - l->fill_at < CHUNK ? slot->examples - l->fill_at : CHUNK;
    *ret_slot = slot;
    *ret_at = l->fill_at;
    l->fill_at += count;
    if (l->fill_at == slot->examples) {
        l->fill_at = 0;
        l->fill_batch++;
    }
    return count;
}

/* Without the lock. */
static void do_work(struct loader *l, struct slot *slot, int64_t at, int64_t count)
{
    int64_t first = slot->batch * l->o.batch;

    for (int64_t i = at; i < at + count; i++)
        if (decode_one(l, slot, i, first + i) < 0)
            return;
}

static void *run_thread(void *arg)
{
    struct loader *l = arg;

    pthread_mutex_lock(&l->lock);
    while (!l->is_ending && !l->has_failed) {
        struct slot *slot = NULL;
        int64_t at = 0, count = take_work(l, &slot, &at);

        if (!count) {
            pthread_cond_wait(&l->work, &l->lock);
            continue;
        }
        pthread_mutex_unlock(&l->lock);
        do_work(l, slot, at, count);
        pthread_mutex_lock(&l->lock);
        slot->left -= count;
        if (slot->left == 0)
            pthread_cond_signal(&l->ready);
    }
    pthread_cond_signal(&l->ready); /* a failure is to be seen */
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static int default_threads(void)
{
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

    return cores - par_threads() > 1 ? cores - par_threads() : 1;
}

static int start_threads(struct loader *l, struct err *e)
{
    int wanted = l->o.threads > 0 ? l->o.threads : default_threads();

    l->threads = xcalloc((size_t)wanted, sizeof(*l->threads));
    for (; l->thread_count < wanted; l->thread_count++) {
        int rc = pthread_create(&l->threads[l->thread_count], NULL, run_thread, l);

        if (rc)
            return err_sys(e, rc, "could not start a loader thread");
    }
    return 0;
}

/* --- synthetic data --- */

/* Example i of rank r is number i * ranks + r of one endless row, as with real data: n ranks
 * with batch B see together what one rank with batch n * B sees. */
static void make_example(struct loader *l, int64_t i)
{
    uint64_t number = (uint64_t)(i * l->o.ranks + l->o.rank);
    float *pixels = l->synthetic + (size_t)i * l->pixels;
    struct rng images, labels;

    rng_init(&images, l->o.seed, rng_stream("synthetic/images") ^ number);
    rng_init(&labels, l->o.seed, rng_stream("synthetic/labels") ^ number);
    for (size_t p = 0; p < l->pixels; p++)
        pixels[p] = rng_truncated_normal(&images, 127, 60);
    l->slots[0].labels[i] = (int32_t)rng_below(&labels, (uint32_t)(l->facts.classes - 1));
}

static void make_synthetic(struct loader *l)
{
    l->synthetic = xreallocarray(NULL, (size_t)l->o.batch * l->pixels, sizeof(*l->synthetic));
    l->slots = xcalloc(1, sizeof(*l->slots));
    l->slots[0].labels = xcalloc((size_t)l->o.batch, sizeof(int32_t));
    for (int64_t i = 0; i < l->o.batch; i++)
        make_example(l, i);
}

static void give_synthetic(struct loader *l, struct batch *batch)
{
    *batch = (struct batch){
        .images = l->synthetic,
        .labels = l->slots[0].labels,
        .is_float = true,
        .is_same = l->was_given,
        .examples = l->o.batch,
        .number = l->next_batch++,
    };
    l->was_given = true;
}

/* --- the outside --- */

static void make_ring(struct loader *l)
{
    l->ring = l->o.ahead + 3;
    l->slots = xcalloc((size_t)l->ring, sizeof(*l->slots));
    for (int i = 0; i < l->ring; i++) {
        l->slots[i].images = xmalloc((size_t)l->o.batch * l->pixels);
        l->slots[i].labels = xcalloc((size_t)l->o.batch, sizeof(int32_t));
        l->slots[i].batch = -1;
    }
}

int loader_new(const struct dataset *dataset,
               const struct loader_options *options,
               struct loader **ret_loader,
               struct err *e)
{
    struct loader *l = xcalloc(1, sizeof(*l));

    l->dataset = dataset;
    dataset_facts(dataset, &l->facts);
    l->o = *options;
    if (l->o.ahead <= 0)
        l->o.ahead = 2;
    l->pixels = (size_t)(l->o.decode.height * l->o.decode.width * l->o.decode.channels);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->ready, NULL);
    l->fill_batch = l->next_batch = l->o.repeats_sample ? 0 : l->o.first_batch;
    l->end_batch = INT64_MAX;
    if (!l->o.decode.is_training && !l->facts.is_synthetic)
        l->end_batch = (share(l) + l->o.batch - 1) / l->o.batch;
    if (l->facts.is_synthetic) {
        make_synthetic(l);
    } else {
        make_ring(l);
        if (start_threads(l, e) < 0) {
            loader_free(l);
            return -1;
        }
    }
    *ret_loader = l;
    return 0;
}

static void end_threads(struct loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->is_ending = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->thread_count; i++)
        pthread_join(l->threads[i], NULL);
}

void loader_free(struct loader *l)
{
    if (!l)
        return;
    end_threads(l);
    for (int i = 0; i < (l->ring ? l->ring : 1) && l->slots; i++) {
        free(l->slots[i].images);
        free(l->slots[i].labels);
    }
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->ready);
    free(l->slots);
    free(l->synthetic);
    free(l->threads);
    free(l->corrupt);
    free(l);
}

static bool is_ready(const struct slot *slot, int64_t batch)
{
    return slot->batch == batch && slot->left == 0;
}

static int wait_ready(struct loader *l, const struct slot *slot, int64_t batch, struct err *e)
{
    int64_t began = clock_mono_us();

    while (!is_ready(slot, batch) && !l->has_failed)
        pthread_cond_wait(&l->ready, &l->lock);
    l->waited_s += (double)(clock_mono_us() - began) / 1e6;
    if (is_ready(slot, batch) && !l->has_failed)
        return 0;
    if (e)
        *e = l->failure;
    return -1;
}

int loader_next(struct loader *l, struct batch *ret_batch, struct err *e)
{
    bool is_same = l->o.repeats_sample && l->was_given;
    int64_t batch = l->o.repeats_sample ? 0 : l->next_batch;
    struct slot *slot;
    int rc;

    if (l->facts.is_synthetic) {
        give_synthetic(l, ret_batch);
        return 0;
    }
    *ret_batch = (struct batch){.number = l->next_batch};
    if (l->next_batch >= l->end_batch)
        return 0;
    pthread_mutex_lock(&l->lock);
    slot = &l->slots[batch % l->ring];
    rc = wait_ready(l, slot, batch, e);
    if (rc == 0)
        l->next_batch++;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    if (rc < 0)
        return -1;
    l->was_given = true;
    ret_batch->images = slot->images;
    ret_batch->labels = slot->labels;
    ret_batch->examples = slot->examples;
    ret_batch->is_same = is_same;
    ret_batch->slot = (int)(batch % l->ring);
    return 0;
}

void loader_release(struct loader *l, const struct batch *batch)
{
    if (l->facts.is_synthetic || l->o.repeats_sample || !batch->images)
        return;
    pthread_mutex_lock(&l->lock);
    l->slots[batch->slot].batch = -1;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
}

double loader_waited_s(struct loader *l)
{
    double waited = l->waited_s;

    l->waited_s = 0;
    return waited;
}

int64_t loader_corrupt(struct loader *l)
{
    int64_t count;

    pthread_mutex_lock(&l->lock);
    count = l->corrupt_count;
    pthread_mutex_unlock(&l->lock);
    return count;
}
