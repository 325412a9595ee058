/* params.c - see params.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/params.h"

#include "base/mem.h"
#include "train/backend/cuda/make.h"

#include <inttypes.h>

enum {
    LINE = 64, /* elements: 128 bytes of a 16-bit copy, 256 of fp32 */
};

static size_t lines(size_t elements)
{
    return (elements + LINE - 1) & ~(size_t)(LINE - 1);
}

/* Order of buckets; an eval graph has none, and takes the order of tensors. */
static void list_params(struct cuda_plan *p)
{
    const struct graph *graph = p->head.graph;
    struct params *params = p->params;

    for (int t = 0; t < graph->tensor_count; t++)
        params->count += graph->tensors[t].role == ROLE_PARAM;
    params->all = xcalloc((size_t)params->count + 1, sizeof *params->all);
    for (int i = 0, t = -1; i < params->count; i++) {
        struct param *param = &params->all[i];

        if (graph->bucket_count)
            t = graph->bucket_params[i];
        else
            while (graph->tensors[++t].role != ROLE_PARAM)
                continue;
        describe(p, t, &p->places[t]);
        param->tensor = t;
        param->offset = params->floats;
        param->count = p->places[t].bytes / elem_bytes(p->places[t].elem);
        param->master_place = p->places[t];
        param->master_place.elem = ELEM_F32;
        param->master_place.bytes = param->count * sizeof(float);
        params->floats += lines(param->count);
    }
}

static void index_tensors(struct cuda_plan *p)
{
    const struct graph *graph = p->head.graph;
    struct params *params = p->params;

    params->of_tensor = xcalloc((size_t)graph->tensor_count + 1, sizeof *params->of_tensor);
    for (int t = 0; t < graph->tensor_count; t++)
        params->of_tensor[t] = -1;
    for (int i = 0; i < params->count; i++)
        params->of_tensor[params->all[i].tensor] = i;
    for (int t = 0; t < graph->tensor_count; t++)
        if (graph->tensors[t].param >= 0)
            params->of_tensor[t] = params->of_tensor[graph->tensors[t].param];
}

/* Gradients, slots and states have places of their own, outside of the block. */
static void describe_others(struct cuda_plan *p)
{
    for (int t = 0; t < p->head.graph->tensor_count; t++) {
        enum role role = tensor_of(p, t)->role;

        if (role == ROLE_GRAD || role == ROLE_STATE || role == ROLE_INPUT)
            describe(p, t, &p->places[t]);
    }
}

int params_new(struct cuda_plan *p, struct err *e)
{
    const struct graph *graph = p->head.graph;

    if (p->shares && graph->bucket_count)
        return err_set(e, ERR_METHOD, "\"%s\" is trained: it cannot share params", graph->name);
    p->params = xcalloc(1, sizeof *p->params);
    list_params(p);
    index_tensors(p);
    describe_others(p);
    return 0;
}

void params_free(struct params *params)
{
    if (!params)
        return;
    reduce_free(params->reduce);
    free(params->all);
    free(params->of_tensor);
    free(params->first_chunk);
    free(params);
}

static int own_copies(struct cuda_plan *p, struct err *e)
{
    struct params *params = p->params;

    if (p->elem == ELEM_F32)
        return 0;
    params->owns_copies = true;
    return card_alloc(p, params->floats * elem_bytes(p->elem), &params->copies,
                      "copies of the weights", e);
}

static int own_arrays(struct cuda_plan *p, struct err *e)
{
    const struct graph *graph = p->head.graph;
    struct params *params = p->params;
    size_t bytes = params->floats * sizeof(float);

    if (card_alloc(p, bytes, (void **)&params->masters, "the weights", e) < 0 ||
        own_copies(p, e) < 0)
        return -1;
    if (!graph->bucket_count)
        return 0;
    if (card_alloc(p, bytes, (void **)&params->grads, "the gradients", e) < 0)
        return -1;
    for (int s = 0; s < optim_info(graph->optim.kind)->slots; s++)
        if (card_alloc(p, bytes, (void **)&params->slots[s], "the optimiser's slots", e) < 0)
            return -1;
    return 0;
}

static void place_params(struct cuda_plan *p)
{
    struct params *params = p->params;

    for (int i = 0; i < params->count; i++) {
        struct param *param = &params->all[i];

        if (params->masters)
            param->master = params->masters + param->offset;
        if (params->grads)
            param->grad = params->grads + param->offset;
        for (int s = 0; s < OPTIM_MOST_SLOTS; s++)
            param->slot[s] = params->slots[s] ? params->slots[s] + param->offset : NULL;
        if (params->copies)
            param->copy = (char *)params->copies + param->offset * elem_bytes(p->elem);
        if (p->elem == ELEM_F32)
            param->copy = param->master;
        param->master_place.data = param->master;
        p->places[param->tensor].data = param->copy;
    }
}

