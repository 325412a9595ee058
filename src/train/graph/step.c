/* step.c - see step.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/graph/step.h"

#include "base/mem.h"
#include "train/graph/graph-internal.h"

#include <string.h>

/* Params in the order in which the backward pass finishes their gradients. */
static int finish_order(const struct graph *graph, int *ret_params)
{
    int count = 0;

    for (int i = graph->forward_end; i < graph->backward_end; i++)
        for (int j = 0; j < graph->ops[i].out_count; j++) {
            const struct tensor *t = &graph->tensors[graph->ops[i].out[j]];

            if (t->role == ROLE_GRAD)
                ret_params[count++] = t->param;
        }
    return count;
}

static bool fits_last(const struct graph *graph, int64_t elements, int64_t most_elements)
{
    return graph->bucket_count > 0 &&
           graph->buckets[graph->bucket_count - 1].elements + elements <= most_elements;
}

static void put_into_bucket(struct graph *graph, int at, int64_t most_elements)
{
    int param = graph->bucket_params[at];
    int64_t elements = tensor_elements(&graph->tensors[param]);
    struct bucket *last;

    if (!fits_last(graph, elements, most_elements))
        graph->buckets[graph->bucket_count++] = (struct bucket){.first = at};
    last = &graph->buckets[graph->bucket_count - 1];
    last->count++;
    last->elements += elements;
    graph->tensors[param].bucket = graph->bucket_count - 1;
    graph->tensors[graph->tensors[param].grad].bucket = graph->bucket_count - 1;
}

static void make_buckets(struct graph *graph, int64_t fusion_bytes)
{
    int params = 0;

    for (int t = 0; t < graph->tensor_count; t++)
        params += graph->tensors[t].role == ROLE_PARAM;
    graph->bucket_params = xcalloc((size_t)params + 1, sizeof *graph->bucket_params);
    graph->buckets = xcalloc((size_t)params + 1, sizeof *graph->buckets);
    params = finish_order(graph, graph->bucket_params);
    for (int i = 0; i < params; i++)
        put_into_bucket(graph, i, fusion_bytes / (int64_t)sizeof(float));
}

/* The scale of the loss lives between steps: {scale, good steps since it changed}. */
static void add_scale(struct graph *graph)
{
    const struct optim_spec *optim = &graph->optim;

    if (optim->loss_scale == 1 && !optim->has_dynamic_scale)
        return;
    int scale = graph_add_tensor(graph, "optimizer.loss_scale", ROLE_STATE, DTYPE_F32, 1,
                                 (const int64_t[]){1});
    int good = graph_add_tensor(graph, "optimizer.good_steps", ROLE_STATE, DTYPE_F32, 1,
                                (const int64_t[]){1});
    graph->tensors[scale].init = (struct init){INIT_CONSTANT, optim->loss_scale};
    graph->tensors[good].init = (struct init){INIT_CONSTANT, 0};
    graph->values[VALUE_SCALE] =
        graph_add_tensor(graph, "loss_scale", ROLE_EXACT, DTYPE_F32, 0, NULL);
}

static void add_slots(struct graph *graph)
{
    const struct optim_info *info = optim_info(graph->optim.kind);
    int tensors = graph->tensor_count;

    for (int t = 0; t < tensors; t++)
        for (int s = 0; s < info->slots && graph->tensors[t].role == ROLE_PARAM; s++) {
            struct tensor param = graph->tensors[t];
            char *name =
                arena_printf(graph->arena, "optimizer.%s.%s", info->slot_names[s], param.name);
            int slot =
                graph_add_tensor(graph, name, ROLE_STATE, DTYPE_F32, param.dims, param.dim);

            graph->tensors[slot].param = t;
            graph->tensors[slot].init = (struct init){INIT_CONSTANT, info->slot_begins[s]};
        }
}

/* Behind which op of the list each bucket may be handed over, and may be updated: not before
 * the last op that still reads one of its params (a data gradient comes after its weight
 * gradient). */
struct places {
    int *handed, *updated; /* by bucket */
};

static void later(int *at, int op)
{
    if (op > *at)
        *at = op;
}

static void find_places(const struct graph *graph, struct places *p)
{
    for (int i = 0; i < graph->backward_end; i++) {
        const struct op *op = &graph->ops[i];

        for (int j = 0; j < op->in_count; j++)
            if (op->in[j] >= 0 && graph->tensors[op->in[j]].role == ROLE_PARAM)
                later(&p->updated[graph->tensors[op->in[j]].bucket], i);
        for (int j = 0; j < op->out_count; j++)
            if (graph->tensors[op->out[j]].role == ROLE_GRAD) {
                later(&p->handed[graph->tensors[op->out[j]].bucket], i);
                later(&p->updated[graph->tensors[op->out[j]].bucket], i);
            }
    }
}

