/* product.c - convolutions and linear layers.
 *
 * The master of a weight has the layout in which its gradient comes; so the gradient's
 * primitive is looked at when the forward one is planned.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/loops.h"
#include "train/backend/onednn/plan.h"
#include "train/num/par.h"

enum {
    VECTOR = 16,       /* floats, at most */
    GELU_GRAIN = 4096, /* floats that are worth a thread */
    PLAIN_ROWS = 256,  /* from so many rows on weights are dense */
};

static const struct op *op_of(const struct onednn_plan *p, int n)
{
    return &p->head.graph->ops[n];
}

/* The forward op of a product, given it or one of its gradients. */
static int forward_of(const struct onednn_plan *p, int n)
{
    return op_of(p, n)->forward >= 0 ? op_of(p, n)->forward : n;
}

static bool trains(const struct onednn_plan *p)
{
    return p->head.graph->backward_end > 0;
}

static dnnl_memory_desc_t any_of(const struct onednn_plan *p, int t)
{
    return shim_any(tensor_of(p, t)->dims, tensor_of(p, t)->dim);
}

/* K C/G R S, with the groups in front when there are any. */
static dnnl_memory_desc_t any_weight(const struct onednn_plan *p, int t, int groups)
{
    const int64_t *d = tensor_of(p, t)->dim;

    if (groups == 1)
        return shim_any(4, d);
    return shim_any(5, (const int64_t[]){groups, d[0] / groups, d[1], d[2], d[3]});
}

static struct conv_shape conv_shape(const struct onednn_plan *p, int n)
{
    const struct op *op = op_of(p, forward_of(p, n));

    return (struct conv_shape){.x = any_of(p, op->in[0]),
                               .w = any_weight(p, op->in[1], op->attrs.conv.groups),
                               .y = any_of(p, op->out[0]),
                               .attrs = &op->attrs.conv,
                               .has_bias = in_of(op, 2) >= 0,
                               .is_training = trains(p)};
}

/* Dense in three cases.  A weight that another op has laid out (a table of embeddings) is taken
 * as it is: oneDNN's own layout would cost a copy of it.  With many rows (a transformer's
 * tokens) a plain product of dense matrices is faster than what oneDNN chooses for inner
 * products, the gradient of the weight most of all (1,024 rows, 768 to 3,072: 35 of 100
 * GFLOP/s), and the weight needs no copies in other layouts.  And blocked weights with less
 * than a vector of columns lead oneDNN 2.6 to a kernel of the data gradient that reads through
 * a null pointer when it has several threads. */
static dnnl_memory_desc_t linear_weight(const struct onednn_plan *p, const struct op *op)
{
    const struct tensor *w = tensor_of(p, op->in[1]);
    dnnl_memory_desc_t dense = shim_dense(w->dims, w->dim);
    const struct place *master = &p->places[op->in[1]];
    bool is_dense = tensor_of(p, op->in[0])->dim[0] >= PLAIN_ROWS || w->dim[1] < VECTOR ||
                    (master->is_set && shim_same(&master->md, &dense));

    return is_dense ? dense : any_of(p, op->in[1]);
}

/* Linear layers keep their activations dense: what is around them is. */
static struct linear_shape linear_shape(const struct onednn_plan *p, int n)
{
    const struct op *op = op_of(p, forward_of(p, n));
    enum act act = op->attrs.linear.act;

    return (struct linear_shape){.x = shim_dense(2, tensor_of(p, op->in[0])->dim),
                                 .w = linear_weight(p, op),
                                 .y = shim_dense(2, tensor_of(p, op->out[0])->dim),
                                 .act = act == ACT_GELU ? ACT_NONE : act,
                                 .has_bias = in_of(op, 2) >= 0,
                                 .is_training = trains(p)};
}

static int gradient_desc(
    struct onednn_plan *p, int n, bool is_conv, dnnl_primitive_desc_t *ret_pd, struct err *e)
{
    dnnl_primitive_desc_t hint = p->descs[forward_of(p, n)];
    int weight = op_of(p, forward_of(p, n))->in[1];
    const struct place *master = &p->places[weight];

    if (is_conv) {
        struct conv_shape s = conv_shape(p, n);

        if (master->is_set)
            s.w = master->md;
        return conv_desc(p, OP_CONV_WEIGHT_GRAD, &s, hint, ret_pd, e);
    }
    struct linear_shape s = linear_shape(p, n);
    if (master->is_set)
        s.w = master->md;
    return shim_linear_weights(p->engine, &s, hint, ret_pd, e);
}

