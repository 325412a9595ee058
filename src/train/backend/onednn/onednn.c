/* onednn.c - the backend: device, planning, steps.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/onednn.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/backend/onednn/plan.h"
#include "train/graph/fuse.h"
#include "train/num/par.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct onednn_device {
    struct device_head head;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
};

static struct onednn_device *device_of(const struct device *device)
{
    return (struct onednn_device *)(void *)(uintptr_t)device;
}

static void onednn_device_free(struct device *device)
{
    struct onednn_device *d = device_of(device);

    dnnl_stream_destroy(d->stream);
    dnnl_engine_destroy(d->engine);
    free(d);
}

static int onednn_device_open(const struct device_options *options,
                              struct device **ret_device,
                              struct err *e)
{
    struct onednn_device *d = xcalloc(1, sizeof *d);
    dnnl_status_t status;

    (void)options; /* the threads are par_init's */
    d->head.ops = &backend_onednn;
    /* Primitives live in plans; a cache of them would only hold memory. */
    (void)dnnl_set_primitive_cache_capacity(0);
    status = dnnl_engine_create(&d->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&d->stream, d->engine, dnnl_stream_in_order);
    if (status != dnnl_success) {
        onednn_device_free((struct device *)(void *)d);
        return shim_fail(e, status, "an engine");
    }
    *ret_device = (struct device *)(void *)d;
    return 0;
}

static const char *isa_name(void)
{
    dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();

    /* Sets of bits: AVX2 with VNNI is a larger number than AVX-512. */
    if ((isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core)
        return "avx512";
    return isa >= dnnl_cpu_isa_avx2 ? "avx2" : isa >= dnnl_cpu_isa_avx ? "avx" : "sse4.1";
}

static void processor_name(char *name, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];

    snprintf(name, size, "CPU");
    while (file && fgets(line, sizeof line, file))
        if (str_starts(line, "model name") && strchr(line, ':')) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(name, size, "%s", strchr(line, ':') + 2);
            break;
        }
    if (file)
        fclose(file);
}