/* The list is written anew with control ops between; `moved` maps old numbers to new ones. */
struct writer {
    struct graph *graph;
    struct op *ops;
    int count;
    int *moved;
};

static void write_control(struct writer *w, enum op_kind kind, int bucket)
{
    struct op *op = &w->ops[w->count++];

    *op = (struct op){.kind = kind, .name = "", .forward = -1};
    op->attrs.bucket = bucket;
    for (int i = 0; i < OP_MOST_IN; i++)
        op->in[i] = -1;
    for (int i = 0; i < OP_MOST_OUT; i++)
        op->out[i] = -1;
}

static void write_at(struct writer *w, enum op_kind kind, const int *places, int at)
{
    for (int b = 0; b < w->graph->bucket_count; b++)
        if (places[b] == at)
            write_control(w, kind, b);
}

static void write_each(struct writer *w, enum op_kind kind)
{
    for (int b = 0; b < w->graph->bucket_count; b++)
        write_control(w, kind, b);
}

static bool needs_norm(const struct optim_spec *optim)
{
    return optim->clip_norm > 0 || optim->loss_scale != 1 || optim->has_dynamic_scale;
}

static int write_norm(struct writer *w)
{
    struct graph *graph = w->graph;

    if (!needs_norm(&graph->optim))
        return 0;
    write_control(w, OP_GRAD_NORM, 0);

    struct op *op = &w->ops[w->count - 1];
    if (infer_grad_norm(graph, op) < 0)
        return -1;
    for (int i = 0; i < op->out_count; i++)
        graph->tensors[op->out[i]].producer = -1; /* set when the list is whole */
    graph->values[VALUE_GRAD_NORM] = op->out[0];
    graph->values[VALUE_FINITE] = op->out[1];
    return 0;
}

static int write_list(struct writer *w, const struct places *p, const struct step_spec *spec)
{
    struct graph *graph = w->graph;
    bool is_early = spec->updates_early && spec->ranks == 1 && spec->passes == 1 &&
                    !needs_norm(&graph->optim);

    for (int i = 0; i < graph->op_count; i++) {
        w->moved[i] = w->count;
        w->ops[w->count++] = graph->ops[i];
        if (spec->ranks > 1)
            write_at(w, OP_REDUCE_START, p->handed, i);
        if (is_early)
            write_at(w, OP_UPDATE, p->updated, i);
        if (i == graph->backward_end - 1)
            w->moved[graph->op_count] = w->count;
    }
    if (spec->ranks > 1)
        write_each(w, OP_REDUCE_WAIT);
    if (write_norm(w) < 0)
        return -1;
    if (!is_early)
        write_each(w, OP_UPDATE);
    return 0;
}

static void take_list(struct writer *w)
{
    struct graph *graph = w->graph;

    graph->backward_end = w->moved[graph->op_count];
    free(graph->ops);
    graph->ops = w->ops;
    graph->op_count = w->count;
    for (int i = 0; i < graph->op_count; i++) {
        struct op *op = &graph->ops[i];

        if (op->forward >= 0)
            op->forward = w->moved[op->forward];
        for (int j = 0; j < op->out_count; j++)
            graph->tensors[op->out[j]].producer = i;
    }
}

static int add_control(struct graph *graph, const struct step_spec *spec)
{
    size_t buckets = (size_t)graph->bucket_count, ops = (size_t)graph->op_count;
    auto_free int *handed = xcalloc(buckets + 1, sizeof *handed);
    auto_free int *updated = xcalloc(buckets + 1, sizeof *updated);
    auto_free int *moved = xcalloc(ops + 1, sizeof *moved);
    struct writer w = {.graph = graph, .moved = moved};

    w.ops = xcalloc(ops + 3 * buckets + 1, sizeof *w.ops);
    find_places(graph, &(struct places){handed, updated});
    if (write_list(&w, &(struct places){handed, updated}, spec) < 0) {
        free(w.ops);
        return -1;
    }
    take_list(&w);
    return 0;
}

int graph_finish_step(struct graph *graph, const struct step_spec *spec, struct err *e)
{
    if (graph_check(graph, e) < 0)
        return -1;
    if (graph->backward_end == 0)
        return err_set(e, ERR_INTERNAL, "\"%s\" is not differentiated", graph->name);
    graph->optim = spec->optim;
    graph->is_mean = spec->is_mean;
    graph->ranks = spec->ranks;
    graph->passes = spec->passes;
    make_buckets(graph, spec->fusion_bytes);
    add_scale(graph);
    add_slots(graph);
    graph->values[VALUE_L2] = graph_add_tensor(graph, "l2", ROLE_EXACT, DTYPE_F32, 0, NULL);
    if (add_control(graph, spec) < 0)
        return graph_check(graph, e);
    return 0;
}
