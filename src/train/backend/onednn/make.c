/* make.c - how a plan comes about: ops in order, then memory, then addresses (plan.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/backend/onednn/plan.h"

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
    [OP_GATHER_ROWS] = plan_gather_rows,
    [OP_GATHER_ROWS_GRAD] = plan_gather_rows_grad,
    [OP_WEIGHTED_SUM] = plan_weighted_sum,
};

/* Does this backend read that input?  Pools keep the places of their maxima, and a batch norm
 * computes its relu's mask again unless something was added before it. */
static bool reads(const struct graph *graph, const struct op *op, int slot)
{
    if (op->kind == OP_MAX_POOL_GRAD)
        return slot == 0;
    if (op->kind == OP_BN_GRAD && slot == 5)
        return in_of(&graph->ops[op->forward], 5) >= 0;
    return true;
}

void plan_find_last_reads(struct onednn_plan *p)
{
    const struct graph *graph = p->head.graph;

    for (int t = 0; t < graph->tensor_count; t++)
        p->last_read[t] = -1;
    for (int n = 0; n < graph->op_count; n++)
        for (int i = 0; i < graph->ops[n].in_count; i++)
            if (graph->ops[n].in[i] >= 0 && reads(graph, &graph->ops[n], i))
                p->last_read[graph->ops[n].in[i]] = n;
    for (int i = 0; i < VALUES; i++)
        if (graph->values[i] >= 0)
            p->last_read[graph->values[i]] = graph->op_count;
}

static bool is_sole_reader(const struct graph *graph, int n, int t)
{
    for (int i = 0; i < graph->op_count; i++)
        for (int j = 0; j < graph->ops[i].in_count; j++)
            if (graph->ops[i].in[j] == t && i != n)
                return false;
    return true;
}

/* The SUM that tensor t goes into with one other, and that other; -1 = there is none such. */
static int sum_of_two(const struct graph *graph, int t, int *ret_other)
{
    for (int n = 0; n < graph->op_count; n++) {
        const struct op *op = &graph->ops[n];

        if (op->kind != OP_SUM || op->in_count != 2 || (op->in[0] != t && op->in[1] != t))
            continue;
        *ret_other = op->in[op->in[0] == t];
        return is_sole_reader(graph, n, t) && is_sole_reader(graph, n, *ret_other) ? n : -1;
    }
    return -1;
}

/* A table of words has two gradients when the product with the vocabulary shares it: that of
 * the product becomes the whole one, and the embedding adds its few rows to it. */
static void join_table(struct onednn_plan *p, int n)
{
    const struct graph *graph = p->head.graph;
    int other, sum = sum_of_two(graph, graph->ops[n].out[0], &other), product;

    if (sum < 0 || graph->tensors[graph->ops[sum].out[0]].role != ROLE_GRAD)
        return;
    product = graph->tensors[other].producer;
    if (product < 0 || product > n || graph->ops[product].kind != OP_LINEAR_WEIGHT_GRAD)
        return;
    p->joined[n] = p->joined[product] = sum;
    p->is_done[sum] = true;
}

/* The gradient of a residual block's end is the sum of two; the batch norm that reads it can
 * add them itself, which saves writing and reading the sum. */
void plan_join_sums(struct onednn_plan *p)
{
    const struct graph *graph = p->head.graph;

    for (int n = 0; n < graph->op_count; n++) {
        const struct op *op = &graph->ops[n];
        int sum = op->kind == OP_BN_GRAD ? graph->tensors[op->in[0]].producer : -1;

        p->joined[n] = -1;
        if (sum < 0 || p->options.keeps_all || graph->ops[sum].kind != OP_SUM ||
            graph->ops[sum].in_count != 2 || out_of(op, 3) < 0 || !op->attrs.bn.has_relu ||
            !is_sole_reader(graph, n, op->in[0]))
            continue;
        p->joined[n] = sum;
        p->is_done[sum] = true;
        for (int i = 0; i < 2; i++)
            if (p->last_read[graph->ops[sum].in[i]] < n)
                p->last_read[graph->ops[sum].in[i]] = n;
    }
    for (int n = 0; n < graph->op_count; n++) /* several passes add the gradient up elsewhere */
        if (graph->ops[n].kind == OP_EMBED_GRAD && !p->options.keeps_all && graph->passes <= 1)
            join_table(p, n);
}

struct control_work {
    const struct op *op;
};

static void run_control(struct onednn_plan *p, const struct action *a)
{
    const struct control_work *w = a->work;

    (void)store_control(&p->store, w->op, p->step, &p->error);
}

static int plan_control(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct action *a = add_action(p, n, run_control, sizeof(struct control_work));

    ((struct control_work *)a->work)->op = op;
    a->is_control = true;
    a->track = op->kind == OP_REDUCE_START || op->kind == OP_REDUCE_WAIT ? 2 : 0;
    a->label = op_info(op->kind)->name;
    return op->kind == OP_UPDATE ? add_refresh(p, n, op->attrs.bucket, e) : 0;
}

/* With several passes a kernel's result is not yet the gradient: it is added to the arena. */
struct gather_work {
    struct place *from;
    int param; /* index in the store */
    size_t count;
};

static void run_gather(struct onednn_plan *p, const struct action *a)
{
    const struct gather_work *w = a->work;
    float *to = p->store.params[w->param].grad;
    const float *from = w->from->data;
    bool is_first = p->step->flags & STEP_FIRST;

    for (size_t i = 0; i < w->count; i++)
        to[i] = (is_first ? 0 : to[i]) + from[i];
}

