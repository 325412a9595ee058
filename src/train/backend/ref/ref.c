/* ref.c - the oracle as a backend: a buffer for every tensor, ops in the order of the list.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/ref/ref.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/backend/backend.h"
#include "train/backend/store.h"
#include "train/num/half.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct ref_device {
    struct device_head head;
};

struct ref_plan {
    struct plan_head head;
    struct plan_options options;
    struct store store;
    void **buffer; /* by tensor: what ops read and write */
    bool *is_own;  /* by tensor: buffer to be freed */
    int64_t bytes; /* of those */
    struct step_values values;
    uint64_t ticket;
    bool is_timed;
    struct plan_span *spans; /* one for each op */
    int span_count;
};

static struct ref_plan *ref_plan(const struct plan *plan)
{
    return (struct ref_plan *)(void *)(uintptr_t)plan;
}

static int
ref_device_open(const struct device_options *options, struct device **ret_device, struct err *e)
{
    struct ref_device *device = xcalloc(1, sizeof *device);

    (void)options;
    (void)e;
    device->head.ops = &backend_ref;
    *ret_device = (struct device *)(void *)device;
    return 0;
}

static void ref_device_free(struct device *device)
{
    free(device);
}

static void ref_device_facts(const struct device *device, struct device_facts *ret_facts)
{
    (void)device;
    *ret_facts = (struct device_facts){
        .precisions = 1u << PRECISION_FP32 | 1u << PRECISION_BF16 | 1u << PRECISION_FP16};
    snprintf(ret_facts->name, sizeof ret_facts->name, "CPU, plain loops, 1 thread");
    snprintf(ret_facts->library, sizeof ret_facts->library, "none");
}

/* Two buffers of a tensor that kernels read in 16 bits: the master, and what ops see. */
static bool has_copy(const struct ref_plan *p, int t)
{
    const struct tensor *tensor = &p->head.graph->tensors[t];

    return p->options.precision != PRECISION_FP32 && tensor->role == ROLE_PARAM &&
           tensor->dims > 1;
}

static void *own(struct ref_plan *p, int t)
{
    size_t bytes = (size_t)tensor_elements(&p->head.graph->tensors[t]) * sizeof(float);

    p->is_own[t] = true;
    p->bytes += (int64_t)bytes;
    return store_alloc(bytes);
}

/* Where several passes add up, an op's own result is not yet the gradient in the arena. */
static bool adds_up(const struct ref_plan *p)
{
    return p->head.graph->passes > 1;
}

static void place(struct ref_plan *p, int t)
{
    const struct tensor *tensor = &p->head.graph->tensors[t];
    const struct store_param *params = p->store.params;
    int at = p->store.of_tensor[t];

    if (tensor->role == ROLE_INPUT)
        p->buffer[t] = NULL; /* the host's */
    else if (tensor->role == ROLE_ACTIVATION && tensor->producer < 0)
        p->buffer[t] = NULL; /* fused away */
    else if (tensor->role == ROLE_STATE)
        p->buffer[t] = p->store.state[t];
    else if (tensor->role == ROLE_PARAM && !has_copy(p, t))
        p->buffer[t] = params[at].master;
    else if (tensor->role == ROLE_GRAD && !adds_up(p) && at >= 0)
        p->buffer[t] = params[at].grad;
    else
        p->buffer[t] = own(p, t);
}

static void round_to(enum precision precision, float *to, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = precision == PRECISION_BF16 ? bf16_to_float(bf16_from_float(from[i]))
                                            : half_to_float(half_from_float(from[i]));
}

static void refresh_copies(struct ref_plan *p)
{
    for (int i = 0; i < p->store.param_count; i++) {
        const struct store_param *param = &p->store.params[i];

        if (has_copy(p, param->tensor))
            round_to(p->options.precision, p->buffer[param->tensor], param->master,
                     (int64_t)param->count);
    }
}

static void begin_values(struct ref_plan *p)
{
    const struct graph *graph = p->head.graph;

    for (int i = 0; i < p->store.param_count && !p->store.shared; i++)
        graph_initial(graph, p->store.params[i].tensor, p->options.init_seed,
                      p->store.params[i].master);
    for (int t = 0; t < graph->tensor_count && !p->store.shared; t++) {
        const struct tensor *tensor = &graph->tensors[t];

        if (tensor->role != ROLE_STATE)
            continue;
        if (tensor->param < 0)
            graph_initial(graph, t, p->options.init_seed, p->store.state[t]);
    }
}

