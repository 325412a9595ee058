/* store.c - see store.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/store.h"

#include "base/mem.h"
#include "train/comm/reducer.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

enum {
    LINE_FLOATS = 16,
    HUGE_PAGE = 2 << 20,
};

void *store_alloc(size_t bytes)
{
    size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : 64;
    size_t size = (bytes + align - 1) & ~(align - 1);
    void *p = aligned_alloc(align, size ? size : align);

    if (!p)
        abort();
    if (align == HUGE_PAGE)
        (void)madvise(p, size, MADV_HUGEPAGE); /* only a wish */
    memset(p, 0, size ? size : align);
    return p;
}

static size_t lines(size_t floats)
{
    return (floats + LINE_FLOATS - 1) & ~(size_t)(LINE_FLOATS - 1);
}

/* Order of buckets; an eval graph has none, and takes the order of tensors. */
static void list_params(struct store *store, const size_t *counts)
{
    const struct graph *graph = store->graph;
    size_t offset = 0;

    for (int t = 0; t < graph->tensor_count; t++)
        store->param_count += graph->tensors[t].role == ROLE_PARAM;
    store->params = xcalloc((size_t)store->param_count + 1, sizeof *store->params);
    for (int i = 0, t = -1; i < store->param_count; i++) {
        struct store_param *p = &store->params[i];

        if (graph->bucket_count)
            t = graph->bucket_params[i];
        else
            while (graph->tensors[++t].role != ROLE_PARAM)
                continue;
        *p = (struct store_param){.tensor = t, .offset = offset, .count = counts[t]};
        offset += lines(p->count);
    }
    store->arena_floats = offset;
}

static void index_tensors(struct store *store)
{
    const struct graph *graph = store->graph;

    store->of_tensor = xcalloc((size_t)graph->tensor_count, sizeof *store->of_tensor);
    for (int t = 0; t < graph->tensor_count; t++)
        store->of_tensor[t] = -1;
    for (int i = 0; i < store->param_count; i++)
        store->of_tensor[store->params[i].tensor] = i;
    for (int t = 0; t < graph->tensor_count; t++)
        if (graph->tensors[t].param >= 0)
            store->of_tensor[t] = store->of_tensor[graph->tensors[t].param];
}

static int make_arena(struct store *store, struct err *e)
{
    const struct graph *graph = store->graph;
    auto_free struct reducer_span *spans =
        xcalloc((size_t)graph->bucket_count + 1, sizeof *spans);

    if (!store->reducer) {
        store->arena = store_alloc(store->arena_floats * sizeof(float));
        store->owns_arena = true;
        return 0;
    }
    if (reducer_arena(store->reducer, store->arena_floats * sizeof(float), &store->arena, e) <
        0)
        return -1;
    for (int b = 0; b < graph->bucket_count; b++) {
        const struct bucket *bucket = &graph->buckets[b];
        const struct store_param *last = &store->params[bucket->first + bucket->count - 1];

        spans[b].offset = store->params[bucket->first].offset;
        spans[b].count = last->offset + lines(last->count) - spans[b].offset;
    }
    return reducer_attach(store->reducer, spans, graph->bucket_count, e);
}

static int own_params(struct store *store, struct err *e)
{
    int slots = optim_info(store->graph->optim.kind)->slots;
    size_t bytes = store->arena_floats * sizeof(float);

    store->masters = store_alloc(bytes);
    for (int i = 0; i < store->param_count; i++)
        store->params[i].master = store->masters + store->params[i].offset;
    if (!store->graph->bucket_count)
        return 0;
    if (make_arena(store, e) < 0)
        return -1;
    for (int s = 0; s < slots; s++)
        store->slots[s] = store_alloc(bytes);
    for (int i = 0; i < store->param_count; i++) {
        store->params[i].grad = store->arena + store->params[i].offset;
        for (int s = 0; s < slots; s++)
            store->params[i].slot[s] = store->slots[s] + store->params[i].offset;
    }
    return 0;
}

static void own_states(struct store *store)
{
    const struct graph *graph = store->graph;
    float *next;

    for (int t = 0; t < graph->tensor_count; t++)
        if (graph->tensors[t].role == ROLE_STATE && graph->tensors[t].param < 0)
            store->state_floats += lines((size_t)tensor_elements(&graph->tensors[t]));
    next = store->states = store_alloc(store->state_floats * sizeof(float));
    for (int t = 0; t < graph->tensor_count; t++)
        if (graph->tensors[t].role == ROLE_STATE && graph->tensors[t].param < 0) {
            store->state[t] = next;
            next += lines((size_t)tensor_elements(&graph->tensors[t]));
        }
}

static int borrow(struct store *store, int t, struct err *e)
{
    const struct store *from = store->shared;
    const struct tensor *tensor = &store->graph->tensors[t];
    int there = graph_find(from->graph, tensor->name);

    if (there < 0 || tensor_elements(&from->graph->tensors[there]) != tensor_elements(tensor))
        return err_set(e, ERR_INVALID, "\"%s\" of \"%s\" is not in \"%s\"", tensor->name,
                       store->graph->name, from->graph->name);
    if (tensor->role == ROLE_PARAM) {
        const struct store_param *param = &from->params[from->of_tensor[there]];

        store->params[store->of_tensor[t]].master = param->master;
        store->params[store->of_tensor[t]].count = param->count;
    } else {
        store->state[t] = from->state[there];
    }
    return 0;
}

static int borrow_all(struct store *store, struct err *e)
{
    for (int t = 0; t < store->graph->tensor_count; t++) {
        enum role role = store->graph->tensors[t].role;

        if ((role == ROLE_PARAM || role == ROLE_STATE) && borrow(store, t, e) < 0)
            return -1;
    }
    return 0;
}

