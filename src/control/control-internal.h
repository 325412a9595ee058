/* control-internal.h - what the files of control/ share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTROL_CONTROL_INTERNAL_H
#define CONTROL_CONTROL_INTERNAL_H

#include "control/control.h"
#include "db/writer.h"
#include "loop/loop.h"

#include <pthread.h>

struct conductor;
struct errand;

/* The parent that the last create found in good standing, so that those behind it in the same
 * transaction need not look again.  Every change that cannot be repeated forgets it, and no
 * other may remove or mark a resource.  Writer thread only. */
struct known_parent {
    char *key; /* NULL = none */
    int64_t id, group_id;
    uint64_t generation; /* of the database: holds in this one only */
};

struct control {
    struct control_config config;
    struct db_writer *writer;
    struct principals *principals;
    struct loop *loop; /* the thread that acts */
    pthread_t thread;
    struct loop_timer sweep;
    int64_t last_version, last_resource; /* writer thread only */
    struct known_parent parent;
    pthread_mutex_t errands_lock;
    struct errand *errands; /* operations being seen to */
    struct conductor *conductor;
    struct vmsizes *sizes;
    pthread_mutex_t questions_lock;
    struct question *questions; /* see control_ask */
    pthread_mutex_t watch_lock;
    void (*job_changed)(int64_t job_id, enum job_state state, void *context);
    void *job_context;
};

/* The next version of a resource.  Writer thread only. */
int64_t control_next_version(struct control *control, int64_t now_ms);

/* After anything that may touch a resource that others hang on. */
void control_forget_parent(struct control *control);

/* Refuse unless the resource and everything it hangs on is there and not being deleted. */
int control_check_standing(struct db *db,
                           struct resource *resource,
                           int64_t now_ms,
                           struct err *e);

/* Let the data of an earlier account of that name go. */
int control_begin_empty(struct control_change *change,
                        struct db *db,
                        const char *account,
                        struct err *e);

/* Two fresh keys for a new storage account. */
int control_make_keys(struct control_change *change,
                      struct db *db,
                      int64_t account_row,
                      struct err *e);

/* Questions that came too late are told that there is no engine.  On control's thread. */
void control_answer_last(struct control *control);

/* A job's row was changed by the commit that was just made.  On control's thread. */
void control_tell_job(struct control *control, int64_t job_id, enum job_state state);

/* Let control's thread see to an operation.  From any thread. */
void control_act(struct control *control, const char *operation_id);
/* The same for all that run: after a start. */
int control_act_on_all(struct control *control, struct db *db, struct err *e);
/* Forget what was not finished: the next start takes it up.  Both threads are gone. */
void control_drop_errands(struct control *control);
/* Forget operations that ended long ago, now and then. */
void control_start_sweeping(struct control *control);

#endif
