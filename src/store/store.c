/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store-internal.h"

#include "base/str.h"

#include <inttypes.h>

char *store_dup(struct db_query *q, int column)
{
    const char *text = db_text(q, column);

    return text ? xstrdup(text) : NULL;
}

int store_open(const char *path, struct db **ret_db, struct err *e)
{
    autoptr(db) db = NULL;

    if (db_open(path, DB_WRITER, &db, e) < 0)
        return -1;
    if (db_migrate(db, store_schema, store_schema_count, e) < 0)
        return err_wrap(e, "\"%s\"", path);
    /* A restored database comes with the files that were written already: see backup.h. */
    if (db_script(db, "DROP TABLE IF EXISTS backup_file", e) < 0)
        return -1;
    *ret_db = take_ptr(&db);
    return 0;
}

int store_check_file(const char *path, struct err *e)
{
    autoptr(db) db = NULL;
    auto_free char *subscription = NULL;
    auto_query q = {0};

    if (db_open(path, DB_READER, &db, e) < 0 || db_check(db, e) < 0 ||
        db_check_references(db, e) < 0)
        return -1;
    if (db_select(db, &q, e, "PRAGMA user_version", "") < 0 || db_next(&q, e) < 0)
        return -1;
    if (db_int(&q, 0) < 1 || db_int(&q, 0) > (int64_t)store_schema_count)
        return err_set(e, ERR_INVALID,
                       "the file has schema %" PRId64 ", this program knows 1 to %zu",
                       db_int(&q, 0), store_schema_count);
    if (store_get_meta(db, "subscription_id", &subscription, e) < 0)
        return -1;
    if (!subscription)
        return err_set(e, ERR_INVALID, "the file is not a yard's backup");
    return 0;
}

int store_get_meta(struct db *db, const char *name, char **ret_value, struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT value FROM meta WHERE name = ?", "t", name) < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows < 0)
        return -1;
    *ret_value = rows ? store_dup(&q, 0) : NULL;
    return 0;
}

int store_put_meta(struct db *db, const char *name, const char *value, struct err *e)
{
    return db_run(db, e,
                  "INSERT INTO meta (name, value) VALUES (?, ?)"
                  " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                  "tt", name, value);
}

static const struct store_invariant house_invariants[] = {
    {"every resource hangs on a parent that is there",
     "SELECT count(*) FROM resource c LEFT JOIN resource p ON p.id = c.parent_id"
     " WHERE c.kind <> 'resource group' AND p.id IS NULL"},
    {"every resource belongs to a group that is there",
     "SELECT count(*) FROM resource c LEFT JOIN resource g ON g.id = c.group_id"
     " WHERE g.id IS NULL"},
    {"every resource belongs to its parent's group, and a group to itself",
     "SELECT count(*) FROM resource c JOIN resource g ON g.id = c.group_id"
     " LEFT JOIN resource p ON p.id = c.parent_id WHERE g.kind <> 'resource group'"
     " OR (c.kind = 'resource group' AND g.id <> c.id) OR p.group_id <> c.group_id"},
    {"every resource has a version of its own",
     "SELECT count(*) - count(DISTINCT version) FROM resource"},
    {"every resource being deleted has a running operation",
     "SELECT count(*) FROM resource r WHERE r.state = 2 AND NOT EXISTS"
     " (SELECT 1 FROM operation o WHERE o.resource_id = r.id AND o.state = 0)"},
    {"every ended operation has a time of its end",
     "SELECT count(*) FROM operation WHERE state <> 0 AND ended_ms = 0"},
    {"every failed operation has a cause",
     "SELECT count(*) FROM operation WHERE state = 2 AND error_code IS NULL"},
    {"every storage account has its two keys",
     "SELECT count(*) FROM resource r WHERE r.kind = 'storage account' AND"
     " (SELECT count(*) FROM secret s WHERE s.resource_id = r.id) <> 2"},
    {"every secret belongs to a resource",
     "SELECT count(*) FROM secret s LEFT JOIN resource r ON r.id = s.resource_id"
     " WHERE r.id IS NULL"},
    {"there is an owner of the whole yard",
     "SELECT count(*) = 0 FROM principal WHERE role = 'owner' AND scope = ''"},
    {0},
};

static int check(struct db *db,
                 const struct store_invariant *invariant,
                 store_finding *finding,
                 void *context,
                 struct err *e)
{
    for (; invariant->name; invariant++) {
        auto_query q = {0};
        auto_free char *detail = NULL;
        int64_t bad;

        if (db_select(db, &q, e, invariant->sql, "") < 0 || db_next(&q, e) < 0)
            return -1;
        bad = db_int(&q, 0);
        detail = bad ? xasprintf("%" PRId64 " do not", bad) : xstrdup("");
        finding(invariant->name, bad == 0, detail, context);
    }
    return 0;
}

int store_check_invariants(struct db *db, store_finding *finding, void *context, struct err *e)
{
    struct err damage = {0};

    finding("the database is whole (integrity_check)", db_check(db, &damage) == 0, damage.msg,
            context);
    if (check(db, house_invariants, finding, context, e) < 0)
        return -1;
    return check(db, store_work_invariants, finding, context, e);
}
