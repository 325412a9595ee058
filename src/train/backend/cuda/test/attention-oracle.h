/* attention-oracle.h - one head of attention and its gradient in double precision, with how far
 * each element may be away.
 *
 * In 16 bits the fast kernels round three things besides results: probabilities and their
 * gradients before they are multiplied again, and y, whose product with dy (delta) is taken
 * off.  The variances of all roundings that go into an element are added up, and it may be
 * DEVIATIONS of the root away: a key that is left out among 512 is seen, and so is one that is
 * taken twice.  On top comes `noise`, of the size of what was summed, for exponents and sums in
 * fp32.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_TEST_ATTENTION_ORACLE_H
#define TRAIN_BACKEND_CUDA_TEST_ATTENTION_ORACLE_H

#include "base/mem.h"
#include "train/backend/backend.h"
#include "train/num/rng.h"

#include <math.h>

enum {
    DEVIATIONS = 6, /* of a million elements none is so far by chance */
};

struct rounding {
    enum precision precision;
    double unit, least; /* of the type: half of the last bit of 1, the smallest normal number */
    double noise;
};

/* One element: its value, the variance of what is rounded on the way, the sum of the sizes. */
struct sum {
    double value, variance, size;
};

struct head {
    const float *q, *k, *v, *dy; /* of the first position */
    int64_t length, width, row;  /* row: floats of qkv; a third of it in dy */
    const int32_t *mask;
    uint64_t first; /* element of the N A T T probabilities, for dropout */
    float dropout;
    uint64_t key, step; /* of what is drawn */
    double scale;
    const struct rounding *rounding;
    struct sum *y, *dq, *dk, *dv; /* length, width */
};

/* Of one row of probabilities. */
struct row {
    double *p;      /* before dropout */
    double *factor; /* of dropout; 0 = dropped */
    double *dp, *dp_size;
};

static inline double variance_of(const struct rounding *r, double value)
{
    double most = value == 0 ? 0 : r->unit * fmax(fabs(value), r->least);

    return most * most / 3; /* any error up to `most` is as likely */
}

static inline void add(struct sum *sum, double value, double variance, double size)
{
    sum->value += value;
    sum->variance += variance;
    sum->size += size;
}

static inline double factor_of(const struct head *h, int64_t i, int64_t j)
{
    uint64_t element = h->first + (uint64_t)(i * h->length + j);
    uint32_t words[4];

    if (h->dropout == 0)
        return 1;
    rng_dropout(h->key, h->step, element / 8, words);
    return rng_dropout_half(words, element) >= rng_dropout_limit(h->dropout)
               ? 1 / (1 - (double)h->dropout)
               : 0;
}

/* All zero when no key is looked at. */
static inline void weigh(const struct head *h, int64_t i, const struct row *r)
{
    double most = -INFINITY, sum = 0;

    for (int64_t j = 0; j < h->length; j++) {
        double dot = 0;

        for (int64_t x = 0; x < h->width; x++)
            dot += (double)h->q[i * h->row + x] * (double)h->k[j * h->row + x];
        r->p[j] = h->mask[j] ? dot * h->scale : -INFINITY;
        r->factor[j] = factor_of(h, i, j);
        most = fmax(most, r->p[j]);
    }
    for (int64_t j = 0; j < h->length; j++)
        sum += r->p[j] = isinf(r->p[j]) ? 0 : exp(r->p[j] - most);
    for (int64_t j = 0; j < h->length; j++)
        r->p[j] /= sum > 0 ? sum : 1;
}

/* y of row i, and dv's share of it. */
static inline void attend(const struct head *h, int64_t i, const struct row *r)
{
    const float *dy = h->dy + i * h->row / 3;

    for (int64_t j = 0; j < h->length; j++) {
        double weight = r->p[j] * r->factor[j], variance = variance_of(h->rounding, weight);

        for (int64_t x = 0; weight != 0 && x < h->width; x++) {
            double v = (double)h->v[j * h->row + x], g = (double)dy[x];

            add(&h->y[i * h->width + x], weight * v, variance * v * v, fabs(weight * v));
            add(&h->dv[j * h->width + x], weight * g, variance * g * g, fabs(weight * g));
        }
    }
}

