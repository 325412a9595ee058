/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store-internal.h"

#define COLUMNS "id, name, client_id, token_hash, role, scope, created_ms, expires_ms"

void principal_free(struct principal *p)
{
    if (!p)
        return;
    free(p->name);
    free(p->client_id);
    free(p->token_hash);
    free(p->scope);
    free(p);
}

static int read_row(struct db_query *q, struct principal **ret_principal, struct err *e)
{
    autoptr(principal) p = xcalloc(1, sizeof(*p));

    p->id = db_int(q, 0);
    p->name = store_dup(q, 1);
    p->client_id = store_dup(q, 2);
    p->token_hash = store_dup(q, 3);
    if (access_role_parse(db_text(q, 4), &p->role, e) < 0)
        return -1;
    p->scope = store_dup(q, 5);
    p->created_ms = db_int(q, 6);
    p->expires_ms = db_int(q, 7);
    *ret_principal = take_ptr(&p);
    return 0;
}

int store_find_principal(struct db *db,
                         const char *name,
                         struct principal **ret_principal,
                         struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT " COLUMNS " FROM principal WHERE name = ?", "t", name) < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows > 0)
        return read_row(&q, ret_principal, e);
    *ret_principal = NULL;
    return rows;
}

int store_put_principal(struct db *db, const struct principal *p, struct err *e)
{
    return db_run(db, e,
                  "INSERT INTO principal (name, client_id, token_hash, role, scope, created_ms,"
                  " expires_ms) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
                  " client_id = excluded.client_id, token_hash = excluded.token_hash,"
                  " role = excluded.role, scope = excluded.scope,"
                  " created_ms = excluded.created_ms, expires_ms = excluded.expires_ms",
                  "tttttii", p->name, p->client_id, p->token_hash, access_role_name(p->role),
                  p->scope, p->created_ms, p->expires_ms);
}

int store_remove_principal(struct db *db, const char *name, bool *ret_found, struct err *e)
{
    if (db_run(db, e, "DELETE FROM principal WHERE name = ?", "t", name) < 0)
        return -1;
    *ret_found = db_changed_rows(db) > 0;
    return 0;
}

int store_remove_principals_of(struct db *db,
                               const char *group_key,
                               bool *ret_found,
                               struct err *e)
{
    if (db_run(db, e, "DELETE FROM principal WHERE scope = ?", "t", group_key) < 0)
        return -1;
    *ret_found = db_changed_rows(db) > 0;
    return 0;
}

int store_each_principal(struct db *db,
                         void (*each)(const struct principal *principal, void *context),
                         void *context,
                         struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT " COLUMNS " FROM principal ORDER BY id", "") < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0) {
        autoptr(principal) p = NULL;

        if (read_row(&q, &p, e) < 0)
            return -1;
        each(p, context);
    }
    return rows;
}
