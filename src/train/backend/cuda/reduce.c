/* reduce.c - gradients summed over ranks by NCCL, on a stream of its own inside the step.
 *
 * A bucket is handed over by an event on the compute stream; its sum runs on the other stream
 * behind those before it, in the same order on every rank, and another event tells that it is
 * there.  Both are captured with the rest.  The id goes from rank 0 to the others through
 * comm.h.  The library is loaded only when there are several ranks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/backend/cuda/params.h"
#include "train/comm/comm.h"

#include <dlfcn.h>
#include <nccl.h>

struct nccl { /* the few functions that are used */
    ncclResult_t (*get_unique_id)(ncclUniqueId *id);
    ncclResult_t (*comm_init_rank)(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
    ncclResult_t (*comm_destroy)(ncclComm_t comm);
    ncclResult_t (*all_reduce)(const void *from,
                               void *to,
                               size_t count,
                               ncclDataType_t type,
                               ncclRedOp_t op,
                               ncclComm_t comm,
                               cudaStream_t stream);
    const char *(*error_string)(ncclResult_t result);
};

struct reduce {
    struct nccl nccl;
    void *library;
    ncclComm_t comm;
    cudaStream_t stream;
    cudaEvent_t handed;
    cudaEvent_t *summed; /* by bucket */
    int buckets;
};

static int
nccl_fail(const struct reduce *r, struct err *e, ncclResult_t result, const char *what)
{
    return err_set(e, ERR_INTERNAL, "%s: NCCL: %s", what, r->nccl.error_string(result));
}

static int load(struct reduce *r, struct err *e)
{
    static const char *const names[] = {"ncclGetUniqueId", "ncclCommInitRank",
                                        "ncclCommDestroy", "ncclAllReduce",
                                        "ncclGetErrorString"};
    void **const to[] = {(void **)&r->nccl.get_unique_id, (void **)&r->nccl.comm_init_rank,
                         (void **)&r->nccl.comm_destroy, (void **)&r->nccl.all_reduce,
                         (void **)&r->nccl.error_string};

    r->library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!r->library)
        return err_set(e, ERR_NOT_FOUND, "several ranks with cards need NCCL: %.300s",
                       dlerror());
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        *to[i] = dlsym(r->library, names[i]);
        if (!*to[i])
            return err_set(e, ERR_NOT_FOUND, "libnccl.so.2 has no %s", names[i]);
    }
    return 0;
}

/* Rank 0 makes the id; it is told even when it could not, so that nobody waits. */
static int join(struct cuda_plan *p, struct reduce *r, struct err *e)
{
    const struct comm_facts *facts = comm_facts(p->options.comm);
    struct {
        ncclUniqueId id;
        int result;
    } first = {.result = ncclSuccess};
    ncclResult_t result;

    if (facts->rank == 0)
        first.result = (int)r->nccl.get_unique_id(&first.id);
    if (comm_broadcast(p->options.comm, &first, sizeof first, 0, e) < 0)
        return -1;
    if (first.result != ncclSuccess)
        return nccl_fail(r, e, (ncclResult_t)first.result, "rank 0 could not make an id");
    result = r->nccl.comm_init_rank(&r->comm, facts->ranks, first.id, facts->rank);
    return result == ncclSuccess ? 0 : nccl_fail(r, e, result, "could not join the ranks");
}

static int make_events(struct reduce *r, struct err *e)
{
    int least, most;
    cudaError_t status = cudaDeviceGetStreamPriorityRange(&least, &most);

    if (status == cudaSuccess)
        status = cudaStreamCreateWithPriority(&r->stream, cudaStreamNonBlocking, most);
    if (status == cudaSuccess)
        status = cudaEventCreateWithFlags(&r->handed, cudaEventDisableTiming);
    for (int b = 0; b < r->buckets && status == cudaSuccess; b++)
        status = cudaEventCreateWithFlags(&r->summed[b], cudaEventDisableTiming);
    return status == cudaSuccess ? 0 : cuda_fail(e, status, "a stream for reductions");
}

void reduce_free(struct reduce *reduce)
{
    if (!reduce)
        return;
    if (reduce->comm)
        reduce->nccl.comm_destroy(reduce->comm);
    for (int b = 0; b < reduce->buckets; b++)
        if (reduce->summed[b])
            cudaEventDestroy(reduce->summed[b]);
    if (reduce->handed)
        cudaEventDestroy(reduce->handed);
    if (reduce->stream)
        cudaStreamDestroy(reduce->stream);
    free((void *)reduce->summed);
    free(reduce); /* the library stays: it has threads */
}

int reduce_new(struct cuda_plan *p, struct reduce **ret_reduce, struct err *e)
{
    struct reduce *r;

    if (!p->options.comm)
        return err_set(e, ERR_INTERNAL, "\"%s\" is for %d ranks, but there is no way to them",
                       p->head.graph->name, (int)p->head.graph->ranks);
    r = *ret_reduce = xcalloc(1, sizeof *r);
    r->buckets = p->head.graph->bucket_count;
    r->summed = (cudaEvent_t *)xcalloc((size_t)r->buckets + 1, sizeof(cudaEvent_t));
    if (load(r, e) < 0 || make_events(r, e) < 0)
        return -1;
    return join(p, r, e);
}

/* The run of a bucket in the gradients, with what pads its params to lines. */
static void run_of(const struct cuda_plan *p, int b, float **ret_data, size_t *ret_count)
{
    const struct bucket *bucket = &p->head.graph->buckets[b];
    const struct params *params = p->params;
    size_t first = params->all[bucket->first].offset;
    int next = bucket->first + bucket->count;

    *ret_data = params->grads + first;
    *ret_count = (next < params->count ? params->all[next].offset : params->floats) - first;
}

int reduce_start(struct cuda_plan *p, int bucket, cudaStream_t stream, struct err *e)
{
    struct reduce *r = p->params->reduce;
    cudaError_t status = cudaEventRecord(r->handed, stream);
    ncclResult_t result;
    float *data;
    size_t count;

    if (status == cudaSuccess)
        status = cudaStreamWaitEvent(r->stream, r->handed, 0);
    if (status != cudaSuccess)
        return cuda_fail(e, status, "handing a bucket over");
    run_of(p, bucket, &data, &count);
    result = r->nccl.all_reduce(data, data, count, ncclFloat32, ncclSum, r->comm, r->stream);
    if (result != ncclSuccess)
        return nccl_fail(r, e, result, "summing a bucket");
    status = cudaEventRecord(r->summed[bucket], r->stream);
    return status == cudaSuccess ? 0 : cuda_fail(e, status, "summing a bucket");
}

int reduce_wait(struct cuda_plan *p, int bucket, cudaStream_t stream, struct err *e)
{
    cudaError_t status = cudaStreamWaitEvent(stream, p->params->reduce->summed[bucket], 0);

    return status == cudaSuccess ? 0 : cuda_fail(e, status, "waiting for a bucket");
}
