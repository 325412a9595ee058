/* shape.c - images, concatenation, padding, reshaping, dropout.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/backend/onednn/loops.h"
#include "train/backend/onednn/plan.h"
#include "train/num/par.h"
#include "train/num/rng.h"

#include <string.h>

static const struct op *op_of(const struct onednn_plan *p, int n)
{
    return &p->head.graph->ops[n];
}

static int64_t at(const struct blocked *f, int64_t n, int64_t c, int64_t pixel)
{
    return ((n * f->blocks + c / f->block) * f->plane + pixel) * f->block + c % f->block;
}

/* Images. */

struct image_work {
    int input;
    enum dtype dtype;
    struct blocked form;
    struct image_attrs attrs;
    struct place *to;
    const void *from;
};

static void image_of(void *arg, int64_t from, int64_t to)
{
    const struct image_work *w = arg;
    const uint8_t *bytes = w->from;
    const float *values = w->from;
    float *y = w->to->data;
    int64_t lanes = w->form.blocks * w->form.block;

    for (int64_t i = from; i < to; i++) /* a picture's pixel */
        for (int64_t c = 0; c < lanes; c++) {
            int64_t x = i * w->form.channels + c;
            float value = 0;

            if (c < w->form.channels)
                value =
                    (w->dtype == DTYPE_U8 ? (float)bytes[x] : values[x]) * w->attrs.scale[c] +
                    w->attrs.shift[c];
            y[at(&w->form, i / w->form.plane, c, i % w->form.plane)] = value;
        }
}

static void run_image(struct onednn_plan *p, const struct action *a)
{
    struct image_work *w = a->work;

    w->from = p->fed[w->input];
    par_for(w->form.n * w->form.plane, 4096, image_of, w);
}

/* As the first convolution that reads it wants it. */
static int image_layout(struct onednn_plan *p, int t, dnnl_memory_desc_t *ret_md, struct err *e)
{
    const struct graph *graph = p->head.graph;
    struct conv_shape s = {.is_training = graph->backward_end > 0};
    dnnl_primitive_desc_t pd;

    *ret_md = shim_dense(4, tensor_of(p, t)->dim);
    for (int i = 0; i < graph->op_count; i++) {
        const struct op *op = &graph->ops[i];

        if (op->kind != OP_CONV || op->in[0] != t || op->attrs.conv.groups != 1)
            continue;
        s.x = shim_any(4, tensor_of(p, t)->dim);
        s.w = shim_any(4, tensor_of(p, op->in[1])->dim);
        s.y = shim_any(4, tensor_of(p, op->out[0])->dim);
        s.attrs = &op->attrs.conv;
        s.has_bias = in_of(op, 2) >= 0;
        if (shim_conv_forward(p->engine, &s, &pd, e) < 0)
            return -1;
        *ret_md = shim_query(pd, dnnl_query_src_md);
        dnnl_primitive_desc_destroy(pd);
        return 0;
    }
    return 0;
}

int plan_image(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    struct image_work *w = add_action(p, n, run_image, sizeof *w)->work;
    dnnl_memory_desc_t md;

    if (image_layout(p, op->out[0], &md, e) < 0 || shim_blocked(&md, &w->form, e) < 0)
        return -1;
    w->input = op->in[0];
    w->dtype = tensor_of(p, op->in[0])->dtype;
    w->attrs = op->attrs.image;
    w->to = put(p, op->out[0], &md, n);
    return 0;
}

/* Channels copied from one tensor to another. */

struct channels {
    struct blocked to, from;
    struct place *to_place, *from_place;
    int64_t to_first, from_first, count;
    bool clears; /* the rest of `to` becomes zero first */
};

static bool is_whole(const struct channels *w)
{
    int64_t block = w->to.block;
    bool ends = w->count % block == 0 || (w->to_first + w->count == w->to.channels &&
                                          w->from_first + w->count == w->from.channels);

    return block == w->from.block && w->to_first % block == 0 && w->from_first % block == 0 &&
           ends;
}