static void onednn_device_facts(const struct device *device, struct device_facts *ret_facts)
{
    const dnnl_version_t *version = dnnl_version();
    char processor[64];

    (void)device;
    processor_name(processor, sizeof processor);
    *ret_facts = (struct device_facts){.precisions = 1u << PRECISION_FP32};
    snprintf(ret_facts->name, sizeof ret_facts->name, "%s, %d threads, %s", processor,
             par_threads(), isa_name());
    snprintf(ret_facts->library, sizeof ret_facts->library, "oneDNN %d.%d.%d", version->major,
             version->minor, version->patch);
    ret_facts->memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

static void destroy_memories(struct onednn_plan *p)
{
    for (int t = 0; t < p->head.graph->tensor_count; t++)
        dnnl_memory_destroy(p->places[t].memory);
    for (int i = 0; i < p->more_count; i++)
        dnnl_memory_destroy(p->more[i]->memory);
    for (int i = 0; i < p->scratch_count; i++)
        dnnl_memory_destroy(p->scratches[i]);
}

static void onednn_plan_free(struct plan *plan)
{
    struct onednn_plan *p = onednn_plan(plan);

    destroy_memories(p);
    for (int i = 0; i < p->action_count; i++)
        dnnl_primitive_destroy(p->actions[i].primitive);
    for (int i = 0; i < p->copy_count; i++)
        dnnl_primitive_destroy(p->copies[i].reorder);
    for (int n = 0; n < p->head.graph->op_count; n++)
        dnnl_primitive_desc_destroy(p->descs[n]);
    store_done(&p->store);
    free(p->block);
    free(p->scratch);
    free(p->copies_block);
    free(p->actions);
    free(p->copies);
    free(p->items);
    free((void *)p->more);
    free((void *)p->scratches);
    arena_free(p->arena);
    free(p);
}

static struct onednn_plan *new_plan(const struct onednn_device *device,
                                    const struct graph *graph,
                                    const struct plan_options *options)
{
    struct onednn_plan *p = xcalloc(1, sizeof *p);
    size_t tensors = (size_t)graph->tensor_count + 1, ops = (size_t)graph->op_count + 1;

    p->head = (struct plan_head){&backend_onednn, graph};
    p->options = *options;
    p->engine = device->engine;
    p->stream = device->stream;
    p->shares = options->shares ? onednn_plan(options->shares) : NULL;
    p->arena = arena_new();
    p->places = arena_alloc(p->arena, tensors * sizeof *p->places);
    p->last_read = arena_alloc(p->arena, tensors * sizeof *p->last_read);
    p->fed = arena_alloc(p->arena, tensors * sizeof(void *));
    p->descs = arena_alloc(p->arena, ops * sizeof(dnnl_primitive_desc_t));
    p->workspaces = arena_alloc(p->arena, ops * sizeof(struct place *));
    p->joined = arena_alloc(p->arena, ops * sizeof *p->joined);
    p->is_done = arena_alloc(p->arena, ops * sizeof *p->is_done);
    for (size_t t = 0; t < tensors; t++)
        p->places[t].item = -1;
    return p;
}

static int onednn_plan_new(struct device *device,
                           const struct graph *graph,
                           const struct plan_options *options,
                           struct plan **ret_plan,
                           struct err *e)
{
    struct onednn_plan *p;

    if (options->precision != PRECISION_FP32)
        return err_set(e, ERR_METHOD, "backend \"onednn\" computes in fp32, not in %s",
                       precision_name(options->precision));
    p = new_plan(device_of(device), graph, options);
    plan_find_last_reads(p);
    plan_join_sums(p);
    if (plan_ops(p, e) < 0 || plan_lay_out(p, e) < 0) {
        onednn_plan_free((struct plan *)(void *)p);
        return -1;
    }
    p->spans = arena_alloc(p->arena, ((size_t)p->action_count + 1) * sizeof *p->spans);
    *ret_plan = (struct plan *)(void *)p;
    return 0;
}

static int feed(struct onednn_plan *p, const struct step *step, struct err *e)
{
    const struct graph *graph = p->head.graph;

    for (int i = 0; i < graph->input_count; i++) {
        int t = graph->inputs[i];

        if (step->feed[i])
            p->fed[t] = step->feed[i];
        if (!p->fed[t])
            return err_set(e, ERR_INVALID, "input \"%s\" was never fed",
                           graph->tensors[t].name);
    }
    return 0;
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void run_action(struct onednn_plan *p, const struct action *a)
{
    dnnl_status_t status = dnnl_success;

    if (a->run)
        a->run(p, a);
    else
        status = dnnl_primitive_execute(a->primitive, p->stream, a->arg_count, a->args);
    if (status != dnnl_success)
        err_set(&p->error, ERR_INTERNAL, "oneDNN failed at \"%s\": %d", a->label, (int)status);
}

static void run_timed(struct onednn_plan *p, const struct action *a)
{
    int64_t begin = now_ns();

    run_action(p, a);
    p->spans[p->span_count++] = (struct plan_span){a->op, a->label, a->track, begin, now_ns()};
}

static void take_values(struct onednn_plan *p)
{
    const struct graph *graph = p->head.graph;

    for (int i = 0; i < VALUES; i++) {
        const struct place *place = graph->values[i] < 0 ? NULL : &p->places[graph->values[i]];

        p->values.value[i] = place && place->data ? *(const float *)place->data : NAN;
    }
    store_values(&p->store, &p->values);
}

static int refresh_shared(struct onednn_plan *p, struct err *e)
{
    if (!p->shares || p->copied_version == p->shares->store.version)
        return 0;
    p->copied_version = p->shares->store.version;
    return refresh_all(p, e);
}

static int
onednn_plan_run(struct plan *plan, const struct step *step, uint64_t *ret_ticket, struct err *e)
{
    struct onednn_plan *p = onednn_plan(plan);

    if (feed(p, step, e) < 0 || refresh_shared(p, e) < 0)
        return -1;
    p->step = step;
    p->error = (struct err){0};
    p->span_count = 0;
    store_begin(&p->store);
    for (int i = 0; i < p->action_count && p->error.code == ERR_NONE; i++) {
        if (p->actions[i].is_control && !(step->flags & STEP_LAST))
            continue;
        if (p->is_timed)
            run_timed(p, &p->actions[i]);
        else
            run_action(p, &p->actions[i]);
    }
    p->step = NULL;
    if (p->error.code != ERR_NONE) {
        if (e)
            *e = p->error;
        return -1;
    }
    take_values(p);
    *ret_ticket = ++p->ticket;
    return 0;
}

static int onednn_plan_wait(struct plan *plan,
                            uint64_t ticket,
                            struct step_values *ret_values,
                            struct err *e)
{
    if (ticket == 0 || ticket > onednn_plan(plan)->ticket)
        return err_set(e, ERR_INTERNAL, "there was no such step");
    *ret_values = onednn_plan(plan)->values;
    return 0;
}

static void onednn_plan_memory(const struct plan *plan, struct plan_memory *ret_memory)
{
    const struct onednn_plan *p = onednn_plan(plan);

    *ret_memory = (struct plan_memory){
        .params_bytes = (int64_t)p->copies_bytes,
        .activations_bytes = (int64_t)(p->memory.bytes + p->scratch_bytes),
        .at_least_bytes = (int64_t)(p->memory.at_least + p->scratch_bytes)};
    store_memory(&p->store, ret_memory);
}

static void onednn_plan_layout(const struct plan *plan, struct str *out)
{
    const struct onednn_plan *p = onednn_plan(plan);

    for (int i = 0; i < p->store.param_count; i++) {
        const struct store_param *param = &p->store.params[i];
        char text[160];

        shim_describe(&p->places[param->tensor].md, text, sizeof text);
        str_addf(out, "%s %zu %zu %s\n", tensor_of(p, param->tensor)->name, param->offset,
                 param->count, text);
    }
}

static int onednn_plan_time(struct plan *plan, bool is_on, struct err *e)
{
    (void)e;
    onednn_plan(plan)->is_timed = is_on;
    return 0;
}

static const struct plan_span *onednn_plan_spans(struct plan *plan, int *ret_count)
{
    *ret_count = onednn_plan(plan)->span_count;
    return onednn_plan(plan)->spans;
}

const struct backend_ops backend_onednn = {
    .abi = BACKEND_ABI,
    .name = "onednn",
    .summary = "CPUs through oneDNN",
    .fusions = FUSE_BN_RELU | FUSE_BN_ADD_RELU | FUSE_CONV_RELU | FUSE_LINEAR_ACT |
               FUSE_DROPOUT_ADD | FUSE_ADD_LAYERNORM,
    .updates_early = true,
    .device_open = onednn_device_open,
    .device_free = onednn_device_free,
    .device_facts = onednn_device_facts,
    .plan_new = onednn_plan_new,
    .plan_free = onednn_plan_free,
    .plan_run = onednn_plan_run,
    .plan_wait = onednn_plan_wait,
    .plan_read = onednn_plan_read,
    .plan_write = onednn_plan_write,
    .plan_memory = onednn_plan_memory,
    .plan_layout = onednn_plan_layout,
    .plan_time = onednn_plan_time,
    .plan_spans = onednn_plan_spans,
};
