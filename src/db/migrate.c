/* Schema versions live in SQLite's user_version; a migration and its number are committed
 * together.
 *
 * Foreign keys rest meanwhile: SQLite changes a table by putting another in its place, and with
 * them to drop the old one would remove whatever refers to it.  They are checked before the
 * commit instead.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "db/db-internal.h"

#include <assert.h>

static int read_version(struct db *db, int *ret_version, struct err *e)
{
    auto_query q;

    if (db_select(db, &q, e, "PRAGMA user_version", "") < 0 || db_next(&q, e) < 0)
        return -1;
    *ret_version = (int)db_int(&q, 0);
    return 0;
}

static int run_one(struct db *db, const struct db_migration *m, struct err *e)
{
    auto_free char *bump = xasprintf("PRAGMA user_version = %d", m->number);

    if (db_script(db, "BEGIN IMMEDIATE", e) < 0)
        return -1;
    if (db_script(db, m->sql, e) < 0 || db_check_references(db, e) < 0 ||
        db_script(db, bump, e) < 0 || db_script(db, "COMMIT", e) < 0) {
        db_script(db, "ROLLBACK", NULL);
        return err_wrap(e, "migration %d (%s)", m->number, m->name);
    }
    return 0;
}

/* The pragma does nothing within a transaction, so it stands around it. */
static int run_unbound(struct db *db, const struct db_migration *m, struct err *e)
{
    int rc;

    if (db_script(db, "PRAGMA foreign_keys = OFF", e) < 0)
        return -1;
    rc = run_one(db, m, e);
    if (db_script(db, "PRAGMA foreign_keys = ON", rc < 0 ? NULL : e) < 0)
        return -1;
    return rc;
}

int db_migrate(struct db *db, const struct db_migration *list, size_t count, struct err *e)
{
    int version;

    if (read_version(db, &version, e) < 0)
        return -1;
    if (version > (int)count)
        return err_set(e, ERR_CONFLICT,
                       "the database has schema %d, this program knows %zu: it was written by "
                       "a newer version; run that one",
                       version, count);
    for (size_t i = (size_t)version; i < count; i++) {
        assert(list[i].number == (int)i + 1);
        if (run_unbound(db, &list[i], e) < 0)
            return -1;
    }
    return 0;
}
