/* each.c - element by element: activations, their gradients, sums.
 *
 * Tensors of one layout are equal in memory place by place, padding included, so these loops do
 * not look at layouts.  Zeros give zeros in all of them: padding stays zero.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/loops.h"
#include "train/backend/onednn/plan.h"
#include "train/num/clones.h"
#include "train/num/par.h"

#include <math.h>

enum {
    GRAIN = 16384, /* floats that are worth a thread */
};

struct each_work {
    enum op_kind kind;
    int64_t count;
    struct place *to, *from[OP_MOST_IN];
    int inputs;
};

static float *floats(const struct place *place)
{
    return place->data;
}

CLONES static void relu(float *to, const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = x[i] < 0 ? 0 : x[i]; /* a NaN stays one */
}

CLONES static void relu_grad(float *to, const float *dy, const float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = y[i] > 0 ? dy[i] : 0;
}

CLONES static void tanh_grad(float *to, const float *dy, const float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = dy[i] * (1 - y[i] * y[i]);
}

CLONES static void add(float *to, const float *a, const float *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = a[i] + b[i];
}

static void tanh_of(float *to, const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = tanhf(x[i]);
}

static void run_piece(void *arg, int64_t from, int64_t to)
{
    const struct each_work *w = arg;
    float *y = floats(w->to) + from;
    const float *x = floats(w->from[0]) + from;
    const float *second = floats(w->from[w->inputs > 1 ? 1 : 0]) + from;

    switch ((int)w->kind) {
    case OP_RELU:
        relu(y, x, to - from);
        break;
    case OP_TANH:
        tanh_of(y, x, to - from);
        break;
    case OP_GELU:
        loops()->gelu(y, x, to - from);
        break;
    case OP_RELU_GRAD:
        relu_grad(y, x, second, to - from);
        break;
    case OP_TANH_GRAD:
        tanh_grad(y, x, second, to - from);
        break;
    case OP_GELU_GRAD:
        loops()->gelu_grad(y, x, second, to - from);
        break;
    default: /* in the order of the inputs: it is part of the bits */
        add(y, x, second, to - from);
        for (int i = 2; i < w->inputs; i++)
            add(y, y, floats(w->from[i]) + from, to - from);
        break;
    }
}

static void run_each(struct onednn_plan *p, const struct action *a)
{
    struct each_work *w = a->work;

    (void)p;
    par_for(w->count, GRAIN, run_piece, w);
}

/* Everything in the layout of the first input; over its memory where that is free. */
int plan_each(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    const dnnl_memory_desc_t md = *layout_of(p, op->in[0]);
    struct each_work w = {.kind = op->kind, .inputs = op->in_count};

    for (int i = 0; i < op->in_count; i++) {
        w.from[i] = in_layout(p, op->in[i], &md, n, e);
        if (!w.from[i])
            return -1;
    }
    w.to = put_over(p, op->out[0], &md, op->in[0], n);
    w.count = (int64_t)(shim_bytes(&md) / sizeof(float));
    *(struct each_work *)add_action(p, n, run_each, sizeof w)->work = w;
    return 0;
}
