/* infer.c - the shapes of what ops write.
 *
 * Wrong shapes can come from a user (an image too small for a network), so each is an error
 * with the shapes in it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/graph/graph-internal.h"

#include <stdio.h>

static struct tensor in_of(const struct graph *graph, const struct op *op, int slot)
{
    return graph->tensors[op->in[slot]];
}

static const char *shape_text(const struct tensor *t, char *text, size_t size)
{
    int len = snprintf(text, size, "%s", t->dims ? "" : "scalar");

    for (int i = 0; i < t->dims && len < (int)size; i++)
        len += snprintf(text + len, size - (size_t)len, "%s%lld", i ? "x" : "",
                        (long long)t->dim[i]);
    return text;
}

static int bad_shape(struct graph *graph, const struct op *op, int slot, const char *why)
{
    struct tensor t = in_of(graph, op, slot);
    char text[96];

    return graph_fail(graph, ERR_INVALID, "%s of \"%s\" (%s): %s", op_info(op->kind)->name,
                      t.name, shape_text(&t, text, sizeof text), why);
}

int infer_image(struct graph *graph, struct op *op)
{
    struct tensor x = in_of(graph, op, 0);

    if (x.dims != 4 || x.dim[3] > 4)
        return bad_shape(graph, op, 0, "images are N H W C with at most 4 channels");
    return op_output(graph, op, ROLE_ACTIVATION, 4,
                     (const int64_t[]){x.dim[0], x.dim[3], x.dim[1], x.dim[2]});
}

static int window_dims(
    struct graph *graph, const struct op *op, const struct window *w, int64_t k, int64_t *ret)
{
    struct tensor x = in_of(graph, op, 0);

    ret[0] = x.dim[0];
    ret[1] = k;
    ret[2] = window_out_h(w, x.dim[2]);
    ret[3] = window_out_w(w, x.dim[3]);
    if (ret[2] < 1 || ret[3] < 1)
        return bad_shape(graph, op, 0, "too small for the window");
    return 0;
}

int infer_conv(struct graph *graph, struct op *op)
{
    struct tensor x = in_of(graph, op, 0), w = in_of(graph, op, 1);
    const struct conv_attrs *a = &op->attrs.conv;
    int64_t dim[4];

    if (x.dims != 4 || w.dims != 4 || a->groups < 1)
        return bad_shape(graph, op, 0, "needs N C H W and K C R S");
    if (w.dim[1] * a->groups != x.dim[1] || w.dim[0] % a->groups || w.dim[2] != a->window.r ||
        w.dim[3] != a->window.s)
        return bad_shape(graph, op, 0, "the weight does not fit");
    if (window_dims(graph, op, &a->window, w.dim[0], dim) < 0)
        return -1;
    return op_output(graph, op, ROLE_ACTIVATION, 4, dim);
}

int infer_linear(struct graph *graph, struct op *op)
{
    struct tensor x = in_of(graph, op, 0), w = in_of(graph, op, 1);

    if (x.dims != 2 || w.dims != 2 || x.dim[1] != w.dim[1])
        return bad_shape(graph, op, 0, "the weight does not fit");
    return op_output(graph, op, ROLE_ACTIVATION, 2, (const int64_t[]){x.dim[0], w.dim[0]});
}

int infer_bn(struct graph *graph, struct op *op)
{
    struct tensor x = in_of(graph, op, 0), gamma = in_of(graph, op, 1);

    if (x.dims != 4 || gamma.dims != 1 || gamma.dim[0] != x.dim[1])
        return bad_shape(graph, op, 0, "needs N C H W and C scales");
    if (op_output_like(graph, op, ROLE_ACTIVATION, op->in[0]) < 0)
        return -1;
    if (op->attrs.bn.is_frozen)
        return 0;
    if (op_output_like(graph, op, ROLE_EXACT, op->in[1]) < 0)
        return -1;
    return op_output_like(graph, op, ROLE_EXACT, op->in[1]);
}

static bool same_dims(const struct tensor *a, const struct tensor *b)
{
    bool same = a->dims == b->dims;

    for (int i = 0; same && i < a->dims; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

/* The output is as the first input; so are the other inputs, but labels. */
int infer_same(struct graph *graph, struct op *op)
{
    struct tensor x = in_of(graph, op, 0);

    for (int i = 1; i < op->in_count && op->kind != OP_XENT_GRAD; i++) {
        if (op->in[i] < 0)
            continue;
        struct tensor other = in_of(graph, op, i);
        if (!same_dims(&x, &other))
            return bad_shape(graph, op, i, "not of the first one's shape");
    }
    return op_output_like(graph, op, ROLE_ACTIVATION, op->in[0]);
}

