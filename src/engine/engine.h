/* engine.h - where nodes and tasks really live.
 *
 * An engine is told, and reports by events.  It is told by node_add, node_remove,
 * attempt_start and attempt_stop; all four return at once, can be repeated (after a restart
 * everything under way is said again, whether it had been done or not), and are followed by
 * their event:
 *
 *     node_add       node_up | node_failed
 *     node_remove    node_gone
 *     attempt_start  attempt_running, later attempt_ended
 *     attempt_stop   attempt_ended
 *
 * attempt_ended comes exactly once for each attempt and process of the daemon: when nothing of
 * the attempt is alive any more, and its mounts are undone.  What an attempt did while the
 * daemon was away is reported when attempt_start is said again.
 *
 * After a restart node_add is said for every node that has not been said to be gone (an idle
 * one too: the engine keeps no list of its own), and attempt_start for every attempt that has
 * not ended, before its attempt_stop.  node_up may come for a node that was up all the time.  A
 * node that was lost while the daemon was away is told by node_failed; one that the restart of
 * the machine took away is made anew, and its attempt ends with ENDED_NODE_LOST and no
 * bad_node.
 *
 * An attempt waits for its nodes: it may be started while they are still on their way.  A node
 * that an attempt holds is removed when the attempt is over.
 *
 * Threads: told and reporting on one loop thread.  Reports never come from within a call.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/err.h"
#include "core/batchai.h"
#include "core/yard.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct engine; /* made by an engine's own function: local_engine_new, ... */
struct loop;
struct str;

/* A volume with its place on this machine. */
struct engine_volume {
    struct volume volume; /* borrowed strings */
    const char
        *source; /* folder on this machine, without volume.folder; NULL for an unmanaged one */
    const char *error_code, *error_message,
        *error_info; /* it cannot be had: AZFMountError, ... */
};

struct engine_cluster {
    int64_t id;
    const char *name;
    const json_t *spec;          /* kept form with secrets */
    const char *suffix;          /* stdOutErrPathSuffix */
    int cores, memory_mib, gpus; /* of a node */
    const struct engine_volume *volumes;
    size_t volume_count;
};

struct engine_node {
    int64_t id;
    const char *name;
    const struct engine_cluster *cluster;
};

struct engine_attempt {
    int64_t id;
    const char *uuid; /* unique over all yards and times */
    int number;
    const char *workspace, *experiment, *job; /* names */
    const char *segment;                      /* jobOutputDirectoryPathSegment */
    const json_t *spec;                       /* of the job: kept form with secrets */
    const char *image; /* to run in, after the image map; NULL = on the host */
    const char *registry_user, *registry_password, *registry_server; /* NULL */
    const struct engine_cluster *cluster;
    const struct engine_volume *volumes; /* of the job */
    size_t volume_count;
    const int64_t *nodes; /* the first is the master */
    size_t node_count;
};

struct engine_events {
    void (*node_up)(void *context, int64_t node_id);
    void (*node_failed)(void *context,
                        int64_t node_id,
                        const char *code,
                        const char *message,
                        const char *info);
    void (*node_gone)(void *context, int64_t node_id);
    void (*attempt_running)(void *context, int64_t attempt_id);
    void (*attempt_ended)(void *context,
                          int64_t attempt_id,
                          const struct attempt_result *result,
                          int64_t started_ms,
                          int64_t ended_ms);
    void *context;
};

struct engine_capacity {
    int cores, memory_mib, gpus;
    bool has_ssh; /* nodes are hosts of their own */
};

/* How to log in to a node. */
struct engine_login {
    char address[64];
    int port;
};

struct engine_ops {
    const char *name;
    void (*capacity)(struct engine *engine, struct engine_capacity *ret_capacity);
    /* What is told is copied. */
    void (*node_add)(struct engine *engine, const struct engine_node *node);
    void (*node_remove)(struct engine *engine, int64_t node_id);
    void (*attempt_start)(struct engine *engine, const struct engine_attempt *attempt);
    /* TERM, after the grace time KILL. */
    void (*attempt_stop)(struct engine *engine, int64_t attempt_id);
    /* The result is recorded: remove what was kept of the attempt (run folders hold secrets).
     */
    void (*attempt_forget)(struct engine *engine, const char *uuid);
    /* Remove a folder of the yard's with all that is in it, when there is time. */
    void (*discard)(struct engine *engine, const char *folder);
    /* After a restart everything that is under way has been said again: what else lies about of
     * this yard (nodes, containers, run folders of attempts that are over) may go. */
    void (*resumed)(struct engine *engine);
    /* ERR_NOT_FOUND when the node is not there or cannot be logged in to. */
    int (*node_login)(struct engine *engine,
                      int64_t node_id,
                      struct engine_login *ret_login,
                      struct err *e);
    /* The file on this machine behind a path that the job sees ("/mnt/.../stdout.txt", or with
     * a variable in front, "$AZ_BATCHAI_JOB_TEMP/.../stdout.txt"): for following logs that lie
     * on no share.  It need not be there yet.  ERR_NOT_FOUND. */
    int (*job_path)(struct engine *engine,
                    int64_t attempt_id,
                    const char *path,
                    struct str *ret_path,
                    struct err *e);
    /* Use of a node now: for `yard top`. */
    int (*node_use)(struct engine *engine,
                    int64_t node_id,
                    double *ret_cores,
                    int64_t *ret_memory_bytes,
                    struct err *e);
    /* Stop reporting and let go of everything in memory; nodes and tasks go on. */
    void (*free)(struct engine *engine);
};

/* First member of every engine's own struct. */
struct engine {
    const struct engine_ops *ops;
};

#endif
