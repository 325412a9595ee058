/* conv.c - convolutions and their gradients.
 *
 * What a convolution can be done with is a list of candidates: one or more forms of the graph
 * (with bias and relu inside, with sums for the batch norm behind it), each with the engines
 * that cuDNN proposes, and one by the definition for shapes that no engine takes.  The best is
 * measured on the real buffers and remembered by its number; ops of the same shape share the
 * choice and what was built for it.  With a remembered choice only that one is built.
 *
 * Without groups the padding of channels is part of the convolution: it is zero on both sides
 * and stays zero, and all sizes are multiples of eight.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/backend/cuda/conv-kernels.h"
#include "train/backend/cuda/dnn.h"
#include "train/backend/cuda/norm-kernels.h"
#include "train/backend/cuda/norm.h"
#include "train/backend/cuda/tune.h"

#include <string.h>

enum form_kind {
    FORM_NONE,
    FORM_PLAIN, /* the convolution alone; what is missing is done behind it */
    FORM_FUSED, /* forward: with bias, relu */
    FORM_SUMS,  /* forward: with sums for a batch norm */
    FORM_DIRECT,
};

static const char *const form_names[] = {"none", "plain", "bias+relu", "sums", "direct"};

enum {
    FORMS = 3, /* of one op, at most */
    CANDIDATES = FORMS * DNN_MOST_CONFIGS,
};

struct form {
    enum form_kind kind;
    struct dnn_graph *graph; /* NULL: not asked for yet */
    cudnnBackendDescriptor_t configs[DNN_MOST_CONFIGS];
    int config_count;
    struct dnn_kernel kernels[DNN_MOST_CONFIGS]; /* .plan is NULL: not made yet */
    bool is_bad[DNN_MOST_CONFIGS];               /* was tried and cannot */
};

/* All ways to do one shape. */
struct conv_set {
    const char *key;
    struct form forms[FORMS];
    bool is_settled;
    bool any_ran; /* of the engines: then the direct form need not be tried */
    int choice;
};

struct conv_work {
    enum dnn_way way;
    struct window window;
    int action; /* index */
    struct conv_set *set;
    struct dnn_pack pack;
    struct conv_direct direct;
    struct dnn_shape x_shape, w_shape, y_shape;
    struct place *x, *w, *y; /* as the forward op calls them, or their gradients */
    struct place *bias, *add;
    bool has_relu;
    struct conv_sums *sums;
    /* weights: dw as the kernel writes it, unless that is the gradient itself */
    struct place *rough;
    int grad;
    int64_t weights;
};

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
        "groups %d%s%s%s%s%s cap %zu",
        ways[w->way], precision_name(p->options.precision), d->n, d->c, d->h, d->w, d->k, d->r,
        d->s, d->stride_h, d->stride_w, d->dilation_h, d->dilation_w, win->top, win->bottom,
        win->left, win->right, d->groups, w->bias ? " bias" : "", w->add ? " add" : "",
        w->has_relu ? " relu" : "", w->sums ? " sums" : "",
        p->options.is_repeatable ? " repeatable" : "", workspace_cap(p));
}

/* Graphs: tensors with memory in the order in which addresses_of() lists them.  */

static void add_bias_relu(struct dnn_graph *g,
                          const struct conv_work *w,
                          cudnnBackendDescriptor_t from,
                          cudnnBackendDescriptor_t bias,
                          cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t between = from;

    if (w->bias) {
        between = w->has_relu ? dnn_virtual(g, &w->y_shape) : y;
        dnn_pointwise(g, CUDNN_POINTWISE_ADD, from, bias, between);
    }
    if (w->has_relu)
        dnn_pointwise(g, CUDNN_POINTWISE_RELU_FWD, between, NULL, y);
}

static void draw(struct dnn_graph *g, const struct conv_work *w, enum form_kind kind)
{
    struct dnn_shape list = dnn_list(w->direct.elem, w->y_shape.dim[1]);
    struct dnn_shape sums = dnn_list(ELEM_F32, w->y_shape.dim[1]);
    cudnnBackendDescriptor_t x = dnn_tensor(g, &w->x_shape), k = dnn_tensor(g, &w->w_shape);
    cudnnBackendDescriptor_t y = dnn_tensor(g, &w->y_shape);

    if (kind == FORM_FUSED) {
        cudnnBackendDescriptor_t bias = w->bias ? dnn_tensor(g, &list) : NULL;
        cudnnBackendDescriptor_t raw = dnn_virtual(g, &w->y_shape);

        dnn_conv(g, w->way, &w->window, x, k, raw);
        add_bias_relu(g, w, raw, bias, y);
        return;
    }
    dnn_conv(g, w->way, &w->window, x, k, y);
    if (kind == FORM_SUMS) {
        cudnnBackendDescriptor_t sum = dnn_tensor(g, &sums), square = dnn_tensor(g, &sums);

        dnn_genstats(g, y, sum, square);
    }
}

