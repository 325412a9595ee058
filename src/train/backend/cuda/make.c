/* make.c - how a plan comes about: ops in order, memory, choices, graphs (plan.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/make.h"

#include "base/mem.h"
#include "train/backend/cuda/capture.h"
#include "train/backend/cuda/control.h"
#include "train/backend/cuda/feed.h"
#include "train/backend/cuda/params.h"
#include "train/backend/cuda/tune.h"

static plan_fn *const kinds[OP_KINDS] = {
    [OP_IMAGE] = plan_image,
    [OP_CONV] = plan_conv,
    [OP_CONV_DATA_GRAD] = plan_conv_data,
    [OP_CONV_WEIGHT_GRAD] = plan_conv_weights,
    [OP_LINEAR] = plan_linear,
    [OP_LINEAR_DATA_GRAD] = plan_linear_data,
    [OP_LINEAR_WEIGHT_GRAD] = plan_linear_weights,
    [OP_BN] = plan_bn,
    [OP_BN_GRAD] = plan_bn_grad,
    [OP_RELU] = plan_each,
    [OP_RELU_GRAD] = plan_each,
    [OP_TANH] = plan_each,
    [OP_TANH_GRAD] = plan_each,
    [OP_GELU] = plan_each,
    [OP_GELU_GRAD] = plan_each,
    [OP_ADD] = plan_each,
    [OP_SUM] = plan_each,
    [OP_MAX_POOL] = plan_pool,
    [OP_MAX_POOL_GRAD] = plan_pool_grad,
    [OP_AVG_POOL] = plan_pool,
    [OP_AVG_POOL_GRAD] = plan_pool_grad,
    [OP_CONCAT] = plan_concat,
    [OP_CONCAT_GRAD] = plan_concat_grad,
    [OP_PAD_CHANNELS] = plan_pad,
    [OP_PAD_CHANNELS_GRAD] = plan_pad_grad,
    [OP_RESHAPE] = plan_reshape,
    [OP_DROPOUT] = plan_dropout,
    [OP_DROPOUT_GRAD] = plan_dropout,
    [OP_XENT] = plan_xent,
    [OP_XENT_GRAD] = plan_xent_grad,
    [OP_EMBED] = plan_embed,
    [OP_EMBED_GRAD] = plan_embed_grad,
    [OP_LAYERNORM] = plan_layernorm,
    [OP_LAYERNORM_GRAD] = plan_layernorm_grad,
    [OP_ATTENTION] = plan_attention,
    [OP_ATTENTION_GRAD] = plan_attention_grad,
    [OP_GATHER_ROWS] = plan_gather,
    [OP_GATHER_ROWS_GRAD] = plan_gather_grad,
    [OP_WEIGHTED_SUM] = plan_weighted_sum,
    [OP_REDUCE_START] = plan_control,
    [OP_REDUCE_WAIT] = plan_control,
    [OP_GRAD_NORM] = plan_control,
    [OP_UPDATE] = plan_control,
};

static void find_last_reads(struct cuda_plan *p)
{
    const struct graph *graph = p->head.graph;

    for (int t = 0; t < graph->tensor_count; t++)
        p->last_read[t] = -1;
    for (int n = 0; n < graph->op_count; n++)
        for (int i = 0; i < graph->ops[n].in_count; i++)
            if (graph->ops[n].in[i] >= 0)
                p->last_read[graph->ops[n].in[i]] = n;
    for (int i = 0; i < VALUES; i++)
        if (graph->values[i] >= 0)
            p->last_read[graph->values[i]] = graph->op_count;
}

static int plan_ops(struct cuda_plan *p, struct err *e)
{
    const struct graph *graph = p->head.graph;

    plan_beginning(p);
    for (int n = 0; n < graph->op_count; n++) {
        const struct op *op = &graph->ops[n];

        if (!kinds[op->kind])
            return err_set(e, ERR_METHOD, "backend \"cuda\" has no %s (\"%s\")",
                           op_info(op->kind)->name, op->name);
        if (!p->is_done[n] && kinds[op->kind](p, n, e) < 0)
            return err_wrap(e, "planning %s \"%s\"", op_info(op->kind)->name, op->name);
    }
    plan_ending(p);
    return 0;
}

static int no_room(struct cuda_plan *p, size_t bytes, const char *what, struct err *e)
{
    size_t left = 0, all = 0;

    (void)cudaMemGetInfo(&left, &all);
    return err_set(e, ERR_NO_SPACE,
                   "%s: %.3f GiB do not fit on %s (%.3f GiB free, %.3f GiB in this plan)", what,
                   (double)bytes / 0x1p30, p->device->name, (double)left / 0x1p30,
                   (double)p->allocated_bytes / 0x1p30);
}

int card_alloc(
    struct cuda_plan *p, size_t bytes, void **ret_data, const char *what, struct err *e)
{
    double cap = p->device->memory_cap * (double)p->device->memory_bytes;
    cudaError_t status;
    void *data;

    bytes = bytes < 16 ? 16 : (bytes + 15) & ~(size_t)15;
    if (cap > 0 && (double)(p->allocated_bytes + bytes) > cap)
        return no_room(p, bytes, what, e);
    status = cudaMalloc(&data, bytes);
    if (status == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return no_room(p, bytes, what, e);
    }
    if (status != cudaSuccess)
        return cuda_fail(e, status, what);
    p->allocated = (void **)xreallocarray((void *)p->allocated, (size_t)p->allocated_count + 1,
                                          sizeof(void *));
    p->allocated[p->allocated_count++] = data;
    p->allocated_bytes += bytes;
    status = cudaMemsetAsync(data, 0, bytes, p->device->stream);
    if (status != cudaSuccess)
        return cuda_fail(e, status, what);
    *ret_data = data;
    return 0;
}

static void place_all(struct cuda_plan *p)
{
    for (int t = 0; t < p->head.graph->tensor_count; t++)
        if (p->places[t].item >= 0)
            p->places[t].data = (char *)p->block + p->items[p->places[t].item].offset;
    for (int i = 0; i < p->more_count; i++)
        if (p->more[i]->item >= 0)
            p->more[i]->data = (char *)p->block + p->items[p->more[i]->item].offset;
}

/* Values for measurements and for the first run: small and never zero.  In the plan's type: two
 * of them read as one float are as harmless. */
