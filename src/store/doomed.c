/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store-internal.h"

int store_first_doomed(struct db *db, char **ret_name, struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT name FROM doomed_account LIMIT 1", "") < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows < 0)
        return -1;
    *ret_name = rows ? store_dup(&q, 0) : NULL;
    return 0;
}

int store_is_doomed(struct db *db, const char *name, bool *ret_doomed, struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT 1 FROM doomed_account WHERE name = ?", "t", name) < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows < 0)
        return -1;
    *ret_doomed = rows > 0;
    return 0;
}

int store_forget_doomed(struct db *db, const char *name, struct err *e)
{
    return db_run(db, e, "DELETE FROM doomed_account WHERE name = ?", "t", name);
}
