/* loss.c - softmax with cross-entropy over dense rows, and losses put together.
 *
 * SPDX-License-Identifier: Apache-2.0 */
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

/* log(sum(exp(x))), with the largest taken out so that nothing overflows. */
static double log_sum_of(const struct xent_work *w, const float *x)
{
    float most = x[0];
    double sum = 0;

    for (int64_t j = 1; j < w->attrs.classes; j++)
        most = x[j] > most ? x[j] : most;
    for (int64_t j = 0; j < w->attrs.classes; j++)
        sum += exp((double)x[j] - (double)most);
    return (double)most + log(sum);
}

/* Loss and rank of a row.  A label's equals do not push it back; a NaN does. */
static void
judge(const struct xent_work *w, const float *x, int32_t label, double log_sum, float *ret)
{
    double smoothing = (double)w->attrs.smoothing, all = 0;
    int64_t above = 0;

    for (int64_t j = 0; j < w->attrs.classes; j++) {
        above += !(x[j] <= x[label]);
        all += log_sum - (double)x[j];
    }
    ret[0] = (float)((1 - smoothing) * (log_sum - (double)x[label]) +
                     smoothing * all / (double)w->attrs.classes);
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
        double log_sum = log_sum_of(w, x);

        part[0] = part[1] = part[2] = 0;
        if (counts(w, i))
            judge(w, x, w->labels[i], log_sum, part);
        for (int64_t j = 0; j < w->width; j++)
            probs[j] = j < w->attrs.classes ? (float)exp((double)x[j] - log_sum) : 0;
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

static void grad_rows(void *arg, int64_t from, int64_t to)
{
    const struct xent_work *w = arg;
    float even = w->attrs.smoothing / (float)w->attrs.classes;

    for (int64_t i = from; i < to; i++) {
        const float *probs = row_at(w->probs, w, i);
        float *dx = (float *)w->logits->data + i * w->width;
        bool is_counted = counts(w, i);

        for (int64_t j = 0; j < w->width; j++) {
            float target = j < w->attrs.classes ? even : 0;

            if (j == w->labels[i])
                target += 1 - w->attrs.smoothing;
            dx[j] = is_counted ? (probs[j] - target) * w->scale : 0;
        }
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
