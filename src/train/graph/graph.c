/* graph.c - the lists of tensors and ops: see graph.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/graph/graph.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/graph/graph-internal.h"
#include "train/num/par.h"
#include "train/num/rng.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct graph *graph_new(const char *name, enum graph_mode mode, int64_t batch)
{
    struct graph *graph = xcalloc(1, sizeof *graph);

    graph->arena = arena_new();
    graph->name = arena_strdup(graph->arena, name);
    graph->mode = mode;
    graph->batch = batch;
    graph->ranks = graph->passes = 1;
    for (int i = 0; i < VALUES; i++)
        graph->values[i] = -1;
    return graph;
}

void graph_free(struct graph *graph)
{
    if (!graph)
        return;
    free(graph->tensors);
    free(graph->ops);
    free(graph->buckets);
    free(graph->bucket_params);
    arena_free(graph->arena);
    free(graph);
}

int graph_check(const struct graph *graph, struct err *e)
{
    if (graph->error.code == ERR_NONE)
        return 0;
    if (e)
        *e = graph->error;
    return -1;
}

int graph_fail(struct graph *graph, enum err_code code, const char *format, ...)
{
    va_list args;

    if (graph->error.code != ERR_NONE)
        return -1;
    va_start(args, format);
    auto_free char *text = xvasprintf(format, args);
    va_end(args);
    return err_set(&graph->error, code, "network \"%s\": %s", graph->name, text);
}

/* Room for one more in an array that grows by doubling. */
static void *grown(void *array, int count, size_t size)
{
    if (count & (count - 1))
        return array;
    return xreallocarray(array, count ? (size_t)count * 2 : 1, size);
}

int graph_add_tensor(struct graph *graph,
                     const char *name,
                     enum role role,
                     enum dtype dtype,
                     int dims,
                     const int64_t *dim)
{
    struct tensor tensor = {.role = role,
                            .dtype = dtype,
                            .dims = dims,
                            .producer = -1,
                            .grad = -1,
                            .param = -1,
                            .bucket = -1};

    if (graph->error.code != ERR_NONE)
        return -1;
    for (int i = 0; i < dims; i++) {
        if (dim[i] < 1)
            return graph_fail(graph, ERR_INVALID, "\"%s\" has a side of %lld", name,
                              (long long)dim[i]);
        tensor.dim[i] = dim[i];
    }
    tensor.name = arena_strdup(graph->arena, name);
    graph->tensors = grown(graph->tensors, graph->tensor_count, sizeof *graph->tensors);
    graph->tensors[graph->tensor_count] = tensor;
    return graph->tensor_count++;
}

static int add_op(struct graph *graph, struct op *op)
{
    const struct op_info *info = op_info(op->kind);

    if (graph->error.code != ERR_NONE)
        return -1;
    for (int i = 0; i < op->in_count; i++)
        if (op->in[i] >= graph->tensor_count || (op->in[i] < 0 && i < info->least_in))
            return graph_fail(graph, ERR_INTERNAL, "%s: input %d is missing", info->name, i);
    if (op->in_count < info->least_in || op->in_count > info->most_in)
        return graph_fail(graph, ERR_INTERNAL, "%s takes %d to %d inputs, not %d", info->name,
                          info->least_in, info->most_in, op->in_count);
    if (info->infer(graph, op) < 0)
        return -1;
    graph->ops = grown(graph->ops, graph->op_count, sizeof *graph->ops);
    graph->ops[graph->op_count] = *op;
    return graph->op_count++;
}

static void fill_op(
    struct op *op, enum op_kind kind, const union op_attrs *attrs, const int *in, int in_count)
{
    *op = (struct op){.kind = kind, .name = "", .in_count = in_count, .forward = -1};
    if (attrs)
        op->attrs = *attrs;
    for (int i = 0; i < OP_MOST_IN; i++)
        op->in[i] = i < in_count ? in[i] : -1;
    for (int i = 0; i < OP_MOST_OUT; i++)
        op->out[i] = -1;
}

int graph_add_op(struct graph *graph,
                 enum op_kind kind,
                 const union op_attrs *attrs,
                 const int *in,
                 int in_count)
{
    struct op op;

    if (in_count > OP_MOST_IN)
        return graph_fail(graph, ERR_INVALID, "%s of %d inputs", op_info(kind)->name, in_count);
    fill_op(&op, kind, attrs, in, in_count);
    return add_op(graph, &op);
}

int graph_add_grad(struct graph *graph,
                   enum op_kind kind,
                   const union op_attrs *attrs,
                   const int *in,
                   int in_count,
                   int forward)
{
    struct op op;

    fill_op(&op, kind, attrs, in, in_count);
    op.forward = forward;
    op.name = graph->ops[forward].name;
    return add_op(graph, &op);
}