static int put_master(struct onednn_plan *p, int n, bool is_conv, struct err *e)
{
    const struct op *op = op_of(p, n);
    dnnl_memory_desc_t md = shim_query(p->descs[n], dnnl_query_weights_md);
    dnnl_primitive_desc_t pd;

    if (trains(p)) {
        if (gradient_desc(p, n, is_conv, &pd, e) < 0)
            return -1;
        md = shim_query(pd, dnnl_query_diff_weights_md);
        dnnl_primitive_desc_destroy(pd);
    }
    put_param(p, op->in[1], &md);
    if (in_of(op, 2) >= 0) {
        dnnl_memory_desc_t bias = shim_dense(1, tensor_of(p, op->in[2])->dim);

        put_param(p, op->in[2], &bias);
    }
    return 0;
}

/* y = x w + bias; all of it into `to`. */
static int add_forward(struct onednn_plan *p, int n, bool is_conv, int to, struct err *e)
{
    const struct op *op = op_of(p, n);
    dnnl_primitive_desc_t pd = p->descs[n];
    dnnl_memory_desc_t x_md = shim_query(pd, dnnl_query_src_md);
    dnnl_memory_desc_t w_md = shim_query(pd, dnnl_query_weights_md);
    dnnl_memory_desc_t y_md = shim_query(pd, dnnl_query_dst_md);
    struct place *x, *w;
    struct action *a;

    if (put_master(p, n, is_conv, e) < 0)
        return -1;
    x = in_layout(p, op->in[0], &x_md, n, e);
    w = param_in(p, op->in[1], &w_md, e);
    if (!x || !w)
        return -1;
    a = add_primitive(p, n, pd, true, e);
    if (!a)
        return -1;
    touch_place(p, x, n);
    add_arg(a, DNNL_ARG_SRC, x);
    add_arg(a, DNNL_ARG_WEIGHTS, w);
    if (in_of(op, 2) >= 0)
        add_arg(a, DNNL_ARG_BIAS, &p->places[op->in[2]]);
    add_arg(a, DNNL_ARG_DST, put(p, to, &y_md, n));
    return 0;
}

int plan_conv(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    struct conv_shape s = conv_shape(p, n);

    if (in_of(op, 3) >= 0)
        return err_set(e, ERR_METHOD, "\"%s\" has an add fused in", op->name);
    if (conv_desc(p, OP_CONV, &s, NULL, &p->descs[n], e) < 0)
        return -1;
    return add_forward(p, n, true, op->out[0], e);
}

/* dx in the layout of x. */
static int add_data_grad(struct onednn_plan *p, int n, dnnl_primitive_desc_t pd, struct err *e)
{
    const struct op *op = op_of(p, n);
    const dnnl_memory_desc_t *as_x = layout_of(p, op_of(p, op->forward)->in[0]);
    dnnl_memory_desc_t dy_md = shim_query(pd, dnnl_query_diff_dst_md);
    dnnl_memory_desc_t w_md = shim_query(pd, dnnl_query_weights_md);
    dnnl_memory_desc_t dx_md = shim_query(pd, dnnl_query_diff_src_md);
    struct place *dy = in_layout(p, op->in[0], &dy_md, n, e), *dx;
    struct place *w = param_in(p, op->in[1], &w_md, e);
    bool is_other = !shim_same(as_x, &dx_md);
    struct action *a = dy && w ? add_primitive(p, n, pd, false, e) : NULL;

    if (!a)
        return -1;
    touch_place(p, dy, n);
    dx = put(p, op->out[0], as_x, n);
    add_arg(a, DNNL_ARG_DIFF_DST, dy);
    add_arg(a, DNNL_ARG_WEIGHTS, w);
    if (!is_other) {
        add_arg(a, DNNL_ARG_DIFF_SRC, dx);
        return 0;
    }
    struct place *raw = scratch(p, &dx_md, n);
    add_arg(a, DNNL_ARG_DIFF_SRC, raw);
    p->reorders++;
    return add_reorder(p, n, raw, dx, e);
}

