/* reducer-internal.h - what the reducer's files share: the block in shared memory, and each
 * rank's own side of it.
 *
 * Buckets that are started form one endless row of chunks, the same on every rank: a bucket has
 * a fixed number of chunks, and buckets are started in the same order everywhere.  All numbers
 * below count chunks in that row; they wrap around, and are compared by difference.
 *
 *   rank[r].ready   chunks that rank r has handed in
 *   available       the least of those: all of these can be summed
 *   claimed         chunks that somebody of this host has taken on
 *   bucket[b].done  chunks of bucket b that are summed, since the beginning
 *
 * On one host any thread of any rank may sum any chunk, since it gives the result to all:
 * whoever has time does it, and nobody waits for one that sleeps.  Over several hosts a chunk
 * belongs to a lane (reducer-net.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_REDUCER_INTERNAL_H
#define TRAIN_COMM_REDUCER_INTERNAL_H

#include "train/comm/bell.h"
#include "train/comm/comm-internal.h"
#include "train/comm/reducer.h"
#include "train/comm/share.h"

#include <pthread.h>

enum {
    REDUCER_MOST_BUCKETS = 4096,
    REDUCER_STAGE_FLOATS = 64 << 10, /* 256 KiB: two of them and a peer's fit into any L2 */
    REDUCER_SMALL_FLOATS = 8 << 10,  /* below, everybody sums everything: one meeting less */
    REDUCER_LEAST_FLOATS = 4 << 10,  /* of a chunk: below, claiming costs more than summing */
    REDUCER_FEW_RANKS = 4,           /* so many meet without a gate */
};

struct reducer_rank {
    _Alignas(64) _Atomic uint32_t ready;
    _Atomic uint64_t sum_at; /* reducer_sum(): where in the arena, in floats */
    struct bell staged;      /* reducer_sum(): meetings this rank has come to */
};

struct reducer_bucket {
    struct bell done;
    _Atomic int64_t begun_ns, done_ns;
};

struct reducer_shared {
    struct bell available; /* steps wait here */
    struct bell work;      /* progress threads sleep here; counts calls to work */
    _Alignas(64) _Atomic uint32_t claimed;
    struct gate gate; /* of reducer_sum(), for more than a few */
    struct reducer_rank rank[GROUP_MOST];
    struct reducer_bucket bucket[REDUCER_MOST_BUCKETS + 1]; /* the last is reducer_sum()'s */
};

/* One rank's side of a bucket.  Written by the step thread before it hands the bucket in. */
struct reducer_part {
    struct reducer_span span;
    size_t chunk_floats;
    _Atomic uint32_t chunks;
    _Atomic uint32_t first; /* its first chunk, this time */
    _Atomic uint32_t target;
    _Atomic bool is_known; /* was started at least once */
    double ready_s;        /* pace: sum over steps */
};

struct reducer_net; /* reducer-net.c */

struct reducer {
    struct comm *comm;
    struct reducer_options options;
    int ranks, local, hosts;
    bool is_alone;
    struct bell_patience patience;

    struct share block; /* struct reducer_shared */
    struct reducer_shared *shared;
    struct share arena[GROUP_MOST], stage[GROUP_MOST]; /* by place on the host */
    size_t arena_floats;
    unsigned sum_turn;

    struct reducer_part *parts; /* count + 1 */
    int count;                  /* buckets */
    uint32_t started;

    pthread_t thread;
    bool has_thread;
    _Atomic bool stops, has_stopped, helps; /* helps: the step thread itself is at it */
    struct reducer_net *net;
    _Atomic bool has_failed;
    struct err failure; /* of the progress thread; set before has_failed */

    _Atomic int64_t busy_ns;
    int64_t exposed_ns;
    uint64_t bytes, calls;
    bool traces;
    struct reducer_event *events;
    int event_count;

    int64_t step_ns; /* pace: when the last step's last bucket was there */
    int outstanding; /* buckets started and not waited for */
    double end_s;    /* pace: sum over steps of the first wait */
    bool is_waiting; /* the first wait of this step was seen */
    int64_t paced;   /* steps in the sums */
};

int64_t reducer_now_ns(void);

/* How a span is cut, with that many ranks to share it: sets chunk_floats, returns the number of
 * chunks. */
uint32_t reducer_cut(struct reducer_part *part, int sharers, int64_t piece_bytes);
/* How many share a chunk row: the ranks of the host, or the lanes. */
int reducer_sharers(const struct reducer *reducer);

/* Hand in part `bucket`; calls the progress threads if asked to. */
void reducer_hand_in(struct reducer *reducer, int bucket, bool calls);
/* Until it is summed; the step thread lends a hand. */
int reducer_finish(struct reducer *reducer, int bucket, struct err *e);

/* Where a chunk lies. */
struct reducer_piece {
    int bucket;
    size_t at[GROUP_MOST]; /* in each rank's arena, in floats */
    size_t count;
    bool is_first;
    uint32_t target;
};
void reducer_find(struct reducer *reducer, uint32_t chunk, struct reducer_piece *ret_piece);
void reducer_mark_done(struct reducer *reducer, const struct reducer_piece *piece);
float *reducer_arena_of(const struct reducer *reducer, int local);

void *reducer_progress(void *arg); /* the thread, on one host */

int reducer_net_new(struct reducer *reducer, struct reducer_net **ret_net, struct err *e);
void reducer_net_free(struct reducer_net *net);
void *reducer_net_progress(void *arg); /* the thread, with several hosts */

#endif
