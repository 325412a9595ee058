/* spec.h - what a shim is to run, in a file: the run folder's "spec".
 *
 * A run folder belongs to one task for ever (folder.h has its files).  The spec is a row of
 * "key=value" fields, each ended by a NUL byte, the first of them "yard-shim=1":
 *
 *     argv=       repeated: the command, argv[0] is looked up in PATH of env
 *     env=        repeated: NAME=value, all of the environment
 *     cwd=        folder, made by nobody: must be there
 *     stdout=     file to append to (made when missing, with its folder)
 *     stderr=     the same; may be the same file
 *     logs=       folder that no link is followed beneath: of stdout and stderr as far as they
 *                 lie in it.  Jobs write there, and plant links
 *     enter=      pid of the process whose namespaces to enter first: "<pid> <start time>"
 *     namespaces= which: letters of "mnu" (mount, network, UTS)
 *     cgroup=     repeated: folder whose cgroup.procs the command is put into.  It must be the
 *                 task's own: whatever is in it when the command has ended is killed
 *     memory=     repeated: file that counts OOM kills (memory.events or memory.oom_control).
 *                 Version 1 counts in the victim's own group alone: name the task's
 *     cpus=       processors to stay on, "0-3,8": where a cgroup cannot see to it
 *     limit=      repeated: "<name> <soft> <hard>" for setrlimit: core, nofile, nproc, stack,
 *                 memlock, fsize, as; a number or "unlimited"
 *     grace_ms=   between TERM and KILL; default SHIM_GRACE_MS
 *     user=       "uid:gid" to become, none = stay
 *     umask=      octal; default SHIM_UMASK
 *
 * Anything else is refused: a newer daemon with an older shim must notice.  Paths are absolute.
 *
 * The shim itself stays outside: only the command enters the namespaces, the cgroups and the
 * user.  cwd and the logs are as seen after entering, cgroup and memory as seen before.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHIM_SPEC_H
#define SHIM_SPEC_H

#include "base/err.h"
#include "base/mem.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct str;

enum {
    SHIM_MOST_SPEC_BYTES = 16 << 20,
    SHIM_GRACE_MS = 30 * 1000,
    SHIM_UMASK = 022,
};

struct shim_spec {
    const char **argv; /* NULL-ended, as all lists; a list may be NULL where it may be empty */
    const char **env;
    const char *cwd, *stdout_path, *stderr_path;
    const char *logs; /* NULL = links are followed */
    const char *cpus; /* NULL = any */
    pid_t enter_pid;  /* 0 = none */
    uint64_t enter_start;
    const char *namespaces;
    const char **cgroups;
    const char **memory;
    const char **limits;
    int64_t grace_ms;
    bool has_user;
    uid_t uid;
    gid_t gid;
    mode_t umask;
};

/* Strings are borrowed from bytes, which must end with a NUL; arrays are in the arena. */
int shim_spec_parse(const char *bytes,
                    size_t len,
                    struct arena *arena,
                    struct shim_spec *ret_spec,
                    struct err *e);
void shim_spec_format(const struct shim_spec *spec, struct str *out);

/* One of the limits: RLIMIT_NOFILE and its values. */
int shim_limit_parse(const char *text,
                     int *ret_resource,
                     struct rlimit *ret_limit,
                     struct err *e);

#endif