static void copy_picture(const struct channels *w, int64_t n)
{
    float *to = w->to_place->data;
    const float *from = w->from_place->data;
    int64_t blocks = (w->count + w->to.block - 1) / w->to.block;

    if (w->clears)
        memset(to + at(&w->to, n, 0, 0), 0,
               (size_t)(w->to.blocks * w->to.plane * w->to.block) * sizeof *to);
    if (is_whole(w)) {
        memcpy(to + at(&w->to, n, w->to_first, 0), from + at(&w->from, n, w->from_first, 0),
               (size_t)(blocks * w->to.plane * w->to.block) * sizeof *to);
        return;
    }
    for (int64_t c = 0; c < w->count; c++)
        for (int64_t i = 0; i < w->to.plane; i++)
            to[at(&w->to, n, w->to_first + c, i)] = from[at(&w->from, n, w->from_first + c, i)];
}

static void copy_pictures(void *arg, int64_t from, int64_t to)
{
    for (int64_t n = from; n < to; n++)
        copy_picture(arg, n);
}

static void run_channels(struct onednn_plan *p, const struct action *a)
{
    const struct channels *w = a->work;

    (void)p;
    par_for(w->to.n, 1, copy_pictures, a->work);
}

static int
add_channels(struct onednn_plan *p, int n, const struct channels *what, struct err *e)
{
    struct channels *w = add_action(p, n, run_channels, sizeof *w)->work;

    *w = *what;
    touch_place(p, w->from_place, n);
    touch_place(p, w->to_place, n);
    if (shim_blocked(&w->to_place->md, &w->to, e) < 0)
        return -1;
    return shim_blocked(&w->from_place->md, &w->from, e);
}

int plan_concat(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    dnnl_memory_desc_t md;
    int64_t first = 0;

    if (shim_same_form(layout_of(p, op->in[0]), tensor_of(p, op->out[0])->dim, &md, e) < 0)
        return -1;
    struct place *to = put(p, op->out[0], &md, n);
    for (int i = 0; i < op->in_count; i++) {
        struct channels w = {.to_place = to,
                             .from_place = touch(p, op->in[i], n),
                             .to_first = first,
                             .count = tensor_of(p, op->in[i])->dim[1],
                             .clears = i == 0};

        first += w.count;
        if (add_channels(p, n, &w, e) < 0)
            return -1;
    }
    return 0;
}

int plan_concat_grad(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    const struct op *forward = op_of(p, op->forward);
    struct place *from = touch(p, op->in[0], n);
    int64_t first = 0;

    for (int i = 0; i < op->out_count; i++) {
        struct channels w = {.to_place = put(p, op->out[i], layout_of(p, forward->in[i]), n),
                             .from_place = from,
                             .from_first = first,
                             .count = tensor_of(p, op->out[i])->dim[1],
                             .clears = true};

        first += w.count;
        if (add_channels(p, n, &w, e) < 0)
            return -1;
    }
    return 0;
}

int plan_pad(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    dnnl_memory_desc_t md;

    if (shim_same_form(layout_of(p, op->in[0]), tensor_of(p, op->out[0])->dim, &md, e) < 0)
        return -1;
    struct channels w = {.to_place = put(p, op->out[0], &md, n),
                         .from_place = touch(p, op->in[0], n),
                         .to_first = op->attrs.pad.before,
                         .count = tensor_of(p, op->in[0])->dim[1],
                         .clears = true};
    return add_channels(p, n, &w, e);
}

int plan_pad_grad(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    struct channels w = {.to_place =
                             put(p, op->out[0], layout_of(p, op_of(p, op->forward)->in[0]), n),
                         .from_place = touch(p, op->in[0], n),
                         .from_first = op->attrs.pad.before,
                         .count = tensor_of(p, op->out[0])->dim[1],
                         .clears = true};

    return add_channels(p, n, &w, e);
}

/* Reshaping: a change of name when both sides are dense in memory. */

struct move_work {
    struct place *to, *from;
    size_t bytes;
};

static void run_move(struct onednn_plan *p, const struct action *a)
{
    const struct move_work *w = a->work;

    (void)p;
    memcpy(w->to->data, w->from->data, w->bytes);
}

static bool is_dense(const dnnl_memory_desc_t *md)
{
    struct blocked form;
    dnnl_memory_desc_t dense = shim_dense(md->ndims, md->dims);

    if (shim_same(md, &dense))
        return true;
    /* One pixel: blocks of channels lie one after another. */
    return md->ndims == 4 && shim_blocked(md, &form, NULL) == 0 && form.plane == 1 &&
           form.channels % form.block == 0;
}