static int fill_block(struct cuda_plan *p, struct err *e)
{
    launch_fill(p->block, p->elem, (int64_t)(p->memory.bytes / elem_bytes(p->elem)), 1,
                p->device->stream);
    return launched(e, "filling memory");
}

static int lay_out(struct cuda_plan *p, struct err *e)
{
    if (params_lay_out(p, e) < 0 || feed_new(p, e) < 0)
        return -1;
    memplan_make(p->items, p->item_count, 256, &p->memory);
    if (card_alloc(p, p->memory.bytes, &p->block, "activations", e) < 0)
        return -1;
    place_all(p);
    return params_fill(p, e) < 0 ? -1 : fill_block(p, e);
}

/* Another workspace while candidates are measured, which may need more than the chosen one. */
static int choose(struct cuda_plan *p, struct err *e)
{
    size_t bytes = p->tuning_bytes > p->workspace_bytes ? p->tuning_bytes : p->workspace_bytes;
    cudaError_t status = cudaMalloc(&p->workspace, bytes ? bytes : 16);
    int result = 0;

    if (status != cudaSuccess) {
        p->workspace = NULL;
        (void)cudaGetLastError();
        return no_room(p, bytes, "workspace for measurements", e);
    }
    for (int i = 0; i < p->tuning_count && result == 0; i++)
        result = p->tunings[i].fn(p, p->tunings[i].work, e);
    (void)cudaStreamSynchronize(p->device->stream);
    cudaFree(p->workspace);
    p->workspace = NULL;
    if (result < 0)
        return err_wrap(e, "measuring kernels");
    (void)tune_save(p->tune, NULL); /* a folder that cannot be written costs time alone */
    return 0;
}

/* What measurements and the first run have moved. */
static int begin_anew(struct cuda_plan *p, struct err *e)
{
    cudaError_t status = cudaMemsetAsync(p->facts, 0, sizeof *p->facts, p->device->stream);

    if (status != cudaSuccess)
        return cuda_fail(e, status, "beginning");
    return params_begin(p, e);
}

static int make_facts(struct cuda_plan *p, struct err *e)
{
    if (card_alloc(p, sizeof *p->facts, (void **)&p->facts, "facts", e) < 0)
        return -1;
    return card_alloc(p, VALUES * sizeof(float), (void **)&p->values, "values", e);
}

static int settle(struct cuda_plan *p, struct err *e)
{
    cudaError_t status = cudaStreamSynchronize(p->device->stream);

    return status == cudaSuccess ? 0 : cuda_fail(e, status, "making the plan");
}

int make_plan(struct cuda_plan *p, struct err *e)
{
    bool reduces = p->head.graph->bucket_count && p->head.graph->ranks > 1;

    find_last_reads(p);
    if (make_facts(p, e) < 0 || params_new(p, e) < 0 || plan_ops(p, e) < 0 || lay_out(p, e) < 0)
        return -1;
    if (reduces && reduce_new(p, &p->params->reduce, e) < 0)
        return -1;
    if (choose(p, e) < 0 ||
        card_alloc(p, p->workspace_bytes, &p->workspace, "workspace", e) < 0)
        return -1;
    if (fill_block(p, e) < 0 || capture_rehearse(p, e) < 0 || begin_anew(p, e) < 0)
        return -1;
    return capture_new(p, e) < 0 ? -1 : settle(p, e);
}
