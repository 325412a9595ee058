/* Where the files of a job lie: on a share or in a container of this yard.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "api/output-place.h"
#include "store/work.h"

#include <string.h>

static void drop_resource(void *resource)
{
    resource_free(resource);
}

/* In the arena: what is found out from it borrows from it. */
static int
find_kept(struct call *call, struct db *db, int64_t row, const json_t **ret_kept, struct err *e)
{
    struct resource *found = NULL;

    *ret_kept = NULL;
    if (store_find_resource_by_id(db, row, &found, e) < 0)
        return -1;
    if (!found)
        return 0;
    arena_defer(call->arena, drop_resource, found);
    *ret_kept = found->properties;
    return 0;
}

/* "a//./b/" becomes "a/b", and "." nothing at all.  A name ".." is none: what lies above the
 * job's folder is not the job's. */
static int clean_folder(struct call *call, const char *given, struct str *out, struct err *e)
{
    char *saved = NULL, *copy = arena_strdup(call->arena, given);

    for (char *part = strtok_r(copy, "/", &saved); part; part = strtok_r(NULL, "/", &saved)) {
        if (str_equal(part, "."))
            continue;
        if (str_equal(part, "..")) {
            err_set(e, ERR_INVALID,
                    "directory: \"%.100s\" leaves the output directory; name a "
                    "folder within it",
                    given);
            err_reason(e, "InvalidParameterValue");
            return err_target(e, "directory");
        }
        str_addf(out, "%s%s", out->len ? "/" : "", part);
    }
    return 0;
}

static int read_job(struct call *call, struct output_job *ret, struct err *e)
{
    autoptr(resource) job = NULL;
    auto_job_work work = {0};
    auto_reader reader = {0};
    bool found;

    if (call_find(call, RESOURCE_JOB, &job, e) < 0 ||
        store_pool_take(call->api->config.pool, &reader, e) < 0 ||
        store_find_job_work(reader.db, job->id, &work, &found, e) < 0)
        return -1;
    if (!found)
        return resource_not_found(e, RESOURCE_JOB, job->name);
    *ret = (struct output_job){
        .id = job->id,
        .attempt_id = work.job.attempt_id,
        .state = work.job.state,
        .segment = resource_output_segment(call->arena, job->arm_id, work.uuid),
        .kept = job->properties,
    };
    arena_defer(call->arena, drop_resource, take_ptr(&job));
    return find_kept(call, reader.db, work.job.cluster_id, &ret->cluster_kept, e);
}

int call_output_folder(struct call *call,
                       const char *id,
                       const char *folder,
                       struct output_folder *ret,
                       struct err *e)
{
    auto_str within = {0};

    *ret = (struct output_folder){.id = id};
    if (clean_folder(call, folder, &within, e) < 0 || read_job(call, &ret->job, e) < 0)
        return -1;
    ret->within = arena_strdup(call->arena, str_text(&within));
    return 0;
}

int output_on_volume(struct call *call,
                     const struct output_folder *folder,
                     struct volume *ret_volume,
                     const char **ret_path,
                     struct err *e)
{
    const struct output_job *job = &folder->job;
    const char *path;

    if (batchai_output_place(job->kept, job->cluster_kept, job->segment, folder->id,
                             call->arena, ret_volume, &path, e) < 0)
        return -1;
    *ret_path =
        *folder->within ? arena_printf(call->arena, "%s/%s", path, folder->within) : path;
    return 0;
}
