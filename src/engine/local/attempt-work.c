/* The worker side of an attempt: what a node needs for it, made and undone.
 *
 *     attempts/<uuid>/shared    bound into the job's folder on all nodes
 *                    /keepers   whose nodes it was begun on
 *                    /result    how it ended, once that is decided
 *                    /<task>/   run folders
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "engine/local/cluster.h"
#include "engine/local/enter.h"
#include "engine/local/folder.h"
#include "engine/local/local-internal.h"
#include "engine/local/mounts.h"
#include "shim/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    REMOVE_TIMES = 5,
    REMOVE_US = 200 * 1000,
};

/* --- looking --- */

/* Whose nodes: a keeper that is another one now means that the machine was restarted. */
static void format_keepers(const struct attempt *attempt, struct str *out)
{
    char boot[SHIM_BOOT_ID_BYTES] = "";

    shim_boot_id(boot, NULL);
    for (size_t i = 0; i < attempt->told.node_count; i++) {
        const struct node *node = attempt->parts[i].node;

        str_addf(out, "%s %d %" PRIu64 " %s\n", node->name, (int)node->keeper.identity.pid,
                 node->keeper.identity.start, boot);
    }
}

static void look_at_keepers(struct attempt *attempt)
{
    auto_free char *path = xasprintf("%s/keepers", attempt->folder);
    auto_str now = {0}, then = {0};
    struct err e = {0};

    format_keepers(attempt, &now);
    if (fs_read(path, 1 << 20, &then, NULL) == 0 && then.len > 0) {
        attempt->is_lost = !str_equal(str_text(&now), str_text(&then));
        return;
    }
    if (folder_write(path, now.data, now.len, 0600, &e) < 0)
        log_debug("event=attempt-keepers error=\"%s\"", e.msg);
}

void attempt_look(struct attempt *attempt)
{
    auto_free char *shared = xasprintf("%s/shared", attempt->folder);
    struct err e = {0};

    attempt->has_result = result_load(attempt, NULL) == 0;
    if (folder_make(shared, 0777, &e) < 0)
        log_debug("event=attempt-folder error=\"%s\"", e.msg);
    look_at_keepers(attempt);
    for (size_t i = 0; i < attempt->work_count; i++) {
        struct work *work = &attempt->works[i];

        /* One that cannot be looked at must not be run a second time. */
        if (shim_look(work->folder, &work->found, NULL, NULL, NULL) < 0)
            work->found = SHIM_LOST;
        if (work->found != SHIM_ABSENT)
            attempt->was_begun = true;
    }
}

/* --- folders --- */

void attempt_forget_last(struct local *local, const char *node_folder, const char *uuid)
{
    auto_free char *path = xasprintf("%s/attempt", node_folder);
    auto_free char *old = NULL;
    auto_str last = {0};

    if (fs_read(path, 128, &last, NULL) == 0 && last.len > 0 &&
        !str_equal(str_text(&last), uuid)) {
        old = xasprintf("%s/attempts/%s", local->home, str_text(&last));
        folder_remove(old, NULL);
    }
    if (uuid && !str_equal(str_text(&last), uuid))
        folder_write(path, uuid, strlen(uuid), 0600, NULL);
}

/* Folders of the node as the host sees them, so that no mount of the node's is in the way. */
static int make_folders(const struct part *part, int root, struct err *e)
{
    const struct launch_plan *plan = &part->attempt->plan;
    int why = unlinkat(root, "jobs", AT_REMOVEDIR) < 0 ? errno : 0;

    if (why == ENOTDIR)
        unlinkat(root, "jobs", 0); /* a link that a job has planted */
    if (why == ENOTEMPTY) {
        /* The last job's folder is kept until now.  What is in it may take long to remove. */
        auto_free char *from = xasprintf("%s/root/jobs", part->node->folder);
        auto_free char *to = xasprintf("%s/trash", part->node->folder);

        if (folder_remove(to, e) < 0)
            return -1;
        if (rename(from, to) < 0)
            return err_sys(e, errno, "could not clear \"%.200s\"", from);
    }
    for (const char *const *folder = plan->folders; *folder; folder++) {
        if (folder_make_beneath(root, *folder, 0755, NULL, e) < 0)
            return -1;
    }
    return folder_make_beneath(root, plan->shared_folder, 0777, NULL, e);
}

