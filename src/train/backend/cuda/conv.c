/* conv.c - convolutions and their gradients.
 *
 * What a convolution can be done with is a list of candidates: our own kernel for pictures, one
 * or more forms of the graph (with bias and relu inside, with sums for the batch norm behind
 * it), each with the engines that cuDNN proposes, and one by the definition for shapes that no
 * engine takes.  The best is measured on the real buffers and remembered by its number; ops of
 * the same shape share the choice and what was built for it.  With a remembered choice only
 * that one is built (and checked, where pads make that needed).  Here they are listed and
 * chosen; conv-run.c builds and runs them.
 *
 * A gradient of data that only goes on through the gradient of a relu takes that along, inside
 * the graph or by a pass behind it.
 *
 * Without groups the padding of channels is part of the convolution: it is zero on both sides
 * and stays zero, and all sizes are multiples of eight.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/backend/cuda/conv-internal.h"
#include "train/backend/cuda/stem-kernels.h"
#include "train/backend/cuda/tune.h"

#include <string.h>

static const char *const form_names[] = {"none", "plain", "relu", "sums", "stem", "direct"};

static void sum_bias(struct bias_work *w, bool adds, cudaStream_t stream)
{
    w->sums.x = w->dy->data;
    w->sums.sums = w->dbias->data;
    w->sums.parts = w->parts->data;
    w->sums.adds = adds;
    norm_columns(&w->sums, stream);
}

struct conv_sums *conv_sums_of(const struct cuda_plan *p, int n)
{
    const struct conv_work *w = p->head.graph->ops[n].kind == OP_CONV ? p->kept[n] : NULL;

    return w ? w->sums : NULL;
}

/* Shapes.  */

static void describe_shapes(struct cuda_plan *p, const struct op *forward, struct conv_work *w)
{
    const struct tensor *x = tensor_of(p, forward->in[0]), *k = tensor_of(p, forward->in[1]);
    const struct tensor *y = tensor_of(p, forward->out[0]);
    const struct window *win = &forward->attrs.conv.window;
    int groups = forward->attrs.conv.groups;
    int64_t x_pitch = pitch_of(x->dim[1]), y_pitch = pitch_of(y->dim[1]);
    int64_t c = groups > 1 ? x->dim[1] : x_pitch, ks = groups > 1 ? y->dim[1] : y_pitch;
    int64_t w_pitch = p->places[forward->in[1]].pitch, cg = groups > 1 ? k->dim[1] : w_pitch;

    w->window = *win;
    w->weights = ks * win->r * win->s * w_pitch;
    w->x_shape = dnn_image(p->elem, x->dim[0], c, x->dim[2], x->dim[3], x_pitch);
    w->y_shape = dnn_image(p->elem, y->dim[0], ks, y->dim[2], y->dim[3], y_pitch);
    w->w_shape = dnn_image(p->elem, ks, cg, win->r, win->s, w_pitch);
    w->direct = (struct conv_direct){.elem = p->elem,
                                     .n = (int)x->dim[0],
                                     .c = (int)x->dim[1],
                                     .h = (int)x->dim[2],
                                     .w = (int)x->dim[3],
                                     .k = (int)y->dim[1],
                                     .p = (int)y->dim[2],
                                     .q = (int)y->dim[3],
                                     .x_pitch = (int)x_pitch,
                                     .w_pitch = (int)w_pitch,
                                     .y_pitch = (int)y_pitch,
                                     .groups = groups,
                                     .r = win->r,
                                     .s = win->s,
                                     .stride_h = win->stride_h,
                                     .stride_w = win->stride_w,
                                     .dilation_h = win->dilation_h,
                                     .dilation_w = win->dilation_w,
                                     .top = win->top,
                                     .left = win->left};
}

static const char *key_of(const struct cuda_plan *p, const struct conv_work *w)
{
    static const char *const ways[] = {"forward", "data", "weights"};
    const struct conv_direct *d = &w->direct;
    const struct window *win = &w->window;

    return arena_printf(
        p->arena,
        "conv %s %s n%d c%d h%d w%d k%d r%d s%d stride %d,%d dilation %d,%d pad %d,%d,%d,%d "
        "groups %d%s%s%s%s%s%s%s cap %zu",
        ways[w->way], precision_name(p->options.precision), d->n, d->c, d->h, d->w, d->k, d->r,
        d->s, d->stride_h, d->stride_w, d->dilation_h, d->dilation_w, win->top, win->bottom,
        win->left, win->right, d->groups, w->bias ? " bias" : "", w->add ? " add" : "",
        w->has_relu ? " relu" : "", w->sums ? " sums" : "", w->mask ? " mask" : "",
        w->is_stem ? " stem" : "", w->bias_grad ? " dbias" : "", workspace_cap(p));
}

static struct conv_set *new_set(struct cuda_plan *p, const struct conv_work *w, const char *key)
{
    struct conv_set *set = arena_alloc(p->arena, sizeof *set);
    int count = 0;

