/* loss.c - softmax with cross-entropy, its gradient, and losses put together.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/loss-kernels.h"
#include "train/backend/cuda/plan.h"

struct xent_work {
    struct xent_args args;
    struct place *logits, *probs, *labels, *loss, *top1, *top5, *parts, *counted;
};

static int
run_xent(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct xent_work *w = a->work;
    struct xent_args args = w->args;

    (void)p;
    args.logits = w->logits->data;
    args.probs = w->probs->data;
    args.labels = w->labels->data;
    args.loss = w->loss->data;
    args.top1 = w->top1->data;
    args.top5 = w->top5->data;
    args.parts = w->parts->data;
    args.counted = w->counted->data;
    launch_xent(&args, stream);
    return launched(e, a->label);
}

/* How many rows count is kept for the gradient. */
int plan_xent(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct xent_work w = {.logits = touch(p, op->in[0], n), .labels = touch(p, op->in[1], n)};

    (void)e;
    w.loss = put(p, op->out[0], n);
    w.top1 = put(p, op->out[1], n);
    w.top5 = put(p, op->out[2], n);
    w.probs = put_over(p, op->out[3], op->in[0], n);
    w.parts = scratch(p, ELEM_F32, 4 * w.logits->rows, n);
    w.counted = scratch(p, ELEM_F32, 1, n);
    w.args = (struct xent_args){.elem = w.logits->elem,
                                .rows = w.logits->rows,
                                .pitch = (int)w.logits->pitch,
                                .classes = (int)op->attrs.xent.classes,
                                .smoothing = op->attrs.xent.smoothing};
    p->kept[n] = w.counted;
    *(struct xent_work *)add_action(p, n, run_xent, sizeof w)->work = w;
    return 0;
}

struct xent_grad_work {
    struct xent_grad_args args;
    struct place *probs, *to, *labels, *counted;
};

static int
run_xent_grad(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct xent_grad_work *w = a->work;
    struct xent_grad_args args = w->args;

    args.probs = w->probs->data;
    args.to = w->to->data;
    args.labels = w->labels->data;
    args.counted = w->counted->data;
    launch_xent_grad(&args, p->facts, stream);
    return launched(e, a->label);
}

int plan_xent_grad(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct xent_grad_work w = {.probs = touch(p, op->in[0], n),
                               .labels = touch(p, op->in[1], n),
                               .counted = p->kept[op->forward]};

    (void)e;
    touch_place(p, w.counted, n);
    w.to = put_over(p, op->out[0], op->in[0], n);
    w.args = (struct xent_grad_args){.elem = w.probs->elem,
                                     .rows = w.probs->rows,
                                     .pitch = (int)w.probs->pitch,
                                     .classes = (int)op->attrs.xent.classes,
                                     .smoothing = op->attrs.xent.smoothing,
                                     .weight = op->attrs.xent.weight,
                                     .scales_by_loss = op->attrs.xent.scales_by_loss};
    *(struct xent_grad_work *)add_action(p, n, run_xent_grad, sizeof w)->work = w;
    return 0;
}

struct weighted_work {
    struct weighted_args args;
    struct place *to, *from[OP_MOST_IN];
};

static int
run_weighted(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct weighted_work *w = a->work;
    struct weighted_args args = w->args;

    (void)p;
    args.to = w->to->data;
    for (int i = 0; i < args.count; i++)
        args.from[i] = w->from[i]->data;
    launch_weighted(&args, stream);
    return launched(e, a->label);
}

int plan_weighted_sum(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct weighted_work w = {.args.count = op->in_count};

    (void)e;
    for (int i = 0; i < op->in_count; i++) {
        w.from[i] = touch(p, op->in[i], n);
        w.args.weight[i] = op->attrs.weighted.weight[i];
    }
    w.to = put(p, op->out[0], n);
    *(struct weighted_work *)add_action(p, n, run_weighted, sizeof w)->work = w;
    return 0;
}
