/* capture.c - see capture.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/capture.h"

#include "base/mem.h"
#include "train/backend/cuda/feed.h"
#include "train/backend/cuda/params.h"

#include <string.h>
#include <time.h>

enum {
    RING = PLAN_MOST_AHEAD + 1,
    FLAGS = STEP_WHOLE + 1,
};

struct pinned { /* of one ticket; memory that the card reads and writes */
    struct step_facts facts;
    float values[VALUES];
};

struct capture {
    cudaGraphExec_t graph[FLAGS];
    struct pinned *ring;
    cudaEvent_t done[RING];
    uint64_t issued, waited;
    bool is_timed;
    cudaEvent_t *times; /* one before each action and one behind the last; NULL until wanted */
    int time_count;
    int *timed; /* the actions that the last timed step ran */
    int timed_count;
    int64_t begun_ns;
    struct plan_span *spans;
    int span_count;
};

static int enqueue(struct cuda_plan *p, const struct action *a, struct err *e)
{
    const struct op *op = &p->head.graph->ops[a->op];

    if (a->run(p, a, p->device->stream, e) < 0)
        return err_wrap(e, "%s \"%s\"", op_info(op->kind)->name, a->label);
    return 0;
}

static bool is_wanted(const struct action *a, unsigned flags)
{
    return !a->is_control || (flags & STEP_LAST);
}

/* A graph that is not trained has no flags. */
static unsigned flags_of(const struct cuda_plan *p, unsigned flags)
{
    return p->head.graph->bucket_count ? flags & STEP_WHOLE : 0;
}

int capture_rehearse(struct cuda_plan *p, struct err *e)
{
    p->flags = flags_of(p, STEP_WHOLE);
    for (int i = 0; i < p->action_count; i++) {
        const struct action *a = &p->actions[i];
        cudaError_t status;

        if (!is_wanted(a, p->flags))
            continue;
        if (enqueue(p, a, e) < 0)
            return -1;
        status = cudaStreamSynchronize(p->device->stream);
        if (status != cudaSuccess) {
            cuda_fail(e, status, "the first run");
            return err_wrap(e, "%s \"%s\"", op_info(p->head.graph->ops[a->op].kind)->name,
                            a->label);
        }
    }
    return 0;
}

static int enqueue_all(struct cuda_plan *p, unsigned flags, struct err *e)
{
    p->flags = flags;
    for (int i = 0; i < p->action_count; i++)
        if (is_wanted(&p->actions[i], flags) && enqueue(p, &p->actions[i], e) < 0)
            return -1;
    return 0;
}

static int instantiate(struct cuda_plan *p, cudaGraph_t graph, unsigned flags, struct err *e)
{
    cudaGraphExec_t *exec = &p->capture->graph[flags];
    cudaError_t status = cudaGraphInstantiate(exec, graph, 0);

    cudaGraphDestroy(graph);
    if (status == cudaSuccess)
        status = cudaGraphUpload(*exec, p->device->stream);
    return status == cudaSuccess ? 0 : cuda_fail(e, status, "making the step's graph");
}

static int capture_pass(struct cuda_plan *p, unsigned flags, struct err *e)
{
    cudaStream_t stream = p->device->stream;
    cudaGraph_t graph = NULL;
    cudaError_t status = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    int result;

    if (status != cudaSuccess)
        return cuda_fail(e, status, "beginning to capture");
    result = enqueue_all(p, flags, e);
    status = cudaStreamEndCapture(stream, &graph);
    if (result < 0) {
        if (graph)
            cudaGraphDestroy(graph);
        (void)cudaGetLastError();
        return err_wrap(e, "capturing");
    }
    if (status != cudaSuccess)
        return cuda_fail(e, status, "capturing the step");
    return instantiate(p, graph, flags, e);
}

