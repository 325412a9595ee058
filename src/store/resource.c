/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store-internal.h"

#include "base/json.h"
#include "base/str.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define COLUMNS                                                                                \
    "id, coalesce(parent_id, 0), kind, arm_id, name, location, tags, properties, state,"       \
    " created_ms, state_ms, modified_ms, version, group_id"

static int parse_column(struct db_query *q, int column, json_t **ret_value, struct err *e)
{
    const char *text = db_text(q, column);

    *ret_value = NULL;
    return text ? json_parse(text, strlen(text), ret_value, e) : 0;
}

static int read_row(struct db_query *q, struct resource **ret_resource, struct err *e)
{
    autoptr(resource) r = NULL;
    enum resource_kind kind;

    if (resource_kind_parse(db_text(q, 2), &kind, e) < 0)
        return -1;
    r = resource_new(kind);
    r->id = db_int(q, 0);
    r->parent_id = db_int(q, 1);
    r->arm_id = store_dup(q, 3);
    r->name = store_dup(q, 4);
    r->location = store_dup(q, 5);
    json_decref(r->properties);
    r->properties = NULL;
    if (parse_column(q, 6, &r->tags, e) < 0 || parse_column(q, 7, &r->properties, e) < 0)
        return err_wrap(e, "resource %s", r->arm_id);
    r->state = (enum resource_state)db_int(q, 8);
    r->created_ms = db_int(q, 9);
    r->state_ms = db_int(q, 10);
    r->modified_ms = db_int(q, 11);
    r->version = db_int(q, 12);
    r->group_id = db_int(q, 13);
    *ret_resource = take_ptr(&r);
    return 0;
}

/* The query's one row, or NULL. */
static int read_one(struct db_query *q, struct resource **ret_resource, struct err *e)
{
    int rows = db_next(q, e);

    if (rows < 0)
        return -1;
    if (rows > 0)
        return read_row(q, ret_resource, e);
    *ret_resource = NULL;
    return 0;
}

int store_find_resource(struct db *db,
                        const char *key,
                        struct resource **ret_resource,
                        struct err *e)
{
    auto_query q = {0};

    if (db_select(db, &q, e, "SELECT " COLUMNS " FROM resource WHERE key = ?", "t", key) < 0)
        return -1;
    return read_one(&q, ret_resource, e);
}

int store_find_resource_by_id(struct db *db,
                              int64_t id,
                              struct resource **ret_resource,
                              struct err *e)
{
    auto_query q = {0};

    if (db_select(db, &q, e, "SELECT " COLUMNS " FROM resource WHERE id = ?", "i", id) < 0)
        return -1;
    return read_one(&q, ret_resource, e);
}

int store_find_account(struct db *db,
                       const char *name,
                       struct resource **ret_resource,
                       struct err *e)
{
    auto_query q = {0};

    if (db_select(db, &q, e,
                  "SELECT " COLUMNS
                  " FROM resource WHERE name = ? AND kind = 'storage account'",
                  "t", name) < 0)
        return -1;
    return read_one(&q, ret_resource, e);
}

int store_add_resource(struct db *db, const struct resource *r, bool *ret_added, struct err *e)
{
    auto_free char *key = str_lower(r->arm_id);
    auto_str properties = {0}, tags = {0};

    json_write(&properties, r->properties);
    if (r->tags)
        json_write(&tags, r->tags);
    if (db_run(db, e,
               "INSERT INTO resource (id, key, parent_id, kind, group_id, arm_id, name,"
               " location, tags, properties, state, created_ms, state_ms, modified_ms, version)"
               " VALUES (?, ?, nullif(?, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
               " ON CONFLICT (key) DO NOTHING",
               "ititi" /* id .. group_id */
               "ttttt" /* arm_id .. properties */
               "iiiii",
               r->id, key, r->parent_id, resource_kind_info(r->kind)->noun, r->group_id,
               r->arm_id, r->name, r->location, r->tags ? str_text(&tags) : NULL,
               str_text(&properties), (int64_t)r->state, r->created_ms, r->state_ms,
               r->modified_ms, r->version) < 0)
        return -1;
    *ret_added = db_changed_rows(db) > 0;
    return 0;
}