/* A graph that cuDNN does not take has no candidates. */
static void open_form(struct cuda_plan *p, const struct conv_work *w, struct form *form)
{
    struct dnn_rules rules = {.is_repeatable = p->options.is_repeatable,
                              .is_exact = p->options.precision == PRECISION_FP32,
                              .is_rough = p->elem != ELEM_F32};

    form->graph = dnn_graph_new(p->arena, p->device->dnn);
    draw(form->graph, w, form->kind);
    if (dnn_graph_done(form->graph, NULL) == 0)
        form->config_count = dnn_configs(form->graph, &rules, form->configs);
}

static struct conv_set *new_set(struct cuda_plan *p, const struct conv_work *w, const char *key)
{
    struct conv_set *set = arena_alloc(p->arena, sizeof *set);
    int count = 0;

    set->key = key;
    if (w->way == DNN_FORWARD && (w->bias || w->has_relu) && !w->add)
        set->forms[count++].kind = FORM_FUSED;
    if (w->sums)
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

/* Running one candidate.  */

struct candidate {
    struct form *form;
    int config;
};

static struct candidate candidate_of(struct conv_set *set, int i)
{
    return (struct candidate){&set->forms[i / DNN_MOST_CONFIGS], i % DNN_MOST_CONFIGS};
}

/* Build it unless it is there. */
static bool is_ready(struct cuda_plan *p, const struct conv_work *w, const struct candidate *c)
{
    struct form *form = c->form;

    if (form->kind == FORM_NONE || form->kind == FORM_DIRECT)
        return form->kind == FORM_DIRECT && c->config == 0;
    if (!form->graph)
        open_form(p, w, form);
    if (c->config >= form->config_count || form->is_bad[c->config])
        return false;
    if (!form->kernels[c->config].plan &&
        dnn_kernel_make(form->graph, form->configs[c->config], workspace_cap(p),
                        &form->kernels[c->config]) < 0)
        form->is_bad[c->config] = true;
    return !form->is_bad[c->config];
}

/* Where dw goes: the gradient itself when the kernel writes fp32 and nothing is there yet.  (No
 * engine of cuDNN 9 writes fp32 from 16-bit inputs.) */
static void *weights_to(const struct conv_work *w, bool adds)
{
    return w->direct.elem == ELEM_F32 && !adds ? w->w->data : w->rough->data;
}

static void run_direct(const struct conv_work *w, bool adds, cudaStream_t stream)
{
    switch (w->way) {
    case DNN_FORWARD:
        conv_direct_forward(&w->direct, w->x->data, w->w->data, w->y->data, stream);
        break;
    case DNN_DATA:
        conv_direct_data(&w->direct, w->y->data, w->w->data, w->x->data, stream);
        break;
    case DNN_WEIGHTS:
        conv_direct_weights(&w->direct, w->y->data, w->x->data, w->w->data, w->weights, adds,
                            stream);
        break;
    }
}

static int run_engine(struct cuda_plan *p,
                      struct conv_work *w,
                      const struct candidate *c,
                      bool adds,
                      cudaStream_t stream,
                      struct err *e)
{
    void *data[DNN_MOST_TENSORS] = {w->x->data, w->w->data, w->y->data};
    struct form *form = c->form;

