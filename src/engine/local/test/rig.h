/* rig.h - a local engine with everything real, and somebody who tells it what to do.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_TEST_RIG_H
#define ENGINE_LOCAL_TEST_RIG_H

#include "base/clock.h"
#include "base/crypt.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "engine/local/command.h"
#include "engine/local/folder.h"
#include "engine/local/local.h"
#include "loop/loop.h"

#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    RIG_NODES = 4,
    RIG_LONG_MS = 60 * 1000, /* a sanitized build on a busy machine */
};

struct rig {
    struct loop *loop;
    struct engine *engine;
    char home[64];
    bool is_rootless;
    bool is_slow; /* its shims take their time to begin */
    int cores;    /* of a node; 0 = 2 */
    int64_t start_ms;
    const char *user, *password; /* of a registry; NULL */
    struct loop_timer timer;
    bool is_late;
    bool is_child; /* a process that is to die: it must not go on with the tests */
    /* What was told, by id from 1 on. */
    bool is_up[RIG_NODES + 1], is_gone[RIG_NODES + 1];
    char failure[RIG_NODES + 1][64], info[RIG_NODES + 1][512];
    int running, ended; /* attempts */
    int64_t running_ms; /* monotonic */
    struct attempt_result result;
    int64_t started_ms, ended_ms;
    json_t *cluster_spec;
    struct engine_volume volumes[4];
    size_t volume_count; /* of the cluster */
    char uuid[CRYPT_UUID_BYTES];
};

/* --- events --- */

static inline void rig_node_up(void *context, int64_t id)
{
    struct rig *rig = context;

    rig->is_up[id] = true;
    loop_stop(rig->loop);
}

static inline void rig_node_failed(
    void *context, int64_t id, const char *code, const char *message, const char *info)
{
    struct rig *rig = context;

    (void)message;
    snprintf(rig->failure[id], sizeof(rig->failure[id]), "%s", code);
    snprintf(rig->info[id], sizeof(rig->info[id]), "%s", info);
    loop_stop(rig->loop);
}

static inline void rig_node_gone(void *context, int64_t id)
{
    struct rig *rig = context;

    rig->is_gone[id] = true;
    loop_stop(rig->loop);
}

static inline void rig_attempt_running(void *context, int64_t id)
{
    struct rig *rig = context;

    (void)id;
    rig->running++;
    rig->running_ms = clock_mono_ms();
    loop_stop(rig->loop);
}

static inline void rig_attempt_ended(void *context,
                                     int64_t id,
                                     const struct attempt_result *result,
                                     int64_t started_ms,
                                     int64_t ended_ms)
{
    struct rig *rig = context;

    (void)id;
    rig->ended++;
    rig->result = *result;
    rig->started_ms = started_ms;
    rig->ended_ms = ended_ms;
    loop_stop(rig->loop);
}

/* --- time --- */

static inline void rig_fired(struct loop_timer *timer)
{
    struct rig *rig = container_of(timer, struct rig, timer);

    rig->is_late = true;
    loop_stop(rig->loop);
}