/* dp, and delta = sum(p dp), which kernels take as dy . y of the y that was stored. */
static inline struct sum delta_of(const struct head *h, int64_t i, const struct row *r)
{
    const float *dy = h->dy + i * h->row / 3;
    struct sum delta = {0};

    for (int64_t j = 0; j < h->length; j++) {
        r->dp[j] = r->dp_size[j] = 0;
        for (int64_t x = 0; r->factor[j] != 0 && x < h->width; x++) {
            double product = (double)dy[x] * (double)h->v[j * h->row + x] * r->factor[j];

            r->dp[j] += product;
            r->dp_size[j] += fabs(product);
        }
        add(&delta, r->p[j] * r->dp[j], 0, r->p[j] * r->dp_size[j]);
    }
    for (int64_t x = 0; x < h->width; x++) {
        const struct sum *y = &h->y[i * h->width + x];

        delta.variance +=
            (double)dy[x] * (double)dy[x] * (y->variance + variance_of(h->rounding, y->value));
    }
    return delta;
}

/* dq of row i, and dk's share.  An error of delta goes into all keys of the row alike. */
static inline void attend_back(const struct head *h, int64_t i, const struct row *r)
{
    struct sum delta = delta_of(h, i, r), *dq = &h->dq[i * h->width];
    const float *q = h->q + i * h->row;
    double square = h->scale * h->scale;

    for (int64_t j = 0; j < h->length; j++) {
        double ds = r->p[j] * (r->dp[j] - delta.value), variance = variance_of(h->rounding, ds);
        double size = r->p[j] * (r->dp_size[j] + delta.size) * h->scale;
        double both = variance + r->p[j] * r->p[j] * delta.variance;

        for (int64_t x = 0; r->p[j] != 0 && x < h->width; x++) {
            double k = (double)h->k[j * h->row + x], of_q = (double)q[x];

            add(&dq[x], ds * h->scale * k, variance * square * k * k, size * fabs(k));
            add(&h->dk[j * h->width + x], ds * h->scale * of_q, both * square * of_q * of_q,
                size * fabs(of_q));
        }
    }
    for (int64_t x = 0; x < h->width; x++) {
        double mean = 0; /* of the keys, as they are weighed */

        for (int64_t j = 0; j < h->length; j++)
            mean += r->p[j] * (double)h->k[j * h->row + x];
        dq[x].variance += delta.variance * square * mean * mean;
    }
}

/* Into y, dq, dk and dv, which are zero. */
static inline void head_reckon(const struct head *h)
{
    auto_free double *room = xcalloc((size_t)h->length * 4, sizeof *room);
    struct row row = {room, room + h->length, room + 2 * h->length, room + 3 * h->length};

    for (int64_t i = 0; i < h->length; i++) {
        weigh(h, i, &row);
        attend(h, i, &row);
        attend_back(h, i, &row);
    }
}

/* What was found in one tensor of a head. */
struct finding {
    int64_t wrong;
    int64_t first;              /* of those that are wrong: position * width + column */
    double found, wanted, most; /* of the first */
    double worst;               /* in parts of what is allowed */
};

/* `found`: of the head's first position; its rows are `row` floats apart. */
static inline struct finding
head_compare(const struct head *h, const struct sum *wanted, const float *found, int64_t row)
{
    struct finding f = {0};

    for (int64_t i = 0; i < h->length * h->width; i++) {
        const struct sum *s = &wanted[i];
        double value = (double)found[i / h->width * row + i % h->width];
        double most = DEVIATIONS * sqrt(s->variance + variance_of(h->rounding, s->value)) +
                      h->rounding->noise * s->size + 1e-37; /* what is zero is zero */
        double part = fabs(value - s->value) / most;

        if (!(part <= 1) && f.wrong++ == 0)
            f = (struct finding){1, i, value, s->value, most, f.worst};
        f.worst = part <= f.worst ? f.worst : part; /* a NaN stays one */
    }
    return f;
}

#endif
