/* grad.c - which gradient ops belong to each kind of forward op.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/graph/graph-internal.h"

/* Appending moves the list of ops, so each function works on a copy of its op. */
static struct op op_at(const struct graph *graph, int op)
{
    return graph->ops[op];
}

/* Add a gradient with one or two inputs; its first output or -1. */
static int first_of(struct graph *graph, enum op_kind kind, const int *in, int count, int of)
{
    struct op forward = op_at(graph, of);
    int op = graph_add_grad(graph, kind, &forward.attrs, in, count, of);

    return op < 0 ? -1 : graph->ops[op].out[0];
}

static int act_grad(struct graph *graph, enum act act, int dy, int y, int pre, int of)
{
    switch (act) {
    case ACT_RELU:
        return first_of(graph, OP_RELU_GRAD, (const int[]){dy, y}, 2, of);
    case ACT_TANH:
        return first_of(graph, OP_TANH_GRAD, (const int[]){dy, y}, 2, of);
    case ACT_GELU:
        return first_of(graph, OP_GELU_GRAD, (const int[]){dy, pre}, 2, of);
    case ACT_NONE:
        break;
    }
    return dy;
}

/* The weight's gradient comes first, so that its reduction starts early. */
static int product_grad(struct graph *graph,
                        int n,
                        int dy,
                        enum op_kind weight_kind,
                        enum op_kind data_kind,
                        int *ret_dx)
{
    struct op op = op_at(graph, n);
    int of_weight =
        graph_add_grad(graph, weight_kind, &op.attrs, (const int[]){dy, op.in[0]}, 2, n);

    if (of_weight < 0)
        return -1;
    ret_dx[1] = graph->ops[of_weight].out[0];
    if (op_in(&op, 2) >= 0)
        ret_dx[2] = graph->ops[of_weight].out[1];
    if (ret_dx[0] != GRAD_UNWANTED)
        ret_dx[0] = first_of(graph, data_kind, (const int[]){dy, op.in[1]}, 2, n);
    return 0;
}

int grad_conv(struct graph *graph, int n, const int *dy, int *ret_dx)
{
    struct op op = op_at(graph, n);
    int inner = act_grad(graph, op.attrs.conv.act, dy[0], op.out[0], -1, n);

    if (op_in(&op, 3) >= 0)
        ret_dx[3] = inner;
    return product_grad(graph, n, inner, OP_CONV_WEIGHT_GRAD, OP_CONV_DATA_GRAD, ret_dx);
}

int grad_linear(struct graph *graph, int n, const int *dy, int *ret_dx)
{
    struct op op = op_at(graph, n);
    int inner = act_grad(graph, op.attrs.linear.act, dy[0], op.out[0], op_out(&op, 1), n);

    return product_grad(graph, n, inner, OP_LINEAR_WEIGHT_GRAD, OP_LINEAR_DATA_GRAD, ret_dx);
}

int grad_bn(struct graph *graph, int n, const int *dy, int *ret_dx)
{
    struct op op = op_at(graph, n);
    int in[6] = {dy[0], op.in[0], op.in[1], op_out(&op, 1), op_out(&op, 2), -1};

    if (op.attrs.bn.is_frozen)
        return graph_fail(graph, ERR_INVALID, "\"%s\" is frozen: no gradient", op.name);
    if (op.attrs.bn.has_relu)
        in[5] = op.out[0];

    int made = graph_add_grad(graph, OP_BN_GRAD, &op.attrs, in, in[5] < 0 ? 5 : 6, n);
    if (made < 0)
        return -1;
    for (int i = 0; i < 3; i++)
        ret_dx[i] = graph->ops[made].out[i];
    if (op_in(&op, 5) >= 0)
        ret_dx[5] = graph->ops[made].out[3];
    return 0;
}

int grad_act(struct graph *graph, int n, const int *dy, int *ret_dx)
{
    struct op op = op_at(graph, n);
    enum act act = op.kind == OP_RELU ? ACT_RELU : op.kind == OP_TANH ? ACT_TANH : ACT_GELU;

    ret_dx[0] = act_grad(graph, act, dy[0], op.out[0], op.in[0], n);
    return 0;
}

int grad_add(struct graph *graph, int n, const int *dy, int *ret_dx)
{
    (void)graph;
    (void)n;
    ret_dx[0] = ret_dx[1] = dy[0];
    return 0;
}