static int write_hostfile(const struct part *part, int root, struct err *e)
{
    const struct launch_plan *plan = &part->attempt->plan;

    return folder_write_beneath(root, plan->hostfile_path, plan->hostfile,
                                strlen(plan->hostfile), 0644, e);
}

/* In the node, after the mounts. */
static int make_outputs(void *arg, struct err *e)
{
    const struct part *part = arg;
    const struct launch_plan *plan = &part->attempt->plan;
    autoptr(arena) arena = arena_new();

    if (path_make_folder(part->attempt, part->node, path_of_logs(part, arena), e) < 0)
        return -1;
    for (const char *const *folder = plan->output_folders; part->index == 0 && *folder;
         folder++) {
        if (path_make_folder(part->attempt, part->node, *folder, e) < 0)
            return -1;
    }
    return 0;
}

/* --- steps --- */

static int fail(struct attempt_result *result,
                const struct part *part,
                const char *code,
                const char *message,
                const char *info)
{
    result_init(result, ENDED_SETUP);
    snprintf(result->node, sizeof(result->node), "%s", part->node->name);
    snprintf(result->code, sizeof(result->code), "%s", code);
    snprintf(result->message, sizeof(result->message), "%s", message);
    snprintf(result->info, sizeof(result->info), "%s", info);
    return -1;
}

static int step_folders(struct part *part, struct attempt_result *result)
{
    const struct attempt *attempt = part->attempt;
    struct node *node = part->node;
    auto_close int root = -1;
    struct mount_place jobs = {
        .keeper_fd = node->keeper_fd, .root = node->root, .folder = "jobs"};
    struct err e = {0};

    attempt_forget_last(node->local, node->folder, attempt->told.uuid);
    if ((node->keeper_fd >= 0 && mounts_undo(&jobs, &e) < 0) ||
        path_open_root(node, &root, &e) < 0 || make_folders(part, root, &e) < 0 ||
        write_hostfile(part, root, &e) < 0)
        return fail(result, part, "JobPreparationFailed", "The job's folders could not be made",
                    e.msg);
    return 0;
}

static int step_mounts(struct part *part, struct attempt_result *result)
{
    const struct attempt *attempt = part->attempt;
    struct mount_place place = {
        .keeper_fd = part->node->keeper_fd,
        .root = part->node->root,
        .folder = attempt->plan.shared_folder,
        .errands = part->node->local->errands,
        .is_cancelled = &attempt->is_cancelled,
    };
    auto_free char *shared = xasprintf("%s/shared", attempt->folder);
    struct mount_failure failure;
    struct err e = {0};

    if (mounts_bind(&place, shared, &e) < 0)
        return fail(result, part, "MountError", "The job's shared folder could not be had",
                    e.msg);
    place.folder = attempt->mounts;
    if (mounts_add(&place, attempt->told.volumes, attempt->told.volume_count, &failure) < 0)
        return fail(result, part, failure.code, failure.message, failure.info);
    for (size_t i = 0; i < attempt->told.volume_count; i++)
        journal_add(part, "mount %s: ok", attempt->told.volumes[i].volume.path);
    return 0;
}

static int step_outputs(struct part *part, struct attempt_result *result)
{
    struct err e = {0};

    if (enter_run(part->node->keeper_fd, make_outputs, part, &e) < 0)
        return fail(result, part, "OutputDirectoryError",
                    "The output folders could not be made", e.msg);
    return 0;
}

static void step_cgroups(struct part *part)
{
    struct attempt *attempt = part->attempt;
    struct node *node = part->node;

    for (size_t i = 0; i < attempt->work_count; i++) {
        struct work *work = &attempt->works[i];

        if (work->part == part)
            cgroup_make_leaf(node->local->cgroups, node->name, work->task->name, part->arena,
                             &work->cgroups, &work->memory);
    }
}

/* --- container --- */

/* The folders of a container that sees nothing of the node's mounts. */
struct folder_list {
    struct container_folder *list;
    size_t count;
    struct arena *arena;
};

static int add_volumes(struct folder_list *folders,
                       const char *at,
                       const struct engine_volume *volumes,
                       size_t count,
                       struct err *e)
{
    for (size_t i = 0; i < count; i++) {
        struct container_folder *folder = &folders->list[folders->count];

        if (!volumes[i].source)
            continue;
        if (mounts_resolve(&volumes[i], folders->arena, &folder->from, &folder->is_read_only,
                           e) < 0)
            return err_wrap(e, "%s", volumes[i].volume.path);
        folder->to = arena_printf(folders->arena, "%s/%s", at, volumes[i].volume.path);
        folders->count++;
    }
    return 0;
}

