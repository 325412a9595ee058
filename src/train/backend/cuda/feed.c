/* feed.c - see feed.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/feed.h"

#include "base/mem.h"
#include "train/backend/cuda/make.h"
#include "train/backend/cuda/update-kernels.h"

#include <string.h>

enum {
    SETS = PLAN_MOST_AHEAD,
};

struct feed_set {
    char *pinned, *card;
    cudaEvent_t arrived; /* on the card */
    cudaEvent_t moved;   /* into the places: the set is free again */
    bool is_used;
};

struct feed {
    size_t offset[GRAPH_MOST_INPUTS], bytes[GRAPH_MOST_INPUTS], all;
    bool was_fed[GRAPH_MOST_INPUTS];
    struct feed_set sets[SETS];
};

void feed_free(struct feed *feed)
{
    for (int i = 0; feed && i < SETS; i++) {
        if (feed->sets[i].pinned)
            cudaFreeHost(feed->sets[i].pinned);
        if (feed->sets[i].arrived)
            cudaEventDestroy(feed->sets[i].arrived);
        if (feed->sets[i].moved)
            cudaEventDestroy(feed->sets[i].moved);
    }
    free(feed);
}

static int new_set(struct cuda_plan *p, struct feed_set *set, size_t bytes, struct err *e)
{
    cudaError_t status = cudaMallocHost((void **)&set->pinned, bytes);

    if (status == cudaSuccess)
        status = cudaEventCreateWithFlags(&set->arrived, cudaEventDisableTiming);
    if (status == cudaSuccess)
        status = cudaEventCreateWithFlags(&set->moved, cudaEventDisableTiming);
    if (status != cudaSuccess)
        return cuda_fail(e, status, "memory for inputs");
    return card_alloc(p, bytes, (void **)&set->card, "inputs", e);
}

static size_t input_bytes(const struct tensor *t)
{
    return (size_t)tensor_elements(t) * (t->dtype == DTYPE_U8 ? 1 : 4);
}

int feed_new(struct cuda_plan *p, struct err *e)
{
    const struct graph *graph = p->head.graph;
    struct feed *feed = p->feed = xcalloc(1, sizeof *feed);

    for (int i = 0; i < graph->input_count; i++) {
        struct place *place = &p->places[graph->inputs[i]];

        feed->bytes[i] = input_bytes(&graph->tensors[graph->inputs[i]]);
        feed->offset[i] = feed->all;
        feed->all += (feed->bytes[i] + 255) & ~(size_t)255;
        if (card_alloc(p, place->bytes, &place->data, "inputs", e) < 0)
            return -1;
        launch_fill(place->data, place->elem,
                    (int64_t)(feed->bytes[i] / elem_bytes(place->elem)), (uint64_t)i,
                    p->device->stream);
        if (launched(e, "filling inputs") < 0)
            return -1;
    }
    for (int i = 0; i < SETS && feed->all; i++)
        if (new_set(p, &feed->sets[i], feed->all, e) < 0)
            return -1;
    return 0;
}

/* Into pinned memory, and on its way. */
static cudaError_t send(struct cuda_plan *p, struct feed_set *set, const struct step *step)
{
    const struct feed *feed = p->feed;
    cudaError_t status = cudaSuccess;

    for (int i = 0; i < p->head.graph->input_count && status == cudaSuccess; i++) {
        if (!step->feed[i])
            continue;
        memcpy(set->pinned + feed->offset[i], step->feed[i], feed->bytes[i]);
        status = cudaMemcpyAsync(set->card + feed->offset[i], set->pinned + feed->offset[i],
                                 feed->bytes[i], cudaMemcpyHostToDevice, p->device->copying);
    }
    return status == cudaSuccess ? cudaEventRecord(set->arrived, p->device->copying) : status;
}

static cudaError_t receive(struct cuda_plan *p, struct feed_set *set, const struct step *step)
{
    const struct graph *graph = p->head.graph;
    const struct feed *feed = p->feed;
    cudaStream_t stream = p->device->stream;
    cudaError_t status = cudaStreamWaitEvent(stream, set->arrived, 0);

    for (int i = 0; i < graph->input_count && status == cudaSuccess; i++)
        if (step->feed[i])
            status =
                cudaMemcpyAsync(p->places[graph->inputs[i]].data, set->card + feed->offset[i],
                                feed->bytes[i], cudaMemcpyDeviceToDevice, stream);
    return status == cudaSuccess ? cudaEventRecord(set->moved, stream) : status;
}

static int check_fed(struct cuda_plan *p, const struct step *step, bool *ret_any, struct err *e)
{
    const struct graph *graph = p->head.graph;

    *ret_any = false;
    for (int i = 0; i < graph->input_count; i++) {
        *ret_any |= step->feed[i] != NULL;
        p->feed->was_fed[i] |= step->feed[i] != NULL;
        if (!p->feed->was_fed[i])
            return err_set(e, ERR_INVALID, "input \"%s\" was never fed",
                           graph->tensors[graph->inputs[i]].name);
    }
    return 0;
}

int feed_step(struct cuda_plan *p, const struct step *step, uint64_t ticket, struct err *e)
{
    struct feed_set *set = &p->feed->sets[ticket % SETS];
    cudaError_t status = cudaSuccess;
    bool is_any;

    if (check_fed(p, step, &is_any, e) < 0)
        return -1;
    if (!is_any)
        return 0;
    if (set->is_used)
        status = cudaEventSynchronize(set->moved);
    set->is_used = true;
    if (status == cudaSuccess)
        status = send(p, set, step);
    if (status == cudaSuccess)
        status = receive(p, set, step);
    return status == cudaSuccess ? 0 : cuda_fail(e, status, "feeding the step");
}
