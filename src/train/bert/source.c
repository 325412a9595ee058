/* source.c - where batches come from: shards, or one batch of random tokens.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert/bert-internal.h"
#include "train/num/rng.h"

#include <inttypes.h>
#include <string.h>

struct bert_source {
    struct bert_data *data; /* NULL = random */
    struct bert_data_facts facts;
    struct bert_loader *loader;
    struct bert_loader_options options;
    int32_t *first;  /* N: rows of the first tokens */
    int32_t *random; /* all arrays of the one batch */
    struct bert_batch batch;
    bool was_given;
};

int bert_source_open(const char *path, struct bert_source **ret_source, struct err *e)
{
    struct bert_data *data = NULL;
    struct bert_source *source;

    if (path && bert_data_open(path, &data, e) < 0)
        return -1;
    source = xcalloc(1, sizeof(*source));
    source->data = data;
    if (data)
        bert_data_facts(data, &source->facts);
    *ret_source = source;
    return 0;
}

void bert_source_free(struct bert_source *source)
{
    if (!source)
        return;
    bert_loader_free(source->loader);
    bert_data_free(source->data);
    free(source->first);
    free(source->random);
    free(source);
}

const struct bert_data_facts *bert_source_facts(const struct bert_source *source)
{
    return source->data ? &source->facts : NULL;
}

/* P of T positions, rising, each set of them as likely as any other. */
static void draw_positions(struct rng *rng, int64_t t, int64_t p, int32_t *ret_at)
{
    for (int64_t at = 0, drawn = 0; drawn < p && at < t; at++)
        if (rng_below(rng, (uint32_t)(t - at)) < (uint32_t)(p - drawn))
            ret_at[drawn++] = (int32_t)at;
}

/* The arrays of a batch, to be written. */
struct arrays {
    int32_t *ids, *types, *mask, *rows, *labels, *next;
};

static struct arrays arrays_of(const struct bert_source *source)
{
    const struct bert_loader_options *o = &source->options;
    size_t tokens = (size_t)(o->batch * o->sequence);
    size_t rows = (size_t)(o->batch * o->predictions);
    int32_t *at = source->random;

    return (struct arrays){.ids = at,
                           .types = at + tokens,
                           .mask = at + 2 * tokens,
                           .rows = at + 3 * tokens,
                           .labels = at + 3 * tokens + rows,
                           .next = at + 3 * tokens + 2 * rows};
}

static void make_example(const struct bert_loader_options *o,
                         struct rng *rng,
                         int64_t vocabulary,
                         int64_t n,
                         const struct arrays *a)
{
    int64_t t = o->sequence, p = o->predictions < t ? o->predictions : t;
    int32_t *rows = a->rows + n * o->predictions, *labels = a->labels + n * o->predictions;

    for (int64_t i = n * t; i < (n + 1) * t; i++) {
        a->ids[i] = (int32_t)rng_below(rng, (uint32_t)vocabulary);
        a->types[i] = i - n * t >= t / 2;
        a->mask[i] = 1;
    }
    draw_positions(rng, t, p, rows);
    for (int64_t i = 0; i < o->predictions; i++) {
        rows[i] = (int32_t)(n * t) + (i < p ? rows[i] : 0);
        labels[i] = i < p ? (int32_t)rng_below(rng, (uint32_t)vocabulary) : -1;
    }
    a->next[n] = (int32_t)rng_below(rng, 2);
}

/* Each rank has its own. */
static void make_random(struct bert_source *source, int64_t vocabulary)
{
    const struct bert_loader_options *o = &source->options;
    size_t each = (size_t)(3 * o->sequence + 2 * o->predictions + 1);
    struct arrays a;
    struct rng rng;

    source->random = xcalloc((size_t)o->batch * each, sizeof(*source->random));
    a = arrays_of(source);
    rng_init(&rng, o->seed + (uint64_t)o->rank, rng_stream("bert/random"));
    for (int64_t n = 0; n < o->batch; n++)
        make_example(o, &rng, vocabulary, n, &a);
    source->batch = (struct bert_batch){.ids = a.ids,
                                        .types = a.types,
                                        .mask = a.mask,
                                        .rows = a.rows,
                                        .labels = a.labels,
                                        .next = a.next,
                                        .examples = o->batch,
                                        .number = o->first_batch};
}

static void make_first(struct bert_source *source)
{
    const struct bert_loader_options *o = &source->options;

    source->first = xcalloc((size_t)o->batch, sizeof(*source->first));
    for (int64_t n = 0; n < o->batch; n++)
        source->first[n] = (int32_t)(n * o->sequence);
}

int bert_source_begin(struct bert_source *source,
                      const struct bert_loader_options *options,
                      int64_t vocabulary,
                      struct err *e)
{
    source->options = *options;
    make_first(source);
    if (!source->data) {
        make_random(source, vocabulary);
        return 0;
    }
    if (source->facts.shape.vocabulary > vocabulary)
        return err_set(e, ERR_INVALID,
                       "the data have %" PRId64 " different tokens, the network has %" PRId64,
                       source->facts.shape.vocabulary, vocabulary);
    return bert_loader_new(source->data, options, &source->loader, e);
}

static void feed(struct bert_source *source, const struct bert_batch *b, struct step *step)
{
    step->feed[BERT_FIRST] = source->was_given ? NULL : source->first;
    if (!source->data && source->was_given)
        return;
    step->feed[BERT_IDS] = b->ids;
    step->feed[BERT_TYPES] = b->types;
    step->feed[BERT_MASK] = b->mask;
    step->feed[BERT_ROWS] = b->rows;
    step->feed[BERT_LABELS] = b->labels;
    step->feed[BERT_NEXT] = b->next;
}

int bert_source_next(struct bert_source *source,
                     struct bert_batch *ret_batch,
                     struct step *step,
                     struct err *e)
{
    if (source->data) {
        if (bert_loader_next(source->loader, ret_batch, e) < 0)
            return -1;
    } else {
        *ret_batch = source->batch;
        source->batch.number++;
    }
    feed(source, ret_batch, step);
    source->was_given = true;
    return 0;
}
