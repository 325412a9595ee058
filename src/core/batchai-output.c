/* SPDX-License-Identifier: Apache-2.0 */
#include "core/batchai-internal.h"
#include "core/batchai.h"

#include "base/mem.h"

#include <string.h>

/* A path under one of the two roots of volumes: which, and the rest of it; false when it lies
 * elsewhere. */
static bool split_root(const char *path, bool *ret_is_job, const char **ret_rest)
{
    static const struct {
        const char *start;
        bool is_job;
    } roots[] = {
        {"$AZ_BATCHAI_JOB_MOUNT_ROOT", true},
        {"${AZ_BATCHAI_JOB_MOUNT_ROOT}", true},
        {"$AZ_BATCHAI_MOUNT_ROOT", false},
        {"${AZ_BATCHAI_MOUNT_ROOT}", false},
        {"/mnt/batch/tasks/shared/LS_root/mounts", false}, /* where nodes always have it */
    };

    for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
        size_t len = strlen(roots[i].start);

        if (!str_starts(path, roots[i].start) || (path[len] && path[len] != '/'))
            continue;
        *ret_is_job = roots[i].is_job;
        *ret_rest = path + len + strspn(path + len, "/");
        return true;
    }
    return false;
}

/* The volume that a path lies on, and where in it.  Mount paths do not lie within one another.
 */
static bool find_volume(const json_t *kept,
                        const char *path,
                        struct arena *arena,
                        struct volume *ret_volume,
                        const char **ret_rest)
{
    struct volume *volumes;
    size_t count;

    if (batchai_volumes(kept, arena, &volumes, &count, NULL) < 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(volumes[i].path);

        if (!str_starts(path, volumes[i].path) || (path[len] && path[len] != '/'))
            continue;
        *ret_volume = volumes[i];
        *ret_rest = path + len;
        return true;
    }
    return false;
}

/* Where the folder of an id begins and ends; false when there is none. */
static bool find_directory(const json_t *job_kept,
                           const char *id,
                           const char **ret_prefix,
                           const char **ret_suffix)
{
    const json_t *row;
    size_t i;

    *ret_suffix = "";
    if (str_equal(id, "stdouterr")) {
        *ret_prefix = shape_text(job_kept, "stdOutErrPathPrefix");
        return *ret_prefix != NULL;
    }
    json_array_foreach(json_object_get(job_kept, "outputDirectories"), i, row)
    {
        if (!str_equal(shape_text(row, "id"), id))
            continue;
        *ret_prefix = shape_text(row, "pathPrefix");
        if (shape_text(row, "pathSuffix"))
            *ret_suffix = shape_text(row, "pathSuffix");
        return *ret_prefix != NULL;
    }
    return false;
}

/* The segments of a path, each after a '/' but the first. */
static void add_path(struct str *out, const char *path)
{
    for (const char *p = path + strspn(path, "/"); *p; p += strspn(p, "/")) {
        size_t len = strcspn(p, "/");

        if (out->len > 0)
            str_add_char(out, '/');
        str_add_len(out, p, len);
        p += len;
    }
}

static int no_directory(const char *id, struct err *e)
{
    err_set(e, ERR_NOT_FOUND, "the job has no output directory \"%.64s\"", id);
    err_reason(e, "OutputDirectoryNotFound");
    return err_target(e, "outputdirectoryid");
}

/* Which volumes the cluster had, nobody knows any more; the files are where they were. */
static int cluster_gone(const char *id, const char *rest, const char *segment, struct err *e)
{
    auto_str path = {0};

    add_path(&path, rest);
    add_path(&path, segment);
    err_set(
        e, ERR_NOT_FOUND,
        "the output directory \"%.64s\" lies on a volume of the job's cluster, and the "
        "cluster was deleted; its files are still on the share or container that the cluster "
        "mounted: look for \"%.300s\" there",
        id, str_text(&path));
    err_reason(e, "ClusterNotFound");
    return err_target(e, "outputdirectoryid");
}

int batchai_output_path(const json_t *job_kept,
                        const char *segment,
                        const char *id,
                        struct arena *arena,
                        const char **ret_path,
                        struct err *e)
{
    const char *prefix, *suffix;
    auto_str rest = {0};

    if (!find_directory(job_kept, id, &prefix, &suffix))
        return no_directory(id, e);
    add_path(&rest, segment);
    add_path(&rest, str_equal(id, "stdouterr") ? "stdouterr" : "outputs");
    add_path(&rest, suffix);
    *ret_path = arena_printf(arena, "%s%s%s", prefix, str_ends(prefix, "/") ? "" : "/",
                             str_text(&rest));
    return 0;
}

int batchai_output_place(const json_t *job_kept,
                         const json_t *cluster_kept,
                         const char *segment,
                         const char *id,
                         struct arena *arena,
                         struct volume *ret_volume,
                         const char **ret_path,
                         struct err *e)
{
    const char *prefix, *suffix, *rest;
    struct volume volume;
    auto_str path = {0};
    bool is_job, has_root;

    if (!find_directory(job_kept, id, &prefix, &suffix))
        return no_directory(id, e);
    has_root = split_root(prefix, &is_job, &rest);
    if (has_root && !is_job && !cluster_kept)
        return cluster_gone(id, rest, segment, e);
    if (!has_root ||
        !find_volume(is_job ? job_kept : cluster_kept, rest, arena, &volume, &rest) ||
        (volume.kind != VOLUME_FILE_SHARE && volume.kind != VOLUME_BLOBS)) {
        err_set(e, ERR_INVALID,
                "The specified outputDirectoryId %.64s is not present on a mount root", id);
        return err_target(e, "outputdirectoryid");
    }
    add_path(&path, rest);
    add_path(&path, segment);
    add_path(&path, str_equal(id, "stdouterr") ? "stdouterr" : "outputs");
    add_path(&path, suffix);
    *ret_volume = volume;
    *ret_path = arena_strdup(arena, str_text(&path));
    return 0;
}
