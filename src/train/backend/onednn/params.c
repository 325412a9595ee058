/* params.c - masters, the kernels' copies of them, and what the outside reads and writes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/backend/onednn/plan.h"

#include <string.h>

struct place *put_param(struct onednn_plan *p, int t, const dnnl_memory_desc_t *md)
{
    struct place *place = &p->places[t];

    if (place->is_set)
        return place;
    place->md = *md;
    if (p->shares) { /* the other plan laid it out */
        int there = graph_find(p->shares->head.graph, tensor_of(p, t)->name);

        if (there >= 0)
            place->md = p->shares->places[there].md;
    }
    place->is_set = true;
    place->bytes = shim_bytes(&place->md);
    return place;
}

static struct place *copy_of(const struct onednn_plan *p, int t, const dnnl_memory_desc_t *md)
{
    for (int i = 0; i < p->copy_count; i++)
        if (p->copies[i].param == t && shim_same(&p->copies[i].place->md, md))
            return p->copies[i].place;
    return NULL;
}

struct place *
param_in(struct onednn_plan *p, int t, const dnnl_memory_desc_t *md, struct err *e)
{
    struct place *master = put_param(p, t, md), *place = copy_of(p, t, md);
    dnnl_primitive_desc_t pd;
    struct copy *copy;
    dnnl_status_t status;

    if (shim_same(&master->md, md))
        return master;
    if (place)
        return place;
    if (shim_reorder(p->engine, &master->md, md, &pd, e) < 0)
        return NULL;
    if ((p->copy_count & (p->copy_count - 1)) == 0)
        p->copies = xreallocarray(p->copies, p->copy_count ? (size_t)p->copy_count * 2 : 1,
                                  sizeof *p->copies);
    copy = &p->copies[p->copy_count++];
    *copy = (struct copy){.param = t, .place = scratch(p, md, -1)};
    p->copies_bytes += (copy->place->bytes + 63) & ~(size_t)63;
    status = dnnl_primitive_create(&copy->reorder, pd);
    dnnl_primitive_desc_destroy(pd);
    if (status != dnnl_success) {
        shim_fail(e, status, "a reorder");
        return NULL;
    }
    return copy->place;
}

static dnnl_status_t refresh(struct onednn_plan *p, const struct copy *copy)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, p->places[copy->param].memory},
                                    {DNNL_ARG_TO, copy->place->memory}};

    return dnnl_primitive_execute(copy->reorder, p->stream, 2, args);
}

int refresh_all(struct onednn_plan *p, struct err *e)
{
    for (int i = 0; i < p->copy_count; i++) {
        dnnl_status_t status = refresh(p, &p->copies[i]);

        if (status != dnnl_success)
            return shim_fail(e, status, "a copy of the weights");
    }
    return 0;
}

struct refresh_work {
    int bucket;
};

static void run_refresh(struct onednn_plan *p, const struct action *a)
{
    const struct refresh_work *work = a->work;

    for (int i = 0; i < p->copy_count; i++)
        if (tensor_of(p, p->copies[i].param)->bucket == work->bucket) {
            dnnl_status_t status = refresh(p, &p->copies[i]);

            if (status != dnnl_success)
                shim_fail(&p->error, status, "a copy of the weights");
        }
}

int add_refresh(struct onednn_plan *p, int n, int bucket, struct err *e)
{
    struct action *a = add_action(p, n, run_refresh, sizeof(struct refresh_work));

    (void)e;
    ((struct refresh_work *)a->work)->bucket = bucket;
    a->track = 1;
    a->label = "weights";
    a->is_control = true;
    return 0;
}

/* Between dense memory of the caller and a tensor's own layout. */
static int move(struct onednn_plan *p,
                const dnnl_memory_desc_t *from_md,
                const void *from,
                const dnnl_memory_desc_t *to_md,
                void *to,
                struct err *e)
{
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive = NULL;
    dnnl_memory_t in = NULL, out = NULL, pad = NULL;
    dnnl_status_t status;

