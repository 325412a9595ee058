/* SPDX-License-Identifier: Apache-2.0 */
#include "store/blob.h"

#include "base/str.h"
#include "store/store-internal.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS                                                                                \
    "id, account, name, etag, created_ms, modified_ms, metadata, policies, lease_id,"          \
    " lease_expires_ms, lease_breaks_ms, lease_duration_s"

enum {
    PURGE_ROWS = 2000, /* about 20 ms of the writer's time */
};

int store_open_storage(const char *path, struct db **ret_db, struct err *e)
{
    autoptr(db) db = NULL;

    if (db_open(path, DB_WRITER, &db, e) < 0)
        return -1;
    if (db_migrate(db, storage_schema, storage_schema_count, e) < 0)
        return err_wrap(e, "\"%s\"", path);
    *ret_db = take_ptr(&db);
    return 0;
}

void container_row_free(struct container_row *row)
{
    if (!row)
        return;
    free(row->account);
    free(row->name);
    free(row->metadata);
    free(row->policies);
    free(row);
}

static struct container_row *read_row(struct db_query *q)
{
    struct container_row *row = xcalloc(1, sizeof(*row));
    const char *lease_id = db_text(q, 8);

    row->id = db_int(q, 0);
    row->account = store_dup(q, 1);
    row->name = store_dup(q, 2);
    snprintf(row->etag, sizeof(row->etag), "%s", db_text(q, 3));
    row->created_ms = db_int(q, 4);
    row->modified_ms = db_int(q, 5);
    row->metadata = store_dup(q, 6);
    row->policies = store_dup(q, 7);
    snprintf(row->lease.id, sizeof(row->lease.id), "%s", lease_id ? lease_id : "");
    row->lease.expires_ms = db_int(q, 9);
    row->lease.breaks_ms = db_int(q, 10);
    row->lease.duration_s = db_int(q, 11);
    return row;
}

int store_find_container(struct db *db,
                         const char *account,
                         const char *name,
                         struct container_row **ret_row,
                         struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT " COLUMNS " FROM container WHERE account = ? AND name = ?",
                  "tt", account, name) < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows < 0)
        return -1;
    *ret_row = rows ? read_row(&q) : NULL;
    return 0;
}

int store_find_container_by_id(struct db *db,
                               int64_t id,
                               struct container_row **ret_row,
                               struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT " COLUMNS " FROM container WHERE id = ?", "i", id) < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows < 0)
        return -1;
    *ret_row = rows ? read_row(&q) : NULL;
    return 0;
}

static int insert(struct db *db, struct container_row *row, const char *lease_id, struct err *e)
{
    if (db_run(db, e,
               "INSERT INTO container (account, name, etag, created_ms, modified_ms, metadata,"
               " policies, lease_id, lease_expires_ms, lease_breaks_ms, lease_duration_s)"
               " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
               "tttiitttiii", row->account, row->name, row->etag, row->created_ms,
               row->modified_ms, row->metadata, row->policies, lease_id, row->lease.expires_ms,
               row->lease.breaks_ms, row->lease.duration_s) < 0)
        return -1;
    row->id = db_last_id(db);
    return 0;
}

int store_put_container(struct db *db, struct container_row *row, struct err *e)
{
    const char *lease_id = row->lease.id[0] ? row->lease.id : NULL;

    if (row->id == 0)
        return insert(db, row, lease_id, e);
    if (db_run(db, e,
               "UPDATE container SET etag = ?, modified_ms = ?, metadata = ?, policies = ?,"
               " lease_id = ?, lease_expires_ms = ?, lease_breaks_ms = ?, lease_duration_s = ?"
               " WHERE id = ?",
               "tittt"
               "iiii",
               row->etag, row->modified_ms, row->metadata, row->policies, lease_id,
               row->lease.expires_ms, row->lease.breaks_ms, row->lease.duration_s, row->id) < 0)
        return -1;
    if (db_changed_rows(db) == 0)
        return err_set(e, ERR_NOT_FOUND, "the container is gone");
    return 0;
}

int store_doom_container(struct db *db, int64_t id, struct err *e)
{
    if (db_run(db, e, "DELETE FROM container WHERE id = ?", "i", id) < 0)
        return -1;
    return db_run(db, e, "INSERT OR IGNORE INTO doomed_container (id) VALUES (?)", "i", id);
}

int store_doom_account(struct db *db, const char *account, struct err *e)
{
    if (db_run(db, e,
               "INSERT OR IGNORE INTO doomed_container (id)"
               " SELECT id FROM container WHERE account = ?",
               "t", account) < 0)
        return -1;
    if (store_remove_notes(db, account, e) < 0)
        return -1;
    return db_run(db, e, "DELETE FROM container WHERE account = ?", "t", account);
}

static int each_row(struct db_query *q,
                    bool (*each)(const struct container_row *row, void *context),
                    void *context,
                    struct err *e)
{
    int rows;

    while ((rows = db_next(q, e)) > 0) {
        autoptr(container_row) row = read_row(q);

        if (!each(row, context))
            return 0;
    }
    return rows;
}

int store_each_container(struct db *db,
                         const char *account,
                         const char *prefix,
                         const char *after,
                         bool (*each)(const struct container_row *row, void *context),
                         void *context,
                         struct err *e)
{
    auto_query q = {0};

    if (db_select(db, &q, e,
                  "SELECT " COLUMNS " FROM container WHERE account = ?1 AND name > ?3"
                  " AND name >= ?2 AND substr(name, 1, length(?2)) = ?2 ORDER BY name",
                  "ttt", account, prefix, after) < 0)
        return -1;
    return each_row(&q, each, context, e);
}

int store_each_container_of_all(struct db *db,
                                bool (*each)(const struct container_row *row, void *context),
                                void *context,
                                struct err *e)
{
    auto_query q = {0};

    if (db_select(db, &q, e, "SELECT " COLUMNS " FROM container ORDER BY account, name", "") <
        0)
        return -1;
    return each_row(&q, each, context, e);
}

/* The id of a doomed container, 0 when there is none. */
static int first_doomed(struct db *db, int64_t *ret_id, struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT id FROM doomed_container LIMIT 1", "") < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows < 0)
        return -1;
    *ret_id = rows ? db_int(&q, 0) : 0;
    return 0;
}

int store_purge_doomed(struct db *db, bool *ret_more, struct err *e)
{
    int64_t id, most = PURGE_ROWS;

    if (first_doomed(db, &id, e) < 0)
        return -1;
    *ret_more = id != 0;
    if (id == 0)
        return 0;
    if (db_run(db, e,
               "DELETE FROM blob WHERE (container_id, name, snapshot, inode, born_ns) IN"
               " (SELECT container_id, name, snapshot, inode, born_ns FROM blob"
               " WHERE container_id = ? LIMIT ?)",
               "ii", id, most) < 0)
        return -1;
    if (db_changed_rows(db) > 0)
        return 0;
    if (db_run(db, e, "DELETE FROM block_list WHERE container_id = ?", "i", id) < 0 ||
        db_run(db, e, "DELETE FROM unsettled WHERE container_id = ?", "i", id) < 0 ||
        db_run(db, e, "DELETE FROM staged WHERE container_id = ?", "i", id) < 0)
        return -1;
    return db_run(db, e, "DELETE FROM doomed_container WHERE id = ?", "i", id);
}
