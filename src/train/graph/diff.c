/* diff.c - see diff.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/graph/diff.h"

#include "base/mem.h"
#include "train/graph/graph-internal.h"

enum {
    MOST_PARTS = OP_MOST_IN, /* what a SUM takes: how often a value may be used */
};

/* What is known of the gradient of a tensor of the forward pass. */
struct parts {
    int part[MOST_PARTS];
    int count;
    bool is_wanted; /* does a param lie behind it? */
};

static void find_wanted(const struct graph *graph, struct parts *parts)
{
    for (int t = 0; t < graph->tensor_count; t++)
        parts[t].is_wanted = graph->tensors[t].role == ROLE_PARAM;
    for (int i = 0; i < graph->op_count; i++) {
        const struct op *op = &graph->ops[i];
        bool is_wanted = false;

        for (int j = 0; j < op->in_count; j++)
            is_wanted |= op->in[j] >= 0 && parts[op->in[j]].is_wanted;
        for (int j = 0; j < op->out_count; j++)
            parts[op->out[j]].is_wanted = is_wanted;
    }
}

/* How much each cross-entropy counts in the loss that is differentiated. */
static int weigh_losses(struct graph *graph)
{
    int loss = graph->values[VALUE_LOSS];
    struct op *root;

    if (loss < 0)
        return graph_fail(graph, ERR_INVALID, "has no loss");
    root = &graph->ops[graph->tensors[loss].producer];
    if (root->kind == OP_XENT) {
        root->attrs.xent.weight = 1;
        return 0;
    }
    if (root->kind != OP_WEIGHTED_SUM)
        return graph_fail(graph, ERR_INVALID, "the loss comes from a %s",
                          op_info(root->kind)->name);
    for (int i = 0; i < root->in_count; i++) {
        struct op *part = &graph->ops[graph->tensors[root->in[i]].producer];

        if (part->kind != OP_XENT)
            return graph_fail(graph, ERR_INVALID, "part %d of the loss is no cross-entropy", i);
        part->attrs.xent.weight = root->attrs.weighted.weight[i];
    }
    return 0;
}

/* The whole gradient of a tensor: its only part, or the sum of its parts, or -1. */
static int whole_of(struct graph *graph, struct parts *parts)
{
    if (parts->count < 2)
        return parts->count ? parts->part[0] : -1;

    int op = graph_add_op(graph, OP_SUM, NULL, parts->part, parts->count);
    if (op < 0)
        return -1;
    parts->part[0] = graph->ops[op].out[0];
    parts->count = 1;
    return parts->part[0];
}

static int add_part(struct graph *graph, struct parts *parts, int grad)
{
    if (parts->count == MOST_PARTS)
        return graph_fail(graph, ERR_INVALID, "a value is used more than %d times", MOST_PARTS);
    parts->part[parts->count++] = grad;
    return 0;
}

static bool is_root(const struct op *op)
{
    return op->kind == OP_XENT && op->attrs.xent.weight != 0;
}

static int differentiate_op(struct graph *graph, int n, struct parts *parts)
{
    struct op op = graph->ops[n];
    int dy[OP_MOST_OUT], dx[OP_MOST_IN];
    bool has_dy = is_root(&op);

    for (int i = 0; i < op.out_count; i++) {
        dy[i] = whole_of(graph, &parts[op.out[i]]);
        has_dy |= dy[i] >= 0;
    }
    if (!has_dy || !parts[op.out[0]].is_wanted)
        return graph_check(graph, NULL);
    if (!op_info(op.kind)->differentiate)
        return graph_fail(graph, ERR_METHOD, "%s \"%s\" has no gradient",
                          op_info(op.kind)->name, op.name);
    for (int i = 0; i < op.in_count; i++)
        dx[i] = op.in[i] >= 0 && parts[op.in[i]].is_wanted ? -1 : GRAD_UNWANTED;
    if (op_info(op.kind)->differentiate(graph, n, dy, dx) < 0)
        return -1;
    for (int i = 0; i < op.in_count; i++)
        if (dx[i] >= 0 && parts[op.in[i]].is_wanted &&
            add_part(graph, &parts[op.in[i]], dx[i]) < 0)
            return -1;
    return graph_check(graph, NULL);
}

static int name_gradients(struct graph *graph, struct parts *parts, int tensors)
{
    for (int t = 0; t < tensors; t++) {
        if (graph->tensors[t].role != ROLE_PARAM)
            continue;
        int grad = whole_of(graph, &parts[t]);
        if (grad < 0)
            return graph_fail(graph, ERR_INVALID, "the loss does not depend on \"%s\"",
                              graph->tensors[t].name);
        struct tensor *of = &graph->tensors[grad];
        of->role = ROLE_GRAD;
        of->param = t;
        of->name = arena_printf(graph->arena, "grad.%s", graph->tensors[t].name);
        graph->tensors[t].grad = grad;
    }
    return 0;
}

static int differentiate(struct graph *graph)
{
    int tensors = graph->tensor_count, ops = graph->op_count;
    auto_free struct parts *parts = xcalloc((size_t)tensors + 1, sizeof *parts);

    find_wanted(graph, parts);
    if (weigh_losses(graph) < 0)
        return -1;
    graph->forward_end = ops;
    for (int n = ops - 1; n >= 0; n--)
        if (differentiate_op(graph, n, parts) < 0)
            return -1;
    if (name_gradients(graph, parts, tensors) < 0)
        return -1;
    graph->backward_end = graph->op_count;
    return 0;
}

int graph_differentiate(struct graph *graph, struct err *e)
{
    if (graph_check(graph, e) < 0)
        return -1;
    if (differentiate(graph) < 0)
        return graph_check(graph, e);
    return 0;
}
