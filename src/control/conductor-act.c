/* Telling the engine: what it needs to know of a node or an attempt is put together from the
 * rows, with the secrets unsealed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "control/conductor-internal.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "control/batchai.h"
#include "control/vault.h"
#include "core/batchai.h"
#include "core/resource.h"
#include "core/vmsize.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/work.h"

#include <string.h>

/* What is put together for one call; dies after it. */
struct telling {
    struct conductor *conductor;
    struct control_config *config;
    struct db *db;
    struct arena *arena;
    struct err no_size; /* why the cluster's size is not known; ERR_NONE = it is */
};

static void drop_json(void *value)
{
    json_decref(value);
}

static void drop_resource(void *value)
{
    resource_free(value);
}

/* A resource by its row, or by its id; in the arena. */
static int find(struct telling *t,
                int64_t id,
                enum resource_kind kind,
                struct resource **ret,
                struct err *e)
{
    if (store_find_resource_by_id(t->db, id, ret, e) < 0)
        return -1;
    if (!*ret)
        return err_set(e, ERR_NOT_FOUND, "the %s with row %lld is gone",
                       resource_kind_info(kind)->noun, (long long)id);
    arena_defer(t->arena, drop_resource, *ret);
    return 0;
}

/* The kept form with the secrets back in it. */
static int
whole_spec(struct telling *t, const struct resource *r, json_t **ret_spec, struct err *e)
{
    if (control_unseal_spec(t->config->vault, t->db, r, ret_spec, e) < 0)
        return -1;
    arena_defer(t->arena, drop_json, *ret_spec);
    return 0;
}

/* --- volumes --- */

static const char *mount_error_code(enum volume_kind kind)
{
    switch (kind) {
    case VOLUME_FILE_SHARE:
        return "AZFMountError";
    case VOLUME_BLOBS:
        return "BFSMountError";
    case VOLUME_FILE_SERVER:
        return "NFSMountError";
    case VOLUME_UNMANAGED:
        break;
    }
    return "UnmanagedMountError";
}

static const char *mount_error_message(enum volume_kind kind)
{
    switch (kind) {
    case VOLUME_FILE_SHARE:
        return "Unable to mount Azure File";
    case VOLUME_BLOBS:
        return "unable to mount blob fuse file system";
    case VOLUME_FILE_SERVER:
        return "unable to mount the file server";
    case VOLUME_UNMANAGED:
        break;
    }
    return "unable to mount the unmanaged file system";
}

/* The key must be one of the account's: who may mount is who has it. */
static int check_key(struct telling *t, const struct volume *v, struct err *e)
{
    autoptr(resource) account = NULL;

    if (store_find_account(t->db, v->account, &account, e) < 0)
        return -1;
    if (!account)
        return err_set(e, ERR_NOT_FOUND,
                       "there is no storage account \"%.64s\" in this yard; make it, or name "
                       "one of its own",
                       v->account);
    if (!v->key)
        return err_set(e, ERR_INVALID,
                       "credentials.accountKey is missing; give a key of the storage account "
                       "\"%.64s\"",
                       v->account);
    for (int i = 1; i <= 2; i++) {
        auto_str key = {0};
        int64_t created_ms;

        if (vault_get(t->config->vault, t->db, account->id, i == 1 ? "key1" : "key2", &key,
                      &created_ms, NULL) == 0 &&
            str_equal(str_text(&key), v->key))
            return 0;
    }
    return err_set(e, ERR_FORBIDDEN,
                   "accountKey is not a key of the storage account \"%.64s\"; list its keys "
                   "and give one of them",
                   v->account);
}

static int
file_server_folder(struct telling *t, const struct volume *v, char **ret_path, struct err *e)
{
    autoptr(resource) server = NULL;
    auto_free char *path = NULL;

    if (store_find_resource(t->db, resource_key(t->arena, v->server_id), &server, e) < 0)
        return -1;
    if (!server || server->kind != RESOURCE_FILE_SERVER)
        return err_set(e, ERR_NOT_FOUND, "there is no file server %.200s", v->server_id);
    path = xasprintf("%s/%lld/data", t->config->file_servers, (long long)server->id);
    if (fs_make_folders(path, 0755, e) < 0) /* when it is first mounted */
        return -1;
    *ret_path = take_ptr(&path);
    return 0;
}

static int
find_source(struct telling *t, const struct volume *v, char **ret_path, struct err *e)
{
    *ret_path = NULL;
    if (v->kind == VOLUME_UNMANAGED)
        return 0;
    if (v->kind == VOLUME_FILE_SERVER)
        return file_server_folder(t, v, ret_path, e);
    if (check_key(t, v, e) < 0)
        return -1;
    return t->config->volume_folder(v, t->config->context, ret_path, e);
}

