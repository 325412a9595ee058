/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/local.h"

#include "base/clock.h"
#include "base/fs.h"
#include "engine/local/folder.h"
#include "engine/local/local-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    THREADS = 12, /* most wait for a program */
    SLOW_THREADS = 4,
};

static struct local *local_of(struct engine *engine)
{
    return container_of(engine, struct local, engine);
}

struct node *local_find_node(struct local *local, int64_t id)
{
    struct node *node = local->nodes;

    while (node && node->id != id)
        node = node->next;
    return node;
}

struct attempt *local_find_attempt(struct local *local, int64_t id)
{
    struct attempt *attempt = local->attempts;

    while (attempt && attempt->told.id != id)
        attempt = attempt->next;
    return attempt;
}

/* --- told --- */

static void op_capacity(struct engine *engine, struct engine_capacity *ret_capacity)
{
    *ret_capacity = local_of(engine)->capacity;
}

static void op_node_add(struct engine *engine, const struct engine_node *node)
{
    node_add(local_of(engine), node);
}

static void op_node_remove(struct engine *engine, int64_t node_id)
{
    node_remove(local_of(engine), node_id);
}

static void op_attempt_start(struct engine *engine, const struct engine_attempt *attempt)
{
    attempt_start(local_of(engine), attempt);
}

static void op_attempt_stop(struct engine *engine, int64_t attempt_id)
{
    attempt_stop(local_of(engine), attempt_id);
}

/* --- asked --- */

static int op_node_login(struct engine *engine,
                         int64_t node_id,
                         struct engine_login *ret_login,
                         struct err *e)
{
    struct local *local = local_of(engine);
    const struct node *node = local_find_node(local, node_id);

    if (!node || !local->has_ssh ||
        (node->stage != NODE_IS_READY && node->stage != NODE_IS_SETTING_UP))
        return err_set(e, ERR_NOT_FOUND, "node %" PRId64 " cannot be logged in to", node_id);
    snprintf(ret_login->address, sizeof(ret_login->address), "%s", node->address);
    ret_login->port = 22;
    return 0;
}

static int op_job_path(struct engine *engine,
                       int64_t attempt_id,
                       const char *path,
                       struct str *ret_path,
                       struct err *e)
{
    const struct attempt *attempt = local_find_attempt(local_of(engine), attempt_id);

    if (!attempt)
        return err_set(e, ERR_NOT_FOUND, "attempt %" PRId64 " is not running", attempt_id);
    return path_on_host(attempt, path, ret_path, e);
}

static int op_node_use(struct engine *engine,
                       int64_t node_id,
                       double *ret_cores,
                       int64_t *ret_memory_bytes,
                       struct err *e)
{
    struct local *local = local_of(engine);
    struct node *node = local_find_node(local, node_id);
    int64_t cpu_us, now_us = clock_mono_us();

    if (!node || !node->name)
        return err_set(e, ERR_NOT_FOUND, "there is no node %" PRId64, node_id);
    if (cgroup_use(local->cgroups, node->name, &cpu_us, ret_memory_bytes, e) < 0)
        return -1;
    /* Since it was asked for last; the first answer has nothing to compare with. */
    *ret_cores = node->cpu_at_us && now_us > node->cpu_at_us
                     ? (double)(cpu_us - node->cpu_us) / (double)(now_us - node->cpu_at_us)
                     : 0;
    node->cpu_us = cpu_us;
    node->cpu_at_us = now_us;
    return 0;
}

static void op_attempt_forget(struct engine *engine, const char *uuid)
{
    attempt_forget(local_of(engine), uuid);
}

static void op_discard(struct engine *engine, const char *folder)
{
    local_discard(local_of(engine), folder);
}

static void forget_unknown(struct local *local, int64_t node_id)
{
    if (!local_find_node(local, node_id))
        node_remove(local, node_id);
}

static void op_resumed(struct engine *engine)
{
    struct local *local = local_of(engine);

    attempts_sweep(local);
    nodes_each_on_disk(local, forget_unknown);
}

/* --- beginning and end --- */

