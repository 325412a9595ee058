/* fuse.c - see fuse.h.
 *
 * The fused op stands where the consumer stood: what it needs from elsewhere (the other side of
 * an add) is computed by then, and nobody has read what lay between.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/graph/fuse.h"

#include "base/mem.h"
#include "train/graph/graph-internal.h"

#include <string.h>

struct fuser {
    struct graph *graph;
    unsigned fusions;
    int *readers;  /* of each tensor */
    bool *is_gone; /* of each op */
};

static void count_readers(struct fuser *f)
{
    for (int i = 0; i < f->graph->op_count; i++)
        for (int j = 0; j < f->graph->ops[i].in_count; j++)
            if (f->graph->ops[i].in[j] >= 0)
                f->readers[f->graph->ops[i].in[j]]++;
    for (int i = 0; i < VALUES; i++)
        if (f->graph->values[i] >= 0)
            f->readers[f->graph->values[i]]++;
}

/* The op of that kind that makes a tensor for one reader alone, or NULL. */
static struct op *sole(struct fuser *f, int tensor, enum op_kind kind)
{
    int producer = tensor < 0 ? -1 : f->graph->tensors[tensor].producer;

    if (producer < 0 || f->readers[tensor] != 1 || f->graph->ops[producer].kind != kind ||
        f->is_gone[producer])
        return NULL;
    return &f->graph->ops[producer];
}

/* Put `inner`, changed, where `outer` stands; it writes what outer wrote. */
static void replace(struct fuser *f, struct op *outer, struct op *inner)
{
    struct op fused = *inner;

    fused.out[0] = outer->out[0];
    f->is_gone[inner - f->graph->ops] = true;
    *outer = fused;
    for (int i = 0; i < fused.out_count; i++)
        f->graph->tensors[fused.out[i]].producer = (int)(outer - f->graph->ops);
}

static void set_in(struct op *op, int slot, int tensor)
{
    for (int i = op->in_count; i < slot; i++)
        op->in[i] = -1;
    op->in[slot] = tensor;
    if (op->in_count <= slot)
        op->in_count = slot + 1;
}

/* Of the two sides of an add, the one made last by such an op: its partner then is there. */
static struct op *side(struct fuser *f, const struct op *add, enum op_kind kind, int *ret_other)
{
    struct op *a = sole(f, add->in[0], kind), *b = sole(f, add->in[1], kind);
    struct op *chosen = a > b ? a : b;

    if (chosen)
        *ret_other = add->in[chosen == a ? 1 : 0];
    return chosen;
}

static bool fuse_bn_add_relu(struct fuser *f, struct op *relu)
{
    struct op *add = sole(f, relu->in[0], OP_ADD);
    int other = -1;
    struct op *bn = add ? side(f, add, OP_BN, &other) : NULL;

    if (!bn || bn->attrs.bn.has_relu || op_in(bn, 5) >= 0)
        return false;
    set_in(bn, 5, other);
    bn->attrs.bn.has_relu = true;
    f->is_gone[add - f->graph->ops] = true;
    replace(f, relu, bn);
    return true;
}

static bool fuse_bn_relu(struct fuser *f, struct op *relu)
{
    struct op *bn = sole(f, relu->in[0], OP_BN);

    if (!bn || bn->attrs.bn.has_relu)
        return false;
    bn->attrs.bn.has_relu = true;
    replace(f, relu, bn);
    return true;
}

static bool fuse_conv_relu(struct fuser *f, struct op *relu)
{
    struct op *conv = sole(f, relu->in[0], OP_CONV);

    if (!conv || conv->attrs.conv.act != ACT_NONE)
        return false;
    conv->attrs.conv.act = ACT_RELU;
    replace(f, relu, conv);
    return true;
}

static bool fuse_conv_add(struct fuser *f, struct op *add)
{
    int other = -1;
    struct op *conv = side(f, add, OP_CONV, &other);

    if (!conv || conv->attrs.conv.act != ACT_NONE || op_in(conv, 3) >= 0)
        return false;
    set_in(conv, 3, other);
    replace(f, add, conv);
    return true;
}

