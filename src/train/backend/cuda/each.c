/* each.c - ops that work element by element or move elements: activations, sums, images,
 * channels, reshaping, dropout.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/each-kernels.h"

#include "train/backend/cuda/make.h"
#include "train/num/rng.h"

struct each_work {
    struct each_args args;
    int out;
    struct place *to, *from[EACH_MOST_IN];
};

static int
run_each(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct each_work *w = a->work;
    struct each_args args = w->args;

    args.to = w->to->data;
    for (int i = 0; i < args.inputs; i++)
        args.from[i] = w->from[i]->data;
    args.adds = adds_to(p, w->out);
    launch_each(&args, stream);
    return launched(e, a->label);
}

static enum each_kind each_kind_of(enum op_kind kind)
{
    switch ((int)kind) {
    case OP_RELU:
        return EACH_RELU;
    case OP_RELU_GRAD:
        return EACH_RELU_GRAD;
    case OP_TANH:
        return EACH_TANH;
    case OP_TANH_GRAD:
        return EACH_TANH_GRAD;
    case OP_GELU:
        return EACH_GELU;
    case OP_GELU_GRAD:
        return EACH_GELU_GRAD;
    default: /* ADD, SUM */
        return EACH_SUM;
    }
}

/* Over the first input's memory where that is free: each thread reads before it writes. */
int plan_each(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct each_work w = {.args = {.kind = each_kind_of(op->kind), .inputs = op->in_count},
                          .out = op->out[0]};

    for (int i = 0; i < op->in_count; i++)
        w.from[i] = touch(p, op->in[i], n);
    w.to = put_over(p, op->out[0], op->in[0], n);
    w.args.elem = w.to->elem;
    w.args.count = (int64_t)(w.to->bytes / elem_bytes(w.to->elem));
    for (int i = 0; i < op->in_count; i++)
        if (w.from[i]->elem != w.to->elem || w.from[i]->bytes < w.to->bytes)
            return err_set(e, ERR_METHOD, "input %d is of another type or layout", i);
    *(struct each_work *)add_action(p, n, run_each, sizeof w)->work = w;
    return 0;
}

struct image_work {
    struct image_args args;
    struct place *to, *from;
};

static int
run_image(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct image_work *w = a->work;
    struct image_args args = w->args;

    (void)p;
    args.to = w->to->data;
    args.from = w->from->data;
    launch_image(&args, stream);
    return launched(e, a->label);
}

int plan_image(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct image_work w = {.from = touch(p, op->in[0], n), .to = put(p, op->out[0], n)};

    if (w.to->cols > 4 || w.to->pitch != PITCH)
        return err_set(e, ERR_METHOD, "an image has %d channels at most", 4);
    w.args = (struct image_args){.from_elem = w.from->elem,
                                 .elem = w.to->elem,
                                 .pixels = w.to->rows,
                                 .channels = (int)w.to->cols};
    for (int c = 0; c < 4; c++) {
        w.args.scale[c] = op->attrs.image.scale[c];
        w.args.shift[c] = op->attrs.image.shift[c];
    }
    *(struct image_work *)add_action(p, n, run_image, sizeof w)->work = w;
    return 0;
}

struct channels_work {
    struct channels_args args;
    struct place *to, *from[EACH_MOST_IN];
};

static int
run_channels(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct channels_work *w = a->work;
    struct channels_args args = w->args;

    (void)p;
    args.to = w->to->data;
    for (int i = 0; i < args.count; i++)
        args.from[i].from = w->from[i]->data;
    launch_channels(&args, stream);
    return launched(e, a->label);
}

static struct channels_work channels_to(struct place *to)
{
    return (struct channels_work){
        .to = to, .args = {.elem = to->elem, .rows = to->rows, .pitch = (int)to->pitch}};
}

/* Channels skip.. of `from` become `cols` channels at `at`. */
static void add_channels(
    struct channels_work *w, struct place *from, int64_t at, int64_t skip, int64_t cols)
{
    int i = w->args.count++;

    w->from[i] = from;
    w->args.from[i] = (struct channels_from){
        .pitch = (int)from->pitch, .at = (int)at, .cols = (int)cols, .skip = (int)skip};
}

static void end_channels(struct cuda_plan *p, int n, const struct channels_work *w)
{
    *(struct channels_work *)add_action(p, n, run_channels, sizeof *w)->work = *w;
}

int plan_concat(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct channels_work w = channels_to(put(p, op->out[0], n));
    int64_t at = 0;

    (void)e;
    for (int i = 0; i < op->in_count; i++) {
        struct place *from = touch(p, op->in[i], n);

        add_channels(&w, from, at, 0, from->cols);
        at += from->cols;
    }
    end_channels(p, n, &w);
    return 0;
}