static int new_ring(struct cuda_plan *p, struct err *e)
{
    struct capture *c = p->capture;
    cudaError_t status = cudaMallocHost((void **)&c->ring, RING * sizeof *c->ring);

    for (int i = 0; i < RING && status == cudaSuccess; i++)
        status = cudaEventCreateWithFlags(&c->done[i], cudaEventDisableTiming);
    if (status != cudaSuccess)
        return cuda_fail(e, status, "memory for values");
    memset(c->ring, 0, RING * sizeof *c->ring);
    return 0;
}

int capture_new(struct cuda_plan *p, struct err *e)
{
    static const unsigned passes[] = {STEP_FIRST, 0, STEP_LAST};
    size_t actions = (size_t)p->action_count + 1;

    p->capture = xcalloc(1, sizeof *p->capture);
    p->capture->timed = arena_alloc(p->arena, actions * sizeof(int));
    p->capture->spans = arena_alloc(p->arena, actions * sizeof(struct plan_span));
    if (new_ring(p, e) < 0)
        return -1;
    if (p->head.graph->passes <= 1)
        return capture_pass(p, flags_of(p, STEP_WHOLE), e);
    for (size_t i = 0; i < ARRAY_SIZE(passes); i++)
        if (capture_pass(p, passes[i], e) < 0)
            return -1;
    return 0;
}

static void free_times(struct capture *c)
{
    for (int i = 0; c->times && i < c->time_count; i++)
        if (c->times[i])
            cudaEventDestroy(c->times[i]);
    free((void *)c->times);
    c->times = NULL;
}

