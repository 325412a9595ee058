/* host.c - the processor of a rank: cores, memory, and sums over all ranks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/mem.h"
#include "train/comm/comm.h"
#include "train/comm/reducer.h"
#include "train/preflight/preflight-internal.h"
#include "train/preflight/processor.h"
#include "train/report/peak.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_CORES = 64, /* looked at one by one: 50 ms each */
    SUMS = 8,
    BUCKETS = 16,
};
#define SLOW_CORE_SHARE 0.6
/* Of the memory bandwidth of the host's ranks over the 2 n arrays that a sum reads and writes:
 * threads wait for each other at every piece. */
#define LOCAL_SUM_SHARE   0.25
#define NETWORK_SUM_SHARE 0.5 /* of the link that was named */

struct host {
    struct comm *comm;
    const struct comm_facts *ranks;
    struct checks *checks;
    int threads, on_host; /* of this rank; of all ranks of its host */
    int cores;            /* that this rank can use for itself */
    bool is_shared;       /* ranks were not given cores of their own */
    double memory_bytes_s;
};

static void count_cores(struct host *h, int asked)
{
    cpu_set_t set;
    int mine = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int all = (int)sysconf(_SC_NPROCESSORS_ONLN), locals = h->ranks->local_ranks;

    h->is_shared = locals > 1 && mine * locals > all;
    h->cores = h->is_shared ? all / locals : mine;
    h->threads = asked > 0 ? asked : h->cores > 0 ? h->cores : 1;
    h->on_host = h->threads * locals;
    if (h->cores > h->threads)
        h->cores = h->threads;
}

/* A build for tests measures its own slowness. */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static const bool is_fast = true;
#else
static const bool is_fast = false;
#endif

static bool is_judged(const struct host *h)
{
    return is_fast && h->cores > 0 && h->threads <= h->cores;
}