static void gather_grads(struct onednn_plan *p, int n)
{
    const struct op *op = &p->head.graph->ops[n];

    for (int i = 0; i < op->out_count && p->head.graph->passes > 1; i++) {
        struct place *place = &p->places[op->out[i]];
        struct gather_work *w;

        if (tensor_of(p, op->out[i])->role != ROLE_GRAD)
            continue;
        w = add_action(p, n, run_gather, sizeof *w)->work;
        w->from = place;
        w->param = op->out[i]; /* the store's index when there is a store */
        w->count = place->bytes / sizeof(float);
    }
}

int plan_ops(struct onednn_plan *p, struct err *e)
{
    const struct graph *graph = p->head.graph;

    for (int n = 0; n < graph->op_count; n++) {
        const struct op *op = &graph->ops[n];
        plan_fn *fn = op->kind >= OP_REDUCE_START ? plan_control : kinds[op->kind];

        if (!fn)
            return err_set(e, ERR_METHOD, "backend \"onednn\" has no %s (\"%s\")",
                           op_info(op->kind)->name, op->name);
        if (!p->is_done[n] && fn(p, n, e) < 0)
            return err_wrap(e, "planning %s \"%s\"", op_info(op->kind)->name, op->name);
        if (!p->is_done[n])
            gather_grads(p, n);
    }
    for (int i = 0; i < VALUES; i++)
        if (graph->values[i] >= 0 && p->places[graph->values[i]].is_set)
            touch(p, graph->values[i], graph->op_count);
    return 0;
}

static int make_store(struct onednn_plan *p, struct err *e)
{
    const struct graph *graph = p->head.graph;
    auto_free size_t *counts = xcalloc((size_t)graph->tensor_count + 1, sizeof *counts);

    for (int t = 0; t < graph->tensor_count; t++) {
        if (graph->tensors[t].role == ROLE_PARAM && !p->places[t].is_set)
            return err_set(e, ERR_METHOD, "no op uses \"%s\"", graph->tensors[t].name);
        counts[t] = p->places[t].bytes / sizeof(float);
    }
    return store_init(&p->store, graph, counts, &p->options,
                      p->shares ? &p->shares->store : NULL, e);
}

static void *address_of(const struct onednn_plan *p, int t)
{
    const struct tensor *tensor = tensor_of(p, t);
    int i = p->store.of_tensor[t];

    if (p->places[t].item >= 0)
        return (char *)p->block + p->items[p->places[t].item].offset;
    if (tensor->role == ROLE_PARAM)
        return p->store.params[i].master;
    if (tensor->role == ROLE_GRAD)
        return p->store.params[i].grad;
    return NULL;
}

static int make_memory(struct onednn_plan *p, struct place *place, struct err *e)
{
    dnnl_status_t status =
        dnnl_memory_create(&place->memory, &place->md, p->engine, place->data);

    return status == dnnl_success ? 0 : shim_fail(e, status, "a memory object");
}

static int place_tensors(struct onednn_plan *p, struct err *e)
{
    for (int t = 0; t < p->head.graph->tensor_count; t++) {
        if (!p->places[t].is_set)
            continue;
        p->places[t].data = address_of(p, t);
        if (make_memory(p, &p->places[t], e) < 0)
            return -1;
    }
    return 0;
}

/* Scratch places lie in the block; copies of weights one after another in memory of their own;
 * views where what they view lies. */
static int place_more(struct onednn_plan *p, char *copies, struct err *e)
{
    for (int i = 0; i < p->more_count; i++) {
        struct place *place = p->more[i];

        if (place->of) {
            place->data = place->of->data;
        } else if (place->item >= 0) {
            place->data = (char *)p->block + p->items[place->item].offset;
        } else {
            place->data = copies;
            copies += (place->bytes + 63) & ~(size_t)63;
        }
        if (make_memory(p, place, e) < 0)
            return -1;
    }
    return 0;
}

static void settle_args(struct onednn_plan *p)
{
    for (int i = 0; i < p->action_count; i++) {
        struct action *a = &p->actions[i];

        for (int j = 0; j < a->arg_count; j++)
            if (a->args[j].arg != DNNL_ARG_SCRATCHPAD)
                a->args[j].memory = ((struct place *)(void *)a->args[j].memory)->memory;
        if (a->run == run_gather) {
            struct gather_work *w = a->work;

            w->param = p->store.of_tensor[w->param];
        }
    }
    for (int i = 0; i < p->scratch_count; i++)
        (void)dnnl_memory_set_data_handle(p->scratches[i], p->scratch);
}

/* A gradient that is added up later needs memory of its own meanwhile. */
static void place_passing_grads(struct onednn_plan *p)
{
    const struct graph *graph = p->head.graph;

    for (int t = 0; t < graph->tensor_count && graph->passes > 1; t++)
        if (graph->tensors[t].role == ROLE_GRAD && p->places[t].is_set) {
            int n = graph->tensors[t].producer;

            p->places[t].item = p->item_count;
            p->items = xreallocarray(p->items, (size_t)p->item_count + 1, sizeof *p->items);
            p->items[p->item_count++] = (struct memplan_item){
                .bytes = p->places[t].bytes, .first = n, .last = n, .shares = -1};
        }
}

int plan_lay_out(struct onednn_plan *p, struct err *e)
{
    place_passing_grads(p);
    if (make_store(p, e) < 0)
        return -1;
    memplan_make(p->items, p->item_count, 64, &p->memory);
    p->block = store_alloc(p->memory.bytes);
    p->scratch = store_alloc(p->scratch_bytes);
    p->copies_block = store_alloc(p->copies_bytes);
    if (place_tensors(p, e) < 0 || place_more(p, p->copies_block, e) < 0)
        return -1;
    settle_args(p);
    return params_begin(p, e);
}
