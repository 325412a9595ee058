/* sweep.h - end all processes of a node: those of its network namespace, of its cgroup, and
 * those that carry its mark.
 *
 * For errands: blocks, but not for ever.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_SWEEP_H
#define ENGINE_LOCAL_SWEEP_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sweep {
    uint64_t net;       /* inode of the network namespace, which must be held open: numbers are
                           used again; 0 = none */
    const char *mark;   /* "NAME=value" in the environment; NULL = none */
    const char *group;  /* folder of the cgroup, taken with all below it; NULL = none */
    const pid_t *spare; /* these stay */
    size_t spare_count;
};

/* KILL, again and again until none is left.  ERR_TIMEOUT: some do not end. */
int sweep_kill(const struct sweep *sweep, int64_t timeout_ms, struct err *e);
/* Send a signal, once, to those of the namespace that live in another process namespace than we
 * (a container), but for the first of it. */
void sweep_signal_contained(const struct sweep *sweep, int signal);

#endif
