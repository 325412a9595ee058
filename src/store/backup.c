/* SPDX-License-Identifier: Apache-2.0 */
#include "store/backup.h"

#include "base/fault.h"
#include "base/fs.h"
#include "base/str.h"
#include "store/store-internal.h"

#include <errno.h>
#include <fcntl.h>
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

/* An empty file that is nobody else's and has its mode before there is a secret in it. */
static int make_empty(const char *path, struct err *e)
{
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(e, errno, "could not create \"%.200s\"", path);
    return 0;
}

int store_backup(const char *db_path,
                 const char *home,
                 const char *const *files,
                 const char *to,
                 struct err *e)
{
    if (make_empty(to, e) < 0)
        return err_wrap(e, "could not make a backup");
    if (copy_database(db_path, to, e) < 0 || add_files(to, home, files, e) < 0) {
        unlink(to);
        return err_wrap(e, "could not make a backup");
    }
    return 0;
}

int store_check_backup(const char *path, struct err *e)
{
    autoptr(db) db = NULL;
    auto_query q = {0};
    struct err why = {0};

    if (store_check_file(path, &why) < 0) {
        /* Damage is the sender's fault here, not ours. */
        err_set(e, why.code == ERR_INTERNAL ? ERR_INVALID : why.code, "%s", why.msg);
        return err_reason(e, "InvalidBackup");
    }
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

int store_note_in_backup(const char *path, const struct event *event, struct err *e)
{
    autoptr(db) db = NULL;

    if (db_open(path, DB_WRITER, &db, e) < 0)
        return -1;
    return store_add_event(db, event, e);
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
        if (!name || *name == '/' || strstr(name, ".."))
            return err_set(e, ERR_INVALID, "the backup names the file \"%.100s\"",
                           name ? name : "");
        slash = strrchr(path, '/');
        *slash = '\0';
        if (fs_make_folders(path, 0700, e) < 0)
            return -1;
        *slash = '/';
        if (fs_write_durably(path, content, len, (mode_t)db_int(&q, 1) & 0777, e) < 0)
            return -1;
        FAULT("restore.file");
    }
    return rows;
}

/* Bring the log's content into the file, if the database can still be read: a damaged one is
 * what restoring is for. */
static void settle(const char *db_path)
{
    autoptr(db) old = NULL;

    if (db_open(db_path, DB_WRITER, &old, NULL) == 0)
        db_script(old, "PRAGMA wal_checkpoint(TRUNCATE)", NULL);
}

static int move_if_there(const char *from, const char *to, struct err *e)
{
    if (rename(from, to) < 0 && errno != ENOENT)
        return err_sys(e, errno, "could not move the old database away");
    return 0;
}

/* The log and the shared memory of the old database would be taken for the new one's.  A log
 * that did not settle stays beside what is kept, in place of one from an earlier restore. */
static int move_old_away(const char *db_path, struct err *e)
{
    auto_free char *kept = xasprintf("%s.before-restore", db_path);
    auto_free char *kept_wal = xasprintf("%s-wal", kept);
    auto_free char *wal = xasprintf("%s-wal", db_path);
    auto_free char *shm = xasprintf("%s-shm", db_path);

    if (access(db_path, F_OK) == 0) {
        settle(db_path);
        if (fs_remove(kept_wal, e) < 0)
            return -1;
    }
    FAULT("restore.before-moving-away");
    if (fs_remove(shm, e) < 0 || move_if_there(db_path, kept, e) < 0)
        return -1;
    return move_if_there(wal, kept_wal, e);
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
    FAULT("restore.before-rename");
    if (fs_rename_durably(waiting, db_path, e) < 0)
        return err_wrap(e, "could not put the backup in place");
    FAULT("restore.after-rename");
    *ret_restored = true;
    return 0;
}