int grad_max_pool(struct graph *graph, int n, const int *dy, int *ret_dx)
{
    struct op op = op_at(graph, n);

    ret_dx[0] =
        first_of(graph, OP_MAX_POOL_GRAD, (const int[]){dy[0], op.in[0], op.out[0]}, 3, n);
    return 0;
}

int grad_avg_pool(struct graph *graph, int n, const int *dy, int *ret_dx)
{
    ret_dx[0] = first_of(graph, OP_AVG_POOL_GRAD, dy, 1, n);
    return 0;
}

int grad_concat(struct graph *graph, int n, const int *dy, int *ret_dx)
{
    struct op op = op_at(graph, n);
    int made = graph_add_grad(graph, OP_CONCAT_GRAD, &op.attrs, dy, 1, n);

    if (made < 0)
        return -1;
    for (int i = 0; i < op.in_count; i++)
        ret_dx[i] = graph->ops[made].out[i];
    return 0;
}

int grad_pad_channels(struct graph *graph, int n, const int *dy, int *ret_dx)
{
    ret_dx[0] = first_of(graph, OP_PAD_CHANNELS_GRAD, dy, 1, n);
    return 0;
}

/* Back to the shape of x: a RESHAPE of its own. */
int grad_reshape(struct graph *graph, int n, const int *dy, int *ret_dx)
{
    struct op op = op_at(graph, n);
    struct tensor x = graph->tensors[op.in[0]];
    union op_attrs attrs = {.reshape = {.dims = x.dims}};

    for (int i = 0; i < x.dims; i++)
        attrs.reshape.dim[i] = x.dim[i];

    int made = graph_add_grad(graph, OP_RESHAPE, &attrs, dy, 1, n);
    if (made < 0)
        return -1;
    ret_dx[0] = graph->ops[made].out[0];
    return 0;
}

int grad_dropout(struct graph *graph, int n, const int *dy, int *ret_dx)
{
    struct op op = op_at(graph, n);

    ret_dx[0] = first_of(graph, OP_DROPOUT_GRAD, dy, 1, n);
    if (op_in(&op, 1) >= 0)
        ret_dx[1] = dy[0];
    return 0;
}

/* The loss is where the gradient begins: its factor is an attribute, not a tensor. */
int grad_xent(struct graph *graph, int n, const int *dy, int *ret_dx)
{
    struct op op = op_at(graph, n);
    union op_attrs attrs = op.attrs;

    (void)dy;
    attrs.xent.scales_by_loss = true;

    int made =
        graph_add_grad(graph, OP_XENT_GRAD, &attrs, (const int[]){op.out[3], op.in[1]}, 2, n);
    if (made < 0)
        return -1;
    ret_dx[0] = graph->ops[made].out[0];
    return 0;
}

int grad_embed(struct graph *graph, int n, const int *dy, int *ret_dx)
{
    struct op op = op_at(graph, n);
    int made = graph_add_grad(graph, OP_EMBED_GRAD, &op.attrs,
                              (const int[]){dy[0], op.in[0], op.in[1]}, 3, n);

    if (made < 0)
        return -1;
    for (int i = 0; i < 3; i++)
        ret_dx[2 + i] = graph->ops[made].out[i];
    return 0;
}

int grad_layernorm(struct graph *graph, int n, const int *dy, int *ret_dx)
{
    struct op op = op_at(graph, n);
    int x = op_in(&op, 3) >= 0 ? op.out[3] : op.in[0];
    int made = graph_add_grad(graph, OP_LAYERNORM_GRAD, &op.attrs,
                              (const int[]){dy[0], x, op.in[1], op.out[1], op.out[2]}, 5, n);

    if (made < 0)
        return -1;
    for (int i = 0; i < 3; i++)
        ret_dx[i] = graph->ops[made].out[i];
    if (op_in(&op, 3) >= 0)
        ret_dx[3] = ret_dx[0];
    return 0;
}

int grad_attention(struct graph *graph, int n, const int *dy, int *ret_dx)
{
    struct op op = op_at(graph, n);

    ret_dx[0] = first_of(graph, OP_ATTENTION_GRAD,
                         (const int[]){dy[0], op.in[0], op.in[1], op.out[0], op.out[1]}, 5, n);
    return 0;
}

int grad_gather_rows(struct graph *graph, int n, const int *dy, int *ret_dx)
{
    struct op op = op_at(graph, n);

    ret_dx[0] = first_of(graph, OP_GATHER_ROWS_GRAD, (const int[]){dy[0], op.in[1]}, 2, n);
    return 0;
}
