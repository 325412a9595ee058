/* Putting and deleting resources: the same steps for every kind.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "control/control-internal.h"

#include "base/crypt.h"
#include "base/json.h"
#include "base/str.h"
#include "control/batchai.h"
#include "store/store.h"

#include <assert.h>
#include <string.h>

int64_t control_next_version(struct control *control, int64_t now_ms)
{
    control->last_version = resource_next_version(now_ms, control->last_version);
    return control->last_version;
}

int control_check_standing(struct db *db,
                           struct resource *resource,
                           int64_t now_ms,
                           struct err *e)
{
    int64_t up = resource->parent_id;

    if (resource_apply(resource, RESOURCE_UPDATE, now_ms, e) < 0)
        return -1;
    while (up) {
        autoptr(resource) parent = NULL;

        if (store_find_resource_by_id(db, up, &parent, e) < 0)
            return -1;
        if (!parent)
            return err_set(e, ERR_INTERNAL, "%s has lost its parent", resource->arm_id);
        if (resource_apply(parent, RESOURCE_UPDATE, now_ms, e) < 0)
            return -1;
        up = parent->parent_id;
    }
    return 0;
}

static bool is_work(enum resource_kind kind)
{
    return kind == RESOURCE_CLUSTER || kind == RESOURCE_FILE_SERVER || kind == RESOURCE_JOB;
}

/* The id of what a resource of that kind and id hangs on; in the arena. */
static char *id_above(struct arena *arena, enum resource_kind kind, const char *id)
{
    const char *part = resource_kind_info(kind)->id_part;
    size_t span = strlen(id) - strlen(strrchr(id, '/') + 1) - strlen(part);

    return arena_strndup(arena, id, span);
}

/* Say what is missing, from the top: without its group a workspace is not worth mentioning. */
static int missing_parent(struct control_change *change,
                          const struct control_put *put,
                          struct db *db,
                          struct err *e)
{
    enum resource_kind kind = resource_parent_kind(put->kind);
    const char *id = put->parent_id;

    while (kind != RESOURCE_GROUP) {
        char *above = id_above(change->arena, kind, id);
        autoptr(resource) found = NULL;

        if (store_find_resource(db, resource_key(change->arena, above), &found, e) < 0)
            return -1;
        if (found)
            return resource_not_found(e, kind, strrchr(id, '/') + 1);
        id = above;
        kind = resource_parent_kind(kind);
    }
    return resource_not_found(e, RESOURCE_GROUP, resource_group_part(change->arena, id));
}

void control_forget_parent(struct control *control)
{
    free(take_ptr(&control->parent.key));
}

static bool is_known_parent(struct control *control, const char *key)
{
    const struct known_parent *known = &control->parent;

    return known->key && known->generation == control_generation(control) &&
           str_equal(known->key, key);
}

static void keep_parent(struct control *control, const char *key, const struct resource *parent)
{
    control_forget_parent(control);
    control->parent = (struct known_parent){xstrdup(key), parent->id, parent->group_id,
                                            control_generation(control)};
}

/* What a create would make of a put; NULL once it is used. */
struct draft {
    struct resource *resource;
};

/* A put and the names that follow from it, so that the writer's thread need not make them:
 * everybody waits for that one. */
struct kept_put {
    struct control_put put;
    const char *arm_id, *key, *parent_key, *group_key;
    struct draft *draft;
};

static struct resource *draft_of(const struct kept_put *kept)
{
    const struct control_put *put = &kept->put;
    struct resource *r = resource_new(put->kind);

    r->arm_id = xstrdup(kept->arm_id);
    r->name = xstrdup(put->name);
    r->location = put->location ? xstrdup(put->location) : NULL;
    r->tags = json_incref(put->tags);
    if (put->properties)
        json_object_update(r->properties, put->properties);
    return r;
}

static void drop_draft(void *arg)
{
    struct draft *draft = arg;

    resource_free(draft->resource);
}

/* Makes it known. */
static int find_parent(struct control_change *change,
                       const struct kept_put *kept,
                       struct db *db,
                       struct err *e)
{
    const struct control_put *put = &kept->put;
    const char *key = kept->parent_key;
    autoptr(resource) parent = NULL;

    if (is_known_parent(change->control, key))
        return 0;
    if (store_find_resource(db, key, &parent, e) < 0)
        return -1;
    if (!parent)
        return missing_parent(change, put, db, e);
    if (control_check_standing(db, parent, change->now_ms, e) < 0)
        return -1;
    keep_parent(change->control, key, parent);
    return 0;
}

static int check_account_name(const struct control_put *put, struct db *db, struct err *e)
{
    autoptr(resource) taken = NULL;

    if (put->kind != RESOURCE_STORAGE_ACCOUNT)
        return 0;
    if (store_find_account(db, put->name, &taken, e) < 0)
        return -1;
    if (!taken)
        return 0;
    err_set(e, ERR_CONFLICT, "The storage account named %s is already taken.", put->name);
    err_reason(e, "StorageAccountAlreadyTaken");
    return err_target(e, "accountName");
}

