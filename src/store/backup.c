/* SPDX-License-Identifier: Apache-2.0 */
#include "store/backup.h"

#include "base/fs.h"
#include "base/str.h"
#include "store/store-internal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_FILE_BYTES = 1024 * 1024,
};

static int add_file(struct db *copy, const char *home, const char *name, struct err *e)
{
    auto_free char *path = xasprintf("%s/%s", home, name);
    auto_str content = {0};
    struct err why = {0};
    struct stat file;

    if (fs_read(path, MOST_FILE_BYTES, &content, &why) < 0) {
        if (why.code == ERR_NOT_FOUND)
            return 0;
        if (e)
            *e = why;
        return -1;
    }
    if (stat(path, &file) < 0)
        return err_sys(e, errno, "could not read \"%s\"", path);
    return db_run(copy, e, "INSERT INTO backup_file (name, mode, content) VALUES (?, ?, ?)",
                  "tib", name, (int64_t)(file.st_mode & 0777), str_text(&content), content.len);
}

static int
add_files(const char *copy_path, const char *home, const char *const *files, struct err *e)
{
    autoptr(db) copy = NULL;

    if (db_open(copy_path, DB_WRITER, &copy, e) < 0)
        return -1;
    /* One file, complete in itself: no write-ahead log beside it. */
    if (db_script(copy,
                  "PRAGMA journal_mode = DELETE;"
                  "CREATE TABLE backup_file (name TEXT PRIMARY KEY, mode INTEGER NOT NULL,"
                  " content BLOB NOT NULL) STRICT",
                  e) < 0)
        return -1;
    for (; *files; files++) {
        if (add_file(copy, home, *files, e) < 0)
            return -1;
    }
    return 0;
}

static int copy_database(const char *db_path, const char *to, struct err *e)
{
    autoptr(db) db = NULL;

    if (db_open(db_path, DB_WRITER, &db, e) < 0)
        return -1;
    return db_copy_to(db, to, e);
}

int store_backup(const char *db_path,
                 const char *home,
                 const char *const *files,
                 const char *to,
                 struct err *e)
{
    if (copy_database(db_path, to, e) < 0 || chmod(to, 0600) < 0 ||
        add_files(to, home, files, e) < 0) {
        unlink(to);
        return err_wrap(e, "could not make a backup");
    }
    return 0;
}

int store_check_backup(const char *path, struct err *e)
{
    autoptr(db) db = NULL;
    auto_query q = {0};

    if (store_check_file(path, e) < 0)
        return err_reason(e, "InvalidBackup");
    if (db_open(path, DB_READER, &db, e) < 0 ||
        db_select(db, &q, e, "SELECT count(*) FROM sqlite_master WHERE name = 'backup_file'",
                  "") < 0 ||
        db_next(&q, e) < 0)
        return -1;
    if (db_int(&q, 0) != 1) {
        err_set(e, ERR_INVALID,
                "the file is a database, but not a backup made by \"yard "
                "backup\": it lacks the key files");
        return err_reason(e, "InvalidBackup");
    }
    return 0;
}

static int write_files(struct db *backup, const char *home, struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(backup, &q, e, "SELECT name, mode, content FROM backup_file", "") < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0) {
        const char *name = db_text(&q, 0);
        auto_free char *path = xasprintf("%s/%s", home, name);
        size_t len;
        const void *content = db_blob(&q, 2, &len);
        char *slash;

        /* A backup is as trusted as the data folder, but a damaged one must not write
         * elsewhere. */
        if (*name == '/' || strstr(name, ".."))
            return err_set(e, ERR_INVALID, "the backup names the file \"%.100s\"", name);
        slash = strrchr(path, '/');
        *slash = '\0';
        if (fs_make_folders(path, 0700, e) < 0)
            return -1;
        *slash = '/';
        if (fs_write_durably(path, content, len, (mode_t)db_int(&q, 1), e) < 0)
            return -1;
    }
    return rows;
}

/* The log and the shared memory of the old database would be taken for the new one's. */
static int move_old_away(const char *db_path, struct err *e)
{
    auto_free char *kept = xasprintf("%s.before-restore", db_path);
    auto_free char *wal = xasprintf("%s-wal", db_path);
    auto_free char *shm = xasprintf("%s-shm", db_path);

    if (access(db_path, F_OK) == 0) {
        autoptr(db) old = NULL;

        /* Opening and closing it brings the log's content into the file. */
        if (db_open(db_path, DB_WRITER, &old, e) < 0)
            return -1;
        if (db_script(old, "PRAGMA wal_checkpoint(TRUNCATE)", e) < 0)
            return -1;
    }
    if (fs_remove(wal, e) < 0 || fs_remove(shm, e) < 0)
        return -1;
    if (rename(db_path, kept) < 0 && errno != ENOENT)
        return err_sys(e, errno, "could not move the old database away");
    return 0;
}

int store_take_over_restore(const char *home,
                            const char *db_path,
                            bool *ret_restored,
                            struct err *e)
{
    auto_free char *waiting = xasprintf("%s/%s", home, STORE_RESTORE_FILE);
    autoptr(db) backup = NULL;

    *ret_restored = false;
    if (access(waiting, F_OK) < 0)
        return 0;
    if (store_check_backup(waiting, e) < 0 || db_open(waiting, DB_READER, &backup, e) < 0 ||
        write_files(backup, home, e) < 0 || move_old_away(db_path, e) < 0)
        return err_wrap(e, "could not restore \"%s\"", waiting);
    db_free(take_ptr(&backup));
    if (rename(waiting, db_path) < 0)
        return err_sys(e, errno, "could not put the backup in place");
    *ret_restored = true;
    return 0;
}
