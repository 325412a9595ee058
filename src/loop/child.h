/* child.h - the end of a process as an event of a loop, by pidfd.
 *
 * A pidfd names one process for good: a pid that is used again is never mistaken for it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LOOP_CHILD_H
#define LOOP_CHILD_H

#include "loop/loop.h"

#include <sys/types.h>

enum {
    LOOP_STATUS_UNKNOWN = -1,
};

struct loop_child {
    /* The process has ended; the watch is over.  wait_status is as from waitpid for a child of
     * ours, which is reaped by then, and LOOP_STATUS_UNKNOWN for any other process. */
    void (*ended)(struct loop_child *child, int wait_status);
    pid_t pid;
    struct loop_watch watch; /* private */
};

/* ended is set by the caller before.  ERR_NOT_FOUND when there is no such process. */
int loop_child_watch(struct loop *loop, struct loop_child *child, pid_t pid, struct err *e);
/* Stop watching; the process goes on. */
void loop_child_unwatch(struct loop_child *child);
/* Send a signal to the watched process.  ERR_NOT_FOUND when it has ended. */
int loop_child_signal(struct loop_child *child, int signal, struct err *e);

#endif