static void drop_text(void *text)
{
    free(text);
}

/* A volume that cannot be had carries its error: the attempt fails with it, not the daemon. */
static void tell_volume(struct telling *t, const struct volume *v, struct engine_volume *out)
{
    struct err e = {0};
    char *path;

    *out = (struct engine_volume){.volume = *v};
    if (find_source(t, v, &path, &e) == 0) {
        if (path)
            arena_defer(t->arena, drop_text, path);
        out->source = path;
        return;
    }
    out->error_code = mount_error_code(v->kind);
    out->error_message = mount_error_message(v->kind);
    out->error_info = arena_strdup(t->arena, e.msg);
}

static int tell_volumes(struct telling *t,
                        const json_t *spec,
                        const struct engine_volume **ret_volumes,
                        size_t *ret_count,
                        struct err *e)
{
    struct engine_volume *list;
    struct volume *volumes;

    if (batchai_volumes(spec, t->arena, &volumes, ret_count, e) < 0)
        return -1;
    list = arena_alloc(t->arena, *ret_count * sizeof(*list) + 1);
    for (size_t i = 0; i < *ret_count; i++)
        tell_volume(t, &volumes[i], &list[i]);
    *ret_volumes = list;
    return 0;
}

/* --- clusters and nodes --- */

/* What a node of it has.  A size that the settings no longer know says nothing: nodes that are
 * there keep what they have, and jobs on them go on. */
static void
tell_size(struct telling *t, const struct resource *r, struct engine_cluster *c, struct err *e)
{
    const char *name = json_string_value(json_object_get(r->properties, "vmSize"));
    const struct vmsize *size;

    if (vmsizes_find(t->conductor->control->sizes, name ? name : "", &size, e) < 0)
        return;
    c->cores = size->cores;
    c->memory_mib = size->memory_mib;
    c->gpus = conductor_gpus(t->conductor->control, size);
}

static int
tell_cluster(struct telling *t, int64_t id, struct engine_cluster **ret, struct err *e)
{
    struct engine_cluster *c = arena_alloc(t->arena, sizeof(*c));
    struct cluster_work work = {0};
    struct resource *r;
    json_t *spec;
    bool found;

    if (find(t, id, RESOURCE_CLUSTER, &r, e) < 0 ||
        store_find_cluster_work(t->db, id, &work, &found, e) < 0 ||
        whole_spec(t, r, &spec, e) < 0)
        return -1;
    *c = (struct engine_cluster){
        .id = id,
        .name = r->name,
        .spec = spec,
        .suffix = resource_output_segment(t->arena, r->arm_id, work.uuid),
    };
    tell_size(t, r, c, &t->no_size);
    *ret = c;
    return tell_volumes(t, spec, &c->volumes, &c->volume_count, e);
}

static int add_node(struct telling *t, int64_t id, struct err *e)
{
    const struct yard_node *known = yard_node(t->conductor->yard, id);
    struct engine_node node = {.id = id};
    struct engine_cluster *cluster;

    if (!known)
        return 0;
    if (tell_cluster(t, known->cluster_id, &cluster, e) < 0)
        return -1;
    if (t->no_size.code != ERR_NONE && known->state == NODE_CREATING) {
        *e = t->no_size;
        return -1;
    }
    node.name = known->name;
    node.cluster = cluster;
    t->conductor->engine->ops->node_add(t->conductor->engine, &node);
    return 0;
}

/* --- attempts --- */

static char *attempt_name(struct arena *arena, const char *job_uuid, int number)
{
    return arena_printf(arena, "%s.%d", job_uuid, number);
}

static int tell_image(struct telling *t, struct engine_attempt *a, struct err *e)
{
    const json_t *container = json_object_get(a->spec, "containerSettings");
    const json_t *source = json_object_get(container, "imageSourceRegistry");
    const json_t *credentials = json_object_get(source, "credentials");
    const char *image = json_string_value(json_object_get(source, "image"));
    auto_free char *target = NULL;

    if (!image)
        return 0;
    if (store_find_image(t->db, image, &target, e) < 0)
        return -1;
    if (target && strcmp(target, "host") == 0)
        return 0;
    a->image = target ? arena_strdup(t->arena, target) : image;
    a->registry_server = json_string_value(json_object_get(source, "serverUrl"));
    a->registry_user = json_string_value(json_object_get(credentials, "username"));
    a->registry_password = json_string_value(json_object_get(credentials, "password"));
    return 0;
}

