/* SPDX-License-Identifier: Apache-2.0 */
#include "control/batchai.h"

#include "base/crypt.h"
#include "base/json.h"
#include "base/str.h"
#include "control/control-internal.h"
#include "control/vault.h"
#include "core/batchai.h"
#include "store/store.h"
#include "store/work.h"

#include <string.h>

#define SPEC_SECRETS "spec" /* all secrets of a spec are sealed as one JSON text */

int control_unseal_spec(const struct vault *vault,
                        struct db *db,
                        const struct resource *resource,
                        json_t **ret_spec,
                        struct err *e)
{
    auto_json json_t *secrets = NULL;
    auto_str text = {0};
    struct err why = {0};
    int64_t created_ms;

    if (vault_get(vault, db, resource->id, SPEC_SECRETS, &text, &created_ms, &why) < 0) {
        if (why.code == ERR_NOT_FOUND) {
            *ret_spec = json_incref(resource->properties);
            return 0;
        }
        if (e)
            *e = why;
        return -1;
    }
    if (json_parse(str_text(&text), text.len, &secrets, e) < 0)
        return -1;
    *ret_spec = batchai_with_secrets(resource->properties, secrets);
    return 0;
}

static int
seal_secrets(struct control_change *change, const json_t *secrets, struct db *db, struct err *e)
{
    auto_str text = {0};

    if (json_object_size(secrets) == 0)
        return 0;
    json_write(&text, secrets);
    return vault_put(change->control->config.vault, db, change->resource->id, SPEC_SECRETS,
                     str_text(&text), change->now_ms, e);
}

/* Done as soon as it is recorded, but clients want an operation to poll. */
static int record_creation(struct control_change *change,
                           struct db *db,
                           const char *group_key,
                           struct err *e)
{
    struct operation *o = change->operation = operation_new();
    char id[CRYPT_UUID_BYTES];

    o->id = xstrdup(crypt_uuid(id));
    o->kind = OPERATION_CREATE_RESOURCE;
    o->resource_id = change->resource->id;
    o->target = xstrdup(change->resource->arm_id);
    o->started_ms = change->now_ms;
    if (operation_apply(o, OPERATION_DONE, change->now_ms, e) < 0)
        return -1;
    return store_put_operation(db, o, group_key, e);
}

int control_check_cluster(struct control_change *change,
                          const struct control_put *put,
                          struct db *db,
                          int64_t *ret_cluster_id,
                          struct err *e)
{
    const char *id = batchai_job_cluster(put->properties);
    autoptr(resource) cluster = NULL;

    if (store_find_resource(db, resource_key(change->arena, id), &cluster, e) < 0)
        return -1;
    if (!cluster || cluster->kind != RESOURCE_CLUSTER) {
        const char *name = strrchr(id, '/');

        resource_not_found(e, RESOURCE_CLUSTER, name ? name + 1 : id);
        return err_target(e, "properties.cluster.id");
    }
    *ret_cluster_id = cluster->id;
    return control_check_standing(db, cluster, change->now_ms, e);
}

int control_begin_work(struct control_change *change,
                       const struct control_put *put,
                       struct db *db,
                       const char *group_key,
                       struct err *e)
{
    int64_t id = change->resource->id, cluster_id;
    char uuid[CRYPT_UUID_BYTES];

    crypt_uuid(uuid);
    if (put->kind == RESOURCE_CLUSTER && store_add_cluster(db, id, uuid, e) < 0)
        return -1;
    if (put->kind == RESOURCE_JOB &&
        (control_check_cluster(change, put, db, &cluster_id, e) < 0 ||
         store_add_job(db, id, cluster_id, uuid, change->now_ms, e) < 0))
        return -1;
    if (seal_secrets(change, put->secrets, db, e) < 0)
        return -1;
    return record_creation(change, db, group_key, e);
}

static bool has_same_properties(const struct resource *r, const struct control_put *put)
{
    auto_json json_t *had = json_copy(r->properties);
    auto_json json_t *wanted = json_copy(put->properties);

    if (r->kind == RESOURCE_CLUSTER) {
        json_object_del(had, "scaleSettings");
        json_object_del(wanted, "scaleSettings");
    }
    return json_equal(had, wanted);
}

int control_check_same(struct control_change *change,
                       const struct control_put *put,
                       struct db *db,
                       struct err *e)
{
    const struct resource *r = change->resource;
    auto_json json_t *had = NULL;
    auto_json json_t *wanted = NULL;

    if (put->must_exist) /* PATCH: control merges */
        return 0;
    if (control_unseal_spec(change->control->config.vault, db, r, &had, e) < 0)
        return -1;
    wanted = batchai_with_secrets(r->properties, put->secrets);
    if (has_same_properties(r, put) && json_equal(had, wanted))
        return 0;
    err_set(e, ERR_CONFLICT,
            "the %s %s exists with other properties; delete it first, or give it another name",
            resource_kind_info(r->kind)->noun, r->name);
    return err_reason(e, "ResourceExists");
}

/* --- ending a job --- */

static int apply_terminate(struct control_change *change, struct db *db, struct err *e)
{
    const struct control_delete *del = change->request;
    char *key = resource_key(change->arena, del->arm_id);
    auto_job_work work = {0};
    struct operation *o;
    char id[CRYPT_UUID_BYTES];
    bool found;

    if (store_find_resource(db, key, &change->resource, e) < 0)
        return -1;
    if (!change->resource)
        return resource_not_found(e, RESOURCE_JOB, del->name);
    if (store_find_job_work(db, change->resource->id, &work, &found, e) < 0)
        return -1;
    if (!found || job_is_final(work.job.state))
        return 0; /* it has ended: nothing to do, and that is fine */
    if (store_find_running_operation(db, change->resource->id, &change->operation, e) < 0)
        return -1;
    if (change->operation)
        return 0; /* asked for before */
    o = change->operation = operation_new();
    o->id = xstrdup(crypt_uuid(id));
    o->kind = OPERATION_TERMINATE_JOB;
    o->resource_id = change->resource->id;
    o->target = xstrdup(change->resource->arm_id);
    o->started_ms = change->now_ms;
    change->starts_operation = true;
    if (store_end_job(db, change->resource->id, e) < 0)
        return -1;
    return store_put_operation(db, o, resource_group_key(change->arena, o->target), e);
}

void control_terminate_job(struct control *control,
                           struct control_change *change,
                           const char *arm_id,
                           const char *name)
{
    struct control_delete *kept = arena_alloc(change->arena, sizeof(*kept));

    *kept = (struct control_delete){
        .kind = RESOURCE_JOB,
        .arm_id = arena_strdup(change->arena, arm_id),
        .name = arena_strdup(change->arena, name),
    };
    change->request = kept;
    change->apply = apply_terminate;
    control_submit(control, change);
}
