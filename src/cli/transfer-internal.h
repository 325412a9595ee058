/* transfer-internal.h - what transfer.c and transfer-work.c share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRANSFER_INTERNAL_H
#define CLI_TRANSFER_INTERNAL_H

#include "cli/transfer-side.h"
#include "cli/transfer.h"

#include <pthread.h>
#include <stdatomic.h>

/* A large file on its way.  Guarded by the transfer's lock, but for what parts hold still. */
struct work {
    struct parts parts;
    size_t next;    /* the first piece that nobody has taken */
    size_t left;    /* pieces that have not arrived, the hash being one of them */
    bool must_hash; /* nobody has taken the hash of the source */
    bool failed;
    struct err e;
    struct work *after;
};

struct failure {
    char *target;
    struct err e;
};

struct transfer {
    struct transfer_config config;
    const struct transfer_options *options;
    pthread_t *threads;
    int thread_count;
    int over_fd;

    pthread_mutex_t lock;
    pthread_cond_t more, room;
    struct item **queue; /* a ring */
    size_t head, count;
    struct work *works;
    int busy; /* threads that have an item, from which more work may come */
    bool is_ended, is_over;
    struct failure *failures;
    size_t failure_count;
    int in_a_row; /* failures since something succeeded */
    char gave_up[256];

    pthread_mutex_t ask_lock, pace_lock;
    int64_t pace_us; /* when the next byte may go, by the monotonic clock */

    atomic_bool stop;
    atomic_bool cannot_fetch; /* the server does not copy by itself: seen once, known */
    atomic_int_least64_t found_files, found_bytes, files, bytes, removed, before, skipped,
        failed, moved;
};

/* One thread. */
struct worker {
    struct transfer *transfer;
    struct port source, destination;
    bool is_open;
    char *buf; /* of one piece */
    size_t room;
};

/* --- transfer-work.c --- */

/* Do an item; *ret_work is set when it goes on in pieces, and owns the item then. */
void worker_item(struct worker *worker, struct item *item, struct work **ret_work);
/* Bring one piece; index parts.count is the hash. */
int worker_piece(struct worker *worker, struct work *work, size_t index, struct err *e);
/* All pieces are there, or one has failed. */
void worker_finish(struct worker *worker, struct work *work);
void work_free(struct work *work);

/* --- transfer.c --- */

void transfer_note_failed(struct transfer *transfer,
                          const struct item *item,
                          const struct err *e);
void transfer_note_success(struct transfer *transfer);

#endif