static void op_free(struct engine *engine)
{
    struct local *local = local_of(engine);
    struct attempt *attempt;
    struct node *node;

    /* In this order: tasks use errands, errands use nodes and attempts. */
    for (attempt = local->attempts; attempt; attempt = attempt->next)
        attempt_unwatch(attempt);
    for (node = local->nodes; node; node = node->next)
        task_free(take_ptr(&node->setup));
    tasks_free(local->tasks);
    errands_free(local->slow);
    errands_free(local->errands);
    while ((attempt = local->attempts)) {
        local->attempts = attempt->next;
        attempt_free(attempt);
    }
    while ((node = local->nodes)) {
        local->nodes = node->next;
        node_free(node);
    }
    box_free(local->box);
    cgroups_free(local->cgroups);
    gpus_free(local->gpus);
    cpus_free(local->cpus);
    net_free(local->net);
    pthread_mutex_destroy(&local->cluster_lock);
    free(local->home);
    free(local->shim);
    free(local);
}

static const struct engine_ops ops = {
    .name = "local",
    .capacity = op_capacity,
    .node_add = op_node_add,
    .node_remove = op_node_remove,
    .attempt_start = op_attempt_start,
    .attempt_stop = op_attempt_stop,
    .attempt_forget = op_attempt_forget,
    .discard = op_discard,
    .resumed = op_resumed,
    .node_login = op_node_login,
    .job_path = op_job_path,
    .node_use = op_node_use,
    .free = op_free,
};

static void measure(struct local *local)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    local->capacity = (struct engine_capacity){
        .cores = cpus_count(local->cpus),
        .memory_mib = (int)(((int64_t)pages * page) >> 20),
        .gpus = gpus_count(local->gpus),
        .has_ssh = local->has_ssh,
    };
}

static const char *find_sshd(void)
{
    static const char *const places[] = {"/usr/sbin/sshd", "/usr/local/sbin/sshd"};

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        if (access(places[i], X_OK) == 0)
            return places[i];
    }
    return NULL;
}

static int make_home(const char *home, struct err *e)
{
    static const char *const folders[] = {"nodes", "clusters", "attempts"};

    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        auto_free char *path = xasprintf("%s/%s", home, folders[i]);

        if (fs_make_folders(path, 0755, e) < 0)
            return -1;
    }
    return 0;
}

int local_engine_new(struct loop *loop,
                     const struct local_config *config,
                     struct engine **ret_engine,
                     struct err *e)
{
    bool is_rootless = config->is_rootless || geteuid() != 0;
    struct errands *errands = NULL, *slow = NULL;
    struct net *net = NULL;
    struct local *local;

    if (make_home(config->home, e) < 0 ||
        (!is_rootless && net_new(config->home, config->subnet, &net, e) < 0))
        return -1;
    if (errands_new(loop, THREADS, &errands, e) < 0 ||
        errands_new(loop, SLOW_THREADS, &slow, e) < 0) {
        errands_free(errands);
        net_free(net);
        return -1;
    }
    local = xcalloc(1, sizeof(*local));
    *local = (struct local){
        .engine.ops = &ops,
        .loop = loop,
        .errands = errands,
        .slow = slow,
        .home = xstrdup(config->home),
        .shim = xstrdup(config->shim),
        .sshd = is_rootless ? NULL : find_sshd(),
        .events = config->events,
        .is_rootless = is_rootless,
        .grace_ms = config->grace_ms ? config->grace_ms : LOCAL_GRACE_MS,
        .pull_ms = config->pull_ms ? config->pull_ms : LOCAL_PULL_MS,
        .start_ms = config->start_ms ? config->start_ms : LOCAL_START_MS,
        .pids = config->pids ? config->pids : LOCAL_PIDS,
        .net = net,
        .gpus = gpus_new(),
        .cpus = cpus_new(),
        .cgroups = cgroups_new(config->home),
        .box = box_new(),
        .tasks = tasks_new(loop, errands, config->shim),
    };
    local->has_ssh = local->sshd != NULL;
    pthread_mutex_init(&local->cluster_lock, NULL);
    measure(local);
    nodes_claim(local);
    *ret_engine = &local->engine;
    return 0;
}
