/* SPDX-License-Identifier: Apache-2.0 */
#include "db/db-internal.h"

#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <string.h>

/* Statements a connection keeps, found by the address of their SQL.  A power of two, several
 * times the number of literals in store/. */
enum {
    CACHE_SLOTS = 512,
    /* 16 MB of log, which its file then keeps.  SQLite's own choice is a quarter: but pages
     * that every commit writes are moved once per checkpoint, and a start reads that much in no
     * time. */
    CHECKPOINT_PAGES = 4000,
};

struct db {
    sqlite3 *handle;
    bool is_broken;
    int wal_pages; /* after the last commit of this connection */
    struct {
        const char *sql;
        sqlite3_stmt *stmt;
    } cache[CACHE_SLOTS];
};

/* A write that found no room has changed nothing; SQLite has a code for that, but not where a
 * quota or the shared memory of the WAL is what is full.  A failed fsync is never only that. */
static bool is_full(struct db *db, int rc)
{
    int cause = sqlite3_system_errno(db->handle);

    if ((rc & 0xff) != SQLITE_IOERR)
        return rc == SQLITE_FULL;
    return (rc == SQLITE_IOERR_WRITE || rc == SQLITE_IOERR_SHMSIZE) &&
           (cause == ENOSPC || cause == EDQUOT);
}

int db_failed(struct db *db, struct err *e, const char *doing)
{
    int rc = sqlite3_extended_errcode(db->handle);
    const char *text = sqlite3_errmsg(db->handle);

    if (is_full(db, rc))
        return err_set(e, ERR_NO_SPACE, "could not %s: the disk is full", doing);
    switch (rc & 0xff) {
    case SQLITE_IOERR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        db->is_broken = true;
        return err_set(e, ERR_INTERNAL, "could not %s: %s (%d)", doing, text, rc);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(e, ERR_BUSY, "could not %s: %s", doing, text);
    case SQLITE_CONSTRAINT:
        return err_set(e, ERR_CONFLICT, "could not %s: %s", doing, text);
    default:
        return err_set(e, ERR_INTERNAL, "could not %s: %s (%d)", doing, text, rc);
    }
}

bool db_is_broken(struct db *db)
{
    return db->is_broken;
}

bool db_in_transaction(struct db *db)
{
    return !sqlite3_get_autocommit(db->handle);
}

/* SQLite would checkpoint within the commit that fills the log: there the failure of its fsync
 * is swallowed, and whoever asked for that commit waits longer.  The writer does it instead. */
static int note_wal_pages(void *context, sqlite3 *handle, const char *name, int pages)
{
    struct db *db = context;

    (void)handle;
    (void)name;
    db->wal_pages = pages;
    return SQLITE_OK;
}

int db_checkpoint_when_due(struct db *db, struct err *e)
{
    int rc;

    if (db->wal_pages < CHECKPOINT_PAGES)
        return 0;
    rc = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (rc != SQLITE_OK)
        return db_failed(db, e, "move the log into the database");
    db->wal_pages = 0;
    return 0;
}

static int configure(struct db *db, enum db_mode mode, struct err *e)
{
    /* Foreign bytes reach the file only through us, but a defect must not become a hole:
     * no writes to the schema by SQL, no functions from the schema. */
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_busy_timeout(db->handle, 5000);
    if (mode == DB_READER)
        return db_script(db, "PRAGMA query_only = ON", e);
    if (db_script(db,
                  "PRAGMA journal_mode = WAL;"
                  "PRAGMA synchronous = FULL;"
                  "PRAGMA foreign_keys = ON;"
                  "PRAGMA journal_size_limit = 67108864",
                  e) < 0)
        return -1;
    sqlite3_wal_hook(db->handle, note_wal_pages, db);
    return 0;
}

/* Statistics of memory cost one lock for all threads at every allocation. */
static void configure_library(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

int db_open(const char *path, enum db_mode mode, struct db **ret_db, struct err *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    autoptr(db) db = xcalloc(1, sizeof(*db));
    /* A reader opens for writing too: WAL's shared memory wants it; query_only keeps it honest.
     */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;

    if (mode == DB_WRITER)
        flags |= SQLITE_OPEN_CREATE;
    pthread_once(&once, configure_library);
    if (sqlite3_open_v2(path, &db->handle, flags, NULL) != SQLITE_OK) {
        if (!db->handle)
            return err_set(e, ERR_INTERNAL, "could not open \"%s\"", path);
        db_failed(db, e, "open the database");
        return err_wrap(e, "\"%s\"", path);
    }
    if (configure(db, mode, e) < 0)
        return err_wrap(e, "\"%s\"", path);
    *ret_db = take_ptr(&db);
    return 0;
}

void db_free(struct db *db)
{
    if (!db)
        return;
    for (size_t i = 0; i < CACHE_SLOTS; i++)
        sqlite3_finalize(db->cache[i].stmt);
    sqlite3_close(db->handle);
    free(db);
}

int db_script(struct db *db, const char *sql, struct err *e)
{
    if (sqlite3_exec(db->handle, sql, NULL, NULL, NULL) != SQLITE_OK)
        return db_failed(db, e, "change the database");
    return 0;
}

static int prepare(struct db *db, const char *sql, sqlite3_stmt **ret_stmt, struct err *e)
{
    /* Literals are aligned at best to bytes: mix the address before taking its low bits. */
    size_t slot = (size_t)(((uintptr_t)sql * 0x9e3779b97f4a7c15ull) >> 32) % CACHE_SLOTS;

    while (db->cache[slot].sql && db->cache[slot].sql != sql)
        slot = (slot + 1) % CACHE_SLOTS;
    if (!db->cache[slot].stmt) {
        sqlite3_stmt *stmt;

        if (sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) !=
            SQLITE_OK)
            return db_failed(db, e, "prepare a statement");
        db->cache[slot].sql = sql;
        db->cache[slot].stmt = stmt;
    }
    *ret_stmt = db->cache[slot].stmt;
    assert(!sqlite3_stmt_busy(*ret_stmt)); /* a query was left open: db_query_done is missing */
    return 0;
}

