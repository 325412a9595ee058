/* attention.c - plans attention and its gradient: see attention-kernels.h.
 *
 * What dropout kept is a bit for each probability, made by the forward kernel and read by the
 * gradient's; the graph knows nothing of it, so it is kept by op.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/attention-kernels.h"
#include "train/backend/cuda/sequence.h"

struct attention_work {
    struct place *qkv, *mask, *y, *saved, *bits, *dy, *dqkv, *delta, *dq, *parts;
    const struct attention_attrs *attrs;
    int64_t batch, length, width;
};

static const struct op *op_of(const struct cuda_plan *p, int n)
{
    return &p->head.graph->ops[n];
}

static void *data_of(const struct place *place)
{
    return place ? place->data : NULL;
}

static struct attention args_of(const struct cuda_plan *p, const struct attention_work *w)
{
    return (struct attention){.batch = (int)w->batch,
                              .length = (int)w->length,
                              .heads = w->attrs->heads,
                              .width = (int)w->width,
                              .pitch = w->qkv->pitch,
                              .y_pitch = w->y->pitch,
                              .scale = w->attrs->scale,
                              .dropout = dropout_of(p, w->attrs->dropout, w->attrs->stream),
                              .multiprocessors = p->device->multiprocessors,
                              .has_groups = p->device->capability == 90,
                              .qkv = w->qkv->data,
                              .mask = w->mask->data,
                              .y = w->y->data,
                              .saved = w->saved->data,
                              .bits = data_of(w->bits),
                              .dy = data_of(w->dy),
                              .dqkv = data_of(w->dqkv),
                              .delta = data_of(w->delta),
                              .dq = data_of(w->dq),
                              .parts = data_of(w->parts)};
}

static int
run_attention(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    struct attention args = args_of(p, a->work);

    attention_forward(stream, p->elem, &args);
    return launched(e, a->label);
}

static int run_attention_grad(struct cuda_plan *p,
                              const struct action *a,
                              cudaStream_t stream,
                              struct err *e)
{
    struct attention args = args_of(p, a->work);

    attention_backward(stream, p->elem, &args);
    return launched(e, a->label);
}

/* The shape, from the forward op. */
static struct attention_work
shape_of(const struct cuda_plan *p, const struct op *op, const struct op *forward)
{
    const struct tensor *qkv = tensor_of(p, forward->in[0]);
    const struct tensor *mask = tensor_of(p, forward->in[1]);

    return (struct attention_work){.attrs = &op->attrs.attention,
                                   .batch = mask->dim[0],
                                   .length = mask->dim[1],
                                   .width = qkv->dim[1] / 3 / op->attrs.attention.heads};
}

static bool is_fast(const struct cuda_plan *p, const struct attention_work *w)
{
    return attention_is_fast(p->elem, (int)w->length, (int)w->width);
}

/* Blocks lie in a grid of (rows, heads, N). */
static int check_size(const struct cuda_plan *p, const struct attention_work *w, struct err *e)
{
    if (w->batch > 65535 || w->attrs->heads > 65535)
        return err_set(e, ERR_METHOD, "more than 65535 sequences or heads");
    if (!is_fast(p, w) &&
        (w->length > ATTENTION_MOST_LENGTH || w->width > ATTENTION_MOST_WIDTH))
        return err_set(e, ERR_METHOD, "sequences of more than %d or heads of more than %d",
                       ATTENTION_MOST_LENGTH, ATTENTION_MOST_WIDTH);
    return 0;
}

int plan_attention(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    struct attention_work shape = shape_of(p, op, op), *w;

    if (check_size(p, &shape, e) < 0)
        return -1;
    w = add_action(p, n, run_attention, sizeof *w)->work;
    *w = shape;
    w->qkv = touch(p, op->in[0], n);
    w->mask = touch(p, op->in[1], n);
    w->y = put(p, op->out[0], n);
    w->saved = put(p, op->out[1], n);
    if (is_fast(p, w) && w->attrs->dropout > 0) {
        int64_t all = w->batch * w->attrs->heads * w->length * w->length;

        p->kept[n] = w->bits = scratch(p, ELEM_I32, all / 32, n);
    }
    return 0;
}

/* What kernels share or add up on the way.  Where a block has all of a sequence, sums for the
 * bias of the layer that made qkv come with the gradient. */
static void plan_shared(struct cuda_plan *p, int n, struct attention_work *w)
{
    struct attention args = args_of(p, w);
    bool is_joint = is_fast(p, w) && attention_is_joint(&args);
    int64_t rows = w->batch * w->attrs->heads * w->length;
    int below = bias_reader(p, op_of(p, n)->out[0]);

    if (!is_joint || w->length > ATTENTION_WHOLE)
        w->delta = scratch(p, ELEM_F32, 2 * rows, n);
    if (is_joint && w->length > ATTENTION_WHOLE)
        w->dq = scratch(p, ELEM_F32, rows * w->width, n);
    if (is_joint && below >= 0)
        w->parts = keep_bias_parts(p, n, below, (int)w->batch, w->dqkv->pitch);
}

int plan_attention_grad(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n), *forward = op_of(p, op->forward);
    struct attention_work shape = shape_of(p, op, forward), *w;

    if (check_size(p, &shape, e) < 0)
        return -1;
    w = add_action(p, n, run_attention_grad, sizeof *w)->work;
    *w = shape;
    w->dy = touch(p, op->in[0], n);
    w->qkv = touch(p, op->in[1], n);
    w->mask = touch(p, op->in[2], n);
    w->y = touch(p, op->in[3], n);
    w->saved = touch(p, op->in[4], n);
    w->bits = p->kept[op->forward];
    touch_place(p, w->bits, n);
    w->dqkv = put(p, op->out[0], n);
    plan_shared(p, n, w);
    return 0;
}
