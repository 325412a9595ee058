/* transformer.c - embedding, layer normalisation, attention, rows picked out.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/ref/ref-internal.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

void ref_embed(const struct ref_args *a)
{
    int64_t t = ref_in_shape(a, 0)->dim[1], d = ref_out_shape(a, 0)->dim[1];

    for (int64_t i = 0; i < ref_out_shape(a, 0)->dim[0]; i++)
        for (int64_t j = 0; j < d; j++)
            ref_out(a, 0)[i * d + j] = ref_in(a, 2)[ref_in_ints(a, 0)[i] * d + j] +
                                       ref_in(a, 3)[i % t * d + j] +
                                       ref_in(a, 4)[ref_in_ints(a, 1)[i] * d + j];
}

static void add_row(float *to, const float *from, int64_t d)
{
    for (int64_t j = 0; j < d; j++)
        to[j] += from[j];
}

void ref_embed_grad(const struct ref_args *a)
{
    int64_t t = ref_in_shape(a, 1)->dim[1], d = ref_in_shape(a, 0)->dim[1];
    const float *so_far = ref_in(a, 3);

    for (int i = 0; i < 3; i++)
        memset(ref_out(a, i), 0, (size_t)tensor_elements(ref_out_shape(a, i)) * sizeof(float));
    if (so_far)
        memcpy(ref_out(a, 0), so_far,
               (size_t)tensor_elements(ref_out_shape(a, 0)) * sizeof(float));
    for (int64_t i = 0; i < ref_in_shape(a, 0)->dim[0]; i++) {
        const float *dy = ref_in(a, 0) + i * d;

        add_row(ref_out(a, 0) + ref_in_ints(a, 1)[i] * d, dy, d);
        add_row(ref_out(a, 1) + i % t * d, dy, d);
        add_row(ref_out(a, 2) + ref_in_ints(a, 2)[i] * d, dy, d);
    }
}

static void norm_row(const struct ref_args *a, const float *x, int64_t row, int64_t d)
{
    double mean = 0, var = 0, inv;

    for (int64_t j = 0; j < d; j++)
        mean += (double)x[j] / (double)d;
    for (int64_t j = 0; j < d; j++)
        var += ((double)x[j] - mean) * ((double)x[j] - mean) / (double)d;
    inv = 1 / sqrt(var + (double)a->op->attrs.layernorm.epsilon);
    ref_out(a, 1)[row] = (float)mean;
    ref_out(a, 2)[row] = (float)inv;
    for (int64_t j = 0; j < d; j++)
        ref_out(a, 0)[row * d + j] =
            (float)(((double)x[j] - mean) * inv * (double)ref_in(a, 1)[j] +
                    (double)ref_in(a, 2)[j]);
}

void ref_layernorm(const struct ref_args *a)
{
    int64_t m = ref_in_shape(a, 0)->dim[0], d = ref_in_shape(a, 0)->dim[1];
    const float *x = ref_in(a, 0), *add = ref_in(a, 3);
    float *sum = ref_out(a, 3);

    for (int64_t i = 0; add && i < m * d; i++)
        sum[i] = x[i] + add[i];
    for (int64_t i = 0; i < m; i++)
        norm_row(a, (add ? sum : x) + i * d, i, d);
}

void ref_layernorm_grad(const struct ref_args *a)
{
    int64_t m = ref_in_shape(a, 0)->dim[0], d = ref_in_shape(a, 0)->dim[1];
    const float *gamma = ref_in(a, 2);
    auto_free double *dgamma = xcalloc((size_t)d, sizeof *dgamma);
    auto_free double *dbeta = xcalloc((size_t)d, sizeof *dbeta);

    for (int64_t i = 0; i < m; i++) {
        const float *dy = ref_in(a, 0) + i * d, *x = ref_in(a, 1) + i * d;
        double mean = (double)ref_in(a, 3)[i], inv = (double)ref_in(a, 4)[i];
        double sum = 0, dot = 0;

        for (int64_t j = 0; j < d; j++) {
            double hat = ((double)x[j] - mean) * inv, g = (double)dy[j] * (double)gamma[j];

            sum += g / (double)d;
            dot += g * hat / (double)d;
            dgamma[j] += (double)dy[j] * hat;
            dbeta[j] += (double)dy[j];
        }
        for (int64_t j = 0; j < d; j++) {
            double hat = ((double)x[j] - mean) * inv, g = (double)dy[j] * (double)gamma[j];

            ref_out(a, 0)[i * d + j] = (float)(inv * (g - sum - hat * dot));
        }
    }
    for (int64_t j = 0; j < d; j++) {
        ref_out(a, 1)[j] = (float)dgamma[j];
        ref_out(a, 2)[j] = (float)dbeta[j];
    }
}

/* One head of one sequence: T E each of q, k, v, rows 3D apart. */
struct head {
    const float *q, *k, *v;
    int64_t t, e, row;   /* row: floats from one position to the next */
    const int32_t *mask; /* T: 0 = not to be looked at */
    uint64_t first;      /* element of the N A T T probabilities, for dropout */
};