static int list_folders(const struct part *part, struct container_wish *wish, struct err *e)
{
    const struct attempt *attempt = part->attempt;
    const struct engine_cluster *cluster = part->node->cluster;
    const char *root = part->node->root;
    struct arena *arena = part->arena;
    size_t most = 2 + attempt->told.volume_count + cluster->volume_count;
    struct folder_list folders = {arena_alloc(arena, most * sizeof(*folders.list)), 2, arena};

    folders.list[0] = (struct container_folder){
        arena_printf(arena, "%s/root", part->node->folder), root, false};
    folders.list[1] = (struct container_folder){
        arena_printf(arena, "%s/shared", attempt->folder),
        arena_printf(arena, "%s/%s", root, attempt->plan.shared_folder), false};
    if (add_volumes(&folders, arena_printf(arena, "%s/mounts", root), cluster->volumes,
                    cluster->volume_count, e) < 0 ||
        add_volumes(&folders, arena_printf(arena, "%s/%s", root, attempt->mounts),
                    attempt->told.volumes, attempt->told.volume_count, e) < 0)
        return -1;
    wish->folders = folders.list;
    wish->folder_count = folders.count;
    return 0;
}

static int write_scripts(struct part *part, struct err *e)
{
    struct attempt *attempt = part->attempt;
    auto_close int root = -1;
    auto_str text = {0};

    if (path_open_root(part->node, &root, e) < 0)
        return -1;
    for (size_t i = 0; i < attempt->work_count; i++) {
        if (attempt->works[i].part == part && work_write_script(&attempt->works[i], e) < 0)
            return -1;
    }
    container_enter_script(&part->container, &text);
    return folder_write_beneath(root, CLUSTER_ENTER, text.data, text.len, 0600, e);
}

static const char *container_name(const struct part *part)
{
    return arena_printf(part->arena, "yard-%s-%zu", part->attempt->told.uuid, part->index);
}

/* What is executed in a container is in its group, not in its task's. */
static void count_container(struct part *part)
{
    if (part->container.pid > 0)
        part->boxed_memory =
            cgroup_memory_of(part->node->local->cgroups, part->container.pid, part->arena);
}

static struct container_wish make_wish(struct part *part)
{
    const struct attempt *attempt = part->attempt;
    struct node *node = part->node;
    const json_t *settings = json_object_get(attempt->told.spec, "containerSettings");

    return (struct container_wish){
        .keeper_fd = node->keeper_fd,
        .name = container_name(part),
        .image = attempt->told.image,
        .user = attempt->told.registry_user,
        .password = attempt->told.registry_password,
        .server = attempt->told.registry_server,
        .folder = attempt->folder,
        .images = arena_printf(part->arena, "%s/images", node->local->home),
        .root = node->root,
        .work_folder =
            arena_printf(part->arena, "%s/%s", node->root, attempt->plan.work_folder),
        .shm_size = json_string_value(json_object_get(settings, "shmSize")),
        .gpus = node->gpus,
        .cpus = node->cpus,
        .cgroup_parent = cgroup_parent(node->local->cgroups, node->name, part->arena),
        .has_ssh = node->local->has_ssh,
        .pull_ms = node->local->pull_ms,
        .errands = node->local->errands,
        .is_cancelled = &attempt->is_cancelled,
    };
}

int attempt_fetch(struct part *part, struct attempt_result *ret_result)
{
    struct container_wish wish = make_wish(part);
    struct container_failure failure;

    wish.errands = part->node->local->slow;
    if (container_fetch(part->node->local->box, &wish, part->arena, &failure) < 0)
        return fail(ret_result, part, failure.code, failure.message, failure.info);
    return 0;
}

static int step_container(struct part *part, struct attempt_result *result)
{
    struct container_wish wish = make_wish(part);
    struct container_failure failure;
    struct err e = {0};

    if (list_folders(part, &wish, &e) < 0)
        return fail(result, part, "MountError", "Unable to mount a volume in the container",
                    e.msg);
    if (container_start(part->node->local->box, &wish, part->arena, &part->container,
                        &failure) < 0)
        return fail(result, part, failure.code, failure.message, failure.info);
    count_container(part);
    journal_add(part, "container %s from %s: ok", wish.name, wish.image);
    if (write_scripts(part, &e) < 0)
        return fail(result, part, "FailedStartingContainer", "unable to start docker container",
                    e.msg);
    return 0;
}

