/* backend.c - the methods as functions: see backend.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/backend.h"

#include "base/str.h"

/* Every device and plan begins with its head. */
static const struct backend_ops *device_ops(const struct device *device)
{
    return ((const struct device_head *)(const void *)device)->ops;
}

static const struct plan_head *head_of(const struct plan *plan)
{
    return (const struct plan_head *)(const void *)plan;
}

int device_open(const struct backend_ops *ops,
                const struct device_options *options,
                struct device **ret_device,
                struct err *e)
{
    if (ops->abi != BACKEND_ABI)
        return err_set(e, ERR_METHOD, "backend \"%s\" was built for interface %d, not %d",
                       ops->name, ops->abi, (int)BACKEND_ABI);
    return ops->device_open(options, ret_device, e);
}

void device_free(struct device *device)
{
    if (device)
        device_ops(device)->device_free(device);
}

void device_facts(const struct device *device, struct device_facts *ret_facts)
{
    device_ops(device)->device_facts(device, ret_facts);
}

int plan_new(struct device *device,
             const struct graph *graph,
             const struct plan_options *options,
             struct plan **ret_plan,
             struct err *e)
{
    if (graph_check(graph, e) < 0)
        return -1;
    return device_ops(device)->plan_new(device, graph, options, ret_plan, e);
}

void plan_free(struct plan *plan)
{
    if (plan)
        head_of(plan)->ops->plan_free(plan);
}

int plan_run(struct plan *plan, const struct step *step, uint64_t *ret_ticket, struct err *e)
{
    return head_of(plan)->ops->plan_run(plan, step, ret_ticket, e);
}

int plan_wait(struct plan *plan, uint64_t ticket, struct step_values *ret_values, struct err *e)
{
    return head_of(plan)->ops->plan_wait(plan, ticket, ret_values, e);
}

int plan_step(struct plan *plan,
              const struct step *step,
              struct step_values *ret_values,
              struct err *e)
{
    uint64_t ticket;

    if (plan_run(plan, step, &ticket, e) < 0)
        return -1;
    return plan_wait(plan, ticket, ret_values, e);
}

static int
check_size(const struct plan *plan, int tensor, size_t bytes, const char *verb, struct err *e)
{
    const struct graph *graph = head_of(plan)->graph;

    if (tensor < 0 || tensor >= graph->tensor_count)
        return err_set(e, ERR_INTERNAL, "cannot %s tensor %d: there is none", verb, tensor);

    const struct tensor *t = &graph->tensors[tensor];
    size_t each = t->dtype == DTYPE_U8 ? 1 : 4;
    if ((size_t)tensor_elements(t) * each != bytes)
        return err_set(e, ERR_INVALID, "cannot %s \"%s\": it has %zu bytes, not %zu", verb,
                       t->name, (size_t)tensor_elements(t) * each, bytes);
    return 0;
}

int plan_read(struct plan *plan, int tensor, void *values, size_t bytes, struct err *e)
{
    if (check_size(plan, tensor, bytes, "read", e) < 0)
        return -1;
    return head_of(plan)->ops->plan_read(plan, tensor, values, bytes, e);
}

int plan_write(struct plan *plan, int tensor, const void *values, size_t bytes, struct err *e)
{
    if (check_size(plan, tensor, bytes, "write", e) < 0)
        return -1;
    return head_of(plan)->ops->plan_write(plan, tensor, values, bytes, e);
}

void plan_memory(const struct plan *plan, struct plan_memory *ret_memory)
{
    head_of(plan)->ops->plan_memory(plan, ret_memory);
}

void plan_layout(const struct plan *plan, struct str *out)
{
    head_of(plan)->ops->plan_layout(plan, out);
}

int plan_time(struct plan *plan, bool is_on, struct err *e)
{
    return head_of(plan)->ops->plan_time(plan, is_on, e);
}

const struct plan_span *plan_spans(struct plan *plan, int *ret_count)
{
    return head_of(plan)->ops->plan_spans(plan, ret_count);
}

const struct graph *plan_graph(const struct plan *plan)
{
    return head_of(plan)->graph;
}

static const char *const precision_names[PRECISIONS] = {"fp32", "tf32", "bf16", "fp16"};

int precision_parse(const char *text, enum precision *ret_precision, struct err *e)
{
    for (int i = 0; i < PRECISIONS; i++)
        if (str_equal(text, precision_names[i])) {
            *ret_precision = (enum precision)i;
            return 0;
        }
    return err_set(e, ERR_INVALID,
                   "no precision is called \"%s\"; there are fp32 tf32 bf16 fp16", text);
}

const char *precision_name(enum precision precision)
{
    return precision_names[precision];
}