static void check_fma(struct host *h, const struct processor *p)
{
    double flops = peak_flops(h->threads);
    double floor = processor_fma_floor(p, h->cores);

    if (!is_judged(h))
        checks_least(h->checks, "fma", flops / 1e9, NAN, "GFLOP/s", "%d threads on %d cores%s",
                     h->threads, h->cores,
                     is_fast ? "" : "; this yardbench is built for tests, not for speed");
    else
        checks_least(h->checks, "fma", flops / 1e9, floor / 1e9, "GFLOP/s",
                     "%.0f %% of %d cores x %.2f GHz x %d", 100 * PROCESSOR_FMA_SHARE, h->cores,
                     p->nominal_hz / 1e9, p->flops_per_cycle);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* FLOP/s of single cores, up to MOST_CORES of them, spread evenly; returns how many.  *ret_slow
 * is the number of the slowest. */
static int measure_cores(double rates[MOST_CORES], int *ret_slow)
{
    cpu_set_t all, one;
    int count = 0, place = 0, stride;
    double slowest = INFINITY;

    if (sched_getaffinity(0, sizeof all, &all) < 0)
        return 0;
    stride = (CPU_COUNT(&all) + MOST_CORES - 1) / MOST_CORES;
    for (int core = 0; core < CPU_SETSIZE && count < MOST_CORES; core++) {
        if (!CPU_ISSET((size_t)core, &all) || place++ % stride)
            continue;
        CPU_ZERO(&one);
        CPU_SET((size_t)core, &one);
        sched_setaffinity(0, sizeof one, &one);
        rates[count] = peak_flops(1);
        if (rates[count] < slowest)
            *ret_slow = core;
        slowest = fmin(slowest, rates[count++]);
    }
    sched_setaffinity(0, sizeof all, &all);
    return count;
}

/* Only odd: another program's burst looks the same. */
static void check_cores(struct host *h)
{
    double rates[MOST_CORES], median;
    int slow = 0, count = h->is_shared ? 0 : measure_cores(rates, &slow);

    if (count < 2)
        return;
    qsort(rates, (size_t)count, sizeof rates[0], compare);
    median = rates[count / 2];
    checks_add(h->checks, rates[0] < SLOW_CORE_SHARE * median ? VERDICT_LOOK : VERDICT_OK,
               "cores", rates[0] / 1e9, "GFLOP/s",
               "core %d, the slowest of %d; the median gives %.1f", slow, count, median / 1e9);
}

static void check_memory(struct host *h)
{
    double floor = processor_memory_floor(h->threads, h->on_host);

    h->memory_bytes_s = peak_bandwidth_shared(h->threads, h->ranks->local_ranks);
    checks_least(h->checks, "memory", h->memory_bytes_s / 1e9, is_judged(h) ? floor / 1e9 : NAN,
                 "GB/s", "triad of %d threads%s", h->threads,
                 h->ranks->local_ranks > 1 ? ", all ranks of the host at once" : "");
}

/* --- sums ------------------------------------------------------------------------------------
 */

/* Less for each where many ranks share a host's memory. */
static size_t sum_floats(const struct host *h)
{
    return h->ranks->local_ranks > 16 ? (size_t)1 << 20 : (size_t)8 << 20;
}

static int sum_once(struct reducer *reducer, struct err *e)
{
    for (int b = 0; b < BUCKETS; b++)
        reducer_start(reducer, b);
    for (int b = 0; b < BUCKETS; b++)
        if (reducer_wait(reducer, b, e) < 0)
            return -1;
    return 0;
}

static int time_sums(struct host *h, struct reducer *reducer, double *ret_s, struct err *e)
{
    int64_t begun;

    if (sum_once(reducer, e) < 0 || comm_barrier(h->comm, e) < 0)
        return -1;
    begun = clock_mono_us();
    for (int i = 0; i < SUMS; i++)
        if (sum_once(reducer, e) < 0)
            return -1;
    *ret_s = (double)(clock_mono_us() - begun) / 1e6 / SUMS;
    return comm_most(h->comm, ret_s, 1, e);
}

/* Ones grow with every sum: ranks to the power of the sums made. */
static bool are_sums_right(const struct host *h, const float *arena, size_t floats)
{
    float want = powf((float)h->ranks->ranks, SUMS + 1);

    for (size_t i = 0; i < floats; i++)
        if (fabsf(arena[i] - want) > 1e-4F * want)
            return false;
    return true;
}

static int
run_sums(struct host *h, struct reducer *reducer, double *ret_s, bool *ret_right, struct err *e)
{
    struct reducer_span spans[BUCKETS];
    size_t floats = sum_floats(h), each = floats / BUCKETS;
    float *arena;

    if (reducer_arena(reducer, floats * sizeof *arena, &arena, e) < 0)
        return -1;
    for (size_t b = 0; b < BUCKETS; b++)
        spans[b] = (struct reducer_span){b * each, each};
    for (size_t i = 0; i < floats; i++)
        arena[i] = 1;
    if (reducer_attach(reducer, spans, BUCKETS, e) < 0 || time_sums(h, reducer, ret_s, e) < 0)
        return -1;
    *ret_right = are_sums_right(h, arena, floats);
    return 0;
}

/* Bus bandwidth, as for cards; within a host it is memory that bounds it, between hosts the
 * network, if it was told. */
static void
judge_sums(struct host *h, const struct preflight_options *o, double s, double host_bytes_s)
{
    int n = h->ranks->ranks;
    double factor = 2.0 * (n - 1) / n;
    double rate = factor * (double)(sum_floats(h) * sizeof(float)) / s;

    if (h->ranks->hosts > 1)
        checks_least(h->checks, "all_reduce", rate / 1e9,
                     o->has_network ? NETWORK_SUM_SHARE * o->network.bytes_per_s / 1e9 : NAN,
                     "GB/s", "%d ranks on %d hosts; %s", n, h->ranks->hosts,
                     o->has_network ? o->network.name : "--network says what to expect");
    else
        checks_least(h->checks, "all_reduce", rate / 1e9,
                     !is_judged(h) ? NAN
                                   : LOCAL_SUM_SHARE * factor * host_bytes_s / (2 * n) / 1e9,
                     "GB/s", "%d ranks in shared memory; %.0f %% of what memory allows", n,
                     100 * LOCAL_SUM_SHARE);
}

static int check_sums(struct host *h, const struct preflight_options *o, struct err *e)
{
    struct reducer_options options;
    struct reducer *reducer;
    double s = NAN, host_bytes_s = h->memory_bytes_s;
    bool is_right = false;
    int rc;

    if (h->ranks->ranks == 1)
        return 0;
    if (comm_sum(h->comm, &host_bytes_s, 1, e) < 0 || reducer_defaults(&options, e) < 0 ||
        reducer_new(h->comm, &options, &reducer, e) < 0)
        return -1;
    rc = run_sums(h, reducer, &s, &is_right, e);
    reducer_free(reducer);
    if (rc < 0)
        return -1;
    if (is_right)
        judge_sums(h, o, s, host_bytes_s);
    else
        checks_add(h->checks, VERDICT_BAD, "all_reduce", NAN, "", "the sums are wrong");
    return 0;
}

int preflight_host(struct comm *comm,
                   const struct preflight_options *options,
                   struct checks *checks,
                   struct err *e)
{
    struct host h = {.comm = comm, .ranks = comm_facts(comm), .checks = checks};
    struct processor processor;

    count_cores(&h, options->threads);
    processor_read(&processor);
    if (h.ranks->ranks > 1)
        checks_subject(checks, processor.name, "%s cpu, rank %d", h.ranks->host_name,
                       h.ranks->rank);
    else
        checks_subject(checks, processor.name, "%s cpu", h.ranks->host_name);
    check_cores(&h);
    if (comm_barrier(comm, e) < 0)
        return -1;
    check_fma(&h, &processor);
    if (comm_barrier(comm, e) < 0)
        return -1;
    check_memory(&h);
    return check_sums(&h, options, e);
}