static struct head
head_of(const struct ref_args *a, const float *qkv, const int32_t *mask, int64_t n, int64_t h)
{
    const struct op *forward = a->op->forward >= 0 ? &a->graph->ops[a->op->forward] : a->op;
    const struct tensor *shape = &a->graph->tensors[forward->in[0]];
    const struct tensor *of_mask = &a->graph->tensors[forward->in[1]];
    int64_t t = of_mask->dim[1], d = shape->dim[1] / 3, heads = a->op->attrs.attention.heads;
    const float *q = qkv + n * t * 3 * d + h * (d / heads);

    return (struct head){.q = q,
                         .k = q + d,
                         .v = q + 2 * d,
                         .t = t,
                         .e = d / heads,
                         .row = 3 * d,
                         .mask = mask + n * t,
                         .first = (uint64_t)((n * heads + h) * t * t)};
}

/* Probabilities of row i, before dropout; returns log(sum(exp)). */
static double weigh(const struct ref_args *a, const struct head *h, int64_t i, double *p)
{
    double most = -INFINITY, sum = 0;

    for (int64_t j = 0; j < h->t; j++) {
        double dot = 0;

        for (int64_t x = 0; x < h->e; x++)
            dot += (double)h->q[i * h->row + x] * (double)h->k[j * h->row + x];
        p[j] = h->mask[j] ? dot * (double)a->op->attrs.attention.scale : -INFINITY;
        most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j < h->t; j++)
        sum += p[j] = isinf(p[j]) ? 0 : exp(p[j] - most);
    for (int64_t j = 0; j < h->t && sum > 0; j++)
        p[j] /= sum;
    return sum > 0 ? most + log(sum) : 0; /* nothing to look at: zeros */
}

/* What dropout multiplies probability (i, j) with. */
static double factor(const struct ref_args *a, const struct head *h, int64_t i, int64_t j)
{
    const struct attention_attrs *at = &a->op->attrs.attention;

    if (at->dropout <= 0)
        return 1;
    return ref_keeps(a->step, at->stream, at->dropout, h->first + (uint64_t)(i * h->t + j))
               ? 1 / (1 - (double)at->dropout)
               : 0;
}

static void attend(const struct ref_args *a, const struct head *h, float *y, float *saved)
{
    auto_free double *p = xcalloc((size_t)h->t, sizeof *p);

    for (int64_t i = 0; i < h->t; i++) {
        saved[i] = (float)weigh(a, h, i, p);
        for (int64_t x = 0; x < h->e; x++) {
            double sum = 0;

            for (int64_t j = 0; j < h->t; j++)
                sum += p[j] * factor(a, h, i, j) * (double)h->v[j * h->row + x];
            y[i * (h->row / 3) + x] = (float)sum;
        }
    }
}