int plan_concat_grad(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    int64_t at = 0;

    (void)e;
    for (int i = 0; i < op->out_count; i++) {
        struct channels_work w = channels_to(put(p, op->out[i], n));

        add_channels(&w, touch(p, op->in[0], n), 0, at, w.to->cols);
        at += w.to->cols;
        end_channels(p, n, &w);
    }
    return 0;
}

int plan_pad(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct channels_work w = channels_to(put(p, op->out[0], n));
    struct place *from = touch(p, op->in[0], n);

    (void)e;
    add_channels(&w, from, op->attrs.pad.before, 0, from->cols);
    end_channels(p, n, &w);
    return 0;
}

int plan_pad_grad(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct channels_work w = channels_to(put(p, op->out[0], n));

    (void)e;
    add_channels(&w, touch(p, op->in[0], n), 0, op->attrs.pad.before, w.to->cols);
    end_channels(p, n, &w);
    return 0;
}

struct reshape_work {
    struct reshape_args args;
    int out;
    struct place *to, *from;
};

static int
run_reshape(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct reshape_work *w = a->work;
    struct reshape_args args = w->args;

    args.to = w->to->data;
    args.from = w->from->data;
    args.adds = adds_to(p, w->out);
    launch_reshape(&args, stream);
    return launched(e, a->label);
}

/* Do both shapes have the same elements in the same places? */
static bool is_same_layout(const struct tensor *a, const struct tensor *b)
{
    bool a_flat = a->dims == 4 && a->dim[2] == 1 && a->dim[3] == 1;
    bool b_flat = b->dims == 4 && b->dim[2] == 1 && b->dim[3] == 1;

    if (a->dims == b->dims) {
        for (int i = 0; i < a->dims; i++)
            if (a->dim[i] != b->dim[i])
                return false;
        return true;
    }
    return a->dims > 1 && b->dims > 1 && (a_flat || a->dims == 2) && (b_flat || b->dims == 2) &&
           a->dim[0] == b->dim[0] && a->dim[1] == b->dim[1];
}

/* A value under another shape is mostly the same memory.  From a param it is copied, since an
 * update moves that; into a gradient it is copied as fp32. */
int plan_reshape(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    const struct tensor *x = tensor_of(p, op->in[0]), *y = tensor_of(p, op->out[0]);
    struct reshape_work w = {.out = op->out[0], .from = touch(p, op->in[0], n)};

    (void)e;
    if (x->role == ROLE_ACTIVATION && y->role == ROLE_ACTIVATION && is_same_layout(x, y)) {
        (void)put_view(p, op->out[0], op->in[0], n);
        return 0;
    }
    w.to = put(p, op->out[0], n);
    shape_on_card(p, op->in[0], &w.args.from_shape);
    shape_on_card(p, op->out[0], &w.args.to_shape);
    w.args.from_elem = w.from->elem;
    w.args.to_elem = w.to->elem;
    w.args.elements = tensor_elements(y);
    w.args.room = (int64_t)(w.to->bytes / elem_bytes(w.to->elem));
    *(struct reshape_work *)add_action(p, n, run_reshape, sizeof w)->work = w;
    return 0;
}

struct dropout_work {
    struct dropout_args args;
    struct place *to, *from, *add;
};

static int
run_dropout(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct dropout_work *w = a->work;
    struct dropout_args args = w->args;

    args.to = w->to->data;
    args.from = w->from->data;
    args.add = w->add ? w->add->data : NULL;
    launch_dropout(&args, p->facts, stream);
    return launched(e, a->label);
}

/* DROPOUT and its gradient, which draws the same mask again. */
int plan_dropout(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    const struct tensor *y = tensor_of(p, op->out[0]);
    struct dropout_work w = {.from = touch(p, op->in[0], n)};

    (void)e;
    if (op->kind == OP_DROPOUT)
        w.add = touch(p, in_of(op, 1), n);
    w.to = put_over(p, op->out[0], op->in[0], n);
    w.args = (struct dropout_args){.elem = w.to->elem,
                                   .rows = w.to->rows,
                                   .plane = y->dims == 4 ? y->dim[2] * y->dim[3] : 0,
                                   .cols = (int)w.to->cols,
                                   .pitch = (int)w.to->pitch,
                                   .keep_scale = 1 / (1 - op->attrs.dropout.rate),
                                   .limit = rng_dropout_limit(op->attrs.dropout.rate),
                                   .stream = op->attrs.dropout.stream};
    *(struct dropout_work *)add_action(p, n, run_dropout, sizeof w)->work = w;
    return 0;
}