static int own_states(struct cuda_plan *p, struct err *e)
{
    const struct graph *graph = p->head.graph;
    struct params *params = p->params;
    float *next;

    for (int t = 0; t < graph->tensor_count; t++)
        if (graph->tensors[t].role == ROLE_STATE && graph->tensors[t].param < 0)
            params->state_floats += lines(p->places[t].bytes / sizeof(float));
    if (card_alloc(p, params->state_floats * sizeof(float), (void **)&params->states,
                   "the states", e) < 0)
        return -1;
    next = params->states;
    for (int t = 0; t < graph->tensor_count; t++)
        if (graph->tensors[t].role == ROLE_STATE && graph->tensors[t].param < 0) {
            p->places[t].data = next;
            next += lines(p->places[t].bytes / sizeof(float));
        }
    return 0;
}

static int borrow(struct cuda_plan *p, int t, struct err *e)
{
    const struct cuda_plan *from = p->shares;
    const struct tensor *tensor = tensor_of(p, t);
    int there = graph_find(from->head.graph, tensor->name);

    if (there < 0 || tensor_elements(tensor_of(from, there)) != tensor_elements(tensor) ||
        p->places[t].rows != from->places[there].rows ||
        p->places[t].pitch != from->places[there].pitch)
        return err_set(e, ERR_INVALID, "\"%s\" of \"%s\" is not in \"%s\"", tensor->name,
                       p->head.graph->name, from->head.graph->name);
    if (tensor->role == ROLE_STATE) {
        p->places[t].data = from->places[there].data;
        return 0;
    }
    struct param *param = &p->params->all[p->params->of_tensor[t]];
    const struct param *of = &from->params->all[from->params->of_tensor[there]];
    param->master = of->master;
    if (p->elem == from->elem)
        param->copy = of->copy;
    return 0;
}

static int borrow_all(struct cuda_plan *p, struct err *e)
{
    if (p->elem != p->shares->elem && own_copies(p, e) < 0)
        return -1;
    for (int t = 0; t < p->head.graph->tensor_count; t++) {
        enum role role = tensor_of(p, t)->role;

        if ((role == ROLE_PARAM || role == ROLE_STATE) && borrow(p, t, e) < 0)
            return -1;
    }
    p->params->copied = UINT64_MAX; /* none of its versions yet */
    return 0;
}

float *params_slot(const struct cuda_plan *p, int tensor)
{
    const struct tensor *all = p->head.graph->tensors;
    int which = 0;

    for (int t = 0; t < tensor; t++)
        which += all[t].role == ROLE_STATE && all[t].param == all[tensor].param;
    return p->params->all[p->params->of_tensor[tensor]].slot[which];
}

static void place_others(struct cuda_plan *p)
{
    for (int t = 0; t < p->head.graph->tensor_count; t++) {
        const struct tensor *tensor = tensor_of(p, t);

        if (tensor->role == ROLE_GRAD)
            p->places[t].data = p->params->all[p->params->of_tensor[t]].grad;
        if (tensor->role == ROLE_STATE && tensor->param >= 0)
            p->places[t].data = params_slot(p, t);
    }
}

static int count_chunks(const struct params *params)
{
    int chunks = 0;

    for (int i = 0; i < params->count; i++)
        chunks += (int)((params->all[i].count + UPDATE_CHUNK - 1) / UPDATE_CHUNK);
    return chunks;
}

static void cut(const struct cuda_plan *p,
                int param,
                int first,
                struct update_chunk *chunks,
                struct update_span *span)
{
    const struct param *of = &p->params->all[param];
    int decays = tensor_of(p, of->tensor)->decays;

    *span = (struct update_span){.first = first, .decays = decays};
    for (size_t at = 0; at < of->count; at += UPDATE_CHUNK) {
        size_t left = of->count - at;

        chunks[span->count++] =
            (struct update_chunk){.offset = (int64_t)(of->offset + at),
                                  .count = (int)(left < UPDATE_CHUNK ? left : UPDATE_CHUNK),
                                  .param = param,
                                  .decays = decays};
    }
}

static int upload(struct cuda_plan *p,
                  const void *from,
                  size_t bytes,
                  void **ret_data,
                  const char *what,
                  struct err *e)
{
    cudaError_t status;

    if (card_alloc(p, bytes, ret_data, what, e) < 0)
        return -1;
    status = cudaMemcpyAsync(*ret_data, from, bytes, cudaMemcpyHostToDevice, p->device->stream);
    if (status == cudaSuccess)
        status = cudaStreamSynchronize(p->device->stream); /* `from` may go now */
    return status == cudaSuccess ? 0 : cuda_fail(e, status, what);
}

static int make_chunks(struct cuda_plan *p, struct err *e)
{
    const struct graph *graph = p->head.graph;
    struct params *params = p->params;
    size_t count = (size_t)count_chunks(params), all = (size_t)params->count;
    auto_free struct update_chunk *chunks = xcalloc(count + 1, sizeof *chunks);
    auto_free struct update_span *spans = xcalloc(all + 1, sizeof *spans);
    int at = 0;

    params->first_chunk = xcalloc((size_t)graph->bucket_count + 1, sizeof(int));
    for (int b = 0; b < graph->bucket_count; b++) {
        params->first_chunk[b] = at;
        for (int i = 0; i < graph->buckets[b].count; i++) {
            int param = graph->buckets[b].first + i;

            cut(p, param, at, chunks + at, &spans[param]);
            at += spans[param].count;
        }
    }
    params->first_chunk[graph->bucket_count] = params->chunk_count = at;
    if (upload(p, chunks, (count + 1) * sizeof *chunks, (void **)&params->chunks,
               "the list of weights", e) < 0 ||
        upload(p, spans, (all + 1) * sizeof *spans, (void **)&params->spans,
               "the list of weights", e) < 0)
        return -1;
    if (card_alloc(p, (count + 1) * 2 * sizeof(double), (void **)&params->parts, "sums", e) < 0)
        return -1;
    return card_alloc(p, (all + 1) * sizeof(float), (void **)&params->trusts, "sums", e);
}