    set->key = key;
    if (w->is_stem)
        set->forms[count++].kind = FORM_STEM;
    if (w->mask || (w->way == DNN_FORWARD && (w->bias || w->has_relu) && !w->add))
        set->forms[count++].kind = FORM_FUSED;
    /* The library's sums are not the same bits every time, and it does not say so. */
    if (w->sums && !p->options.is_repeatable)
        set->forms[count++].kind = FORM_SUMS;
    set->forms[count++].kind = FORM_PLAIN;
    set->forms[count].kind = FORM_DIRECT;
    return set;
}

/* One of an earlier op with the same key, or a new one. */
static struct conv_set *find_set(struct cuda_plan *p, const struct conv_work *w)
{
    const char *key = key_of(p, w);

    for (int n = 0; n < p->head.graph->op_count; n++) {
        enum op_kind kind = p->head.graph->ops[n].kind;
        const struct conv_work *other = p->kept[n];

        if ((kind == OP_CONV || kind == OP_CONV_DATA_GRAD || kind == OP_CONV_WEIGHT_GRAD) &&
            other && other->set && strcmp(other->set->key, key) == 0)
            return other->set;
    }
    return new_set(p, w, key);
}

static int
run_conv(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    struct conv_work *w = a->work;
    struct candidate c = candidate_of(w->set, w->set->choice);
    bool adds = w->way == DNN_WEIGHTS && adds_to(p, w->grad);

    if (candidate_run(p, w, &c, adds, stream, e) < 0)
        return err_wrap(e, "convolution \"%s\"", p->head.graph->ops[a->op].name);
    return 0;
}

/* Choosing.  */

struct trial {
    struct cuda_plan *p;
    struct conv_work *w;
};

/* Looked at once. */
static bool is_right(const struct trial *t, const struct candidate *c)
{
    if (!is_own(c->form->kind) && !c->form->is_right[c->config])
        c->form->is_right[c->config] = conv_is_right(t->p, t->w, c);
    return is_own(c->form->kind) || c->form->is_right[c->config];
}

/* A batch norm behind it counts along: with the sums or by its own pass.  So does the gradient
 * of a bias that one of the candidates makes itself. */
static int try_candidate(void *context, int i, cudaStream_t stream)
{
    const struct trial *t = context;
    struct candidate c = candidate_of(t->w->set, i);
    const struct conv_sums *sums = t->w->sums;

    if (!candidate_is_ready(t->p, t->w, &c) ||
        (c.form->kind == FORM_DIRECT && t->w->set->any_ran))
        return -1;
    if (!is_right(t, &c) || candidate_run(t->p, t->w, &c, false, stream, NULL) < 0) {
        if (!is_own(c.form->kind))
            c.form->is_bad[c.config] = true;
        return -1;
    }
    t->w->set->any_ran |= c.form->kind != FORM_DIRECT;
    if (t->w->bias_grad && c.form->kind != FORM_STEM)
        sum_bias(t->w->bias_grad, false, stream);
    if (sums && sums->measure)
        return sums->measure(sums->norm, c.form->kind == FORM_SUMS, stream);
    return 0;
}

/* A remembered choice that cannot be built any more: the first that can. */
static int settle(struct cuda_plan *p, const struct conv_work *w, struct err *e)
{
    struct conv_set *set = w->set;
    struct candidate c = candidate_of(set, set->choice);

    for (int i = 0; !candidate_is_ready(p, w, &c); i++) {
        if (i == CANDIDATES)
            return err_set(e, ERR_METHOD, "no kernel for \"%s\"", set->key);
        set->choice = i;
        c = candidate_of(set, i);
    }
    set->is_settled = true;
    return 0;
}

static const char *label_of(struct cuda_plan *p, const struct conv_work *w, const char *name)
{
    struct candidate c = candidate_of(w->set, w->set->choice);

    if (is_own(c.form->kind))
        return arena_printf(p->arena, "%s (%s)", name, form_names[c.form->kind]);
    return arena_printf(p->arena, "%s (%s, %s, %zu KiB)", name, form_names[c.form->kind],
                        dnn_config_name(c.form->graph, c.form->configs[c.config]),
                        c.form->kernels[c.config].workspace_bytes >> 10);
}

/* For all of its shape. */
static int choose_first(struct cuda_plan *p, struct conv_work *w, struct err *e)
{
    struct trial trial = {p, w};

    if (conv_check_begin(p, w, e) < 0 ||
        tune_choose(p, w->set->key, CANDIDATES, try_candidate, &trial, &w->set->choice, e) < 0)
        return -1;
    return settle(p, w, e);
}

static int choose(struct cuda_plan *p, void *work, struct err *e)
{
    struct conv_work *w = work;
    struct action *a = &p->actions[w->action];
    struct candidate c;

    w->set = find_set(p, w);
    if (!w->set->is_settled && choose_first(p, w, e) < 0)
        return err_wrap(e, "convolution \"%s\"", a->label);
    c = candidate_of(w->set, w->set->choice);
    if (!is_own(c.form->kind))
        want_workspace(p, c.form->kernels[c.config].workspace_bytes);
    if (w->sums)
        w->sums->is_made = c.form->kind == FORM_SUMS;
    a->label = label_of(p, w, a->label);
    return 0;
}