static void begin_slots(struct ref_plan *p)
{
    const struct graph *graph = p->head.graph;

    for (int t = 0; t < graph->tensor_count; t++)
        if (graph->tensors[t].role == ROLE_STATE && graph->tensors[t].param >= 0)
            graph_initial(graph, t, p->options.init_seed, store_slot(&p->store, t));
}

static void ref_plan_free(struct plan *plan)
{
    struct ref_plan *p = ref_plan(plan);

    for (int t = 0; p->buffer && t < p->head.graph->tensor_count; t++)
        if (p->is_own[t])
            free(p->buffer[t]);
    store_done(&p->store);
    free((void *)p->buffer);
    free(p->is_own);
    free(p->spans);
    free(p);
}

static int make(struct ref_plan *p, struct err *e)
{
    const struct graph *graph = p->head.graph;
    size_t count = (size_t)graph->tensor_count;
    auto_free size_t *counts = xcalloc(count + 1, sizeof *counts);
    const struct store *shared = p->options.shares ? &ref_plan(p->options.shares)->store : NULL;

    p->buffer = xcalloc(count + 1, sizeof(void *));
    p->is_own = xcalloc(count + 1, sizeof *p->is_own);
    p->spans = xcalloc((size_t)graph->op_count + 1, sizeof *p->spans);
    for (size_t t = 0; t < count; t++)
        counts[t] = (size_t)tensor_elements(&graph->tensors[t]);
    if (store_init(&p->store, graph, counts, &p->options, shared, e) < 0)
        return -1;
    for (int t = 0; t < graph->tensor_count; t++)
        place(p, t);
    begin_values(p);
    begin_slots(p);
    refresh_copies(p);
    return 0;
}

static int ref_plan_new(struct device *device,
                        const struct graph *graph,
                        const struct plan_options *options,
                        struct plan **ret_plan,
                        struct err *e)
{
    struct ref_plan *p = xcalloc(1, sizeof *p);

    (void)device;
    p->head = (struct plan_head){&backend_ref, graph};
    p->options = *options;
    if (options->precision == PRECISION_TF32) {
        free(p);
        return err_set(e, ERR_METHOD, "backend \"ref\" has no tf32");
    }
    if (make(p, e) < 0) {
        ref_plan_free((struct plan *)(void *)p);
        return -1;
    }
    *ret_plan = (struct plan *)(void *)p;
    return 0;
}

static int feed(struct ref_plan *p, const struct step *step, struct err *e)
{
    const struct graph *graph = p->head.graph;

    for (int i = 0; i < graph->input_count; i++) {
        if (step->feed[i])
            p->buffer[graph->inputs[i]] = (void *)(uintptr_t)step->feed[i];
        if (!p->buffer[graph->inputs[i]])
            return err_set(e, ERR_INVALID, "input \"%s\" was never fed",
                           graph->tensors[graph->inputs[i]].name);
    }
    return 0;
}

static void round_outputs(struct ref_plan *p, const struct op *op)
{
    for (int i = 0; i < op->out_count && p->options.precision != PRECISION_FP32; i++) {
        const struct tensor *t = &p->head.graph->tensors[op->out[i]];

        if (t->role == ROLE_ACTIVATION)
            round_to(p->options.precision, p->buffer[op->out[i]], p->buffer[op->out[i]],
                     tensor_elements(t));
    }
}

