/* cgroup.h - limits of a node: memory, processors, processes.
 *
 * A node is a group with one group in it for each task, and one, "ssh", for its keeper and what
 * comes in by ssh.  The limits are the node's: how much processor time, and which processors.
 * Version 1 (one tree for each controller), version 2, or none: where groups cannot be made
 * there are no limits, and nothing fails.
 *
 *     <mount>/yard-<hash of the data folder>/<node>/{ssh,main,prep-0,...}
 *
 * Threads: any, but for cgroups_new and cgroups_free.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_CGROUP_H
#define ENGINE_LOCAL_CGROUP_H

#include "base/err.h"

#include <stdint.h>

struct arena;
struct cgroups; /* opaque */

struct cgroup_limits {
    int cores;
    const char *cpus;     /* which: "0-3,8" */
    int64_t memory_bytes; /* 0 = as it is */
    int pids;
};

struct cgroups *cgroups_new(const char *home);
/* Groups stay, but for the yard's own when it is empty. */
void cgroups_free(struct cgroups *cgroups);

/* Make the node's group, or set its limits again. */
void cgroup_make(struct cgroups *cgroups, const char *node, const struct cgroup_limits *limits);
/* Make a group in it; its folders (one for each tree) and the files that count OOM kills, both
 * NULL-ended, in the arena. */
void cgroup_make_leaf(struct cgroups *cgroups,
                      const char *node,
                      const char *leaf,
                      struct arena *arena,
                      const char ***ret_folders,
                      const char ***ret_memory);
/* As a container runtime's --cgroup-parent: "/yard-.../<node>"; NULL when there are no groups.
 */
const char *cgroup_parent(struct cgroups *cgroups, const char *node, struct arena *arena);
/* The files that count OOM kills of the group a process is in, NULL-ended, in the arena. */
const char **cgroup_memory_of(struct cgroups *cgroups, int64_t pid, struct arena *arena);
/* The node's folder in one of the trees; NULL when there are no groups. */
const char *cgroup_folder(struct cgroups *cgroups, const char *node, struct arena *arena);
/* While set, nothing in the node can fork: a bomb stands still for its killing. */
void cgroup_forbid_forks(struct cgroups *cgroups,
                         const char *node,
                         bool is_forbidden,
                         int pids);
/* Remove a group that is empty with all in it. */
void cgroup_remove(struct cgroups *cgroups, const char *node);
/* Remove the yard's own group when no node is left. */
void cgroups_sweep(struct cgroups *cgroups);
/* Processor time used so far, memory now.  ERR_NOT_FOUND: nobody counts. */
int cgroup_use(struct cgroups *cgroups,
               const char *node,
               int64_t *ret_cpu_us,
               int64_t *ret_memory_bytes,
               struct err *e);

#endif
