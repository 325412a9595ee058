/* examples.c - see examples.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert-data/examples.h"

#include "base/mem.h"
#include "train/bert-data/vocab.h"
#include "train/num/rng.h"

#include <math.h>
#include <string.h>

struct maker {
    const struct corpus *corpus;
    const struct vocab *vocab;
    const struct examples_options *o;
    struct rng rng;
    size_t document;
    struct tokens first, second; /* the two parts */
    int32_t *ids;                /* T */
    int32_t *order;              /* T: places that can be masked, shuffled */
    int32_t *masked_at, *masked_id;
    examples_fn *fn;
    void *arg;
};

static bool happens(struct rng *rng, double share)
{
    return (double)rng_u32(rng) * 0x1p-32 < share;
}

/* first..last, both included. */
static size_t between(struct rng *rng, size_t first, size_t last)
{
    return first + rng_below(rng, (uint32_t)(last - first) + 1);
}

static void add_sentence(struct tokens *to, const struct corpus *c, size_t sentence)
{
    for (size_t i = c->sentences[sentence]; i < c->sentences[sentence + 1]; i++)
        tokens_add(to, c->tokens.ids[i]);
}

/* --- pairs ---------------------------------------------------------------------------------
 */

/* Where a part from elsewhere begins: a sentence of another document, when there is one. */
static size_t elsewhere(struct maker *m, size_t *ret_end)
{
    const struct corpus *c = m->corpus;
    size_t other = m->document;

    if (c->document_count > 1) {
        other = between(&m->rng, 0, c->document_count - 2);
        other += other >= m->document;
    }
    *ret_end = c->documents[other + 1];
    return between(&m->rng, c->documents[other], c->documents[other + 1] - 1);
}

static void fill_from_elsewhere(struct maker *m, size_t target)
{
    size_t end, wanted = target > m->first.count ? target - m->first.count : 1;

    for (size_t at = elsewhere(m, &end); at < end && m->second.count < wanted; at++)
        add_sentence(&m->second, m->corpus, at);
}

/* Take tokens from the longer part, at its beginning or its end, until both fit. */
static void cut_to(struct maker *m, size_t most, size_t *ret_first_at, size_t *ret_second_at)
{
    size_t at[2] = {0, 0};
    struct tokens *part[2] = {&m->first, &m->second};

    while (part[0]->count - at[0] + part[1]->count - at[1] > most) {
        int longer = part[0]->count - at[0] <= part[1]->count - at[1];

        if (happens(&m->rng, 0.5))
            at[longer]++;
        else
            part[longer]->count--;
    }
    *ret_first_at = at[0];
    *ret_second_at = at[1];
}

/* [CLS] first [SEP] second [SEP] */
static void put_together(struct maker *m, struct bert_record *r)
{
    const struct vocab_special *special = vocab_special(m->vocab);
    size_t first_at, second_at, first, second;

    cut_to(m, (size_t)m->o->shape.sequence - 3, &first_at, &second_at);
    first = m->first.count - first_at;
    second = m->second.count - second_at;
    m->ids[0] = special->begin;
    memcpy(m->ids + 1, m->first.ids + first_at, first * sizeof *m->ids);
    m->ids[1 + first] = special->end;
    memcpy(m->ids + 2 + first, m->second.ids + second_at, second * sizeof *m->ids);
    m->ids[2 + first + second] = special->end;
    r->second = (int64_t)(2 + first);
    r->length = (int64_t)(3 + first + second);
    r->ids = m->ids;
}

/* --- masks ---------------------------------------------------------------------------------
 */

static int32_t masked(struct maker *m, int32_t id)
{
    if (happens(&m->rng, 0.8))
        return vocab_special(m->vocab)->mask;
    if (happens(&m->rng, 0.5))
        return id;
    return (int32_t)rng_below(&m->rng, (uint32_t)vocab_count(m->vocab));
}

