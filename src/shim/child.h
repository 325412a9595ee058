/* child.h - what becomes of the shim's child between fork and exec.
 *
 * The child makes everything ready (cgroups, namespaces, logs, limits, user, folder), then
 * waits at a gate until the shim has it on disk that the command was started, and executes it.
 * When the shim dies before, the gate is shut and the child ends.
 *
 * The command is not bound to the shim's life: when the shim is killed, whoever cleans up finds
 * the command by "started", and below it the tree, which would fall apart if the command died
 * first.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHIM_CHILD_H
#define SHIM_CHILD_H

#include "base/err.h"
#include "shim/spec.h"

#include <sys/types.h>

/* Why the command does not run: what the child says before it ends.  At most PIPE_BUF bytes, so
 * that it comes whole. */
struct shim_failure {
    int code;       /* 127, 126, or -1 when it did not come so far */
    char text[512]; /* one line */
};

struct shim_child {
    pid_t pid;
    int gate;     /* a byte lets it go; closing it ends it */
    int failures; /* a struct shim_failure, or nothing when the command was executed */
};

/* Fork.  Namespaces are opened, and seen to be those of the process meant, before.  lock_fd is
 * the shim's alone: the child closes it, so that a lock does not outlive the shim. */
int shim_child_fork(const struct shim_spec *spec,
                    int lock_fd,
                    struct shim_child *ret_child,
                    struct err *e);
void shim_child_release(struct shim_child *child);
/* After the child has ended: did it fail before the command ran? */
bool shim_child_failed(struct shim_child *child, struct shim_failure *ret_failure);

#endif