int store_init(struct store *store,
               const struct graph *graph,
               const size_t *counts,
               const struct plan_options *options,
               const struct store *shared,
               struct err *e)
{
    *store = (struct store){.graph = graph,
                            .reducer = options->reducer,
                            .shared = shared,
                            .scale = 1,
                            .is_finite = true};
    store->state = xcalloc((size_t)graph->tensor_count, sizeof(float *));
    list_params(store, counts);
    index_tensors(store);
    if (shared && graph->bucket_count)
        return err_set(e, ERR_METHOD, "\"%s\" is trained: it cannot share params", graph->name);
    if (shared)
        return borrow_all(store, e);
    own_states(store);
    return own_params(store, e);
}

void store_done(struct store *store)
{
    if (store->owns_arena)
        free(store->arena);
    free(store->masters);
    for (int s = 0; s < OPTIM_MOST_SLOTS; s++)
        free(store->slots[s]);
    free(store->states);
    free((void *)store->state);
    free(store->params);
    free(store->of_tensor);
}

float *store_slot(const struct store *store, int tensor)
{
    const struct tensor *all = store->graph->tensors;
    int which = 0;

    for (int t = 0; t < tensor; t++)
        which += all[t].role == ROLE_STATE && all[t].param == all[tensor].param;
    return store->params[store->of_tensor[tensor]].slot[which];
}

static float *state_named(const struct store *store, const char *name)
{
    int t = graph_find(store->graph, name);

    return t < 0 ? NULL : store->state[t];
}

void store_begin(struct store *store)
{
    const float *scale = store->graph->values[VALUE_SCALE] < 0
                             ? NULL
                             : state_named(store, "optimizer.loss_scale");

    store->scale = scale ? *scale : 1;
    store->is_finite = true;
    store->norm = 0;
    store->l2 = 0;
}

static float grad_scale(const struct store *store)
{
    const struct graph *graph = store->graph;
    double ranks = graph->is_mean ? (double)graph->ranks : 1;

    return (float)(1.0 / ((double)store->scale * (double)graph->passes * ranks));
}

/* Half after an overflow, twice after enough good steps; takes effect with the next step. */
static void move_scale(struct store *store)
{
    const struct optim_spec *optim = &store->graph->optim;
    float *scale = state_named(store, "optimizer.loss_scale");
    float *good = state_named(store, "optimizer.good_steps");

    if (!optim->has_dynamic_scale || !scale || !good)
        return;
    *good = store->is_finite ? *good + 1 : 0;
    if (!store->is_finite && *scale > 1)
        *scale /= 2;
    if (optim->scale_grows_after > 0 && *good >= (float)optim->scale_grows_after) {
        *scale *= 2;
        *good = 0;
    }
}

static void take_norm(struct store *store)
{
    double sum = 0;

    for (int i = 0; i < store->param_count; i++) {
        bool is_finite = true;

        sum += optim_square_sum(store->params[i].grad, store->params[i].count, &is_finite);
        store->is_finite &= is_finite;
    }
    store->norm = sqrt(sum) * (double)grad_scale(store);
    move_scale(store);
}

static void update(struct store *store, const struct bucket *bucket, const struct step *step)
{
    const struct optim_spec *optim = &store->graph->optim;
    struct optim_step s = {.lr = step->lr,
                           .grad_scale = grad_scale(store),
                           .clip_scale = 1,
                           .number = (int64_t)step->number + 1};

    if (optim->clip_norm > 0 && store->norm > (double)optim->clip_norm)
        s.clip_scale = (float)((double)optim->clip_norm / store->norm);
    for (int i = bucket->first; store->is_finite && i < bucket->first + bucket->count; i++) {
        struct store_param *p = &store->params[i];
        struct optim_param param = {.value = p->master,
                                    .grad = p->grad,
                                    .slot = {p->slot[0], p->slot[1]},
                                    .count = p->count,
                                    .decays = store->graph->tensors[p->tensor].decays};

        store->l2 += optim_apply(optim, &param, &s);
    }
    store->version++;
}

int store_control(struct store *store,
                  const struct op *op,
                  const struct step *step,
                  struct err *e)
{
    switch ((int)op->kind) {
    case OP_REDUCE_START:
        if (store->reducer)
            reducer_start(store->reducer, op->attrs.bucket);
        return 0;
    case OP_REDUCE_WAIT:
        return store->reducer ? reducer_wait(store->reducer, op->attrs.bucket, e) : 0;
    case OP_GRAD_NORM:
        take_norm(store);
        return 0;
    default:
        update(store, &store->graph->buckets[op->attrs.bucket], step);
        return 0;
    }
}

void store_values(const struct store *store, struct step_values *values)
{
    const int *there = store->graph->values;

    if (there[VALUE_L2] >= 0)
        values->value[VALUE_L2] = (float)store->l2;
    if (there[VALUE_GRAD_NORM] >= 0)
        values->value[VALUE_GRAD_NORM] = (float)store->norm;
    if (there[VALUE_FINITE] >= 0)
        values->value[VALUE_FINITE] = store->is_finite ? 1 : 0;
    if (there[VALUE_SCALE] >= 0)
        values->value[VALUE_SCALE] = store->scale;
}

void store_memory(const struct store *store, struct plan_memory *memory)
{
    int64_t bytes = (int64_t)(store->arena_floats * sizeof(float));

    if (store->masters)
        memory->params_bytes += bytes;
    for (int s = 0; s < OPTIM_MOST_SLOTS; s++)
        if (store->slots[s])
            memory->params_bytes += bytes;
    memory->params_bytes += (int64_t)(store->state_floats * sizeof(float));
    if (store->arena)
        memory->grads_bytes += bytes;
}