int infer_pool(struct graph *graph, struct op *op)
{
    struct tensor x = in_of(graph, op, 0);
    int64_t dim[4];

    if (x.dims != 4)
        return bad_shape(graph, op, 0, "needs N C H W");
    if (window_dims(graph, op, &op->attrs.pool.window, x.dim[1], dim) < 0)
        return -1;
    return op_output(graph, op, ROLE_ACTIVATION, 4, dim);
}

int infer_concat(struct graph *graph, struct op *op)
{
    struct tensor sum = in_of(graph, op, 0);

    if (sum.dims != 4)
        return bad_shape(graph, op, 0, "needs N C H W");
    for (int i = 1; i < op->in_count; i++) {
        struct tensor x = in_of(graph, op, i);

        if (x.dims != 4 || x.dim[0] != sum.dim[0] || x.dim[2] != sum.dim[2] ||
            x.dim[3] != sum.dim[3])
            return bad_shape(graph, op, i, "differs from the first one in more than C");
        sum.dim[1] += x.dim[1];
    }
    return op_output(graph, op, ROLE_ACTIVATION, 4, sum.dim);
}

int infer_pad_channels(struct graph *graph, struct op *op)
{
    struct tensor x = in_of(graph, op, 0);

    if (x.dims != 4 || op->attrs.pad.before < 0 || op->attrs.pad.after < 0)
        return bad_shape(graph, op, 0, "needs N C H W");
    x.dim[1] += op->attrs.pad.before + op->attrs.pad.after;
    return op_output(graph, op, ROLE_ACTIVATION, 4, x.dim);
}

int infer_reshape(struct graph *graph, struct op *op)
{
    struct tensor x = in_of(graph, op, 0), y = {.dims = op->attrs.reshape.dims};

    for (int i = 0; i < y.dims; i++)
        y.dim[i] = op->attrs.reshape.dim[i];
    if (tensor_elements(&x) != tensor_elements(&y))
        return bad_shape(graph, op, 0, "has another number of elements");
    return op_output(graph, op, ROLE_ACTIVATION, y.dims, y.dim);
}

int infer_xent(struct graph *graph, struct op *op)
{
    struct tensor x = in_of(graph, op, 0), labels = in_of(graph, op, 1);

    if (x.dims != 2 || labels.dims != 1 || labels.dim[0] != x.dim[0] ||
        op->attrs.xent.classes < 1 || op->attrs.xent.classes > x.dim[1])
        return bad_shape(graph, op, 0, "needs M V, M labels and at most V classes");
    for (int i = 0; i < 3; i++)
        if (op_output(graph, op, ROLE_EXACT, 0, NULL) < 0)
            return -1;
    return op_output_like(graph, op, ROLE_ACTIVATION, op->in[0]);
}

int infer_embed(struct graph *graph, struct op *op)
{
    struct tensor ids = in_of(graph, op, 0), word = in_of(graph, op, 2),
                  position = in_of(graph, op, 3);

    if (ids.dims != 2 || word.dims != 2 || position.dims != 2 || position.dim[0] < ids.dim[1] ||
        position.dim[1] != word.dim[1])
        return bad_shape(graph, op, 0, "the tables do not fit, or the sequence is too long");
    return op_output(graph, op, ROLE_ACTIVATION, 2,
                     (const int64_t[]){ids.dim[0] * ids.dim[1], word.dim[1]});
}

int infer_layernorm(struct graph *graph, struct op *op)
{
    struct tensor x = in_of(graph, op, 0), gamma = in_of(graph, op, 1);

    if (x.dims != 2 || gamma.dims != 1 || gamma.dim[0] != x.dim[1])
        return bad_shape(graph, op, 0, "needs M D and D scales");
    if (op_output_like(graph, op, ROLE_ACTIVATION, op->in[0]) < 0 ||
        op_output(graph, op, ROLE_EXACT, 1, x.dim) < 0 ||
        op_output(graph, op, ROLE_EXACT, 1, x.dim) < 0)
        return -1;
    if (op_in(op, 3) < 0)
        return 0;
    return op_output_like(graph, op, ROLE_ACTIVATION, op->in[0]);
}

