/* print.c - the program as text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "train/graph/graph-internal.h"

static void print_tensor(const struct graph *graph, int tensor, struct str *out)
{
    const struct tensor *t;

    if (tensor < 0) {
        str_add(out, "-");
        return;
    }
    t = &graph->tensors[tensor];
    if (t->role == ROLE_PARAM || t->role == ROLE_STATE || t->role == ROLE_INPUT)
        str_add(out, t->name);
    else
        str_addf(out, "%%%d", tensor);
}

static void print_dims(const struct tensor *t, struct str *out)
{
    str_add_char(out, ':');
    for (int i = 0; i < t->dims; i++)
        str_addf(out, "%s%lld", i ? "x" : "", (long long)t->dim[i]);
    if (t->dims == 0)
        str_add(out, "scalar");
    if (t->role == ROLE_GRAD)
        str_addf(out, "=%s", t->name);
}

static void print_window(const struct window *w, struct str *out)
{
    str_addf(out, " %dx%d", w->r, w->s);
    if (w->stride_h != 1 || w->stride_w != 1)
        str_addf(out, " stride %d,%d", w->stride_h, w->stride_w);
    if (w->dilation_h != 1 || w->dilation_w != 1)
        str_addf(out, " dilation %d,%d", w->dilation_h, w->dilation_w);
    if (w->top || w->bottom || w->left || w->right)
        str_addf(out, " pad %d,%d,%d,%d", w->top, w->bottom, w->left, w->right);
}

static void print_conv(const struct conv_attrs *conv, struct str *out)
{
    print_window(&conv->window, out);
    if (conv->groups != 1)
        str_addf(out, " groups %d", conv->groups);
    if (conv->act == ACT_RELU)
        str_add(out, " relu");
}

static const char *act_name(enum act act)
{
    static const char *const names[] = {"", " relu", " gelu", " tanh"};

    return names[act];
}

static void print_attrs(const struct op *op, struct str *out)
{
    switch ((int)op->kind) {
    case OP_CONV:
    case OP_CONV_DATA_GRAD:
    case OP_CONV_WEIGHT_GRAD:
        print_conv(&op->attrs.conv, out);
        break;
    case OP_LINEAR:
        str_add(out, act_name(op->attrs.linear.act));
        break;
    case OP_BN:
    case OP_BN_GRAD:
        str_addf(out, "%s%s", op->attrs.bn.has_relu ? " relu" : "",
                 op->attrs.bn.is_frozen ? " frozen" : "");
        break;
    case OP_MAX_POOL:
    case OP_MAX_POOL_GRAD:
    case OP_AVG_POOL:
    case OP_AVG_POOL_GRAD:
        print_window(&op->attrs.pool.window, out);
        break;
    case OP_DROPOUT:
    case OP_DROPOUT_GRAD:
        str_addf(out, " rate %g", (double)op->attrs.dropout.rate);
        break;
    case OP_REDUCE_START:
    case OP_REDUCE_WAIT:
    case OP_UPDATE:
        str_addf(out, " bucket %d", op->attrs.bucket);
        break;
    default:
        break;
    }
}

static void print_op(const struct graph *graph, int n, struct str *out)
{
    const struct op *op = &graph->ops[n];

    str_addf(out, "%d %s", n, op_info(op->kind)->name);
    if (*op->name)
        str_addf(out, " \"%s\"", op->name);
    print_attrs(op, out);
    for (int i = 0; i < op->in_count; i++) {
        str_add(out, i ? ", " : " (");
        print_tensor(graph, op->in[i], out);
    }
    str_add(out, op->in_count ? ")" : "");
    for (int i = 0; i < op->out_count; i++) {
        str_add(out, i ? ", " : " -> ");
        print_tensor(graph, op->out[i], out);
        if (op->out[i] >= 0)
            print_dims(&graph->tensors[op->out[i]], out);
    }
    str_add_char(out, '\n');
}

void graph_print(const struct graph *graph, struct str *out)
{
    for (int i = 0; i < graph->op_count; i++) {
        if (i == graph->forward_end && graph->forward_end > 0)
            str_add(out, "backward\n");
        if (i == graph->backward_end && graph->backward_end > 0)
            str_add(out, "finish\n");
        print_op(graph, i, out);
    }
}
