/* db.h - one SQLite connection, and statements that cannot be built from foreign strings.
 *
 * SQL is always a string literal with '?' for values; values are bound by a type string, one
 * letter each: t text (const char *, NULL = SQL null), i integer (int64_t), b blob (const void
 * *, size_t).
 *
 *     struct db_query q;
 *     if (db_select(db, &q, e, "SELECT name FROM resource WHERE parent_id = ?", "i", parent) <
 * 0) ... while ((more = db_next(&q, e)) > 0) use(db_text(&q, 0)); db_query_done(&q);
 *
 * Prepared statements are kept per connection, by the address of the literal.
 *
 * Threads: a connection belongs to one thread at a time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DB_DB_H
#define DB_DB_H

#include "base/err.h"
#include "base/mem.h"

#include <stdint.h>

struct db; /* opaque */
struct sqlite3_stmt;

enum db_mode {
    DB_READER, /* query_only; sees the last commit; never blocks a writer, never waits for one
                */
    DB_WRITER, /* creates the file; WAL, synchronous=FULL */
};

int db_open(const char *path, enum db_mode mode, struct db **ret_db, struct err *e);
void db_free(struct db *db);
DEFINE_AUTOPTR(db)

/* Run a statement to its end, rows thrown away. */
int db_run(struct db *db, struct err *e, const char *sql, const char *types, ...);
/* Several statements without parameters: schema files, pragmas. */
int db_script(struct db *db, const char *sql, struct err *e);
int64_t db_changed_rows(struct db *db); /* by the last db_run */
int64_t db_last_id(struct db *db);

struct db_query {
    struct db *db;
    struct sqlite3_stmt *stmt;
};

int db_select(
    struct db *db, struct db_query *q, struct err *e, const char *sql, const char *types, ...);
/* 1 a row, 0 no more, -1 failed. */
int db_next(struct db_query *q, struct err *e);
/* Columns of the current row, from 0; text is borrowed until the next call on the query. */
const char *db_text(struct db_query *q, int column); /* NULL for SQL null */
int64_t db_int(struct db_query *q, int column);
const void *db_blob(struct db_query *q, int column, size_t *ret_len);
void db_query_done(struct db_query *q);
#define auto_query __attribute__((cleanup(db_query_done))) struct db_query

/* Copy the whole database, consistently and while it is in use, into a new file. */
int db_copy_to(struct db *db, const char *path, struct err *e);
/* PRAGMA integrity_check; the error carries its first finding. */
int db_check(struct db *db, struct err *e);
/* No row refers to one that is not there. */
int db_check_references(struct db *db, struct err *e);

struct db_migration {
    int number; /* 1, 2, 3, ... without gaps */
    const char *name;
    const char *sql;
};
/* Bring the schema up to the last migration, each in a transaction of its own.  A database that
 * a newer program wrote is refused. */
int db_migrate(struct db *db, const struct db_migration *list, size_t count, struct err *e);

#endif