/* The container of before, for what is still to be executed in it. */
static int recall_container(struct part *part, struct attempt_result *result)
{
    struct err e = {0};

    if (container_recall(part->node->local->box, part->node->keeper_fd, container_name(part),
                         part->arena, &part->container, &e) < 0)
        return fail(result, part, "FailedStartingContainer", "unable to find docker container",
                    e.msg);
    count_container(part);
    return 0;
}

/* A job that counts on more than the node has is slow, and should know why. */
static void journal_cpus(struct part *part)
{
    const struct node *node = part->node;
    const struct attempt *attempt = part->attempt;
    const json_t *wanted =
        json_object_get(batchai_tool_settings(attempt->told.spec), "processCount");
    int count = cpu_list_count(node->cpus), size = node->cluster->cores;
    json_int_t nodes = (json_int_t)attempt->told.node_count;
    json_int_t ranks = (json_integer_value(wanted) + nodes - 1) / nodes;

    journal_add(part, "processors of %s: %s", node->name, node->cpus);
    if (size > count)
        journal_add(part, "note: the size of the node has %d cores, this machine has %d", size,
                    count);
    if (ranks > count)
        journal_add(part, "note: %lld processes share the %d processors of the node",
                    (long long)ranks, count);
}

int attempt_set_up(struct part *part, struct attempt_result *ret_result)
{
    struct attempt *attempt = part->attempt;
    bool is_contained = attempt->told.image != NULL;

    step_cgroups(part);
    if (attempt->was_begun)
        return is_contained ? recall_container(part, ret_result) : 0;
    if (step_folders(part, ret_result) < 0 || step_mounts(part, ret_result) < 0 ||
        step_outputs(part, ret_result) < 0)
        return -1;
    journal_add(part, "job environment preparation on %s: ok", part->node->name);
    journal_cpus(part);
    if (is_contained && step_container(part, ret_result) < 0)
        return -1;
    journal_write(part, str_text(&part->journal));
    str_truncate(&part->journal, 0);
    return 0;
}

/* --- cleaning --- */

static void remove_leaves(const struct part *part)
{
    const struct attempt *attempt = part->attempt;

    for (size_t i = 0; i < attempt->work_count; i++) {
        const char **folder = attempt->works[i].cgroups;

        for (; attempt->works[i].part == part && folder && *folder; folder++)
            rmdir(*folder);
    }
}

static void remove_container(const struct part *part)
{
    const char *name = container_name(part);
    auto_close int root = -1;
    struct err e = {0};

    if (path_open_root(part->node, &root, NULL) == 0)
        folder_remove_beneath(root, CLUSTER_ENTER, NULL);
    /* podman fails now and then with one that is just ending. */
    for (int i = 0; i < REMOVE_TIMES; i++) {
        if (container_remove(part->node->local->box, part->node->keeper_fd, name, &e) == 0)
            return;
        usleep(REMOVE_US);
    }
    log_debug("event=container-remove error=\"%s\"", e.msg);
}

void attempt_clean(struct part *part, const char *journal)
{
    struct attempt *attempt = part->attempt;
    struct node *node = part->node;
    auto_free char *trash = node ? xasprintf("%s/trash", node->folder) : NULL;
    struct mount_place jobs = {.folder = "jobs"};
    struct err e = {0};

    if (!node)
        return;
    if (attempt->told.image)
        remove_container(part);
    if (node_sweep(node, &e) < 0)
        log_debug("event=attempt-sweep node=%s error=\"%s\"", node->name, e.msg);
    journal_write(part, journal);
    jobs.keeper_fd = node->keeper_fd;
    jobs.root = node->root;
    /* Of a plain folder the links go; what the job wrote stays. */
    if (!node->local->net)
        jobs.folder = attempt->mounts;
    if (jobs.folder && mounts_undo(&jobs, &e) < 0)
        log_debug("event=attempt-unmount node=%s error=\"%s\"", node->name, e.msg);
    remove_leaves(part);
    folder_remove(trash, NULL);
}
