/* loader.c - batches of records, in an order that a seed fixes.
 *
 * Filling a batch is a copy of a few kilobytes, so there are no threads: some tens of
 * microseconds beside a step of milliseconds.  Three sets of arrays take turns, since a step
 * may still read the batch before.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/bert-data/bert-data.h"
#include "train/num/permute.h"

#include <string.h>

enum {
    SETS = 3,
};

struct arrays {
    int32_t *ids, *types, *mask, *rows, *labels, *next;
};

struct bert_loader {
    const struct bert_data *data;
    struct bert_data_facts facts;
    struct bert_loader_options o;
    int64_t number; /* of the next batch */
    struct arrays sets[SETS];
};

void bert_loader_free(struct bert_loader *l)
{
    if (!l)
        return;
    for (int i = 0; i < SETS; i++)
        free(l->sets[i].ids); /* all of a set is one piece */
    free(l);
}

static void make_set(struct arrays *a, const struct bert_loader_options *o)
{
    size_t tokens = (size_t)(o->batch * o->sequence);
    size_t masked = (size_t)(o->batch * o->predictions);

    a->ids = xcalloc(3 * tokens + 2 * masked + (size_t)o->batch, sizeof *a->ids);
    a->types = a->ids + tokens;
    a->mask = a->types + tokens;
    a->rows = a->mask + tokens;
    a->labels = a->rows + masked;
    a->next = a->labels + masked;
}

static int
check(const struct bert_data_facts *facts, const struct bert_loader_options *o, struct err *e)
{
    if (facts->records == 0)
        return err_set(e, ERR_INVALID, "the shards hold no records");
    if (o->sequence < facts->shape.sequence)
        return err_set(e, ERR_INVALID,
                       "the shards have sequences of %lld tokens, the network takes %lld",
                       (long long)facts->shape.sequence, (long long)o->sequence);
    if (o->predictions < facts->shape.predictions)
        return err_set(e, ERR_INVALID,
                       "the shards have %lld masked tokens a sequence, the network takes %lld",
                       (long long)facts->shape.predictions, (long long)o->predictions);
    if (o->batch < 1 || o->ranks < 1 || o->rank < 0 || o->rank >= o->ranks ||
        o->sequence > BERT_DATA_MOST_SEQUENCE || o->predictions > o->sequence)
        return err_set(e, ERR_INVALID, "batches of %lld for rank %d of %d", (long long)o->batch,
                       o->rank, o->ranks);
    if (o->batch * o->sequence > INT32_MAX)
        return err_set(e, ERR_INVALID, "a batch of %lld sequences of %lld tokens is too large",
                       (long long)o->batch, (long long)o->sequence);
    return 0;
}

int bert_loader_new(const struct bert_data *data,
                    const struct bert_loader_options *options,
                    struct bert_loader **ret_loader,
                    struct err *e)
{
    struct bert_data_facts facts;
    struct bert_loader *l;

    bert_data_facts(data, &facts);
    if (check(&facts, options, e) < 0)
        return -1;
    l = xcalloc(1, sizeof *l);
    l->data = data;
    l->facts = facts;
    l->o = *options;
    l->number = options->first_batch;
    for (int i = 0; i < SETS; i++)
        make_set(&l->sets[i], options);
    *ret_loader = l;
    return 0;
}

/* No example: nothing to look at but one token, since a softmax over none is no number. */
static void fill_none(const struct bert_loader *l, const struct arrays *a, int64_t i)
{
    int64_t t = l->o.sequence, p = l->o.predictions;

    memset(a->ids + i * t, 0, (size_t)t * sizeof *a->ids);
    memset(a->types + i * t, 0, (size_t)t * sizeof *a->types);
    memset(a->mask + i * t, 0, (size_t)t * sizeof *a->mask);
    a->mask[i * t] = 1;
    for (int64_t j = 0; j < p; j++) {
        a->rows[i * p + j] = (int32_t)(i * t);
        a->labels[i * p + j] = -1;
    }
    a->next[i] = -1;
}

static void fill(const struct bert_loader *l,
                 const struct arrays *a,
                 int64_t i,
                 const struct bert_record *r)
{
    int64_t t = l->o.sequence, p = l->o.predictions;

    fill_none(l, a, i);
    memcpy(a->ids + i * t, r->ids, (size_t)r->length * sizeof *a->ids);
    for (int64_t j = 0; j < r->length; j++) {
        a->types[i * t + j] = j >= r->second;
        a->mask[i * t + j] = 1;
    }
    for (int64_t j = 0; j < r->masked; j++) {
        a->rows[i * p + j] = (int32_t)(i * t + r->masked_at[j]);
        a->labels[i * p + j] = r->masked_id[j];
    }
    a->next[i] = (int32_t)r->next;
}

static int64_t record_at(const struct bert_loader *l, int64_t position)
{
    int64_t epoch = position / l->facts.records, at = position % l->facts.records;

    if (!l->o.is_shuffled)
        return at;
    return (int64_t)permute((uint64_t)at, (uint64_t)l->facts.records, l->o.seed,
                            (uint64_t)epoch);
}

int bert_loader_next(struct bert_loader *l, struct bert_batch *ret_batch, struct err *e)
{
    const struct arrays *a = &l->sets[l->number % SETS];
    int64_t first = l->number * l->o.batch * l->o.ranks + l->o.rank;
    struct bert_batch b = {.ids = a->ids,
                           .types = a->types,
                           .mask = a->mask,
                           .rows = a->rows,
                           .labels = a->labels,
                           .next = a->next,
                           .number = l->number,
                           .epoch = first / l->facts.records};

    for (int64_t i = 0; i < l->o.batch; i++) {
        int64_t position = first + i * l->o.ranks;
        struct bert_record r;

        if (l->o.is_once && position >= l->facts.records) {
            fill_none(l, a, i);
            continue;
        }
        if (bert_data_at(l->data, record_at(l, position), &r, e) < 0)
            return -1;
        fill(l, a, i, &r);
        b.examples++;
        b.masked += r.masked;
    }
    l->number++;
    *ret_batch = b;
    return 0;
}