static void gather_grads(struct ref_plan *p, const struct op *op, bool is_first)
{
    for (int i = 0; i < op->out_count && adds_up(p); i++) {
        const struct tensor *t = &p->head.graph->tensors[op->out[i]];
        const float *from = p->buffer[op->out[i]];

        if (t->role != ROLE_GRAD)
            continue;
        float *to = p->store.params[p->store.of_tensor[op->out[i]]].grad;
        for (int64_t j = 0; j < tensor_elements(t); j++)
            to[j] = (is_first ? 0 : to[j]) + from[j];
    }
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int run_op(struct ref_plan *p, int n, const struct step *step, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct ref_step s = {p->options.seed, step->number, step->pass, p->store.scale};
    bool is_control = op->kind >= OP_REDUCE_START;

    if (is_control && (step->flags & STEP_LAST) == 0)
        return 0;
    if (is_control) {
        if (store_control(&p->store, op, step, e) < 0)
            return -1;
        if (op->kind == OP_UPDATE)
            refresh_copies(p);
        return 0;
    }
    ref_op(p->head.graph, op, &s, p->buffer);
    round_outputs(p, op);
    gather_grads(p, op, step->flags & STEP_FIRST);
    return 0;
}

static void take_values(struct ref_plan *p)
{
    const struct graph *graph = p->head.graph;

    for (int i = 0; i < VALUES; i++)
        p->values.value[i] =
            graph->values[i] < 0 ? NAN : *(const float *)p->buffer[graph->values[i]];
    store_values(&p->store, &p->values);
}

static int
ref_plan_run(struct plan *plan, const struct step *step, uint64_t *ret_ticket, struct err *e)
{
    struct ref_plan *p = ref_plan(plan);

    if (feed(p, step, e) < 0)
        return -1;
    if (p->store.shared)
        refresh_copies(p);
    store_begin(&p->store);
    p->span_count = 0;
    for (int n = 0; n < p->head.graph->op_count; n++) {
        int64_t begin = p->is_timed ? now_ns() : 0;

        if (run_op(p, n, step, e) < 0)
            return -1;
        if (p->is_timed)
            p->spans[p->span_count++] =
                (struct plan_span){n, p->head.graph->ops[n].name, 0, begin, now_ns()};
    }
    take_values(p);
    *ret_ticket = ++p->ticket;
    return 0;
}

static int
ref_plan_wait(struct plan *plan, uint64_t ticket, struct step_values *ret_values, struct err *e)
{
    if (ticket == 0 || ticket > ref_plan(plan)->ticket)
        return err_set(e, ERR_INTERNAL, "there was no such step");
    *ret_values = ref_plan(plan)->values;
    return 0;
}

static void *place_of(struct ref_plan *p, int t)
{
    const struct tensor *tensor = &p->head.graph->tensors[t];
    int i = p->store.of_tensor[t];

    if (tensor->role == ROLE_PARAM)
        return p->store.params[i].master;
    if (tensor->role == ROLE_GRAD && p->store.params[i].grad)
        return p->store.params[i].grad;
    if (tensor->role == ROLE_STATE && i >= 0)
        return store_slot(&p->store, t);
    return p->buffer[t];
}

static int
ref_plan_read(struct plan *plan, int tensor, void *values, size_t bytes, struct err *e)
{
    const void *from = place_of(ref_plan(plan), tensor);

    if (!from)
        return err_set(e, ERR_METHOD, "what was never fed or was fused away cannot be read");
    memcpy(values, from, bytes);
    return 0;
}

static int
ref_plan_write(struct plan *plan, int tensor, const void *values, size_t bytes, struct err *e)
{
    struct ref_plan *p = ref_plan(plan);

    if (p->head.graph->tensors[tensor].role == ROLE_INPUT)
        return err_set(e, ERR_METHOD, "inputs are fed, not written");
    memcpy(place_of(p, tensor), values, bytes);
    refresh_copies(p);
    return 0;
}

static void ref_plan_memory(const struct plan *plan, struct plan_memory *ret_memory)
{
    const struct ref_plan *p = ref_plan(plan);

    *ret_memory =
        (struct plan_memory){.activations_bytes = p->bytes, .at_least_bytes = p->bytes};
    store_memory(&p->store, ret_memory);
}

static void ref_plan_layout(const struct plan *plan, struct str *out)
{
    const struct ref_plan *p = ref_plan(plan);

    for (int i = 0; i < p->store.param_count; i++)
        str_addf(out, "%s %zu %zu dense\n",
                 p->head.graph->tensors[p->store.params[i].tensor].name,
                 p->store.params[i].offset, p->store.params[i].count);
}

static int ref_plan_time(struct plan *plan, bool is_on, struct err *e)
{
    (void)e;
    ref_plan(plan)->is_timed = is_on;
    return 0;
}

static const struct plan_span *ref_plan_spans(struct plan *plan, int *ret_count)
{
    *ret_count = ref_plan(plan)->span_count;
    return ref_plan(plan)->spans;
}

const struct backend_ops backend_ref = {
    .abi = BACKEND_ABI,
    .name = "ref",
    .summary = "plain C, for comparison; slow",
    .fusions = 0,
    .updates_early = true,
    .device_open = ref_device_open,
    .device_free = ref_device_free,
    .device_facts = ref_device_facts,
    .plan_new = ref_plan_new,
    .plan_free = ref_plan_free,
    .plan_run = ref_plan_run,
    .plan_wait = ref_plan_wait,
    .plan_read = ref_plan_read,
    .plan_write = ref_plan_write,
    .plan_memory = ref_plan_memory,
    .plan_layout = ref_plan_layout,
    .plan_time = ref_plan_time,
    .plan_spans = ref_plan_spans,
};