static float *state_named(const struct cuda_plan *p, const char *name)
{
    int t = graph_find(p->head.graph, name);

    return t < 0 ? NULL : p->places[t].data;
}

int params_lay_out(struct cuda_plan *p, struct err *e)
{
    if (p->shares) {
        if (borrow_all(p, e) < 0)
            return -1;
        place_params(p);
        return 0;
    }
    if (own_arrays(p, e) < 0 || own_states(p, e) < 0)
        return -1;
    place_params(p);
    place_others(p);
    if (p->head.graph->values[VALUE_SCALE] >= 0) {
        p->params->scale_state = state_named(p, "optimizer.loss_scale");
        p->params->good_state = state_named(p, "optimizer.good_steps");
    }
    return p->head.graph->bucket_count ? make_chunks(p, e) : 0;
}

int params_fill(struct cuda_plan *p, struct err *e)
{
    struct params *params = p->params;
    cudaStream_t stream = p->device->stream;

    if (p->shares)
        return 0;
    launch_fill(params->masters, ELEM_F32, (int64_t)params->floats, 2, stream);
    launch_fill(params->states, ELEM_F32, (int64_t)params->state_floats, 3, stream);
    if (params->copies)
        launch_fill(params->copies, p->elem, (int64_t)params->floats, 4, stream);
    return launched(e, "filling the weights");
}

/* A slot that begins as zeros, which it already holds. */
static bool is_zero(const struct tensor *t)
{
    return t->role == ROLE_STATE && t->param >= 0 && t->init.kind == INIT_CONSTANT &&
           t->init.a == 0;
}

/* Rows and columns of padding are zero from here on: nothing writes them. */
static int clear(struct cuda_plan *p, struct err *e)
{
    struct params *params = p->params;
    size_t floats[] = {params->floats, params->grads ? params->floats : 0,
                       params->state_floats};
    float *arrays[] = {params->masters, params->grads, params->states};
    cudaError_t status = cudaSuccess;

    for (size_t i = 0; i < ARRAY_SIZE(arrays) && status == cudaSuccess; i++)
        if (floats[i])
            status =
                cudaMemsetAsync(arrays[i], 0, floats[i] * sizeof(float), p->device->stream);
    for (int s = 0; s < OPTIM_MOST_SLOTS && status == cudaSuccess; s++)
        if (params->slots[s])
            status = cudaMemsetAsync(params->slots[s], 0, params->floats * sizeof(float),
                                     p->device->stream);
    if (params->copies && status == cudaSuccess)
        status = cudaMemsetAsync(params->copies, 0, params->floats * elem_bytes(p->elem),
                                 p->device->stream);
    return status == cudaSuccess ? 0 : cuda_fail(e, status, "clearing the weights");
}

int params_begin(struct cuda_plan *p, struct err *e)
{
    const struct graph *graph = p->head.graph;

    if (p->shares)
        return 0;
    if (clear(p, e) < 0)
        return -1;
    for (int t = 0; t < graph->tensor_count; t++) {
        const struct tensor *tensor = &graph->tensors[t];

        if ((tensor->role != ROLE_PARAM && tensor->role != ROLE_STATE) || is_zero(tensor))
            continue;
        auto_free float *values = xcalloc((size_t)tensor_elements(tensor) + 1, sizeof *values);
        graph_initial(graph, t, p->options.init_seed, values);
        if (move_in(p, t, values, e) < 0)
            return -1;
    }
    return 0;
}

int params_refresh(struct cuda_plan *p, cudaStream_t stream, struct err *e)
{
    struct params *params = p->params;

    if (!p->shares || !params->owns_copies || params->copied == p->shares->params->version)
        return 0;
    params->copied = p->shares->params->version;
    for (int i = 0; i < params->count; i++)
        launch_cast(params->all[i].copy, p->elem, params->all[i].master,
                    (int64_t)params->all[i].count, stream);
    return launched(e, "copies of the weights");
}

void params_memory(const struct params *params, struct plan_memory *memory)
{
    int64_t bytes = (int64_t)(params->floats * sizeof(float));

    if (params->masters)
        memory->params_bytes += bytes;
    for (int s = 0; s < OPTIM_MOST_SLOTS; s++)
        if (params->slots[s])
            memory->params_bytes += bytes;
    if (params->copies)
        memory->params_bytes += bytes / 2;
    memory->params_bytes += (int64_t)(params->state_floats * sizeof(float));
    if (params->grads)
        memory->grads_bytes += bytes;
}