/* Planning.  */

static struct conv_work *
begin(struct cuda_plan *p, int n, enum dnn_way way, const struct op *forward)
{
    struct conv_work *w = add_action(p, n, run_conv, sizeof *w)->work;

    w->action = p->action_count - 1;
    w->way = way;
    describe_shapes(p, forward, w);
    p->kept[n] = w;
    want_tuning_workspace(p, workspace_cap(p));
    want_tuning(p, choose, w);
    return w;
}

/* Does a batch norm of this step read y? */
static bool feeds_norm(const struct graph *graph, int y)
{
    for (int i = 0; i < graph->op_count; i++) {
        const struct op *op = &graph->ops[i];

        if (op->kind == OP_BN && op->in[0] == y && !op->attrs.bn.is_frozen)
            return true;
    }
    return false;
}

int plan_conv(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct conv_work *w = begin(p, n, DNN_FORWARD, op);

    (void)e;
    w->x = touch(p, op->in[0], n);
    w->w = touch(p, op->in[1], n);
    w->bias = touch(p, in_of(op, 2), n);
    w->add = touch(p, in_of(op, 3), n);
    w->has_relu = op->attrs.conv.act == ACT_RELU;
    w->y = put(p, op->out[0], n);
    w->is_stem = !w->add && stem_fits(&w->direct);
    if (p->elem == ELEM_F32 || w->bias || w->add || w->has_relu || op->attrs.conv.groups > 1 ||
        !feeds_norm(p->head.graph, op->out[0]))
        return 0;
    w->sums = arena_alloc(p->arena, sizeof *w->sums);
    w->sums->sums = scratch(p, ELEM_F32, 2 * w->y->pitch, n);
    return 0;
}

/* The gradient of the relu before it, when that comes next, is done here: its y is the
 * convolution's x. */
int plan_conv_data(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n], *forward = &p->head.graph->ops[op->forward];
    struct conv_work *w = begin(p, n, DNN_DATA, forward);
    int relu = relu_behind(p, op->out[0], forward->in[0]);
    int to = relu >= 0 ? p->head.graph->ops[relu].out[0] : op->out[0];

    (void)e;
    join_sum(p, to);
    w->y = touch(p, op->in[0], n);
    w->w = touch(p, op->in[1], n);
    w->x = put(p, to, n);
    if (relu < 0)
        return 0;
    w->mask = touch(p, forward->in[0], n);
    p->is_done[relu] = true;
    return 0;
}

static int
run_bias(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    struct bias_work *w = a->work;
    struct conv_set *set = w->conv->set;

    if (w->conv->bias_grad && candidate_of(set, set->choice).form->kind == FORM_STEM)
        return 0; /* made along */
    sum_bias(w, adds_to(p, w->grad), stream);
    return launched(e, "the gradient of a bias");
}

static int
plan_bias(struct cuda_plan *p, int n, int grad, struct conv_work *conv, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct bias_work *w = add_action(p, n, run_bias, sizeof *w)->work;

    w->conv = conv;
    if (conv->is_stem && conv->direct.c <= 3 &&
        tensor_of(p, conv->grad)->role == tensor_of(p, grad)->role)
        conv->bias_grad = w;
    w->dy = touch(p, op->in[0], n);
    w->dbias = put(p, grad, n);
    w->grad = grad;
    w->sums.shape = (struct norm_shape){.elem = w->dy->elem,
                                        .rows = w->dy->rows,
                                        .channels = (int)w->dy->cols,
                                        .pitch = (int)w->dy->pitch,
                                        .multiprocessors = p->device->multiprocessors};
    w->parts = scratch(p, ELEM_F32, norm_parts(&w->sums.shape), n);
    w->sums.counters = zeroed_counters(p, norm_counters(&w->sums.shape), e);
    return w->sums.counters ? 0 : -1;
}

/* The scratch is there for a kernel that does not write fp32, and for passes that add. */
int plan_conv_weights(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct conv_work *w = begin(p, n, DNN_WEIGHTS, &p->head.graph->ops[op->forward]);

    w->y = touch(p, op->in[0], n);
    w->x = touch(p, op->in[1], n);
    w->grad = op->out[0];
    w->w = put(p, op->out[0], n);
    w->rough = scratch(p, p->elem, w->weights, n);
    plan_conv_check(p, n, w);
    w->is_stem = stem_fits(&w->direct);
    if (w->is_stem)
        w->parts = scratch(p, ELEM_F32, stem_parts(&w->direct, p->device->multiprocessors), n);
    return out_of(op, 1) >= 0 ? plan_bias(p, n, op->out[1], w, e) : 0;
}
