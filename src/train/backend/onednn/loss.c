/* loss.c - softmax with cross-entropy over dense rows, and losses put together.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/loops.h"
#include "train/backend/onednn/plan.h"
#include "train/num/par.h"

#include <math.h>

struct xent_work {
    struct xent_attrs attrs;
    int64_t rows, width;
    int labels_input;
    const int32_t *labels;
    struct place *logits, *probs, *loss, *top1, *top5, *parts; /* parts: 3 for each row */
    float scale; /* of the gradient: weight, loss scale, 1/counted */
};

static const float *row_at(const struct place *place, const struct xent_work *w, int64_t row)
{
    return (const float *)place->data + row * w->width;
}

/* Labels may lie beyond the classes only by the host's mistake: such a row counts as none. */
static bool counts(const struct xent_work *w, int64_t row)
{
    return w->labels[row] >= 0 && w->labels[row] < w->attrs.classes;
}

/* sum(exp(x - most)) of a row: with the largest taken out nothing overflows, and what is left
 * of those that matter is exact. */
struct total {
    float most;
    double sum;
};

static struct total total_of(const struct xent_work *w, const float *x)
{
    float most = loops()->largest(x, w->attrs.classes);

    return (struct total){most, loops()->sum_exp(x, most, w->attrs.classes)};
}

/* Mean of log_sum - x: what smoothing spreads over all classes. */
static double mean_loss(const struct xent_work *w, const float *x, double log_sum)
{
    double all = 0;

    for (int64_t j = 0; j < w->attrs.classes; j++)
        all += log_sum - (double)x[j];
    return all / (double)w->attrs.classes;
}

/* Loss and rank of a row.  A label's equals do not push it back; a NaN does. */
static void
judge(const struct xent_work *w, const float *x, int32_t label, double log_sum, float *ret)
{
    double smoothing = (double)w->attrs.smoothing, loss = log_sum - (double)x[label];
    int64_t above = loops()->count_above(x, x[label], w->attrs.classes);

    if (smoothing > 0)
        loss = (1 - smoothing) * loss + smoothing * mean_loss(w, x, log_sum);
    ret[0] = (float)loss;
    ret[1] = above < 1;
    ret[2] = above < 5;
}

/* Logits may lie where the probabilities will: a row is judged before it is overwritten. */
static void xent_rows(void *arg, int64_t from, int64_t to)
{
    const struct xent_work *w = arg;

    for (int64_t i = from; i < to; i++) {
        const float *x = row_at(w->logits, w, i);
        float *probs = (float *)w->probs->data + i * w->width;
        float *part = (float *)w->parts->data + 3 * i;
        struct total total = total_of(w, x);
        double log_sum = (double)total.most + log(total.sum), right = 0;

        part[0] = part[1] = part[2] = 0;
        if (counts(w, i)) {
            judge(w, x, w->labels[i], log_sum, part);
            right = exp((double)x[w->labels[i]] - log_sum);
        }
        loops()->exp(probs, x, total.most, (float)(1 / total.sum), w->attrs.classes);
        for (int64_t j = w->attrs.classes; j < w->width; j++)
            probs[j] = 0;
        if (counts(w, i)) /* its distance from 1 is the gradient: nearest */
            probs[w->labels[i]] = (float)right;
    }
}

static double counted_rows(const struct xent_work *w)
{
    double counted = 0;

    for (int64_t i = 0; i < w->rows; i++)
        counted += counts(w, i);
    return counted < 1 ? 1 : counted;
}

static void run_xent(struct onednn_plan *p, const struct action *a)
{
    struct xent_work *w = a->work;
    double sums[3] = {0};

    w->labels = p->fed[w->labels_input];
    par_for(w->rows, 4, xent_rows, w);
    for (int64_t i = 0; i < w->rows; i++)
        for (int j = 0; j < 3; j++)
            sums[j] += (double)((const float *)w->parts->data)[3 * i + j];
    *(float *)w->loss->data = (float)(sums[0] / counted_rows(w));
    *(float *)w->top1->data = (float)sums[1];
    *(float *)w->top5->data = (float)sums[2];
}

