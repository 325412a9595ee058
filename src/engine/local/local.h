/* local.h - the engine of one machine: nodes are namespaces (as root) or folders, tasks are
 * processes under shims.
 *
 * As root a node is a network, mount and UTS namespace that a keeper (`yard-shim --node`) holds
 * open: its own host name, an address on a bridge, sshd on 22 and 23, its folders at
 * /mnt/batch/tasks/shared/LS_root, the yard's data folder hidden.  Without root a node is a
 * folder: volumes are symbolic links, there is no ssh, all ranks start on this host.
 *
 * Keepers and shims outlive the daemon.  What the engine must find again is on disk (see the
 * README): it keeps nothing that is not told again or read again.
 *
 * Threads: as engine.h says.  What blocks runs on threads of the engine's own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_LOCAL_H
#define ENGINE_LOCAL_LOCAL_H

#include "engine/engine.h"

struct loop;

enum {
    LOCAL_PIDS = 4096,               /* processes and threads of a node */
    LOCAL_PULL_MS = 30 * 60 * 1000,  /* an image of 20 GB over a slow line */
    LOCAL_GRACE_MS = 30 * 1000,      /* between TERM and KILL */
    LOCAL_START_MS = 60 * 60 * 1000, /* set-up tasks install drivers and tools */
};

struct local_config {
    const char
        *home; /* the data folder, absolute; nodes/, clusters/ and attempts/ are made in it */
    const char *shim; /* the program yard-shim, absolute */
    struct engine_events events;
    bool is_rootless;   /* plain folders and process groups, even for root */
    int64_t grace_ms;   /* 0 = LOCAL_GRACE_MS */
    const char *subnet; /* of the nodes, "10.77.0.0/16"; NULL = one that is free here */
    int pids;           /* 0 = LOCAL_PIDS */
    int64_t pull_ms;    /* 0 = LOCAL_PULL_MS */
    int64_t start_ms; /* for a node to come up, its set-up task included; 0 = LOCAL_START_MS */
};

/* The strings of config are copied.  Freed by engine->ops->free. */
int local_engine_new(struct loop *loop,
                     const struct local_config *config,
                     struct engine **ret_engine,
                     struct err *e);

#endif