int op_output(struct graph *graph, struct op *op, enum role role, int dims, const int64_t *dim)
{
    char name[32];

    snprintf(name, sizeof name, "%d.%d", graph->op_count, op->out_count);

    int tensor = graph_add_tensor(graph, name, role, DTYPE_F32, dims, dim);
    if (tensor < 0)
        return -1;
    graph->tensors[tensor].producer = graph->op_count;
    op->out[op->out_count++] = tensor;
    return 0;
}

int op_output_like(struct graph *graph, struct op *op, enum role role, int tensor)
{
    struct tensor like = graph->tensors[tensor];

    return op_output(graph, op, role, like.dims, like.dim);
}

int op_in(const struct op *op, int slot)
{
    return slot < op->in_count ? op->in[slot] : -1;
}

int op_out(const struct op *op, int slot)
{
    return slot < op->out_count ? op->out[slot] : -1;
}

int64_t tensor_elements(const struct tensor *tensor)
{
    int64_t elements = 1;

    for (int i = 0; i < tensor->dims; i++)
        elements *= tensor->dim[i];
    return elements;
}

int graph_find(const struct graph *graph, const char *name)
{
    for (int t = 0; t < graph->tensor_count; t++) {
        const struct tensor *tensor = &graph->tensors[t];

        if ((tensor->role == ROLE_PARAM || tensor->role == ROLE_STATE) &&
            str_equal(tensor->name, name))
            return t;
    }
    return -1;
}

int64_t graph_param_count(const struct graph *graph)
{
    int64_t elements = 0;

    for (int t = 0; t < graph->tensor_count; t++)
        if (graph->tensors[t].role == ROLE_PARAM)
            elements += tensor_elements(&graph->tensors[t]);
    return elements;
}

static double product_flops(const struct graph *graph, const struct op *forward)
{
    const struct tensor *y = &graph->tensors[forward->out[0]];
    const struct tensor *w = &graph->tensors[forward->in[1]];

    /* Each output is a sum over all of one output channel's weights. */
    return 2.0 * (double)tensor_elements(y) * (double)tensor_elements(w) / (double)w->dim[0];
}

/* Two products of N A (T E)(E T) forward, four backward. */
static double attention_flops(const struct graph *graph, const struct op *forward)
{
    const struct tensor *y = &graph->tensors[forward->out[0]];
    const struct tensor *mask = &graph->tensors[forward->in[1]];

    return 4.0 * (double)tensor_elements(y) * (double)mask->dim[1];
}

double op_flops(const struct graph *graph, const struct op *op)
{
    const struct op *forward = op->forward >= 0 ? &graph->ops[op->forward] : op;

    if (op->kind == OP_RELU_GRAD || op->kind == OP_GELU_GRAD || op->kind == OP_TANH_GRAD)
        return 0; /* may belong to a fused product */
    if (forward->kind == OP_CONV || forward->kind == OP_LINEAR)
        return product_flops(graph, forward);
    if (forward->kind == OP_ATTENTION)
        return attention_flops(graph, forward) * (op == forward ? 1 : 2);
    return 0;
}

double graph_flops(const struct graph *graph, bool forward_only)
{
    int end = forward_only && graph->forward_end > 0 ? graph->forward_end : graph->op_count;
    double flops = 0;

    for (int i = 0; i < end; i++)
        flops += op_flops(graph, &graph->ops[i]);
    return flops;
}

static float draw(struct rng *rng, const struct init *init)
{
    switch (init->kind) {
    case INIT_NORMAL:
        return init->a * rng_normal(rng);
    case INIT_TRUNCATED_NORMAL:
        return rng_truncated_normal(rng, 0, init->a);
    case INIT_UNIFORM:
        return init->a * (2 * rng_uniform(rng) - 1);
    case INIT_CONSTANT:
        break;
    }
    return init->a;
}

struct drawing {
    const struct tensor *tensor;
    uint64_t seed, stream;
    float *values;
};

/* How many words an element takes is not known before (some are drawn again), so each block
 * begins at a counter of its own. */
enum {
    BLOCK = 1 << 14,
};

static void draw_blocks(void *arg, int64_t from, int64_t to)
{
    const struct drawing *d = arg;
    int64_t count = tensor_elements(d->tensor);

    for (int64_t block = from; block < to; block++) {
        int64_t end = (block + 1) * BLOCK < count ? (block + 1) * BLOCK : count;
        struct rng rng;

        rng_init(&rng, d->seed, d->stream);
        rng.at = (uint64_t)block << 32;
        for (int64_t i = block * BLOCK; i < end; i++)
            d->values[i] = draw(&rng, &d->tensor->init);
    }
}

void graph_initial(const struct graph *graph, int tensor, uint64_t seed, float *values)
{
    const struct tensor *t = &graph->tensors[tensor];
    auto_free char *stream = xasprintf("init/%s", t->name);

    par_for((tensor_elements(t) + BLOCK - 1) / BLOCK, 1, draw_blocks,
            &(struct drawing){t, seed, rng_stream(stream), values});
}