int infer_attention(struct graph *graph, struct op *op)
{
    struct tensor qkv = in_of(graph, op, 0), mask = in_of(graph, op, 1);
    int heads = op->attrs.attention.heads;

    if (qkv.dims != 2 || mask.dims != 2 || heads < 1 || qkv.dim[1] % (3 * heads) ||
        qkv.dim[0] != mask.dim[0] * mask.dim[1])
        return bad_shape(graph, op, 0, "needs N*T 3D, a mask N T, and heads that divide D");
    if (op_output(graph, op, ROLE_ACTIVATION, 2,
                  (const int64_t[]){qkv.dim[0], qkv.dim[1] / 3}) < 0)
        return -1;
    return op_output(graph, op, ROLE_EXACT, 3,
                     (const int64_t[]){mask.dim[0], heads, mask.dim[1]});
}

int infer_gather_rows(struct graph *graph, struct op *op)
{
    struct tensor x = in_of(graph, op, 0), rows = in_of(graph, op, 1);

    if (x.dims != 2 || rows.dims != 1)
        return bad_shape(graph, op, 0, "needs M D and a list of rows");
    return op_output(graph, op, ROLE_ACTIVATION, 2, (const int64_t[]){rows.dim[0], x.dim[1]});
}

int infer_weighted_sum(struct graph *graph, struct op *op)
{
    return op_output(graph, op, ROLE_EXACT, 0, NULL);
}

static struct op forward_of(const struct graph *graph, const struct op *op)
{
    return graph->ops[op->forward];
}

/* dx is as the x of the forward op. */
int infer_data_grad(struct graph *graph, struct op *op)
{
    struct op forward = forward_of(graph, op);

    return op_output_like(graph, op, ROLE_ACTIVATION, forward.in[0]);
}

/* graph_differentiate makes the last of a param's gradients a ROLE_GRAD. */
int infer_weight_grad(struct graph *graph, struct op *op)
{
    struct op forward = forward_of(graph, op);

    if (op_output_like(graph, op, ROLE_EXACT, forward.in[1]) < 0)
        return -1;
    if (op_in(&forward, 2) < 0)
        return 0;
    return op_output_like(graph, op, ROLE_EXACT, forward.in[2]);
}

int infer_bn_grad(struct graph *graph, struct op *op)
{
    struct op forward = forward_of(graph, op);

    if (op_output_like(graph, op, ROLE_ACTIVATION, forward.in[0]) < 0 ||
        op_output_like(graph, op, ROLE_EXACT, forward.in[1]) < 0 ||
        op_output_like(graph, op, ROLE_EXACT, forward.in[2]) < 0)
        return -1;
    if (op_in(&forward, 5) < 0)
        return 0;
    return op_output_like(graph, op, ROLE_ACTIVATION, forward.in[5]);
}

int infer_each_grad(struct graph *graph, struct op *op)
{
    struct op forward = forward_of(graph, op);

    for (int i = 0; i < forward.in_count; i++)
        if (op_output_like(graph, op, ROLE_ACTIVATION, forward.in[i]) < 0)
            return -1;
    return 0;
}

int infer_embed_grad(struct graph *graph, struct op *op)
{
    struct op forward = forward_of(graph, op);

    for (int i = 2; i < 5; i++)
        if (op_output_like(graph, op, ROLE_EXACT, forward.in[i]) < 0)
            return -1;
    return 0;
}

int infer_layernorm_grad(struct graph *graph, struct op *op)
{
    struct op forward = forward_of(graph, op);

    if (op_output_like(graph, op, ROLE_ACTIVATION, forward.in[0]) < 0 ||
        op_output_like(graph, op, ROLE_EXACT, forward.in[1]) < 0)
        return -1;
    return op_output_like(graph, op, ROLE_EXACT, forward.in[2]);
}

int infer_grad_norm(struct graph *graph, struct op *op)
{
    if (op_output(graph, op, ROLE_EXACT, 0, NULL) < 0)
        return -1;
    return op_output(graph, op, ROLE_EXACT, 0, NULL);
}

int infer_nothing(struct graph *graph, struct op *op)
{
    (void)graph;
    (void)op;
    return 0;
}