void ref_attention(const struct ref_args *a)
{
    const struct tensor *mask = ref_in_shape(a, 1);
    int64_t d = ref_out_shape(a, 0)->dim[1], heads = a->op->attrs.attention.heads;

    for (int64_t n = 0; n < mask->dim[0]; n++)
        for (int64_t i = 0; i < heads; i++) {
            struct head h = head_of(a, ref_need(a, 0), ref_in_ints(a, 1), n, i);

            attend(a, &h, ref_out(a, 0) + n * h.t * d + i * h.e,
                   ref_out(a, 1) + (n * heads + i) * h.t);
        }
}

/* Row i: dp_j = f_j dy.v_j, ds = p (dp - sum(p dp)); adds to dq, dk and dv. */
static void attend_grad(
    const struct ref_args *a, const struct head *h, int64_t i, const float *dy, double *dqkv)
{
    auto_free double *p = xcalloc((size_t)h->t, sizeof *p);
    auto_free double *dp = xcalloc((size_t)h->t, sizeof *dp);
    double scale = (double)a->op->attrs.attention.scale, sum = 0;
    int64_t e = h->e;

    weigh(a, h, i, p);
    for (int64_t j = 0; j < h->t; j++) {
        double f = factor(a, h, i, j);

        for (int64_t x = 0; x < e; x++) {
            dp[j] += f * (double)dy[x] * (double)h->v[j * h->row + x];
            dqkv[(2 * h->t + j) * e + x] += p[j] * f * (double)dy[x];
        }
        sum += p[j] * dp[j];
    }
    for (int64_t j = 0; j < h->t; j++) {
        double ds = p[j] * (dp[j] - sum) * scale;

        for (int64_t x = 0; x < e; x++) {
            dqkv[i * e + x] += ds * (double)h->k[j * h->row + x];
            dqkv[(h->t + j) * e + x] += ds * (double)h->q[i * h->row + x];
        }
    }
}

static void put_back(const struct head *h, const double *dqkv, float *dq)
{
    for (int part = 0; part < 3; part++)
        for (int64_t i = 0; i < h->t; i++)
            for (int64_t x = 0; x < h->e; x++)
                dq[part * (h->row / 3) + i * h->row + x] =
                    (float)dqkv[(part * h->t + i) * h->e + x];
}

void ref_attention_grad(const struct ref_args *a)
{
    const struct tensor *mask = ref_in_shape(a, 2);
    int64_t d = ref_in_shape(a, 0)->dim[1], heads = a->op->attrs.attention.heads;

    for (int64_t n = 0; n < mask->dim[0]; n++)
        for (int64_t i = 0; i < heads; i++) {
            struct head h = head_of(a, ref_need(a, 1), ref_in_ints(a, 2), n, i);
            auto_free double *dqkv = xcalloc((size_t)(3 * h.t * h.e), sizeof *dqkv);
            const float *dy = ref_in(a, 0) + n * h.t * d + i * h.e;

            for (int64_t row = 0; row < h.t; row++)
                attend_grad(a, &h, row, dy + row * d, dqkv);
            put_back(&h, dqkv, ref_out(a, 0) + (h.q - ref_need(a, 1)));
        }
}

void ref_gather_rows(const struct ref_args *a)
{
    int64_t d = ref_in_shape(a, 0)->dim[1];

    for (int64_t i = 0; i < ref_out_shape(a, 0)->dim[0]; i++)
        memcpy(ref_out(a, 0) + i * d, ref_in(a, 0) + ref_in_ints(a, 1)[i] * d,
               (size_t)d * sizeof(float));
}

void ref_gather_rows_grad(const struct ref_args *a)
{
    int64_t d = ref_in_shape(a, 0)->dim[1];

    memset(ref_out(a, 0), 0, (size_t)tensor_elements(ref_out_shape(a, 0)) * sizeof(float));
    for (int64_t i = 0; i < ref_in_shape(a, 0)->dim[0]; i++)
        add_row(ref_out(a, 0) + ref_in_ints(a, 1)[i] * d, ref_in(a, 0) + i * d, d);
}
