/* The worker side of a node: made, found again, taken down.
 *
 * nodes/<name>/about is written before anything is taken for it, so that an address or a GPU in
 * use is found after any crash.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "engine/local/cluster.h"
#include "engine/local/folder.h"
#include "engine/local/keeper.h"
#include "engine/local/local-internal.h"
#include "engine/local/mounts.h"
#include "engine/local/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    SWEEP_MS = 60 * 1000, /* a process that waits for a dead disk may never end */
    KEEPER_MS = 20 * 1000,
    KEEPER_PAUSE_US = 20 * 1000,
};

/* Hold the keeper, and its network's number, for as long as the node is known. */
static int hold_keeper(struct node *node)
{
    char path[64];

    if (keeper_open(&node->keeper, &node->keeper_fd) < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)node->keeper.identity.pid);
    node->net_fd = open(path, O_RDONLY | O_CLOEXEC);
    return 0;
}

/* --- about --- */

struct about {
    int64_t id, cluster_id;
    char address[NET_ADDRESS_BYTES];
    char gpus[GPU_LIST_BYTES];
    char cpus[CPU_LIST_BYTES];
};

/* The value of a line "key=value"; false when it is too long, or not there. */
static bool get_line(const char *text, const char *key, char *ret_value, size_t room)
{
    const char *at = strstr(text, key);
    size_t len = at ? strcspn(at + strlen(key), "\n") : room;

    if (len >= room)
        return false;
    memcpy(ret_value, at + strlen(key), len);
    ret_value[len] = '\0';
    return true;
}

static int read_about(const char *folder, struct about *ret)
{
    auto_free char *path = xasprintf("%s/about", folder);
    auto_str file = {0};
    const char *text;

    *ret = (struct about){0};
    if (fs_read(path, 2 * CPU_LIST_BYTES, &file, NULL) < 0)
        return -1;
    text = str_text(&file);
    if (sscanf(text, "id=%" SCNd64 "\ncluster=%" SCNd64 "\n", &ret->id, &ret->cluster_id) !=
            2 ||
        !get_line(text, "\naddress=", ret->address, sizeof(ret->address)))
        return -1;
    get_line(text, "\ngpus=", ret->gpus, sizeof(ret->gpus));
    get_line(text, "\ncpus=", ret->cpus, sizeof(ret->cpus)); /* older ones have none */
    return 0;
}

static int write_about(const struct node *node, struct err *e)
{
    auto_free char *path = xasprintf("%s/about", node->folder);
    auto_free char *text =
        xasprintf("id=%" PRId64 "\ncluster=%" PRId64 "\naddress=%s\ngpus=%s\ncpus=%s\n",
                  node->id, node->cluster->id, node->address, node->gpus, node->cpus);

    return fs_write_durably(path, text, strlen(text), 0600, e);
}

static void each_about(struct local *local,
                       void (*each)(struct local *local,
                                    const char *name,
                                    const struct about *about,
                                    void *context),
                       void *context)
{
    auto_free char *nodes = xasprintf("%s/nodes", local->home);
    DIR *dir = opendir(nodes);
    struct dirent *entry;
    struct about about;

    while (dir && (entry = readdir(dir))) {
        auto_free char *folder = xasprintf("%s/%s", nodes, entry->d_name);

        if (entry->d_name[0] != '.' && read_about(folder, &about) == 0)
            each(local, entry->d_name, &about, context);
    }
    if (dir)
        closedir(dir);
}

static void
claim(struct local *local, const char *name, const struct about *about, void *context)
{
    (void)name;
    (void)context;
    if (local->net)
        net_claim(local->net, about->address);
    gpus_claim(local->gpus, about->gpus);
    cpus_claim(local->cpus, about->cpus);
}

void nodes_claim(struct local *local)
{
    each_about(local, claim, NULL);
}

static void
tell_id(struct local *local, const char *name, const struct about *about, void *context)
{
    void (*const *each)(struct local * local, int64_t id) = context;

    (void)name;
    (*each)(local, about->id);
}

void nodes_each_on_disk(struct local *local, void (*each)(struct local *local, int64_t id))
{
    each_about(local, tell_id, &each);
}