static struct xent_work work_of(const struct onednn_plan *p, const struct op *op)
{
    const struct tensor *x = tensor_of(p, op->in[0]);

    return (struct xent_work){.attrs = op->attrs.xent,
                              .rows = x->dim[0],
                              .width = x->dim[1],
                              .labels_input = op->in[1]};
}

int plan_xent(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    dnnl_memory_desc_t dense = shim_dense(2, tensor_of(p, op->in[0])->dim);
    dnnl_memory_desc_t scalar = shim_dense(0, NULL);
    struct xent_work w = work_of(p, op);

    w.logits = in_layout(p, op->in[0], &dense, n, e);
    if (!w.logits)
        return -1;
    w.loss = put(p, op->out[0], &scalar, n);
    w.top1 = put(p, op->out[1], &scalar, n);
    w.top5 = put(p, op->out[2], &scalar, n);
    w.probs = put_over(p, op->out[3], &dense, op->in[0], n);
    w.parts = scratch_floats(p, 3 * w.rows, n);
    *(struct xent_work *)add_action(p, n, run_xent, sizeof w)->work = w;
    return 0;
}

/* May lie where the probabilities lie.  The label's is the difference of two numbers that are
 * nearly equal: it is taken first, and then scaled. */
static void grad_rows(void *arg, int64_t from, int64_t to)
{
    const struct xent_work *w = arg;
    float even = w->attrs.smoothing / (float)w->attrs.classes;

    for (int64_t i = from; i < to; i++) {
        const float *probs = row_at(w->probs, w, i);
        float *dx = (float *)w->logits->data + i * w->width;
        float scale = counts(w, i) ? w->scale : 0, of_label = 0;

        if (counts(w, i))
            of_label = probs[w->labels[i]] - (even + 1 - w->attrs.smoothing);
        for (int64_t j = 0; j < w->width; j++)
            dx[j] = (probs[j] - (j < w->attrs.classes ? even : 0)) * scale;
        if (counts(w, i))
            dx[w->labels[i]] = of_label * scale;
    }
}

static void run_xent_grad(struct onednn_plan *p, const struct action *a)
{
    struct xent_work *w = a->work;
    double scale = (double)w->attrs.weight;

    w->labels = p->fed[w->labels_input];
    if (w->attrs.scales_by_loss)
        scale *= (double)p->store.scale;
    w->scale = (float)(scale / counted_rows(w));
    par_for(w->rows, 4, grad_rows, w);
}

int plan_xent_grad(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    dnnl_memory_desc_t dense = shim_dense(2, tensor_of(p, op->in[0])->dim);
    struct xent_work w = work_of(p, op);

    (void)e;
    w.probs = touch(p, op->in[0], n);
    w.logits = put_over(p, op->out[0], &dense, op->in[0], n);
    *(struct xent_work *)add_action(p, n, run_xent_grad, sizeof w)->work = w;
    return 0;
}

struct weighted_work {
    struct weighted_attrs attrs;
    int inputs;
    struct place *to, *from[OP_MOST_IN];
};

static void run_weighted(struct onednn_plan *p, const struct action *a)
{
    const struct weighted_work *w = a->work;
    double sum = 0;

    (void)p;
    for (int i = 0; i < w->inputs; i++)
        sum += (double)w->attrs.weight[i] * (double)*(const float *)w->from[i]->data;
    *(float *)w->to->data = (float)sum;
}

int plan_weighted_sum(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    dnnl_memory_desc_t scalar = shim_dense(0, NULL);
    struct weighted_work w = {.attrs = op->attrs.weighted, .inputs = op->in_count};

    (void)e;
    for (int i = 0; i < op->in_count; i++)
        w.from[i] = touch(p, op->in[i], n);
    w.to = put(p, op->out[0], &scalar, n);
    *(struct weighted_work *)add_action(p, n, run_weighted, sizeof w)->work = w;
    return 0;
}
