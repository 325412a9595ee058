/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store-internal.h"

#define COLUMNS                                                                                \
    "id, kind, state, resource_id, target, started_ms, ended_ms, error_code, error_message,"   \
    " group_key"

int store_put_operation(struct db *db,
                        const struct operation *o,
                        const char *group_key,
                        struct err *e)
{
    return db_run(db, e,
                  "INSERT INTO operation (id, kind, state, resource_id, target, group_key,"
                  " started_ms, ended_ms, error_code, error_message)"
                  " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
                  " state = excluded.state, ended_ms = excluded.ended_ms,"
                  " error_code = excluded.error_code, error_message = excluded.error_message",
                  "tiiittiitt", o->id, (int64_t)o->kind, (int64_t)o->state, o->resource_id,
                  o->target, group_key, o->started_ms, o->ended_ms, o->error_code,
                  o->error_message);
}

static int read_one(struct db_query *q,
                    struct operation **ret_operation,
                    char **ret_group_key,
                    struct err *e)
{
    struct operation *o;
    int rows = db_next(q, e);

    if (rows < 0)
        return -1;
    *ret_operation = NULL;
    if (rows == 0)
        return 0;
    o = operation_new();
    o->id = store_dup(q, 0);
    o->kind = (enum operation_kind)db_int(q, 1);
    o->state = (enum operation_state)db_int(q, 2);
    o->resource_id = db_int(q, 3);
    o->target = store_dup(q, 4);
    o->started_ms = db_int(q, 5);
    o->ended_ms = db_int(q, 6);
    o->error_code = store_dup(q, 7);
    o->error_message = store_dup(q, 8);
    if (ret_group_key)
        *ret_group_key = store_dup(q, 9);
    *ret_operation = o;
    return 0;
}

int store_find_operation(struct db *db,
                         const char *id,
                         struct operation **ret_operation,
                         char **ret_group_key,
                         struct err *e)
{
    auto_query q = {0};

    if (db_select(db, &q, e, "SELECT " COLUMNS " FROM operation WHERE id = ?", "t", id) < 0)
        return -1;
    return read_one(&q, ret_operation, ret_group_key, e);
}

int store_find_running_operation(struct db *db,
                                 int64_t resource_id,
                                 struct operation **ret_operation,
                                 struct err *e)
{
    auto_query q = {0};

    if (db_select(db, &q, e,
                  "SELECT " COLUMNS " FROM operation WHERE resource_id = ? AND state = 0"
                  " ORDER BY kind LIMIT 1", /* a delete is of kind 0 */
                  "i", resource_id) < 0)
        return -1;
    return read_one(&q, ret_operation, NULL, e);
}

int store_each_running_operation(struct db *db,
                                 void (*each)(const char *id, void *context),
                                 void *context,
                                 struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT id FROM operation WHERE state = 0 ORDER BY started_ms",
                  "") < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0)
        each(db_text(&q, 0), context);
    return rows;
}

int store_remove_old_operations(struct db *db, int64_t before_ms, struct err *e)
{
    return db_run(db, e, "DELETE FROM operation WHERE state <> 0 AND ended_ms < ?", "i",
                  before_ms);
}