static void take_over(struct node *node, const struct about *about)
{
    memcpy(node->address, about->address, sizeof(node->address));
    memcpy(node->gpus, about->gpus, sizeof(node->gpus));
    memcpy(node->cpus, about->cpus, sizeof(node->cpus));
}

static void
match(struct local *local, const char *name, const struct about *about, void *context)
{
    struct node *node = context;
    struct engine_cluster *cluster;

    if (about->id != node->id)
        return;
    cluster = arena_alloc(node->arena, sizeof(*cluster));
    cluster->id = about->cluster_id;
    node->cluster = cluster;
    node->name = arena_strdup(node->arena, name);
    node->folder = arena_printf(node->arena, "%s/nodes/%s", local->home, name);
    take_over(node, about);
}

int node_recall(struct node *node, struct err *e)
{
    each_about(node->local, match, node);
    if (!node->name)
        return err_set(e, ERR_NOT_FOUND, "there is no node %" PRId64, node->id);
    if (shim_keeper_read(node->folder, &node->keeper, NULL) == 0)
        hold_keeper(node);
    return 0;
}

/* --- making --- */

static void take_cpus(struct node *node)
{
    int cores = node->cluster->cores;

    cpus_take(node->local->cpus, cores > 0 ? cores : node->local->capacity.cores, node->cpus);
}

static int settle(struct node *node, struct err *e)
{
    struct local *local = node->local;
    struct about about;

    if (folder_make(node->folder, 0755, e) < 0)
        return -1;
    if (read_about(node->folder, &about) == 0) {
        take_over(node, &about);
        if (cpus_have(local->cpus, node->cpus))
            return 0;
        /* They were taken off the machine. */
        cpus_give(local->cpus, node->cpus);
        take_cpus(node);
        return write_about(node, e);
    }
    take_cpus(node);
    if (gpus_take(local->gpus, node->cluster->gpus, node->gpus, e) < 0)
        return -1;
    snprintf(node->address, sizeof(node->address), "127.0.0.1");
    if (local->net && net_take(local->net, node->address, e) < 0)
        return -1;
    return write_about(node, e);
}

static int make_folders(const struct node *node, struct err *e)
{
    static const char *const folders[] = {"root/mounts",  "root/jobs", "root/shared",
                                          "root/configs", "startup",   "home"};

    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        auto_free char *path = xasprintf("%s/%s", node->folder, folders[i]);

        if (folder_make(path, 0755, e) < 0)
            return -1;
    }
    return 0;
}

static int join_cluster(struct node *node, struct err *e)
{
    struct local *local = node->local;
    char pattern[NET_ADDRESS_BYTES];
    int rc = 0;

    net_pattern(local->net, pattern);
    pthread_mutex_lock(&local->cluster_lock);
    if (local->has_ssh)
        rc = cluster_make(local->home, node->cluster, pattern, e);
    if (rc == 0)
        rc = cluster_set_member(local->home, node->cluster, node->name, node->address, e);
    pthread_mutex_unlock(&local->cluster_lock);
    return rc;
}

static void limit(struct node *node, struct shim_node_spec *spec)
{
    struct local *local = node->local;
    int mib = node->cluster->memory_mib;
    const char **folders, **memory;

    if (mib > local->capacity.memory_mib)
        mib = local->capacity.memory_mib;
    cgroup_make(local->cgroups, node->name,
                &(struct cgroup_limits){
                    .cores = cpu_list_count(node->cpus),
                    .cpus = node->cpus,
                    .memory_bytes = (int64_t)mib << 20,
                    .pids = local->pids,
                });
    cgroup_make_leaf(local->cgroups, node->name, "ssh", node->arena, &folders, &memory);
    for (; spec && *folders && spec->cgroup_count < ARRAY_SIZE(spec->cgroups); folders++)
        spec->cgroups[spec->cgroup_count++] = *folders;
}

static void add_bind(struct shim_node_spec *spec, const char *to, const char *from)
{
    if (access(to, F_OK) == 0) /* else there is nothing to be replaced */
        spec->binds[spec->bind_count++] = (struct shim_bind){from, to};
}