static int start_attempt(struct telling *t, int64_t id, struct err *e)
{
    const struct yard_attempt *known = yard_attempt(t->conductor->yard, id);
    struct engine_attempt a = {.id = id};
    struct engine_cluster *cluster;
    const struct yard_job *job;
    auto_job_work work = {0};
    struct resource *r;
    json_t *spec;
    bool found;

    if (!known)
        return 0;
    job = yard_job(t->conductor->yard, known->job_id);
    if (!job || find(t, job->id, RESOURCE_JOB, &r, e) < 0 ||
        store_find_job_work(t->db, job->id, &work, &found, e) < 0 ||
        whole_spec(t, r, &spec, e) < 0 || tell_cluster(t, job->cluster_id, &cluster, e) < 0)
        return -1;
    a.uuid = attempt_name(t->arena, work.uuid, known->number);
    a.number = known->number;
    a.job = r->name;
    a.experiment = resource_name_above(t->arena, r->arm_id, 1);
    a.workspace = resource_name_above(t->arena, r->arm_id, 2);
    a.segment = resource_output_segment(t->arena, r->arm_id, work.uuid);
    a.spec = spec;
    a.cluster = cluster;
    a.nodes = known->nodes;
    a.node_count = known->node_count;
    if (tell_volumes(t, spec, &a.volumes, &a.volume_count, e) < 0 || tell_image(t, &a, e) < 0)
        return -1;
    t->conductor->engine->ops->attempt_start(t->conductor->engine, &a);
    return 0;
}

void conductor_forget_attempt(struct conductor *c, int64_t job_id, int number)
{
    autoptr(arena) arena = arena_new();
    auto_reader reader = {0};
    auto_job_work work = {0};
    struct err e = {0};
    bool found;

    if (store_pool_take(c->control->config.pool, &reader, &e) < 0 ||
        store_find_job_work(reader.db, job_id, &work, &found, &e) < 0) {
        log_warning("event=forget job=%lld error=\"%s\", ignoring", (long long)job_id, e.msg);
        return;
    }
    if (found)
        c->engine->ops->attempt_forget(c->engine, attempt_name(arena, work.uuid, number));
}

/* --- what failed before the engine heard of it --- */

struct failed_act {
    struct failed_act *next;
    enum yard_action_kind kind;
    int64_t id;
    struct err why;
};

static void report_one(struct conductor *c, const struct failed_act *f)
{
    struct attempt_result result = {
        .end = ENDED_SETUP, .exit_code = -1, .rank = -1, .code = "JobStartFailed"};

    snprintf(result.message, sizeof(result.message), "%s", f->why.msg);
    if (f->kind == ACTION_NODE_ADD)
        yard_node_failed(c->yard, f->id, "NodeStartFailed", f->why.msg, "", conductor_now(c),
                         NULL);
    else
        yard_attempt_ended(c->yard, f->id, &result, 0, 0, conductor_now(c), NULL);
}

static void report_failed(struct loop_task *task)
{
    struct conductor *c = container_of(task, struct conductor, report);

    for (const struct failed_act *f = c->failed; f; f = f->next)
        report_one(c, f);
    conductor_drop_failed(c);
    conductor_settle(c);
}

void conductor_drop_failed(struct conductor *c)
{
    while (c->failed) {
        struct failed_act *next = c->failed->next;

        free(c->failed);
        c->failed = next;
    }
}

void conductor_resumed(struct conductor *c)
{
    if (c->is_resumed)
        return;
    c->is_resumed = true;
    c->engine->ops->resumed(c->engine);
    conductor_sweep_file_servers(c);
}

static int act(struct telling *t, const struct yard_action *action, struct err *e)
{
    struct engine *engine = t->conductor->engine;

    switch (action->kind) {
    case ACTION_NODE_ADD:
        return add_node(t, action->id, e);
    case ACTION_NODE_REMOVE:
        engine->ops->node_remove(engine, action->id);
        return 0;
    case ACTION_ATTEMPT_START:
        return start_attempt(t, action->id, e);
    case ACTION_ATTEMPT_STOP:
        engine->ops->attempt_stop(engine, action->id);
        return 0;
    }
    return 0;
}

void conductor_act(struct conductor *c, struct db *db, const struct yard_action *action)
{
    autoptr(arena) arena = arena_new();
    struct telling t = {
        .conductor = c, .config = &c->control->config, .db = db, .arena = arena};
    struct err e = {0};

    if (act(&t, action, &e) < 0) {
        struct failed_act *f = xmalloc(sizeof(*f));

        log_error("event=act id=%lld error=\"%s\"", (long long)action->id, e.msg);
        *f = (struct failed_act){
            .next = c->failed, .kind = action->kind, .id = action->id, .why = e};
        c->failed = f;
        c->report.run = report_failed;
        loop_task_add(c->control->loop, &c->report);
    }
}