static int by_number(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

/* Every place but [CLS] and the two [SEP]. */
static size_t list_places(struct maker *m, const struct bert_record *r)
{
    size_t count = 0;

    for (int64_t i = 1; i < r->length - 1; i++)
        if (i != r->second - 1)
            m->order[count++] = (int32_t)i;
    return count;
}

static void mask(struct maker *m, struct bert_record *r)
{
    size_t places = list_places(m, r);
    size_t wanted = (size_t)lround((double)r->length * m->o->masked_share);

    wanted = wanted < 1 ? 1 : wanted;
    if (wanted > (size_t)m->o->shape.predictions)
        wanted = (size_t)m->o->shape.predictions;
    if (wanted > places)
        wanted = places;
    for (size_t i = 0; i < wanted; i++) { /* the first of a shuffle */
        size_t j = between(&m->rng, i, places - 1);

        m->masked_at[i] = m->order[j];
        m->order[j] = m->order[i];
    }
    qsort(m->masked_at, wanted, sizeof *m->masked_at, by_number);
    for (size_t i = 0; i < wanted; i++) {
        m->masked_id[i] = m->ids[m->masked_at[i]];
        m->ids[m->masked_at[i]] = masked(m, m->masked_id[i]);
    }
    r->masked = (int64_t)wanted;
    r->masked_at = m->masked_at;
    r->masked_id = m->masked_id;
}

/* --- a document ----------------------------------------------------------------------------
 */

static size_t draw_target(struct maker *m)
{
    size_t most = (size_t)m->o->shape.sequence - 3;

    return happens(&m->rng, m->o->short_share) ? between(&m->rng, 2, most) : most;
}

/* One example of sentences from..to-1; returns where the next begins: sentences that a part
 * from elsewhere replaced are taken again. */
static size_t
make_one(struct maker *m, size_t from, size_t to, size_t target, struct bert_record *r)
{
    size_t cut = to - from > 1 ? between(&m->rng, from + 1, to - 1) : to;
    bool is_elsewhere = cut == to || happens(&m->rng, 0.5);

    m->first.count = m->second.count = 0;
    for (size_t i = from; i < cut; i++)
        add_sentence(&m->first, m->corpus, i);
    if (is_elsewhere)
        fill_from_elsewhere(m, target);
    else
        for (size_t i = cut; i < to; i++)
            add_sentence(&m->second, m->corpus, i);
    *r = (struct bert_record){.next = is_elsewhere};
    put_together(m, r);
    mask(m, r);
    return is_elsewhere ? cut : to;
}

static int make_all(struct maker *m, struct err *e)
{
    const struct corpus *c = m->corpus;
    size_t at = c->documents[m->document], end = c->documents[m->document + 1];

    while (at < end) {
        size_t target = draw_target(m), to = at, length = 0;
        struct bert_record record;

        while (to < end && length < target)
            length += corpus_length(c, to++);
        at = make_one(m, at, to, target, &record);
        if (m->fn(m->arg, &record, e) < 0)
            return -1;
    }
    return 0;
}

int examples_make(const struct corpus *corpus,
                  const struct vocab *vocab,
                  const struct examples_options *options,
                  size_t document,
                  int copy,
                  examples_fn *fn,
                  void *arg,
                  struct err *e)
{
    size_t t = (size_t)options->shape.sequence;
    auto_free int32_t *room = xcalloc(4 * t, sizeof *room);
    struct maker m = {.corpus = corpus,
                      .vocab = vocab,
                      .o = options,
                      .document = document,
                      .ids = room,
                      .order = room + t,
                      .masked_at = room + 2 * t,
                      .masked_id = room + 3 * t,
                      .fn = fn,
                      .arg = arg};
    int rc;

    rng_init(&m.rng, options->seed,
             rng_stream("bert-data") + ((uint64_t)copy << 40) + (uint64_t)document);
    rc = make_all(&m, e);
    tokens_done(&m.first);
    tokens_done(&m.second);
    return rc;
}
