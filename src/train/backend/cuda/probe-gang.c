/* probe-gang.c - sums over all cards, by NCCL, which is loaded when it is wanted.
 *
 * One process may hold several cards: their calls are grouped, as NCCL asks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/mem.h"
#include "train/backend/cuda/plan.h"
#include "train/backend/cuda/probe.h"

#include <dlfcn.h>
#include <math.h>
#include <nccl.h>
#include <string.h>

enum {
    WARM_UP = 3,
    TURNS = 20,
    EACH_BYTE = 0x3e, /* makes floats of 0.186: small, and not a power of two */
};
#define SUM_FLOATS ((size_t)64 << 20)
#define SUM_BYTES  (SUM_FLOATS * sizeof(float))

struct library {
    __typeof__(ncclGetUniqueId) *get_id;
    __typeof__(ncclCommInitRank) *init;
    __typeof__(ncclCommDestroy) *destroy;
    __typeof__(ncclAllReduce) *all_reduce;
    __typeof__(ncclGroupStart) *group_start;
    __typeof__(ncclGroupEnd) *group_end;
    __typeof__(ncclGetErrorString) *explain;
};

struct seat { /* one card of this process */
    int card;
    cudaStream_t stream;
    ncclComm_t comm;
    float *mine, *sum;
};

struct gang {
    struct library nccl;
    struct seat *seats;
    int count, ranks, first;
};

/* Stays loaded: its threads may outlive the communicators for a moment. */
static int load(struct library *l, struct err *e)
{
    const struct {
        const char *name;
        void *at;
    } names[] = {
        {"ncclGetUniqueId", &l->get_id},     {"ncclCommInitRank", &l->init},
        {"ncclCommDestroy", &l->destroy},    {"ncclAllReduce", &l->all_reduce},
        {"ncclGroupStart", &l->group_start}, {"ncclGroupEnd", &l->group_end},
        {"ncclGetErrorString", &l->explain},
    };
    void *file = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);

    if (!file)
        return err_set(e, ERR_NOT_FOUND, "could not load NCCL: %.300s", dlerror());
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        void *found = dlsym(file, names[i].name);

        if (!found)
            return err_set(e, ERR_NOT_FOUND, "libnccl.so.2 has no %s", names[i].name);
        memcpy(names[i].at, &found, sizeof found);
    }
    return 0;
}

static int nccl_fail(const struct library *l, struct err *e, ncclResult_t rc, const char *what)
{
    return err_set(e, ERR_INTERNAL, "could not %s: %s (NCCL %d)", what, l->explain(rc),
                   (int)rc);
}

int probe_gang_id(unsigned char ret_id[PROBE_ID_BYTES], struct err *e)
{
    struct library nccl;
    ncclUniqueId id;
    ncclResult_t rc;

    _Static_assert(sizeof id <= PROBE_ID_BYTES, "NCCL's id has grown");
    if (load(&nccl, e) < 0)
        return -1;
    if ((rc = nccl.get_id(&id)) != ncclSuccess)
        return nccl_fail(&nccl, e, rc, "get an id for the cards");
    memset(ret_id, 0, PROBE_ID_BYTES);
    memcpy(ret_id, &id, sizeof id);
    return 0;
}

/* --- seats -----------------------------------------------------------------------------------
 */

static int take_seat(struct seat *seat, struct err *e)
{
    cudaError_t rc;

    if ((rc = cudaSetDevice(seat->card)) != cudaSuccess ||
        (rc = cudaStreamCreateWithFlags(&seat->stream, cudaStreamNonBlocking)) != cudaSuccess ||
        (rc = cudaMalloc((void **)&seat->mine, SUM_BYTES)) != cudaSuccess ||
        (rc = cudaMalloc((void **)&seat->sum, SUM_BYTES)) != cudaSuccess ||
        (rc = cudaMemset(seat->mine, EACH_BYTE, SUM_BYTES)) != cudaSuccess ||
        (rc = cudaDeviceSynchronize()) != cudaSuccess)
        return cuda_fail(e, rc, "get memory for sums");
    return 0;
}

static void leave_seat(const struct library *nccl, struct seat *seat)
{
    cudaSetDevice(seat->card);
    if (seat->comm)
        nccl->destroy(seat->comm);
    cudaFree(seat->mine);
    cudaFree(seat->sum);
    if (seat->stream)
        cudaStreamDestroy(seat->stream);
}

