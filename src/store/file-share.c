/* SPDX-License-Identifier: Apache-2.0 */
#include "store/file.h"

#include "store/store-internal.h"

#include <stdio.h>

#define COLUMNS                                                                                \
    "id, account, name, etag, created_ms, modified_ms, quota_gib, tier, protocols, metadata,"  \
    " policies, lease_id, lease_expires_ms, lease_breaks_ms, lease_duration_s"

enum {
    PURGE_ROWS = 2000, /* about 20 ms of the writer's time */
};

void share_row_free(struct share_row *row)
{
    if (!row)
        return;
    free(row->account);
    free(row->name);
    free(row->tier);
    free(row->protocols);
    free(row->metadata);
    free(row->policies);
    free(row);
}

static struct share_row *read_row(struct db_query *q)
{
    struct share_row *row = xcalloc(1, sizeof(*row));
    const char *lease_id = db_text(q, 11);

    row->id = db_int(q, 0);
    row->account = store_dup(q, 1);
    row->name = store_dup(q, 2);
    snprintf(row->etag, sizeof(row->etag), "%s", db_text(q, 3));
    row->created_ms = db_int(q, 4);
    row->modified_ms = db_int(q, 5);
    row->quota_gib = db_int(q, 6);
    row->tier = store_dup(q, 7);
    row->protocols = store_dup(q, 8);
    row->metadata = store_dup(q, 9);
    row->policies = store_dup(q, 10);
    snprintf(row->lease.id, sizeof(row->lease.id), "%s", lease_id ? lease_id : "");
    row->lease.expires_ms = db_int(q, 12);
    row->lease.breaks_ms = db_int(q, 13);
    row->lease.duration_s = db_int(q, 14);
    return row;
}

int store_find_share(struct db *db,
                     const char *account,
                     const char *name,
                     struct share_row **ret_row,
                     struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT " COLUMNS " FROM share WHERE account = ? AND name = ?",
                  "tt", account, name) < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows < 0)
        return -1;
    *ret_row = rows ? read_row(&q) : NULL;
    return 0;
}

static int insert(struct db *db, struct share_row *row, const char *lease_id, struct err *e)
{
    if (db_run(db, e,
               "INSERT INTO share (account, name, etag, created_ms, modified_ms, quota_gib,"
               " tier, protocols, metadata, policies, lease_id, lease_expires_ms,"
               " lease_breaks_ms, lease_duration_s)"
               " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
               "tttiiitttttiii", row->account, row->name, row->etag, row->created_ms,
               row->modified_ms, row->quota_gib, row->tier, row->protocols, row->metadata,
               row->policies, lease_id, row->lease.expires_ms, row->lease.breaks_ms,
               row->lease.duration_s) < 0)
        return -1;
    row->id = db_last_id(db);
    return 0;
}

int store_put_share(struct db *db, struct share_row *row, struct err *e)
{
    const char *lease_id = row->lease.id[0] ? row->lease.id : NULL;

    if (row->id == 0)
        return insert(db, row, lease_id, e);
    if (db_run(db, e,
               "UPDATE share SET etag = ?, modified_ms = ?, quota_gib = ?, tier = ?,"
               " protocols = ?, metadata = ?, policies = ?, lease_id = ?,"
               " lease_expires_ms = ?, lease_breaks_ms = ?, lease_duration_s = ? WHERE id = ?",
               "tiitttttiiii", row->etag, row->modified_ms, row->quota_gib, row->tier,
               row->protocols, row->metadata, row->policies, lease_id, row->lease.expires_ms,
               row->lease.breaks_ms, row->lease.duration_s, row->id) < 0)
        return -1;
    if (db_changed_rows(db) == 0)
        return err_set(e, ERR_NOT_FOUND, "the share is gone");
    return 0;
}

int store_doom_share(struct db *db, int64_t id, struct err *e)
{
    if (db_run(db, e, "DELETE FROM share WHERE id = ?", "i", id) < 0)
        return -1;
    return db_run(db, e, "INSERT OR IGNORE INTO doomed_share (id) VALUES (?)", "i", id);
}

int store_doom_shares_of(struct db *db, const char *account, struct err *e)
{
    if (db_run(db, e,
               "INSERT OR IGNORE INTO doomed_share (id) SELECT id FROM share WHERE account = ?",
               "t", account) < 0)
        return -1;
    return db_run(db, e, "DELETE FROM share WHERE account = ?", "t", account);
}

int store_each_share(struct db *db,
                     const char *account,
                     bool (*each)(const struct share_row *row, void *context),
                     void *context,
                     struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e,
                  "SELECT " COLUMNS " FROM share WHERE ?1 IS NULL OR account = ?1"
                  " ORDER BY account, name",
                  "t", account) < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0) {
        autoptr(share_row) row = read_row(&q);

        if (!each(row, context))
            return 0;
    }
    return rows;
}

/* The id of a doomed share, 0 when there is none. */
static int first_doomed(struct db *db, int64_t *ret_id, struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT id FROM doomed_share LIMIT 1", "") < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows < 0)
        return -1;
    *ret_id = rows ? db_int(&q, 0) : 0;
    return 0;
}

int store_purge_doomed_shares(struct db *db, bool *ret_more, struct err *e)
{
    int64_t id, most = PURGE_ROWS;

    if (first_doomed(db, &id, e) < 0)
        return -1;
    *ret_more = id != 0;
    if (id == 0)
        return 0;
    if (db_run(db, e,
               "DELETE FROM file WHERE (share_id, inode) IN"
               " (SELECT share_id, inode FROM file WHERE share_id = ? LIMIT ?)",
               "ii", id, most) < 0)
        return -1;
    if (db_changed_rows(db) > 0)
        return 0;
    if (db_run(db, e, "DELETE FROM file_permission WHERE share_id = ?", "i", id) < 0)
        return -1;
    return db_run(db, e, "DELETE FROM doomed_share WHERE id = ?", "i", id);
}
