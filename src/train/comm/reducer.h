/* reducer.h - sums the gradients of all ranks, bucket by bucket, while the backward pass goes
 * on.
 *
 * Calling sequence: reducer_new(), reducer_arena() for the memory the gradients shall lie in,
 * reducer_attach() with the spans of the buckets, then in each step reducer_start(b) as each
 * bucket is done and reducer_wait(b) before its update, in any order of b that is the same on
 * all ranks; reducer_free().
 *
 * The order of buckets is fixed by the graph, equal on all ranks (comm_agree checks it at
 * attach), so there is no negotiation: nothing to gather at rank 0, nothing that grows with
 * the ranks.
 *
 * Buckets are cut into pieces (1 MiB at most; one large call is slower than many, measured).
 * On one host the arenas are in shared memory: whoever has time, the progress thread or a step
 * thread that waits, of any rank, takes the next piece that all ranks have handed in, adds it
 * up over all arenas in order of rank and writes the sum into all of them.  Nothing is copied,
 * the bits are the same on every rank and in every run, and a rank that sleeps holds nobody up.
 * Over several hosts a piece belongs to a lane (the ranks with the same place on their hosts):
 * its rank adds up the arenas of its host, sums over the hosts by MPI (recursive halving and
 * doubling, or a ring), eight pieces at a time, and writes the result into all arenas.
 *
 * The progress thread sleeps on a futex.  Buckets are not joined any further than the graph has
 * joined them: that would need ranks to agree on what is there, in every step.
 *
 * HOROVOD_FUSION_THRESHOLD (bytes; 0 = off) and HOROVOD_CYCLE_TIME (ms, float) are honoured: a
 * cycle time is how long the thread waits for company before it starts with what there is;
 * unset, it starts at once.
 *
 * Threads: start and wait are called from the step thread only; start never blocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_REDUCER_H
#define TRAIN_COMM_REDUCER_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct comm;
struct str;
struct reducer; /* opaque */

struct reducer_options {
    int64_t fusion_bytes; /* as reducer_defaults() reads it; the graph's buckets have it too */
    double cycle_ms;      /* 0 = at once */
    int64_t piece_bytes;
    bool is_sum_in_order; /* insist on sums in order of rank: so it is on one host; over several
                             it cannot be had and is an error */
    int core;             /* to pin the progress thread to; -1 = none */
};
/* From the environment; a value that makes no sense is an error that names the variable. */
int reducer_defaults(struct reducer_options *options, struct err *e);

int reducer_new(struct comm *comm,
                const struct reducer_options *options,
                struct reducer **ret_reducer,
                struct err *e);
void reducer_free(struct reducer *reducer);

/* Memory for all gradients, zeroed, aligned to 4096, seen by the ranks of this host; lives as
 * long as the reducer.  Once.  Collective on a host. */
int reducer_arena(struct reducer *reducer, size_t bytes, float **ret_arena, struct err *e);

struct reducer_span {
    size_t offset; /* in floats, within the arena; spans ascend and do not overlap */
    size_t count;
};
/* Say what the buckets are: span b is bucket b.  Collective; fails on every rank when they
 * differ. */
int reducer_attach(struct reducer *reducer,
                   const struct reducer_span *spans,
                   int count,
                   struct err *e);

/* The bucket's gradients of this rank are final: sum them over all ranks, in place. */
void reducer_start(struct reducer *reducer, int bucket);
/* Until the bucket holds the sum.  Fails when a rank died (comm.h). */
int reducer_wait(struct reducer *reducer, int bucket, struct err *e);

struct reducer_times { /* since the last call, of this rank */
    double busy_s;     /* the progress thread had work */
    double exposed_s;  /* reducer_wait() waited */
    uint64_t bytes, calls;
};
void reducer_times(struct reducer *reducer, struct reducer_times *ret_times);

/* When buckets were ready, in seconds from the end of the last step's reductions, means over
 * the steps since the last call: "<end of the backward pass> <ready>:<bytes> <ready>:<bytes>
 * ...". Nothing when there was no step.  For the report's "buckets", which `yardbench scale`
 * reads. */
void reducer_pace(struct reducer *reducer, struct str *out);

/* A plain in-place sum of any memory, for the benchmark and for weights that are averaged:
 * blocks until done; the caller's thread does the work.  Memory in the arena is not copied. Not
 * while buckets are on their way; over several hosts not before reducer_attach(). */
int reducer_sum(struct reducer *reducer, float *values, size_t count, struct err *e);

struct reducer_event { /* for the trace */
    int bucket;
    int64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
};
/* Record the next step's events; then read them (borrowed until the next call). */
void reducer_trace(struct reducer *reducer, bool is_on);
const struct reducer_event *reducer_events(struct reducer *reducer, int *ret_count);

#endif