static int meet(struct gang *g, const struct probe_gang *facts, struct err *e)
{
    const struct library *l = &g->nccl;
    ncclUniqueId id;
    ncclResult_t rc = l->group_start(), ended;

    memcpy(&id, facts->id, sizeof id);
    for (int i = 0; rc == ncclSuccess && i < g->count; i++) {
        cudaSetDevice(g->seats[i].card);
        rc = l->init(&g->seats[i].comm, g->ranks, id, g->first + i);
    }
    ended = l->group_end();
    if (rc == ncclSuccess)
        rc = ended;
    return rc == ncclSuccess ? 0 : nccl_fail(l, e, rc, "join the cards");
}

static int sum_once(struct gang *g, struct err *e)
{
    const struct library *l = &g->nccl;
    ncclResult_t rc = l->group_start(), ended;

    for (int i = 0; rc == ncclSuccess && i < g->count; i++) {
        const struct seat *s = &g->seats[i];

        rc = l->all_reduce(s->mine, s->sum, SUM_FLOATS, ncclFloat, ncclSum, s->comm, s->stream);
    }
    ended = l->group_end();
    if (rc == ncclSuccess)
        rc = ended;
    return rc == ncclSuccess ? 0 : nccl_fail(l, e, rc, "sum over the cards");
}

static int wait_for_all(struct gang *g, struct err *e)
{
    for (int i = 0; i < g->count; i++) {
        cudaError_t rc = cudaStreamSynchronize(g->seats[i].stream);

        if (rc != cudaSuccess)
            return cuda_fail(e, rc, "wait for sums over the cards");
    }
    return 0;
}

/* First and last element on each card: the order of sums may differ, hence 1e-4. */
static int check_sums(struct gang *g, struct err *e)
{
    float each, got[2];

    memset(&each, EACH_BYTE, sizeof each);
    for (int i = 0; i < g->count; i++) {
        const struct seat *s = &g->seats[i];
        double want = (double)each * g->ranks;

        if (cudaMemcpy(&got[0], s->sum, 4, cudaMemcpyDefault) != cudaSuccess ||
            cudaMemcpy(&got[1], s->sum + SUM_FLOATS - 1, 4, cudaMemcpyDefault) != cudaSuccess)
            return err_set(e, ERR_INTERNAL, "could not read a sum from card %d", s->card);
        if (fabs(got[0] - want) > 1e-4 * want || fabs(got[1] - want) > 1e-4 * want)
            return err_set(e, ERR_INTERNAL, "card %d has a wrong sum: %g and %g, not %g",
                           s->card, (double)got[0], (double)got[1], want);
    }
    return 0;
}

static int time_sums(struct gang *g, double *ret_bytes_s, struct err *e)
{
    int64_t begun = 0;

    for (int turn = 0; turn < WARM_UP + TURNS; turn++) {
        if (turn == WARM_UP) {
            if (wait_for_all(g, e) < 0)
                return -1;
            begun = clock_mono_us();
        }
        if (sum_once(g, e) < 0)
            return -1;
    }
    if (wait_for_all(g, e) < 0)
        return -1;
    *ret_bytes_s = 2.0 * (g->ranks - 1) / g->ranks * (double)SUM_BYTES * TURNS * 1e6 /
                   (double)(clock_mono_us() - begun);
    return check_sums(g, e);
}

int probe_all_reduce(const struct probe_gang *gang, double *ret_bytes_s, struct err *e)
{
    struct seat seats[PROBE_MOST_CARDS] = {0};
    struct gang g = {
        .seats = seats, .count = gang->count, .ranks = gang->ranks, .first = gang->first};
    int rc = load(&g.nccl, e);

    for (int i = 0; rc == 0 && i < g.count; i++) {
        seats[i].card = gang->cards[i];
        rc = take_seat(&seats[i], e);
    }
    if (rc == 0)
        rc = meet(&g, gang, e);
    if (rc == 0)
        rc = time_sums(&g, ret_bytes_s, e);
    for (int i = 0; i < g.count; i++)
        leave_seat(&g.nccl, &seats[i]);
    return rc;
}