/* Tokens of an earlier group of the same name do not open the new one. */
static int remove_old_principals(struct control_change *change,
                                 struct db *db,
                                 const char *group_key,
                                 struct err *e)
{
    return store_remove_principals_of(db, group_key, &change->principals_changed, e);
}

/* The resource that is to be, in change->resource.  Its parent is known. */
static int make(struct control_change *change, const struct kept_put *kept, struct err *e)
{
    struct control *control = change->control;
    struct resource *r =
        kept->draft->resource ? take_ptr(&kept->draft->resource) : draft_of(kept);
    bool is_group = r->kind == RESOURCE_GROUP;

    change->resource = r;
    if (!is_group && !is_known_parent(control, kept->parent_key))
        return err_set(e, ERR_INTERNAL, "%s has lost its parent", kept->arm_id);
    if (resource_apply(r, RESOURCE_CREATE, change->now_ms, e) < 0)
        return -1;
    r->id = ++control->last_resource;
    r->parent_id = is_group ? 0 : control->parent.id;
    r->group_id = is_group ? r->id : control->parent.group_id;
    r->created_ms = r->modified_ms = change->now_ms;
    r->version = control_next_version(control, change->now_ms);
    change->created = true;
    return 0;
}

/* Behind others that were made in the same place one more is most likely new too: nobody looks
 * whether it is, the row that is there already says so. */
static bool is_likely_new(const struct control_change *change, const struct kept_put *kept)
{
    const struct control_put *put = &kept->put;

    return (put->kind == RESOURCE_WORKSPACE || put->kind == RESOURCE_EXPERIMENT) &&
           !put->must_exist && !put->if_match && !put->if_none_match &&
           is_known_parent(change->control, kept->parent_key);
}

/* Leaves change->resource NULL when there is such a one. */
static int create_likely(struct control_change *change,
                         const struct kept_put *kept,
                         struct db *db,
                         struct err *e)
{
    bool is_added;

    if (make(change, kept, e) < 0 || store_add_resource(db, change->resource, &is_added, e) < 0)
        return -1;
    if (is_added)
        return 0;
    resource_free(take_ptr(&change->resource));
    change->created = false;
    return 0;
}

static int
create(struct control_change *change, const struct kept_put *kept, struct db *db, struct err *e)
{
    const struct control_put *put = &kept->put;
    bool is_added;

    if ((put->kind != RESOURCE_GROUP && find_parent(change, kept, db, e) < 0) ||
        check_account_name(put, db, e) < 0 || make(change, kept, e) < 0 ||
        store_add_resource(db, change->resource, &is_added, e) < 0)
        return -1;
    if (!is_added)
        return err_set(e, ERR_INTERNAL, "%s was not there and is", kept->arm_id);
    if (put->kind == RESOURCE_GROUP)
        return remove_old_principals(change, db, kept->group_key, e);
    if (is_work(put->kind))
        return control_begin_work(change, put, db, kept->group_key, e);
    if (put->kind != RESOURCE_STORAGE_ACCOUNT)
        return 0;
    if (control_begin_empty(change, db, put->name, e) < 0)
        return -1;
    return control_make_keys(change, db, change->resource->id, e);
}

static int refuse_moving(const struct resource *r, const char *location, struct err *e)
{
    if (!location || !r->location || str_equal(location, r->location))
        return 0;
    err_set(e, ERR_CONFLICT,
            "location: the %s %s is in \"%s\" and cannot move to \"%s\"; delete it first, or "
            "keep its location",
            resource_kind_info(r->kind)->noun, r->name, r->location, location);
    err_reason(e, r->kind == RESOURCE_GROUP ? "InvalidResourceGroupLocation"
                                            : "InvalidResourceLocation");
    return err_target(e, "location");
}

/* What the properties would be.  Members of an object within them replace their namesakes too,
 * so that two clients who change different ones at the same time both succeed; but a cluster's
 * scale is manual or automatic and never a mixture. */
static json_t *merged(const struct resource *r, const struct control_put *put)
{
    json_t *out = json_deep_copy(r->properties);
    const char *key;
    json_t *value;

    json_object_foreach(put->properties, key, value)
    {
        json_t *had = json_object_get(out, key);

        if (json_is_object(had) && json_is_object(value) && !is_work(r->kind))
            json_object_update(had, value);
        else
            json_object_set(out, key, value);
    }
    return out;
}

static int update(struct control_change *change,
                  const struct control_put *put,
                  struct db *db,
                  struct err *e)
{
    struct resource *r = change->resource;
    auto_json json_t *properties = NULL;