/* `life`: SQLITE_STATIC when the values outlive the statement's run, else SQLITE_TRANSIENT. */
static void
bind(sqlite3_stmt *stmt, sqlite3_destructor_type life, const char *types, va_list args)
{
    assert((size_t)sqlite3_bind_parameter_count(stmt) == strlen(types));
    for (int i = 0; types[i]; i++) {
        const void *bytes;

        switch (types[i]) {
        case 't':
            sqlite3_bind_text(stmt, i + 1, va_arg(args, const char *), -1, life);
            break;
        case 'i':
            sqlite3_bind_int64(stmt, i + 1, va_arg(args, int64_t));
            break;
        case 'b':
            bytes = va_arg(args, const void *);
            sqlite3_bind_blob64(stmt, i + 1, bytes, va_arg(args, size_t), life);
            break;
        default:
            assert(!"unknown type letter");
        }
    }
}

int db_run(struct db *db, struct err *e, const char *sql, const char *types, ...)
{
    sqlite3_stmt *stmt;
    va_list args;
    int rc;

    if (prepare(db, sql, &stmt, e) < 0)
        return -1;
    va_start(args, types);
    bind(stmt, SQLITE_STATIC, types, args);
    va_end(args);
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
        continue;
    if (rc != SQLITE_DONE)
        db_failed(db, e, "change the database");
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return rc == SQLITE_DONE ? 0 : -1;
}

int64_t db_changed_rows(struct db *db)
{
    return sqlite3_changes64(db->handle);
}

int64_t db_total_changes(struct db *db)
{
    return sqlite3_total_changes64(db->handle);
}

int64_t db_last_id(struct db *db)
{
    return sqlite3_last_insert_rowid(db->handle);
}

int db_select(
    struct db *db, struct db_query *q, struct err *e, const char *sql, const char *types, ...)
{
    va_list args;

    *q = (struct db_query){.db = db};
    if (prepare(db, sql, &q->stmt, e) < 0)
        return -1;
    va_start(args, types);
    bind(q->stmt, SQLITE_TRANSIENT, types, args);
    va_end(args);
    return 0;
}

int db_next(struct db_query *q, struct err *e)
{
    int rc = sqlite3_step(q->stmt);

    if (rc == SQLITE_ROW)
        return 1;
    if (rc == SQLITE_DONE)
        return 0;
    return db_failed(q->db, e, "read the database");
}

const char *db_text(struct db_query *q, int column)
{
    return (const char *)sqlite3_column_text(q->stmt, column);
}

int64_t db_int(struct db_query *q, int column)
{
    return sqlite3_column_int64(q->stmt, column);
}

const void *db_blob(struct db_query *q, int column, size_t *ret_len)
{
    const void *bytes = sqlite3_column_blob(q->stmt, column);

    *ret_len = (size_t)sqlite3_column_bytes(q->stmt, column);
    return bytes;
}

void db_query_done(struct db_query *q)
{
    if (!q->stmt)
        return;
    sqlite3_reset(q->stmt);
    sqlite3_clear_bindings(q->stmt);
    q->stmt = NULL;
}

int db_copy_to(struct db *db, const char *path, struct err *e)
{
    /* VACUUM INTO reads one snapshot and leaves out freed pages, where deleted secrets may
     * linger. */
    return db_run(db, e, "VACUUM INTO ?", "t", path);
}

int db_check(struct db *db, struct err *e)
{
    auto_query q;

    if (db_select(db, &q, e, "PRAGMA integrity_check(1)", "") < 0 || db_next(&q, e) < 0)
        return -1;
    if (!str_equal(db_text(&q, 0), "ok"))
        return err_set(e, ERR_INTERNAL, "the database is damaged: %s", db_text(&q, 0));
    return 0;
}

int db_check_references(struct db *db, struct err *e)
{
    auto_query q;
    int rows;

    if (db_select(db, &q, e, "PRAGMA foreign_key_check", "") < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows > 0)
        return err_set(e, ERR_INTERNAL, "a row of the table %s refers to one that is not there",
                       db_text(&q, 0));
    return rows;
}