int store_update_resource(struct db *db, const struct resource *r, struct err *e)
{
    auto_str properties = {0}, tags = {0};

    json_write(&properties, r->properties);
    if (r->tags)
        json_write(&tags, r->tags);
    return db_run(db, e,
                  "UPDATE resource SET location = ?, tags = ?, properties = ?, state = ?,"
                  " state_ms = ?, modified_ms = ?, version = ? WHERE id = ?",
                  "tttiiiii", r->location, r->tags ? str_text(&tags) : NULL,
                  str_text(&properties), (int64_t)r->state, r->state_ms, r->modified_ms,
                  r->version, r->id);
}

#define TREE                                                                                   \
    "WITH RECURSIVE tree (id) AS (VALUES (?) UNION ALL SELECT resource.id FROM resource"       \
    " JOIN tree ON resource.parent_id = tree.id) "

/* The higher of a resource's version and the one that was remembered. */
#define HIGHER(version)                                                                        \
    "SELECT max(coalesce((" version "), 0), coalesce("                                         \
    "(SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'last_version'), 0))"

static int read_number(struct db_query *q, int64_t *ret_number, struct err *e)
{
    if (db_next(q, e) < 0)
        return -1;
    *ret_number = db_int(q, 0);
    return 0;
}

/* A version must not come again when the resource that had the highest is gone. */
static int remember_version(struct db *db, int64_t id, struct err *e)
{
    auto_free char *text = NULL;
    auto_query q = {0};
    int64_t version;

    if (db_select(db, &q, e,
                  TREE HIGHER("SELECT max(version) FROM resource"
                              " WHERE id IN (SELECT id FROM tree)"),
                  "i", id) < 0 ||
        read_number(&q, &version, e) < 0)
        return -1;
    db_query_done(&q);
    text = xasprintf("%" PRId64, version);
    return store_put_meta(db, "last_version", text, e);
}

/* Nor may an id. */
static int remember_id(struct db *db, struct err *e)
{
    auto_free char *text = NULL;
    int64_t id;

    if (store_last_resource(db, &id, e) < 0)
        return -1;
    text = xasprintf("%" PRId64, id);
    return store_put_meta(db, "last_resource", text, e);
}

int store_remove_tree(struct db *db, int64_t id, struct err *e)
{
    if (remember_version(db, id, e) < 0 || remember_id(db, e) < 0 ||
        db_run(db, e,
               TREE "INSERT OR IGNORE INTO doomed_account SELECT name FROM resource"
                    " WHERE kind = 'storage account' AND id IN (SELECT id FROM tree)",
               "i", id) < 0)
        return -1;
    /* Foreign keys are checked at the end of the statement: the order of rows is no matter. */
    return db_run(db, e, TREE "DELETE FROM resource WHERE id IN (SELECT id FROM tree)", "i",
                  id);
}

int store_last_version(struct db *db, int64_t *ret_version, struct err *e)
{
    auto_query q = {0};

    if (db_select(db, &q, e, HIGHER("SELECT max(version) FROM resource"), "") < 0)
        return -1;
    return read_number(&q, ret_version, e);
}

int store_last_resource(struct db *db, int64_t *ret_id, struct err *e)
{
    auto_query q = {0};

    if (db_select(db, &q, e,
                  "SELECT max(coalesce((SELECT max(id) FROM resource), 0), coalesce("
                  "(SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'last_resource'), 0))",
                  "") < 0)
        return -1;
    return read_number(&q, ret_id, e);
}

void resource_list_done(struct resource_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        resource_free(list->items[i]);
    free(list->items);
    *list = (struct resource_list){0};
}

/* Four shapes of listing, each with the index it needs: SQLite cannot choose one well for "? IS
 * NULL OR". */
