/* process.h - processes as /proc shows them, found and signalled so that a number used again is
 * never taken for the old process.
 *
 * Finding what belongs to a task is three steps: read a table of all processes, mark those that
 * belong (below one, in a cgroup, in a session, with a word in the environment), signal the
 * marked ones.  A process is signalled only when its start time is still that of the table; and
 * since each mark was put after the table was read, it is the process that earned the mark.
 *
 * A table misses what is forked while it is read: whoever must have all goes round until
 * nothing is found.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHIM_PROCESS_H
#define SHIM_PROCESS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    SHIM_BOOT_ID_BYTES = 40, /* text with its NUL */
};

struct shim_process {
    pid_t pid, parent, session;
    bool is_dead;   /* ended, and waiting to be reaped */
    uint64_t start; /* in ticks since boot: field 22 of its stat */
    bool is_marked;
};

/* ERR_NOT_FOUND when there is none. */
int shim_process_read(pid_t pid, struct shim_process *ret_process, struct err *e);
/* The start time alone.  ERR_NOT_FOUND also for one that has ended and was not reaped. */
int shim_process_start(pid_t pid, uint64_t *ret_start, struct err *e);
int shim_boot_id(char ret_id[SHIM_BOOT_ID_BYTES], struct err *e);

struct shim_processes {
    struct shim_process *list; /* by pid, ascending */
    size_t count;
};

int shim_processes_read(struct shim_processes *ret_processes, struct err *e);
void shim_processes_done(struct shim_processes *processes);
#define auto_processes __attribute__((cleanup(shim_processes_done))) struct shim_processes

/* The caller itself and process 1 are never marked. */
void shim_mark_session(struct shim_processes *processes, pid_t session);
void shim_mark_cgroup(struct shim_processes *processes, const char *folder);
/* entry is "NAME=value", whole. */
void shim_mark_environment(struct shim_processes *processes, const char *entry);
/* Everything below root, and below what is marked. */
void shim_mark_descendants(struct shim_processes *processes, pid_t root);

/* Send to all marked ones.  Returns how many of them were alive; *ret_refused (may be NULL) is
 * how many the kernel did not let us signal. */
size_t
shim_signal_marked(const struct shim_processes *processes, int signal, size_t *ret_refused);

/* Has the cgroup no process?  One that is not there has none. */
bool shim_cgroup_is_empty(const char *folder);
/* Kill all of it at one stroke, where the kernel can (version 2).  ERR_NOT_FOUND: it cannot. */
int shim_cgroup_kill(const char *folder, struct err *e);

#endif
