/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store-internal.h"

int store_put_secret(struct db *db,
                     int64_t resource_id,
                     const char *name,
                     const char *sealed,
                     int64_t now_ms,
                     struct err *e)
{
    return db_run(db, e,
                  "INSERT INTO secret (resource_id, name, sealed, created_ms)"
                  " VALUES (?, ?, ?, ?) ON CONFLICT (resource_id, name) DO UPDATE SET"
                  " sealed = excluded.sealed, created_ms = excluded.created_ms",
                  "itti", resource_id, name, sealed, now_ms);
}

int store_get_secret(struct db *db,
                     int64_t resource_id,
                     const char *name,
                     char **ret_sealed,
                     int64_t *ret_created_ms,
                     struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e,
                  "SELECT sealed, created_ms FROM secret WHERE resource_id = ? AND name = ?",
                  "it", resource_id, name) < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows < 0)
        return -1;
    *ret_sealed = rows ? store_dup(&q, 0) : NULL;
    if (ret_created_ms)
        *ret_created_ms = rows ? db_int(&q, 1) : 0;
    return 0;
}

int store_has_secrets(struct db *db, bool *ret_has, struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT 1 FROM secret LIMIT 1", "") < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows < 0)
        return -1;
    *ret_has = rows > 0;
    return 0;
}