void capture_free(struct capture *capture)
{
    if (!capture)
        return;
    free_times(capture);
    for (int i = 0; i < FLAGS; i++)
        if (capture->graph[i])
            cudaGraphExecDestroy(capture->graph[i]);
    for (int i = 0; i < RING; i++)
        if (capture->done[i])
            cudaEventDestroy(capture->done[i]);
    if (capture->ring)
        cudaFreeHost(capture->ring);
    free(capture);
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int run_timed(struct cuda_plan *p, unsigned flags, struct err *e)
{
    struct capture *c = p->capture;
    cudaError_t status = cudaStreamSynchronize(p->device->stream);

    p->flags = flags;
    c->timed_count = 0;
    c->begun_ns = now_ns();
    for (int i = 0; i < p->action_count && status == cudaSuccess; i++) {
        if (!is_wanted(&p->actions[i], flags))
            continue;
        status = cudaEventRecord(c->times[c->timed_count], p->device->stream);
        c->timed[c->timed_count++] = i;
        if (enqueue(p, &p->actions[i], e) < 0)
            return -1;
    }
    if (status == cudaSuccess)
        status = cudaEventRecord(c->times[c->timed_count], p->device->stream);
    return status == cudaSuccess ? 0 : cuda_fail(e, status, "timing the step");
}

static int launch(struct cuda_plan *p, unsigned flags, struct err *e)
{
    struct capture *c = p->capture;
    cudaError_t status;

    if (c->is_timed)
        return run_timed(p, flags, e);
    if (!c->graph[flags] && capture_pass(p, flags, e) < 0)
        return -1;
    status = cudaGraphLaunch(c->graph[flags], p->device->stream);
    return status == cudaSuccess ? 0 : cuda_fail(e, status, "launching the step");
}

/* What the host says of the step; the card's own part of the facts stays. */
static cudaError_t send_facts(struct cuda_plan *p, struct pinned *slot, const struct step *step)
{
    slot->facts = (struct step_facts){
        .number = step->number, .seed = p->options.seed, .lr = step->lr, .pass = step->pass};
    return cudaMemcpyAsync(p->facts, &slot->facts, offsetof(struct step_facts, scale),
                           cudaMemcpyHostToDevice, p->device->stream);
}

static cudaError_t send_values(struct cuda_plan *p, struct pinned *slot, cudaEvent_t done)
{
    cudaError_t status = cudaMemcpyAsync(slot->values, p->values, sizeof slot->values,
                                         cudaMemcpyDeviceToHost, p->device->stream);

    return status == cudaSuccess ? cudaEventRecord(done, p->device->stream) : status;
}

int cuda_plan_run(struct plan *plan,
                  const struct step *step,
                  uint64_t *ret_ticket,
                  struct err *e)
{
    struct cuda_plan *p = cuda_plan(plan);
    struct capture *c = p->capture;
    uint64_t ticket = c->issued + 1;
    struct pinned *slot = &c->ring[ticket % RING];
    cudaError_t status;

    if (c->issued - c->waited >= PLAN_MOST_AHEAD)
        return err_set(e, ERR_INTERNAL, "%d steps were not waited for", PLAN_MOST_AHEAD);
    if (feed_step(p, step, ticket, e) < 0 || params_refresh(p, p->device->stream, e) < 0)
        return -1;
    status = send_facts(p, slot, step);
    if (status != cudaSuccess)
        return cuda_fail(e, status, "telling the step");
    if (launch(p, flags_of(p, step->flags), e) < 0)
        return -1;
    status = send_values(p, slot, c->done[ticket % RING]);
    if (status != cudaSuccess)
        return cuda_fail(e, status, "asking for values");
    p->params->version += (step->flags & STEP_LAST) != 0;
    *ret_ticket = c->issued = ticket;
    return 0;
}

/* Nanoseconds from the first event of the step to event i. */
static int64_t since_begin(const struct capture *c, int i)
{
    float ms = 0;

    if (i > 0 && cudaEventElapsedTime(&ms, c->times[0], c->times[i]) != cudaSuccess)
        return 0;
    return (int64_t)((double)ms * 1e6);
}

/* All on one stream: an action ends where the next begins. */
static void take_times(struct cuda_plan *p)
{
    struct capture *c = p->capture;

    for (int i = 0; i < c->timed_count; i++) {
        const struct action *a = &p->actions[c->timed[i]];

        c->spans[i] = (struct plan_span){.op = a->op,
                                         .label = a->label,
                                         .track = a->track,
                                         .begin_ns = c->begun_ns + since_begin(c, i),
                                         .end_ns = c->begun_ns + since_begin(c, i + 1)};
    }
    c->span_count = c->timed_count;
    c->timed_count = 0;
}

int cuda_plan_wait(struct plan *plan,
                   uint64_t ticket,
                   struct step_values *ret_values,
                   struct err *e)
{
    struct capture *c = cuda_plan(plan)->capture;
    cudaError_t status;

    if (ticket == 0 || ticket > c->issued || ticket + RING <= c->issued)
        return err_set(e, ERR_INTERNAL, "there was no such step");
    status = cudaEventSynchronize(c->done[ticket % RING]);
    if (status != cudaSuccess)
        return cuda_fail(e, status, "the step");
    if (ticket > c->waited)
        c->waited = ticket;
    if (c->timed_count && ticket == c->issued)
        take_times(cuda_plan(plan));
    memcpy(ret_values->value, c->ring[ticket % RING].values, sizeof ret_values->value);
    return 0;
}

int cuda_plan_time(struct plan *plan, bool is_on, struct err *e)
{
    struct cuda_plan *p = cuda_plan(plan);
    struct capture *c = p->capture;
    cudaError_t status = cudaStreamSynchronize(p->device->stream);

    c->is_timed = is_on;
    if (!is_on)
        free_times(c);
    if (is_on && !c->times) {
        c->time_count = p->action_count + 1;
        c->times = (cudaEvent_t *)xcalloc((size_t)c->time_count, sizeof(cudaEvent_t));
    }
    for (int i = 0; c->times && i < c->time_count && status == cudaSuccess; i++)
        if (!c->times[i])
            status = cudaEventCreate(&c->times[i]);
    return status == cudaSuccess ? 0 : cuda_fail(e, status, "timing ops");
}

const struct plan_span *cuda_plan_spans(struct plan *plan, int *ret_count)
{
    const struct capture *c = cuda_plan(plan)->capture;

    *ret_count = c->span_count;
    return c->spans;
}
