/* SPDX-License-Identifier: Apache-2.0 */
#include "store/blob.h"

#include "store/store-internal.h"

int store_get_note(
    struct db *db, const char *account, const char *name, char **ret_text, struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT text FROM note WHERE account = ? AND name = ?", "tt",
                  account, name) < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows < 0)
        return -1;
    *ret_text = rows ? store_dup(&q, 0) : NULL;
    return 0;
}

int store_put_note(
    struct db *db, const char *account, const char *name, const char *text, struct err *e)
{
    return db_run(db, e,
                  "INSERT INTO note (account, name, text) VALUES (?, ?, ?)"
                  " ON CONFLICT (account, name) DO UPDATE SET text = excluded.text",
                  "ttt", account, name, text);
}

int store_remove_notes(struct db *db, const char *account, struct err *e)
{
    return db_run(db, e, "DELETE FROM note WHERE account = ?", "t", account);
}
