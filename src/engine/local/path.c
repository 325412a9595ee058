/* Where on this machine a path lies that a job sees.  SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "engine/local/folder.h"
#include "engine/local/local-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* What is left of path below folder, without slashes before it; NULL when it is not there. */
static const char *below(const char *folder, const char *path)
{
    size_t len = strlen(folder);

    if (strncmp(path, folder, len) != 0 || (path[len] != '/' && path[len] != '\0'))
        return NULL;
    for (path += len; *path == '/';)
        path++;
    return path;
}

struct place {
    char *from; /* on the host */
    const char *rest;
    size_t depth; /* the deepest mount wins */
};

static void consider(struct place *place, const char *at, const char *path, char *from)
{
    const char *rest = below(at, path);

    if (rest && strlen(at) >= place->depth) {
        free(place->from);
        *place = (struct place){from, rest, strlen(at)};
    } else {
        free(from);
    }
}

static void consider_volumes(struct place *place,
                             const char *folder,
                             const struct engine_volume *volumes,
                             size_t count,
                             const char *path)
{
    for (size_t i = 0; i < count; i++) {
        const struct volume *v = &volumes[i].volume;
        auto_free char *at = xasprintf("%s/%s", folder, v->path ? v->path : "");

        if (volumes[i].source)
            consider(place, at, path,
                     v->folder && *v->folder ? xasprintf("%s/%s", volumes[i].source, v->folder)
                                             : xstrdup(volumes[i].source));
    }
}

/* A job may have planted a link: only what lies beneath is shown. */
static int check(const struct place *place, struct err *e)
{
    auto_close int root = open(place->from, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;

    if (root < 0)
        return err_sys(e, errno, "could not open \"%.200s\"", place->from);
    return fs_open_beneath(root, *place->rest ? place->rest : ".", O_PATH, 0, &fd, e);
}

/* The deepest of the node's folders and volumes that path lies in; from NULL = none.  Freed by
 * the caller.  attempt NULL: none of a job's. */
static struct place
place_of(const struct attempt *attempt, const struct node *node, const char *path)
{
    auto_free char *cluster = xasprintf("%s/mounts", node->root);
    auto_free char *job = NULL, *shared = NULL;
    struct place place = {0};

    consider(&place, node->root, path, xasprintf("%s/root", node->folder));
    consider_volumes(&place, cluster, node->cluster->volumes, node->cluster->volume_count,
                     path);
    if (!attempt)
        return place;
    job = xasprintf("%s/%s", node->root, attempt->mounts);
    shared = xasprintf("%s/%s", node->root, attempt->plan.shared_folder);
    consider(&place, shared, path, xasprintf("%s/shared", attempt->folder));
    consider_volumes(&place, job, attempt->told.volumes, attempt->told.volume_count, path);
    return place;
}

static int find_on(const struct attempt *attempt,
                   const struct node *node,
                   const char *path,
                   struct str *ret_path,
                   struct err *e)
{
    struct place place = place_of(attempt, node, path);
    int rc;

    if (!place.from)
        return err_set(e, ERR_NOT_FOUND, "\"%.200s\" is in no folder of the node", path);
    rc = check(&place, e);
    if (rc == 0)
        str_addf(ret_path, "%s/%s", place.from, place.rest);
    free(place.from);
    return rc;
}

int path_open_root(const struct node *node, int *ret_fd, struct err *e)
{
    auto_free char *path = xasprintf("%s/root", node->folder);

    *ret_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd < 0 ? err_sys(e, errno, "could not open \"%.200s\"", path) : 0;
}

int path_make_folder(const struct attempt *attempt,
                     const struct node *node,
                     const char *path,
                     struct err *e)
{
    struct place place = {0};
    auto_free char *from = NULL;
    auto_free char *whole = NULL;

    if (node->keeper_fd < 0)
        place = place_of(attempt, node, path);
    if (!place.from)
        return folder_make_for_job(node->root, path, e);
    from = place.from;
    whole = xasprintf("%s/%s", from, place.rest);
    return folder_make_for_job(from, whole, e);
}

int path_open(const struct attempt *attempt,
              const struct node *node,
              const char *path,
              int flags,
              int *ret_fd,
              struct err *e)
{
    struct place place = {0};
    auto_free char *from = NULL;
    auto_close int root = -1;

    if (node->keeper_fd >= 0)
        consider(&place, node->root, path, xstrdup(node->root));
    else
        place = place_of(attempt, node, path);
    from = place.from;
    if (!from) {
        *ret_fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0644);
        return *ret_fd < 0 ? err_sys(e, errno, "could not open \"%.200s\"", path) : 0;
    }
    root = open(from, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return err_sys(e, errno, "could not open \"%.200s\"", from);
    return fs_open_beneath(root, place.rest, flags, 0644, ret_fd, e);
}

const char *path_of_log(const struct attempt *attempt,
                        const struct node *node,
                        const char *path,
                        struct arena *arena,
                        const char **ret_logs)
{
    struct place place = {0};
    auto_free char *from = NULL;

    if (node->keeper_fd < 0)
        place = place_of(attempt, node, path);
    from = place.from;
    *ret_logs = node->keeper_fd >= 0 ? node->root : from ? arena_strdup(arena, from) : NULL;
    return from ? arena_printf(arena, "%s/%s", from, place.rest) : path;
}

const char *path_of_logs(const struct part *part, struct arena *arena)
{
    const struct launch_node *nodes = part->attempt->input.nodes;
    const char *folder = part->attempt->plan.stdouterr_folder;
    const char *rest = folder ? below(nodes[0].root, folder) : NULL;

    return rest ? arena_printf(arena, "%s/%s", nodes[part->index].root, rest) : folder;
}

int path_on_host(const struct attempt *attempt,
                 const char *path,
                 struct str *ret_path,
                 struct err *e)
{
    autoptr(arena) arena = arena_new();
    const struct launch_plan *plan = &attempt->plan;
    struct err first = {0};

    if (plan->task_count > 0) /* "$AZ_BATCHAI_JOB_TEMP/..." */
        path = launch_expand(path, plan->tasks[0].env, arena);
    for (size_t i = 0; attempt->mounts && i < attempt->told.node_count; i++) {
        const struct node *node = attempt->parts[i].node;

        if (node && find_on(attempt, node, path, ret_path, &first) == 0)
            return 0;
    }
    return err_set(e, ERR_NOT_FOUND, "there is no \"%.200s\"", path);
}