static bool fuse_dropout_add(struct fuser *f, struct op *add)
{
    int other = -1;
    struct op *dropout = side(f, add, OP_DROPOUT, &other);

    if (!dropout || op_in(dropout, 1) >= 0)
        return false;
    set_in(dropout, 1, other);
    replace(f, add, dropout);
    return true;
}

/* A GELU's gradient needs what went into it: that becomes a second output. */
static bool fuse_linear_act(struct fuser *f, struct op *act)
{
    struct op *linear = sole(f, act->in[0], OP_LINEAR);
    enum act kind = act->kind == OP_RELU   ? ACT_RELU
                    : act->kind == OP_TANH ? ACT_TANH
                                           : ACT_GELU;

    if (!linear || linear->attrs.linear.act != ACT_NONE)
        return false;
    linear->attrs.linear.act = kind;
    if (kind == ACT_GELU && f->graph->mode == GRAPH_TRAIN) {
        linear->out[1] = act->in[0];
        linear->out_count = 2;
    }
    replace(f, act, linear);
    return true;
}

/* Here the outer op takes in the inner one, and writes the sum as well. */
static bool fuse_add_layernorm(struct fuser *f, struct op *norm)
{
    struct op *add = sole(f, norm->in[0], OP_ADD);

    if (!add || op_in(norm, 3) >= 0)
        return false;
    f->is_gone[add - f->graph->ops] = true;
    norm->out[3] = norm->in[0];
    norm->out_count = 4;
    f->graph->tensors[norm->in[0]].producer = (int)(norm - f->graph->ops);
    norm->in[0] = add->in[0];
    set_in(norm, 3, add->in[1]);
    return true;
}

static const struct rule {
    unsigned fusion;
    enum op_kind kind; /* of the outer op */
    bool (*apply)(struct fuser *f, struct op *outer);
} rules[] = {
    {FUSE_BN_ADD_RELU, OP_RELU, fuse_bn_add_relu},
    {FUSE_BN_RELU, OP_RELU, fuse_bn_relu},
    {FUSE_CONV_RELU, OP_RELU, fuse_conv_relu},
    {FUSE_CONV_ADD, OP_ADD, fuse_conv_add},
    {FUSE_DROPOUT_ADD, OP_ADD, fuse_dropout_add},
    {FUSE_LINEAR_ACT, OP_RELU, fuse_linear_act},
    {FUSE_LINEAR_ACT, OP_TANH, fuse_linear_act},
    {FUSE_LINEAR_ACT, OP_GELU, fuse_linear_act},
    {FUSE_ADD_LAYERNORM, OP_LAYERNORM, fuse_add_layernorm},
};

static void apply_rules(struct fuser *f, int n)
{
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        struct op *op = &f->graph->ops[n];

        if (!f->is_gone[n] && (f->fusions & rules[i].fusion) && op->kind == rules[i].kind &&
            rules[i].apply(f, op))
            return;
    }
}

static void drop_gone(struct fuser *f)
{
    struct graph *graph = f->graph;
    int kept = 0;

    for (int t = 0; t < graph->tensor_count; t++)
        graph->tensors[t].producer = -1; /* what lay between two that are one now has none */
    for (int i = 0; i < graph->op_count; i++) {
        if (f->is_gone[i])
            continue;
        graph->ops[kept] = graph->ops[i];
        for (int j = 0; j < graph->ops[kept].out_count; j++)
            graph->tensors[graph->ops[kept].out[j]].producer = kept;
        kept++;
    }
    graph->op_count = kept;
}

void graph_fuse(struct graph *graph, unsigned fusions)
{
    if (graph->error.code != ERR_NONE || graph->op_count == 0)
        return;

    auto_free int *readers = xcalloc((size_t)graph->tensor_count, sizeof *readers);
    auto_free bool *is_gone = xcalloc((size_t)graph->op_count, sizeof *is_gone);
    struct fuser f = {
        .graph = graph, .fusions = fusions, .readers = readers, .is_gone = is_gone};

    count_readers(&f);
    for (int n = 0; n < graph->op_count; n++)
        apply_rules(&f, n);
    drop_gone(&f);
}