static void list_binds(struct node *node, struct shim_node_spec *spec)
{
    struct arena *arena = node->arena;
    const char *cluster =
        arena_printf(arena, "%s/clusters/%" PRId64, node->local->home, node->cluster->id);

    add_bind(spec, LOCAL_ROOT, arena_printf(arena, "%s/root", node->folder));
    add_bind(spec, LOCAL_STARTUP, arena_printf(arena, "%s/startup", node->folder));
    add_bind(spec, LOCAL_HOME, arena_printf(arena, "%s/home", node->folder));
    add_bind(spec, "/etc/hosts", arena_printf(arena, "%s/hosts", cluster));
    if (!node->local->has_ssh)
        return;
    add_bind(spec, "/etc/passwd", arena_printf(arena, "%s/passwd", cluster));
    add_bind(spec, "/etc/shadow", arena_printf(arena, "%s/shadow", cluster));
    add_bind(spec, "/etc/ssh", arena_printf(arena, "%s/ssh", cluster));
}

static int start_keeper(struct node *node, struct err *e)
{
    struct local *local = node->local;
    char veth[NET_NAME_BYTES];
    struct shim_node_spec spec = {
        .hostname = node->name,
        .bridge = net_bridge(local->net),
        .veth = veth,
        .gateway = net_gateway(local->net),
        .prefix = net_prefix(local->net),
        .cpus = node->cpus,
        .hides = {local->home},
        .hide_count = 1,
    };

    net_veth(local->net, node->address, veth);
    if (keeper_address(node->address, &spec.address, e) < 0 ||
        folder_make(LOCAL_ROOT, 0755, e) < 0 || folder_make(LOCAL_STARTUP, 0755, e) < 0 ||
        folder_make(LOCAL_HOME, 0755, e) < 0)
        return -1;
    if (local->has_ssh) {
        spec.sshd = local->sshd;
        spec.listeners[0] = (struct shim_listener){22, "/etc/ssh/sshd_config"};
        spec.listeners[1] = (struct shim_listener){23, "/etc/ssh/sshd_config_box"};
        spec.listener_count = 2;
        folder_make("/run/sshd", 0755, NULL); /* sshd looks for it, and no more */
    }
    list_binds(node, &spec);
    limit(node, &spec);
    return keeper_start(local->shim, node->folder, &spec, e);
}

/* What an earlier keeper left is nothing to the next one. */
static void forget(const struct node *node)
{
    static const char *const names[] = {"keeper", "setup", "mounted"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        auto_free char *path = xasprintf("%s/%s", node->folder, names[i]);

        folder_remove(path, NULL);
    }
}

static int
fail(struct node_outcome *failure, const char *code, const char *message, const char *info)
{
    snprintf(failure->code, sizeof(failure->code), "%s", code);
    snprintf(failure->message, sizeof(failure->message), "%s", message);
    snprintf(failure->info, sizeof(failure->info), "%s", info);
    return -1;
}

/* Does a keeper have the folder, or is one about to? */
static bool is_kept(const struct node *node)
{
    auto_free char *path = xasprintf("%s/lock", node->folder);
    auto_close int fd = open(path, O_RDWR | O_CLOEXEC);

    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
}

static int start_anew(struct node *node, struct err *e)
{
    int rc;

    forget(node);
    net_hold(node->local->net);
    rc = start_keeper(node, e);
    net_let_go(node->local->net);
    return rc;
}

/* A daemon that died while it made the node has left a keeper behind that goes on: whoever has
 * the lock is the node's.  It says who it is in a moment. */
static int build(struct node *node, struct err *e)
{
    int64_t due_ms = clock_mono_ms() + KEEPER_MS;

    if (join_cluster(node, e) < 0)
        return -1;
    if (!is_kept(node) && start_anew(node, e) < 0 && !is_kept(node))
        return -1;
    while (shim_keeper_read(node->folder, &node->keeper, e) < 0 || hold_keeper(node) < 0) {
        if (!is_kept(node) || clock_mono_ms() > due_ms)
            return err_set(e, ERR_INTERNAL, "the node's keeper has ended");
        usleep(KEEPER_PAUSE_US);
    }
    return 0;
}

/* A keeper of this boot that is dead was killed: the node is lost.  One of an earlier boot went
 * down with the machine: the node is made again, as a machine comes up again. */
