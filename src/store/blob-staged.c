/* Names under change, and names with uncommitted blocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/blob.h"

/* One row more, or none because the container is gone. */
static int refuse_if_gone(struct db *db, int64_t container_id, struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT 1 FROM container WHERE id = ?", "i", container_id) < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows == 0)
        err_set(e, ERR_NOT_FOUND, "the container is gone");
    return rows > 0 ? 0 : -1;
}

int store_mark_unsettled(
    struct db *db, int64_t container_id, const char *name, const char *snapshot, struct err *e)
{
    if (refuse_if_gone(db, container_id, e) < 0)
        return -1;
    return db_run(
        db, e,
        "INSERT OR IGNORE INTO unsettled (container_id, name, snapshot) VALUES (?, ?, ?)",
        "itt", container_id, name, snapshot);
}

int store_clear_unsettled(
    struct db *db, int64_t container_id, const char *name, const char *snapshot, struct err *e)
{
    return db_run(db, e,
                  "DELETE FROM unsettled WHERE container_id = ? AND name = ? AND snapshot = ?",
                  "itt", container_id, name, snapshot);
}

int store_each_unsettled(
    struct db *db,
    void (*each)(int64_t container_id, const char *name, const char *snapshot, void *context),
    void *context,
    struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT container_id, name, snapshot FROM unsettled", "") < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0)
        each(db_int(&q, 0), db_text(&q, 1), db_text(&q, 2), context);
    return rows;
}

int store_put_staged(
    struct db *db, int64_t container_id, const char *name, int64_t staged_ms, struct err *e)
{
    if (refuse_if_gone(db, container_id, e) < 0)
        return -1;
    return db_run(db, e,
                  "INSERT OR REPLACE INTO staged (container_id, name, staged_ms)"
                  " VALUES (?, ?, ?)",
                  "iti", container_id, name, staged_ms);
}

int store_remove_staged(struct db *db, int64_t container_id, const char *name, struct err *e)
{
    return db_run(db, e, "DELETE FROM staged WHERE container_id = ? AND name = ?", "it",
                  container_id, name);
}

int store_is_staged(
    struct db *db, int64_t container_id, const char *name, bool *ret_staged, struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT 1 FROM staged WHERE container_id = ? AND name = ?", "it",
                  container_id, name) < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows < 0)
        return -1;
    *ret_staged = rows > 0;
    return 0;
}

int store_each_staged(struct db *db,
                      int64_t container_id,
                      const char *from,
                      bool (*each)(const char *name, int64_t staged_ms, void *context),
                      void *context,
                      struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e,
                  "SELECT name, staged_ms FROM staged WHERE container_id = ? AND name >= ?"
                  " ORDER BY name",
                  "it", container_id, from) < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0) {
        if (!each(db_text(&q, 0), db_int(&q, 1), context))
            return 0;
    }
    return rows;
}
