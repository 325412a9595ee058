/* loss.c - softmax with cross-entropy, and losses put together.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/ref/ref-internal.h"

#include <math.h>

struct rows {
    int64_t m, v, classes;
    const int32_t *labels;
    double counted; /* rows with a label */
};

static struct rows rows_of(const struct ref_args *a)
{
    struct rows r = {.m = ref_in_shape(a, 0)->dim[0],
                     .v = ref_in_shape(a, 0)->dim[1],
                     .classes = a->op->attrs.xent.classes,
                     .labels = ref_in_ints(a, 1)};

    for (int64_t i = 0; i < r.m; i++)
        r.counted += r.labels[i] >= 0;
    if (r.counted < 1)
        r.counted = 1;
    return r;
}

/* softmax; returns log(sum(exp)). */
static double softmax(const float *x, float *probs, int64_t v, int64_t classes)
{
    double most = -INFINITY, sum = 0, log_sum;

    for (int64_t j = 0; j < classes; j++)
        most = fmax(most, (double)x[j]);
    for (int64_t j = 0; j < classes; j++)
        sum += exp((double)x[j] - most);
    log_sum = most + log(sum);
    for (int64_t j = 0; j < v; j++)
        probs[j] = j < classes ? (float)exp((double)x[j] - log_sum) : 0;
    return log_sum;
}

/* -sum(target log p), the target smoothed. */
static double
row_loss(const float *x, double log_sum, int32_t label, int64_t classes, double smoothing)
{
    double all = 0;

    for (int64_t j = 0; j < classes; j++)
        all += log_sum - (double)x[j];
    return (1 - smoothing) * (log_sum - (double)x[label]) + smoothing * all / (double)classes;
}

/* How many are larger than the label's: 0 = it is first.  Equal ones do not push it back. */
static int64_t rank_of(const float *x, int32_t label, int64_t classes)
{
    int64_t above = 0;

    for (int64_t j = 0; j < classes; j++)
        above += !(x[j] <= x[label]); /* a NaN is above */
    return above;
}

void ref_xent(const struct ref_args *a)
{
    struct rows r = rows_of(a);
    double loss = 0, top1 = 0, top5 = 0;

    for (int64_t i = 0; i < r.m; i++) {
        const float *x = ref_in(a, 0) + i * r.v;
        double log_sum = softmax(x, ref_out(a, 3) + i * r.v, r.v, r.classes);

        if (r.labels[i] < 0)
            continue;
        loss +=
            row_loss(x, log_sum, r.labels[i], r.classes, (double)a->op->attrs.xent.smoothing);
        top1 += rank_of(x, r.labels[i], r.classes) < 1;
        top5 += rank_of(x, r.labels[i], r.classes) < 5;
    }
    *ref_out(a, 0) = (float)(loss / r.counted);
    *ref_out(a, 1) = (float)top1;
    *ref_out(a, 2) = (float)top5;
}

void ref_xent_grad(const struct ref_args *a)
{
    struct rows r = rows_of(a);
    const struct xent_attrs *x = &a->op->attrs.xent;
    double scale = (double)x->weight * (x->scales_by_loss ? (double)a->step->loss_scale : 1);
    double even = (double)x->smoothing / (double)r.classes;

    for (int64_t i = 0; i < r.m; i++)
        for (int64_t j = 0; j < r.v; j++) {
            double target = j < r.classes ? even : 0;

            if (j == r.labels[i])
                target += 1 - (double)x->smoothing;
            ref_out(a, 0)[i * r.v + j] =
                r.labels[i] < 0
                    ? 0
                    : (float)(((double)ref_in(a, 0)[i * r.v + j] - target) * scale / r.counted);
        }
}

void ref_weighted_sum(const struct ref_args *a)
{
    double sum = 0;

    for (int i = 0; i < a->op->in_count; i++)
        sum += (double)a->op->attrs.weighted.weight[i] * (double)*ref_in(a, i);
    *ref_out(a, 0) = (float)sum;
}