static int stand(struct node *node, struct node_outcome *failure)
{
    char boot[SHIM_BOOT_ID_BYTES] = "";
    struct err e = {0};

    if (shim_keeper_read(node->folder, &node->keeper, NULL) == 0) {
        if (hold_keeper(node) == 0) {
            limit(node, NULL);
            return 0;
        }
        shim_boot_id(boot, NULL);
        if (str_equal(boot, node->keeper.identity.boot_id))
            return fail(failure, "NodeLost", "The node was lost", "its keeper has ended");
    }
    if (build(node, &e) < 0)
        return fail(failure, "NodeCreationFailed", "The node could not be made", e.msg);
    return 0;
}

static int mount_volumes(struct node *node, struct node_outcome *failure)
{
    auto_free char *mounted = xasprintf("%s/mounted", node->folder);
    struct mount_place place = {
        .keeper_fd = node->keeper_fd,
        .root = node->root,
        .folder = "mounts",
        .errands = node->local->errands,
    };
    struct mount_failure trouble;

    if (access(mounted, F_OK) == 0)
        return 0;
    if (mounts_add(&place, node->cluster->volumes, node->cluster->volume_count, &trouble) < 0)
        return fail(failure, trouble.code, trouble.message, trouble.info);
    folder_write(mounted, "", 0, 0600, NULL);
    return 0;
}

int node_make(struct node *node, struct node_outcome *ret_failure)
{
    struct err e = {0};

    if (settle(node, &e) < 0 || make_folders(node, &e) < 0)
        return fail(ret_failure, "NodeCreationFailed", "The node could not be made", e.msg);
    if (node->local->net && stand(node, ret_failure) < 0)
        return -1;
    if (!node->local->net)
        limit(node, NULL);
    return mount_volumes(node, ret_failure);
}

struct launch_node node_launch(const struct node *node)
{
    return (struct launch_node){
        .name = node->name,
        .address = node->address,
        .root = node->root,
        .cores = node->cluster->cores,
        .gpus = node->cluster->gpus,
        .gpu_list = node->gpus,
    };
}

/* --- taking down --- */

int node_sweep(struct node *node, struct err *e)
{
    struct local *local = node->local;
    pid_t spare[1 + SHIM_NODE_LISTENERS] = {0};
    autoptr(arena) arena = arena_new();
    struct shim_keeper now;
    int rc;

    /* An sshd may have been started anew since. */
    if (node->keeper_fd >= 0 && shim_keeper_read(node->folder, &now, NULL) == 0 &&
        keeper_lives(&now)) {
        spare[0] = now.identity.pid;
        memcpy(spare + 1, now.listeners, sizeof(now.listeners));
    }
    cgroup_forbid_forks(local->cgroups, node->name, true, 0);
    rc = sweep_kill(&(struct sweep){.net = node->net_fd >= 0 ? node->keeper.net : 0,
                                    .mark = arena_printf(arena, "YARD_NODE=%s", node->folder),
                                    .group = cgroup_folder(local->cgroups, node->name, arena),
                                    .spare = spare,
                                    .spare_count = ARRAY_SIZE(spare)},
                    SWEEP_MS, e);
    cgroup_forbid_forks(local->cgroups, node->name, false, local->pids);
    return rc;
}

static void leave_cluster(struct node *node)
{
    struct local *local = node->local;
    struct err e = {0};

    pthread_mutex_lock(&local->cluster_lock);
    if (cluster_set_member(local->home, node->cluster, node->name, NULL, &e) < 0)
        log_debug("event=cluster-files error=\"%s\"", e.msg);
    pthread_mutex_unlock(&local->cluster_lock);
}

void node_unmake(struct node *node)
{
    struct local *local = node->local;
    struct err e = {0};

    keeper_end(node->keeper_fd);
    if (node_sweep(node, &e) < 0)
        log_debug("event=node-unmake node=%s error=\"%s\"", node->name, e.msg);
    attempt_forget_last(local, node->folder, NULL);
    cgroup_remove(local->cgroups, node->name);
    if (local->net)
        leave_cluster(node);
    if (folder_remove(node->folder, &e) < 0)
        log_debug("event=node-unmake node=%s error=\"%s\"", node->name, e.msg);
    gpus_give(local->gpus, node->gpus);
    cpus_give(local->cpus, node->cpus);
    mem_close_fd(&node->net_fd);
    node->net_fd = -1;
    if (local->net) {
        net_cut(local->net, node->address);
        net_give(local->net, node->address);
        net_sweep(local->net);
    }
    cgroups_sweep(local->cgroups);
}