static void
add_move(struct onednn_plan *p, int n, struct place *from, int to, const dnnl_memory_desc_t *md)
{
    const struct op *op = op_of(p, n);
    struct place *place = put_over(p, to, md, op->in[0], n);
    struct move_work *w;

    if (place->item >= 0 && p->items[place->item].shares >= 0)
        return; /* the same memory */
    w = add_action(p, n, run_move, sizeof *w)->work;
    *w = (struct move_work){place, from, (size_t)tensor_elements(tensor_of(p, to)) * 4};
}

/* oneDNN reorders between equal shapes: the dense side is taken as the other one's shape, which
 * are the same floats. */
static struct place *
as_shape(struct onednn_plan *p, struct place *place, const dnnl_memory_desc_t *like)
{
    struct place *view = scratch(p, like, -1);

    view->md = shim_dense(like->ndims, like->dims);
    view->item = place->item;
    view->of = place;
    return view;
}

int plan_reshape(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    const struct tensor *y = tensor_of(p, op->out[0]);
    dnnl_memory_desc_t dense = shim_dense(y->dims, y->dim);
    struct place *from;

    if (tensor_of(p, op->in[0])->role == ROLE_PARAM) {
        dnnl_memory_desc_t md =
            shim_dense(tensor_of(p, op->in[0])->dims, tensor_of(p, op->in[0])->dim);

        put_param(p, op->in[0], &md);
    }
    from = touch(p, op->in[0], n);
    const dnnl_memory_desc_t md =
        op->forward >= 0 ? *layout_of(p, op_of(p, op->forward)->in[0]) : dense;
    if (is_dense(&from->md) && is_dense(&md)) {
        add_move(p, n, from, op->out[0], &md);
        return 0;
    }
    struct place *to = put(p, op->out[0], &md, n);
    p->reorders++;
    if (is_dense(&from->md))
        return add_reorder(p, n, as_shape(p, from, &md), to, e);
    return add_reorder(p, n, from, as_shape(p, to, &from->md), e);
}

/* Dropout. */

enum {
    DROPOUT_GRAIN = 16384, /* elements that are worth a thread */
    DROPOUT_PIECE = 1024,  /* factors that are drawn at a time */
};

struct dropout_work {
    struct dropout_attrs attrs;
    int64_t count;
    struct keep keep;
    struct place *to, *from, *add;
};

static void drop_piece(void *arg, int64_t from, int64_t to)
{
    const struct dropout_work *w = arg;
    const float *x = w->from->data, *add = w->add ? w->add->data : NULL;
    float factor[DROPOUT_PIECE];

    for (int64_t i = from; i < to; i += DROPOUT_PIECE) {
        int64_t count = to - i < DROPOUT_PIECE ? to - i : DROPOUT_PIECE;

        loops()->keep(&w->keep, (uint64_t)i, count, factor);
        loops()->scale_add((float *)w->to->data + i, x + i, factor, add ? add + i : NULL,
                           count);
    }
}

static void run_dropout(struct onednn_plan *p, const struct action *a)
{
    struct dropout_work *w = a->work;

    w->keep = (struct keep){.key = p->options.seed ^ w->attrs.stream,
                            .hi = (uint64_t)p->step->pass << 48 | p->step->number,
                            .limit = rng_dropout_limit(w->attrs.rate),
                            .scale = 1 / (1 - w->attrs.rate)};
    par_for(w->count, DROPOUT_GRAIN, drop_piece, w);
}

/* Elements are numbered in logical order, so this works on dense tensors. */
int plan_dropout(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    const struct tensor *t = tensor_of(p, op->out[0]);
    dnnl_memory_desc_t md = shim_dense(t->dims, t->dim);
    struct dropout_work w = {.attrs = op->attrs.dropout, .count = tensor_elements(t)};

    w.from = in_layout(p, op->in[0], &md, n, e);
    if (!w.from || (in_of(op, 1) >= 0 && !(w.add = in_layout(p, op->in[1], &md, n, e))))
        return -1;
    w.to = put_over(p, op->out[0], &md, w.from == &p->places[op->in[0]] ? op->in[0] : -1, n);
    *(struct dropout_work *)add_action(p, n, run_dropout, sizeof w)->work = w;
    return 0;
}
