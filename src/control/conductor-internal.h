/* conductor-internal.h - what the files of the conductor share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTROL_CONDUCTOR_INTERNAL_H
#define CONTROL_CONDUCTOR_INTERNAL_H

#include "control/conductor.h"
#include "control/control-internal.h"
#include "core/yard.h"
#include "engine/engine.h"
#include "loop/loop.h"

struct db;
struct vmsize;

/* Somebody who waits for things to end. */
struct waiter {
    struct waiter *next;
    void (*again)(void *arg);
    void *arg;
};

struct conductor {
    struct control *control;
    struct engine *engine;
    struct yard *yard;
    struct loop_timer tick;
    struct loop_timer retry;
    struct loop_timer again; /* what could not be read is read again */
    struct loop_task settle; /* record what the events of this turn changed */
    struct record *record;   /* being written, or NULL */
    struct waiter *waiters;
    int64_t begun_wall_ms, begun_mono_ms; /* see conductor_now */
    struct failed_act *failed; /* actions that the engine never heard of, to be reported */
    struct loop_task report;
    bool is_started, is_resumed, is_stopping;

    pthread_mutex_t touched_lock;
    int64_t *touched; /* rows that clients changed */
    size_t touched_count;
};

/* The time as the mind is told it: the wall clock at the start, and on from there by the
 * monotonic one.  A clock that is set does not end every job that has a limit. */
int64_t conductor_now(const struct conductor *conductor);

/* --- conductor-read.c: rows to the mind --- */

/* A cluster or job as its row now is. */
int conductor_read(struct conductor *conductor, struct db *db, int64_t id, struct err *e);
/* GPUs of a node of that size.  A recipe for GPUs still runs on a machine that has none at all.
 */
int conductor_gpus(const struct control *control, const struct vmsize *size);
/* All of them. */
int conductor_read_all(struct conductor *conductor, struct db *db, struct err *e);

/* --- conductor-record.c: the mind to rows --- */

/* Soon: record what changed, then act. */
void conductor_settle(struct conductor *conductor);
void conductor_drop_record(struct conductor *conductor);
/* Whoever waits asks again. */
void conductor_wake_waiters(struct conductor *conductor);

/* --- conductor-act.c --- */

void conductor_act(struct conductor *conductor,
                   struct db *db,
                   const struct yard_action *action);
/* All that is under way has been said again: once, the engine may tidy up. */
void conductor_resumed(struct conductor *conductor);
void conductor_drop_failed(struct conductor *conductor);
/* The attempt's result is recorded: its run folders may go. */
void conductor_forget_attempt(struct conductor *conductor, int64_t job_id, int number);

#endif
