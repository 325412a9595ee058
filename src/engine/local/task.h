/* task.h - one task under its shim: started, taken up again, watched, stopped.
 *
 * A task is its run folder (shim/folder.h).  task_start looks into it first, so that it can be
 * said again after any crash: what never began is started; what a shim runs is watched; what
 * has ended is reported.  The command of a run folder is executed at most once, whoever calls
 * how often: the shim's lock and its "started" see to that, not this file.
 *
 * The shim is no part of the daemon: it has its own session, and goes on when the daemon ends.
 * It is named by a pidfd that was checked against the pid, start time and boot id in the
 * folder, so a stranger is never signalled.
 *
 * When the shim of a task dies without having left a record, what is left of the task is
 * killed before that is reported: what is in the task's cgroups, what carries its word
 * YARD_TASK=... in the environment, what is in the command's session, and all that is below
 * these.
 *
 * Threads: everything here belongs to the loop's thread.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_TASK_H
#define ENGINE_LOCAL_TASK_H

#include "base/err.h"
#include "base/mem.h"
#include "shim/record.h"
#include "shim/spec.h"

#include <stdint.h>

struct errands;
struct loop;
struct tasks; /* what the tasks of one engine share */
struct task;  /* opaque */

/* errands (borrowed) do what blocks.  shim_path is the program; NULL = $YARD_SHIM, else
 * yard-shim beside the running program. */
struct tasks *tasks_new(struct loop *loop, struct errands *errands, const char *shim_path);
/* All its tasks were freed, and the errands are still there.  NULL is fine. */
void tasks_free(struct tasks *tasks);
DEFINE_AUTOPTR(tasks)

enum task_end {
    TASK_ENDED,       /* record tells how */
    TASK_LOST,        /* it ran, or may have run, and nobody knows how it ended */
    TASK_NOT_STARTED, /* it did not run; error tells why; task_start may try again */
};

struct task_report {
    enum task_end end;
    struct shim_record record; /* TASK_ENDED */
    int64_t started_ms;        /* wall clock; 0 = unknown */
    char error[512];           /* why it could not be started, "" = nothing to say */
};

/* Said once, never from within a call; nothing of the task is alive then, but for what even
 * KILL does not end.  The handle is still the caller's to free (in the call, if it likes). */
typedef void task_ended_fn(void *context, const struct task_report *report);

/* Start the task, or take it up where it is.  The folder is made when it is missing, with the
 * one above it.  When spec->env has no YARD_TASK, the folder's own path is put there.  spec is
 * used during the call alone.  The caller frees *ret_task. */
int task_start(struct tasks *tasks,
               const char *folder,
               const struct shim_spec *spec,
               task_ended_fn *ended,
               void *context,
               struct task **ret_task,
               struct err *e);

/* The same, for what is there already: ERR_NOT_FOUND when nothing was ever started. */
int task_adopt(struct tasks *tasks,
               const char *folder,
               task_ended_fn *ended,
               void *context,
               struct task **ret_task,
               struct err *e);

/* TERM to the whole tree, KILL after grace_ms (negative: after the grace time of its spec).
 * Can be said again; the earliest deadline counts. */
void task_stop(struct task *task, int64_t grace_ms);
/* KILL at once. */
void task_kill(struct task *task);

/* Stop watching; the task goes on.  NULL is fine. */
void task_free(struct task *task);
DEFINE_AUTOPTR(task)

#endif