    if (shim_reorder(p->engine, from_md, to_md, &pd, e) < 0)
        return -1;
    dnnl_memory_desc_t need = shim_query(pd, dnnl_query_scratchpad_md);
    auto_free void *room = store_alloc(shim_bytes(&need));
    status = dnnl_primitive_create(&primitive, pd);
    if (status == dnnl_success)
        status = dnnl_memory_create(&in, from_md, p->engine, (void *)(uintptr_t)from);
    if (status == dnnl_success)
        status = dnnl_memory_create(&out, to_md, p->engine, to);
    if (status == dnnl_success)
        status = dnnl_memory_create(&pad, &need, p->engine, room);
    const dnnl_exec_arg_t args[] = {
        {DNNL_ARG_FROM, in}, {DNNL_ARG_TO, out}, {DNNL_ARG_SCRATCHPAD, pad}};
    if (status == dnnl_success)
        status = dnnl_primitive_execute(primitive, p->stream, shim_bytes(&need) ? 3 : 2, args);
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_destroy(primitive);
    dnnl_memory_destroy(in);
    dnnl_memory_destroy(out);
    dnnl_memory_destroy(pad);
    return status == dnnl_success ? 0 : shim_fail(e, status, "a reorder");
}

/* Where a tensor lies and in which layout; NULL = it cannot be looked at. */
static void *find(struct onednn_plan *p, int t, dnnl_memory_desc_t *ret_md)
{
    const struct tensor *tensor = tensor_of(p, t);
    int i = p->store.of_tensor[t];

    if (tensor->role == ROLE_STATE && i < 0) {
        *ret_md = shim_dense(tensor->dims, tensor->dim);
        return p->store.state[t];
    }
    *ret_md = p->places[i >= 0 ? p->store.params[i].tensor : t].md;
    if (tensor->role == ROLE_PARAM)
        return p->store.params[i].master;
    if (tensor->role == ROLE_STATE)
        return store_slot(&p->store, t);
    if (tensor->role == ROLE_GRAD)
        return p->store.params[i].grad;
    return p->options.keeps_all && tensor->role != ROLE_INPUT ? p->places[t].data : NULL;
}

/* Convolutions with groups have a dimension more here than outside: the same floats. */
static dnnl_memory_desc_t dense_like(const dnnl_memory_desc_t *md)
{
    return shim_dense(md->ndims, md->dims);
}

int onednn_plan_read(struct plan *plan, int tensor, void *values, size_t bytes, struct err *e)
{
    struct onednn_plan *p = onednn_plan(plan);
    dnnl_memory_desc_t md, dense;
    const void *from = find(p, tensor, &md);

    (void)bytes;
    if (!from)
        return err_set(e, ERR_METHOD, "\"%s\" is not kept: its memory is used again",
                       tensor_of(p, tensor)->name);
    dense = dense_like(&md);
    return move(p, &md, from, &dense, values, e);
}

int onednn_plan_write(
    struct plan *plan, int tensor, const void *values, size_t bytes, struct err *e)
{
    struct onednn_plan *p = onednn_plan(plan);
    enum role role = tensor_of(p, tensor)->role;
    dnnl_memory_desc_t md, dense;
    void *to = find(p, tensor, &md);

    (void)bytes;
    if (!to || (role != ROLE_PARAM && role != ROLE_STATE))
        return err_set(e, ERR_METHOD, "\"%s\" cannot be written", tensor_of(p, tensor)->name);
    dense = dense_like(&md);
    if (move(p, &dense, values, &md, to, e) < 0)
        return -1;
    p->store.version++;
    return role == ROLE_PARAM ? refresh_all(p, e) : 0;
}

/* Initial values, before the copies are made for the first time. */
int params_begin(struct onednn_plan *p, struct err *e)
{
    const struct graph *graph = p->head.graph;

    for (int t = 0; t < graph->tensor_count && !p->shares; t++) {
        const struct tensor *tensor = &graph->tensors[t];
        dnnl_memory_desc_t md, dense;

        if (tensor->role != ROLE_PARAM && tensor->role != ROLE_STATE)
            continue;
        auto_free float *values = xcalloc((size_t)tensor_elements(tensor), sizeof *values);
        void *to = find(p, t, &md);
        graph_initial(graph, t, p->options.init_seed, values);
        dense = dense_like(&md);
        if (move(p, &dense, values, &md, to, e) < 0)
            return -1;
    }
    return refresh_all(p, e);
}