    if (control_check_standing(db, r, change->now_ms, e) < 0 ||
        refuse_moving(r, put->location, e) < 0)
        return -1;
    if (is_work(r->kind) && control_check_same(change, put, db, e) < 0)
        return -1;
    properties = merged(r, put);
    /* A client that repeats itself keeps its ETag. */
    if ((!put->tags || json_equal(put->tags, r->tags)) && json_equal(properties, r->properties))
        return 0;
    if (put->tags) {
        json_decref(r->tags);
        r->tags = json_incref(put->tags);
    }
    json_decref(r->properties);
    r->properties = take_ptr(&properties);
    r->modified_ms = change->now_ms;
    r->version = control_next_version(change->control, change->now_ms);
    return store_update_resource(db, r, e);
}

static int apply_put(struct control_change *change, struct db *db, struct err *e)
{
    const struct kept_put *kept = change->request;
    const struct control_put *put = &kept->put;

    if (is_likely_new(change, kept)) {
        if (create_likely(change, kept, db, e) < 0)
            return -1;
        if (change->resource)
            return 0;
    }
    if (store_find_resource(db, kept->key, &change->resource, e) < 0)
        return -1;
    if (!change->resource && put->must_exist)
        return resource_not_found(e, put->kind, put->name);
    if (resource_check_match(change->resource, put->if_match, put->if_none_match, e) < 0)
        return -1;
    return change->resource ? update(change, put, db, e) : create(change, kept, db, e);
}

static const char *keep(struct control_change *change, const char *text)
{
    return text ? arena_strdup(change->arena, text) : NULL;
}

void control_put_resource(struct control *control,
                          struct control_change *change,
                          const struct control_put *put)
{
    struct kept_put *kept = arena_alloc(change->arena, sizeof(*kept));

    kept->put = *put;
    kept->put.parent_id = keep(change, put->parent_id);
    kept->put.name = keep(change, put->name);
    kept->put.location = keep(change, put->location);
    kept->put.if_match = keep(change, put->if_match);
    kept->put.if_none_match = keep(change, put->if_none_match);
    control_keep_json(change, put->tags);
    control_keep_json(change, put->properties);
    control_keep_json(change, put->secrets);
    kept->arm_id = resource_child_id(change->arena, put->kind, put->parent_id, put->name);
    kept->key = resource_key(change->arena, kept->arm_id);
    kept->parent_key = resource_key(change->arena, put->parent_id);
    kept->group_key = resource_group_key(change->arena, kept->arm_id);
    kept->draft = arena_alloc(change->arena, sizeof(struct draft));
    kept->draft->resource = draft_of(kept);
    arena_defer(change->arena, drop_draft, kept->draft);
    change->request = kept;
    change->apply = apply_put;
    change->is_repeatable = true;
    control_submit(control, change);
}

static int remove_at_once(struct control_change *change, struct db *db, struct err *e)
{
    change->accounts_doomed = true;
    if (resource_apply(change->resource, RESOURCE_REMOVED, change->now_ms, e) < 0)
        return -1;
    return store_remove_tree(db, change->resource->id, e);
}

static int start_deleting(struct control_change *change, struct db *db, struct err *e)
{
    struct resource *r = change->resource;
    struct operation *o = change->operation = operation_new();
    char id[CRYPT_UUID_BYTES];

    o->id = xstrdup(crypt_uuid(id));
    o->kind = OPERATION_DELETE_RESOURCE;
    o->resource_id = r->id;
    o->target = xstrdup(r->arm_id);
    o->started_ms = change->now_ms;
    change->starts_operation = true;
    if (store_update_resource(db, r, e) < 0)
        return -1;
    return store_put_operation(db, o, resource_group_key(change->arena, r->arm_id), e);
}

static int apply_delete(struct control_change *change, struct db *db, struct err *e)
{
    const struct control_delete *del = change->request;
    enum resource_state before;

    if (store_find_resource(db, resource_key(change->arena, del->arm_id), &change->resource,
                            e) < 0)
        return -1;
    if (!change->resource)
        return 0;
    if (resource_check_match(change->resource, del->if_match, NULL, e) < 0)
        return -1;
    before = change->resource->state;
    if (resource_apply(change->resource, RESOURCE_DELETE, change->now_ms, e) < 0)
        return -1;
    if (del->at_once)
        return remove_at_once(change, db, e);
    if (before == RESOURCE_DELETING)
        return store_find_running_operation(db, change->resource->id, &change->operation, e);
    return start_deleting(change, db, e);
}

void control_delete_resource(struct control *control,
                             struct control_change *change,
                             const struct control_delete *del)
{
    struct control_delete *kept = arena_alloc(change->arena, sizeof(*kept));

    *kept = *del;
    kept->arm_id = keep(change, del->arm_id);
    kept->name = keep(change, del->name);
    kept->if_match = keep(change, del->if_match);
    change->request = kept;
    change->apply = apply_delete;
    control_submit(control, change);
}