/* Let the loop run until what is said is true. */
#define rig_until(rig, condition)                                                              \
    do {                                                                                       \
        (rig)->is_late = false;                                                                \
        loop_timer_set((rig)->loop, &(rig)->timer, RIG_LONG_MS);                               \
        while (!(condition) && !(rig)->is_late)                                                \
            loop_run((rig)->loop);                                                             \
        loop_timer_cancel(&(rig)->timer);                                                      \
        if (!(condition) && (rig)->is_child)                                                   \
            _exit(1);                                                                          \
        if (!(condition))                                                                      \
            fail_msg("waited in vain for %s", #condition);                                     \
    } while (0)

static inline void rig_pause(struct rig *rig, int64_t ms)
{
    rig->is_late = false;
    loop_timer_set(rig->loop, &rig->timer, ms);
    while (!rig->is_late)
        loop_run(rig->loop);
}

/* --- life --- */

static inline char *rig_shim(void)
{
    char path[PATH_MAX] = "";
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

    assert_true(len > 0);
    *strrchr(path, '/') = '\0';
    return xasprintf("%s/../bin/yard-shim", path);
}

static inline char *rig_slow_shim(struct rig *rig)
{
    auto_free char *shim = rig_shim();
    char *path = xasprintf("%s/slow-shim", rig->home);
    auto_free char *text = xasprintf("#!/bin/sh\nsleep 0.4\nexec %s \"$@\"\n", shim);
    struct err e = {0};

    if (folder_write(path, text, strlen(text), 0755, &e) < 0)
        fail_msg("%s", e.msg);
    return path;
}

/* A daemon's start. */
static inline void rig_open(struct rig *rig)
{
    auto_free char *shim = rig->is_slow ? rig_slow_shim(rig) : rig_shim();
    struct local_config config = {
        .home = rig->home,
        .shim = shim,
        .events = {rig_node_up, rig_node_failed, rig_node_gone, rig_attempt_running,
                   rig_attempt_ended, rig},
        .is_rootless = rig->is_rootless,
        .grace_ms = 1000,
        .pids = 300,
        .start_ms = rig->start_ms,
    };
    struct err e = {0};

    if (getenv("RIG_DEBUG"))
        log_set_level(LOG_LEVEL_DEBUG);
    rig->timer.fired = rig_fired;
    assert_int_equal(loop_new(&rig->loop, &e), 0);
    if (local_engine_new(rig->loop, &config, &rig->engine, &e) < 0)
        fail_msg("%s", e.msg);
}

static inline void rig_close(struct rig *rig)
{
    rig->engine->ops->free(rig->engine);
    loop_free(rig->loop);
}

static inline struct rig *rig_new(bool is_rootless)
{
    struct rig *rig = xcalloc(1, sizeof(*rig));

    snprintf(rig->home, sizeof(rig->home), "%s/yard-local-XXXXXX",
             getenv("RIG_AT") ? getenv("RIG_AT") : "/tmp");
    assert_non_null(mkdtemp(rig->home));
    chmod(rig->home, 0755);
    rig->is_rootless = is_rootless;
    rig->cluster_spec = json_pack("{s:{s:s,s:s}}", "userAccountSettings", "adminUserName",
                                  "tester", "adminUserPassword", "sesame-7");
    crypt_uuid(rig->uuid);
    return rig;
}

static inline void rig_free(struct rig *rig)
{
    folder_remove(rig->home, NULL);
    json_decref(rig->cluster_spec);
    free(rig);
}

/* --- telling --- */

static inline struct engine_cluster rig_cluster(struct rig *rig)
{
    return (struct engine_cluster){
        .id = 1,
        .name = "c",
        .spec = rig->cluster_spec,
        .suffix = "sub/rg/workspaces/w/clusters/c/0",
        .cores = rig->cores ? rig->cores : 2,
        .memory_mib = 512,
        .volumes = rig->volumes,
        .volume_count = rig->volume_count,
    };
}

static inline void rig_add(struct rig *rig, int64_t id)
{
    struct engine_cluster cluster = rig_cluster(rig);
    auto_free char *name = xasprintf("tvm-1-%d", (int)id);

    rig->is_up[id] = false;
    rig->engine->ops->node_add(
        rig->engine, &(struct engine_node){.id = id, .name = name, .cluster = &cluster});
}

static inline void rig_add_up(struct rig *rig, int count)
{
    for (int id = 1; id <= count; id++)
        rig_add(rig, id);
    for (int id = 1; id <= count; id++) {
        rig_until(rig, rig->is_up[id] || rig->failure[id][0]);
        if (rig->failure[id][0])
            fail_msg("node %d: %s: %s", id, rig->failure[id], rig->info[id]);
    }
}

static inline void rig_remove_all(struct rig *rig, int count)
{
    for (int id = 1; id <= count; id++) {
        rig->is_gone[id] = false;
        rig->engine->ops->node_remove(rig->engine, id);
    }
    for (int id = 1; id <= count; id++)
        rig_until(rig, rig->is_gone[id]);
}

/* A job of the custom toolkit; more is merged into its spec. */
static inline void rig_submit_full(struct rig *rig,
                                   int nodes,
                                   json_t *spec,
                                   const char *image,
                                   const struct engine_volume *volumes,
                                   size_t volume_count)
{
    static const int64_t ids[] = {1, 2, 3, 4};
    struct engine_cluster cluster = rig_cluster(rig);

    rig->engine->ops->attempt_start(rig->engine,
                                    &(struct engine_attempt){
                                        .id = 7,
                                        .uuid = rig->uuid,
                                        .number = 1,
                                        .workspace = "w",
                                        .experiment = "e",
                                        .job = "j",
                                        .segment = "sub/rg/workspaces/w/experiments/e/jobs/j/1",
                                        .spec = spec,
                                        .image = image,
                                        .registry_user = rig->user,
                                        .registry_password = rig->password,
                                        .cluster = &cluster,
                                        .volumes = volumes,
                                        .volume_count = volume_count,
                                        .nodes = ids,
                                        .node_count = (size_t)nodes,
                                    });
}

static inline json_t *rig_job(const char *command)
{
    return json_pack("{s:s,s:{s:s}}", "stdOutErrPathPrefix", "$AZ_BATCHAI_MOUNT_ROOT/out",
                     "customToolkitSettings", "commandLine", command);
}

static inline void rig_submit(struct rig *rig, int nodes, const char *command)
{
    auto_json json_t *spec = rig_job(command);

    rig_submit_full(rig, nodes, spec, NULL, NULL, 0);
}

/* To the end; returns the exit code. */
static inline int rig_run(struct rig *rig, int nodes, const char *command)
{
    int before = rig->ended;

    crypt_uuid(rig->uuid);
    rig_submit(rig, nodes, command);
    rig_until(rig, rig->ended > before);
    return rig->result.exit_code;
}

/* --- looking --- */

static inline char *rig_log_path(struct rig *rig, int node, const char *file)
{
    return xasprintf(
        "%s/nodes/tvm-1-%d/root/mounts/out/sub/rg/workspaces/w/experiments/e/jobs/j/1/"
        "stdouterr/%s",
        rig->home, node, file);
}

/* A log of the job, "" when it is not there; the caller frees. */
static inline char *rig_log(struct rig *rig, int node, const char *file)
{
    auto_free char *path = rig_log_path(rig, node, file);
    struct str text = {0};

    if (fs_read(path, 1 << 20, &text, NULL) < 0)
        str_done(&text);
    return str_take(&text);
}

static inline void
rig_expect_log(struct rig *rig, int node, const char *file, const char *expected)
{
    auto_free char *text = rig_log(rig, node, file);

    if (!strstr(text, expected))
        fail_msg("%s of node %d is \"%s\", without \"%s\"", file, node, text, expected);
}

/* How many processes have this in their command line. */
static inline int rig_count_processes(const char *words)
{
    const char *argv[] = {"pgrep", "-c", "-f", words, NULL};
    auto_outcome outcome = {0};

    assert_int_equal(
        command_run(&(struct command){.argv = argv, .timeout_ms = 10000}, &outcome, NULL), 0);
    return atoi(str_text(&outcome.out));
}

#endif