int plan_conv_data(struct onednn_plan *p, int n, struct err *e)
{
    struct conv_shape s = conv_shape(p, n);
    dnnl_primitive_desc_t pd;

    if (conv_desc(p, OP_CONV_DATA_GRAD, &s, p->descs[op_of(p, n)->forward], &pd, e) < 0)
        return -1;
    return add_data_grad(p, n, pd, e);
}

static int
add_weight_grad(struct onednn_plan *p, int n, dnnl_primitive_desc_t pd, struct err *e)
{
    const struct op *op = op_of(p, n);
    dnnl_memory_desc_t dy_md = shim_query(pd, dnnl_query_diff_dst_md);
    dnnl_memory_desc_t x_md = shim_query(pd, dnnl_query_src_md);
    dnnl_memory_desc_t dw_md = shim_query(pd, dnnl_query_diff_weights_md);
    dnnl_memory_desc_t bias_md;
    struct place *dy = in_layout(p, op->in[0], &dy_md, n, e);
    struct place *x = in_layout(p, op->in[1], &x_md, n, e);
    struct action *a = dy && x ? add_primitive(p, n, pd, false, e) : NULL;

    if (!a)
        return -1;
    touch_place(p, dy, n);
    touch_place(p, x, n);
    add_arg(a, DNNL_ARG_DIFF_DST, dy);
    add_arg(a, DNNL_ARG_SRC, x);
    int dw = p->joined[n] >= 0 ? op_of(p, p->joined[n])->out[0] : op->out[0];
    add_arg(a, DNNL_ARG_DIFF_WEIGHTS, put(p, dw, &dw_md, n));
    if (out_of(op, 1) < 0)
        return 0;
    bias_md = shim_dense(1, tensor_of(p, op->out[1])->dim);
    add_arg(a, DNNL_ARG_DIFF_BIAS, put(p, op->out[1], &bias_md, n));
    return 0;
}

int plan_conv_weights(struct onednn_plan *p, int n, struct err *e)
{
    dnnl_primitive_desc_t pd;

    if (gradient_desc(p, n, true, &pd, e) < 0)
        return -1;
    return add_weight_grad(p, n, pd, e);
}

struct gelu_work {
    struct place *to, *from;
    int64_t count;
};

static void gelu_piece(void *arg, int64_t from, int64_t to)
{
    const struct gelu_work *w = arg;

    loops()->gelu((float *)w->to->data + from, (const float *)w->from->data + from, to - from);
}

static void run_gelu(struct onednn_plan *p, const struct action *a)
{
    struct gelu_work *w = a->work;

    (void)p;
    par_for(w->count, GELU_GRAIN, gelu_piece, w);
}

/* A GELU is a loop of its own: in training both its sides are kept. */
static void add_gelu(struct onednn_plan *p, int n)
{
    const struct op *op = op_of(p, n);
    dnnl_memory_desc_t md = shim_dense(2, tensor_of(p, op->out[0])->dim);
    struct gelu_work w = {.count = tensor_elements(tensor_of(p, op->out[0]))};

    w.from = &p->places[out_of(op, 1) < 0 ? op->out[0] : op->out[1]];
    w.to = out_of(op, 1) < 0 ? w.from : put(p, op->out[0], &md, n);
    *(struct gelu_work *)add_action(p, n, run_gelu, sizeof w)->work = w;
}

int plan_linear(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    struct linear_shape s = linear_shape(p, n);
    bool is_gelu = op->attrs.linear.act == ACT_GELU;

    if (shim_linear_forward(p->engine, &s, &p->descs[n], e) < 0 ||
        add_forward(p, n, false, is_gelu && out_of(op, 1) >= 0 ? op->out[1] : op->out[0], e) <
            0)
        return -1;
    if (is_gelu)
        add_gelu(p, n);
    return 0;
}

int plan_linear_data(struct onednn_plan *p, int n, struct err *e)
{
    struct linear_shape s = linear_shape(p, n);
    dnnl_primitive_desc_t pd;

    if (shim_linear_data(p->engine, &s, p->descs[op_of(p, n)->forward], &pd, e) < 0)
        return -1;
    return add_data_grad(p, n, pd, e);
}

int plan_linear_weights(struct onednn_plan *p, int n, struct err *e)
{
    dnnl_primitive_desc_t pd;

    if (gradient_desc(p, n, false, &pd, e) < 0)
        return -1;
    return add_weight_grad(p, n, pd, e);
}