static int
select_list(struct db *db, const struct store_filter *f, struct db_query *q, struct err *e)
{
    int64_t limit = (int64_t)f->most + 1;
    const char *kind =
        f->kind < 0 ? NULL : resource_kind_info((enum resource_kind)f->kind)->noun;
    /* A prefix as a span of keys: '0' is the character after '/'. */
    auto_free char *low = xasprintf("%s/", f->key_prefix ? f->key_prefix : "");
    auto_free char *high = xasprintf("%s0", f->key_prefix ? f->key_prefix : "");

    assert(kind || !f->parent_id);

#define GROUP(key) "(SELECT id FROM resource WHERE key = " key ")"
#define WANTED                                                                                 \
    " AND (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) t WHERE"                        \
    " lower(t.key) = lower(?3) AND (?4 IS NULL OR t.value = ?4)))"                             \
    " AND (?5 IS NULL OR lower(name) = lower(?5))"
    if (f->parent_id)
        return db_select(
            db, q, e,
            "SELECT " COLUMNS " FROM resource WHERE id > ?1" WANTED
            " AND parent_id = ?6 AND kind = ?7 AND key >= ?8 AND key < ?9"
            " AND (?10 IS NULL OR group_id = " GROUP("?10") ") ORDER BY id LIMIT ?2",
            "iitttitttt", f->after_id, limit, f->tag, f->tag_value, f->name, f->parent_id, kind,
            low, high, f->group_key);
    if (f->group_key)
        return db_select(
            db, q, e,
            "SELECT " COLUMNS " FROM resource WHERE id > ?1" WANTED " AND group_id = " GROUP(
                "?6") " AND key >= ?8 AND key < ?9"
                      " AND ((?7 IS NULL AND kind <> 'resource group') OR kind = ?7)"
                      " ORDER BY id LIMIT ?2",
            "iittttttt", f->after_id, limit, f->tag, f->tag_value, f->name, f->group_key, kind,
            low, high);
    if (kind)
        return db_select(db, q, e,
                         "SELECT " COLUMNS " FROM resource WHERE id > ?1" WANTED
                         " AND kind = ?6 AND key >= ?7 AND key < ?8"
                         " ORDER BY id LIMIT ?2",
                         "iitttttt", f->after_id, limit, f->tag, f->tag_value, f->name, kind,
                         low, high);
    return db_select(db, q, e,
                     "SELECT " COLUMNS " FROM resource WHERE id > ?1" WANTED
                     " AND kind <> 'resource group' AND key >= ?6 AND key < ?7"
                     " ORDER BY id LIMIT ?2",
                     "iittttt", f->after_id, limit, f->tag, f->tag_value, f->name, low, high);
#undef WANTED
#undef GROUP
}

int store_list_resources(struct db *db,
                         const struct store_filter *filter,
                         struct resource_list *ret_list,
                         struct err *e)
{
    auto_resource_list list = {0};
    auto_query q = {0};
    int rows;

    if (select_list(db, filter, &q, e) < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0) {
        if (list.count == filter->most) {
            list.more = true;
            break;
        }
        list.items = xreallocarray(list.items, list.count + 1, sizeof(struct resource *));
        if (read_row(&q, &list.items[list.count], e) < 0)
            return -1;
        list.count++;
    }
    if (rows < 0)
        return -1;
    *ret_list = (struct resource_list){take_ptr(&list.items), list.count, list.more};
    list.count = 0;
    return 0;
}

int store_each_subscription(struct db *db,
                            const char *scope,
                            void (*each)(const char *id, void *context),
                            void *context,
                            struct err *e)
{
    auto_query q = {0};
    int rows;

    /* "/subscriptions/" has 15 characters, a UUID 36. */
    if (db_select(db, &q, e,
                  "SELECT DISTINCT substr(key, 16, 36) FROM resource"
                  " WHERE kind = 'resource group' AND (?1 = '' OR key = ?1)",
                  "t", scope) < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0)
        each(db_text(&q, 0), context);
    return rows;
}