    if (w->way == DNN_WEIGHTS)
        data[1] = weights_to(w, adds);
    if (form->kind == FORM_FUSED)
        data[3] = w->bias ? w->bias->data : NULL;
    if (form->kind == FORM_SUMS) {
        data[3] = w->sums->sums->data;
        data[4] = (float *)w->sums->sums->data + w->y_shape.dim[1];
    }
    if (dnn_bind(form->graph, &w->pack, &form->kernels[c->config], data, p->workspace, e) < 0)
        return -1;
    return dnn_run(form->graph, &w->pack, stream, e);
}

/* What the form left out. */
static void
run_rest(const struct conv_work *w, enum form_kind kind, bool adds, cudaStream_t stream)
{
    if (w->way == DNN_FORWARD && kind != FORM_FUSED && (w->bias || w->has_relu || w->add))
        conv_finish(w->direct.elem, w->y->data, w->bias ? w->bias->data : NULL,
                    w->add ? w->add->data : NULL, w->y->rows, (int)w->y->pitch, w->has_relu,
                    stream);
    if (w->way == DNN_WEIGHTS && kind != FORM_DIRECT && weights_to(w, adds) != w->w->data)
        conv_into_grad(w->direct.elem, w->rough->data, w->w->data, w->weights, adds, stream);
}

static int run_candidate(struct cuda_plan *p,
                         struct conv_work *w,
                         const struct candidate *c,
                         bool adds,
                         cudaStream_t stream,
                         struct err *e)
{
    if (c->form->kind == FORM_DIRECT)
        run_direct(w, adds, stream);
    else if (run_engine(p, w, c, adds, stream, e) < 0)
        return -1;
    run_rest(w, c->form->kind, adds, stream);
    return launched(e, "a convolution");
}

static int
run_conv(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    struct conv_work *w = a->work;
    struct candidate c = candidate_of(w->set, w->set->choice);
    bool adds = w->way == DNN_WEIGHTS && adds_to(p, w->grad);

    if (run_candidate(p, w, &c, adds, stream, e) < 0)
        return err_wrap(e, "convolution \"%s\"", p->head.graph->ops[a->op].name);
    return 0;
}

/* Choosing.  */

struct trial {
    struct cuda_plan *p;
    struct conv_work *w;
};

/* A batch norm behind it counts along: with the sums or by its own pass. */
static int try_candidate(void *context, int i, cudaStream_t stream)
{
    const struct trial *t = context;
    struct candidate c = candidate_of(t->w->set, i);
    const struct conv_sums *sums = t->w->sums;

    if (!is_ready(t->p, t->w, &c) || (c.form->kind == FORM_DIRECT && t->w->set->any_ran))
        return -1;
    if (run_candidate(t->p, t->w, &c, false, stream, NULL) < 0) {
        if (c.form->kind != FORM_DIRECT)
            c.form->is_bad[c.config] = true;
        return -1;
    }
    t->w->set->any_ran |= c.form->kind != FORM_DIRECT;
    if (sums && sums->measure)
        return sums->measure(sums->norm, c.form->kind == FORM_SUMS, stream);
    return 0;
}

/* A remembered choice that cannot be built any more: the first that can. */
static int settle(struct cuda_plan *p, const struct conv_work *w, struct err *e)
{
    struct conv_set *set = w->set;
    struct candidate c = candidate_of(set, set->choice);

    for (int i = 0; !is_ready(p, w, &c); i++) {
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

    if (c.form->kind == FORM_DIRECT)
        return arena_printf(p->arena, "%s (direct)", name);
    return arena_printf(p->arena, "%s (%s, %s, %zu KiB)", name, form_names[c.form->kind],
                        dnn_config_name(c.form->graph, c.form->configs[c.config]),
                        c.form->kernels[c.config].workspace_bytes >> 10);
}

static int choose(struct cuda_plan *p, void *work, struct err *e)
{
    struct conv_work *w = work;
    struct action *a = &p->actions[w->action];
    struct trial trial = {p, w};
    struct candidate c;

    w->set = find_set(p, w);
    if (!w->set->is_settled) {
        if (tune_choose(p, w->set->key, CANDIDATES, try_candidate, &trial, &w->set->choice, e) <
                0 ||
            settle(p, w, e) < 0)
            return err_wrap(e, "convolution \"%s\"", a->label);
    }
    c = candidate_of(w->set, w->set->choice);
    if (c.form->kind != FORM_DIRECT)
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
    if (p->elem == ELEM_F32 || w->bias || w->add || w->has_relu || op->attrs.conv.groups > 1 ||
        !feeds_norm(p->head.graph, op->out[0]))
        return 0;
    w->sums = arena_alloc(p->arena, sizeof *w->sums);
    w->sums->sums = scratch(p, ELEM_F32, 2 * w->y->pitch, n);
    return 0;
}

int plan_conv_data(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct conv_work *w = begin(p, n, DNN_DATA, &p->head.graph->ops[op->forward]);

    (void)e;
    join_sum(p, op->out[0]);
    w->y = touch(p, op->in[0], n);
    w->w = touch(p, op->in[1], n);
    w->x = put(p, op->out[0], n);
    return 0;
}

struct bias_work {
    struct column_sums sums;
    struct place *dy, *dbias, *parts;
    int grad;
};

static int
run_bias(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    struct bias_work *w = a->work;

    w->sums.x = w->dy->data;
    w->sums.sums = w->dbias->data;
    w->sums.parts = w->parts->data;
    w->sums.adds = adds_to(p, w->grad);
    norm_columns(&w->sums, stream);
    return launched(e, "the gradient of a bias");
}

static int plan_bias(struct cuda_plan *p, int n, int grad, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct bias_work *w = add_action(p, n, run_bias, sizeof *w)->work;

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
    return out_of(op, 1) >= 0 ? plan_bias(p, n, op->out[1], e) : 0;
}
