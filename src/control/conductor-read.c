/* Rows to the mind.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "control/conductor-internal.h"

#include "core/batchai.h"
#include "core/resource.h"
#include "core/vmsize.h"
#include "store/store.h"
#include "store/work.h"

enum {
    PAGE = 500,
};

int conductor_gpus(const struct control *control, const struct vmsize *size)
{
    const struct vmsize *host;

    return vmsizes_find(control->sizes, "host", &host, NULL) == 0 && host->gpus ? size->gpus
                                                                                : 0;
}

/* The size says how much of the machine a node takes; a size that a config no longer knows
 * takes nothing. */
static void
fill_size(const struct control *control, const struct resource *r, struct yard_cluster *cluster)
{
    const char *name = json_string_value(json_object_get(r->properties, "vmSize"));
    const struct vmsize *size;

    if (name && vmsizes_find(control->sizes, name, &size, NULL) == 0) {
        cluster->cores = size->cores;
        cluster->gpus = conductor_gpus(control, size);
    }
}

static void
fill_cluster(const struct control *control, struct resource *r, struct yard_cluster *cluster)
{
    cluster->id = r->id;
    cluster->name = r->name; /* borrowed: the mind copies */
    cluster->idle_ms = control->config.idle_ms;
    batchai_fill_cluster(r->properties, cluster);
    fill_size(control, r, cluster);
    cluster->is_deleting = r->state == RESOURCE_DELETING;
}

static void
fill_job(const struct control_config *config, const struct resource *r, struct yard_job *job)
{
    job->most_attempts = config->most_attempts;
    batchai_fill_job(r->properties, job); /* its own maxAttempts wins */
    job->is_deleting = r->state == RESOURCE_DELETING;
    job->is_unwanted |= job->is_deleting;
}

static int read_cluster(struct conductor *c, struct db *db, struct resource *r, struct err *e)
{
    struct cluster_work work = {0};
    bool found;

    if (store_find_cluster_work(db, r->id, &work, &found, e) < 0)
        return -1;
    if (!found)
        return 0;
    fill_cluster(c->control, r, &work.cluster);
    yard_put_cluster(c->yard, &work.cluster, conductor_now(c));
    return 0;
}

static int read_job(struct conductor *c, struct db *db, const struct resource *r, struct err *e)
{
    auto_job_work work = {0};
    bool found;

    if (store_find_job_work(db, r->id, &work, &found, e) < 0)
        return -1;
    if (!found || (job_is_final(work.job.state) && !yard_job(c->yard, r->id)))
        return 0;
    fill_job(&c->control->config, r, &work.job);
    yard_put_job(c->yard, &work.job, conductor_now(c));
    return 0;
}

int conductor_read(struct conductor *c, struct db *db, int64_t id, struct err *e)
{
    autoptr(resource) r = NULL;

    if (store_find_resource_by_id(db, id, &r, e) < 0)
        return -1;
    if (r && r->kind == RESOURCE_CLUSTER)
        return read_cluster(c, db, r, e);
    if (r && r->kind == RESOURCE_JOB)
        return read_job(c, db, r, e);
    return 0;
}

/* --- after a start --- */

static int restore_clusters(struct conductor *c, struct db *db, struct err *e)
{
    struct store_filter filter = {.kind = RESOURCE_CLUSTER, .most = PAGE};
    bool more = true;

    while (more) {
        auto_resource_list list = {0};

        if (store_list_resources(db, &filter, &list, e) < 0)
            return -1;
        for (size_t i = 0; i < list.count; i++) {
            struct resource *r = list.items[i];
            struct cluster_work work = {0};
            bool found;

            if (store_find_cluster_work(db, r->id, &work, &found, e) < 0)
                return -1;
            if (found) {
                fill_cluster(c->control, r, &work.cluster);
                yard_restore_cluster(c->yard, &work.cluster);
            }
            filter.after_id = r->id;
        }
        more = list.more;
    }
    return 0;
}

static void restore_node(const struct yard_node *node, void *context)
{
    struct conductor *c = context;

    yard_restore_node(c->yard, node);
}

static void restore_attempt(const struct yard_attempt *attempt, void *context)
{
    struct conductor *c = context;

    yard_restore_attempt(c->yard, attempt);
}

struct restoring {
    struct conductor *conductor;
    struct db *db;
    struct err e;
};

static void restore_job(const struct job_work *work, void *context)
{
    struct restoring *r = context;
    struct yard_job job = work->job; /* shares `excluded`: the mind copies */
    autoptr(resource) resource = NULL;

    if (r->e.code != ERR_NONE ||
        store_find_resource_by_id(r->db, job.id, &resource, &r->e) < 0 || !resource)
        return;
    fill_job(&r->conductor->control->config, resource, &job);
    yard_restore_job(r->conductor->yard, &job);
}

int conductor_read_all(struct conductor *c, struct db *db, struct err *e)
{
    struct restoring restoring = {.conductor = c, .db = db};
    int64_t last_node, last_attempt;

    if (store_last_work_ids(db, &last_node, &last_attempt, e) < 0 ||
        store_each_unfinished_job(db, restore_job, &restoring, e) < 0)
        return -1;
    if (restoring.e.code != ERR_NONE) {
        *e = restoring.e;
        return -1;
    }
    /* After the jobs: clients may be at work already, and a job whose cluster is not there
     * has lost it. */
    if (restore_clusters(c, db, e) < 0 || store_each_node(db, 0, restore_node, c, e) < 0 ||
        store_each_attempt(db, 0, restore_attempt, c, e) < 0)
        return -1;
    yard_restore_ids(c->yard, last_node, last_attempt);
    return 0;
}
