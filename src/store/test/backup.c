/* SPDX-License-Identifier: Apache-2.0 */
#include "store/backup.h"

#include "base/fs.h"
#include "store/test/yard.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *const files[] = {"secret.key", "tls/ca.pem", "not-there", NULL};

static void write_file(const struct yard *yard, const char *name, const char *text, mode_t mode)
{
    auto_free char *path = yard_path(yard, name);
    struct err e = {0};

    assert_ok(fs_write_durably(path, text, strlen(text), mode, &e), &e);
}

static void check_file(const struct yard *yard, const char *name, const char *text)
{
    auto_free char *path = yard_path(yard, name);
    auto_str got = {0};
    struct err e = {0};

    assert_ok(fs_read(path, 4096, &got, &e), &e);
    assert_string_equal(str_text(&got), text);
}

static bool is_there(const struct yard *yard, const char *name)
{
    auto_free char *path = yard_path(yard, name);

    return access(path, F_OK) == 0;
}

static mode_t mode_of(const struct yard *yard, const char *name)
{
    auto_free char *path = yard_path(yard, name);
    struct stat file;

    assert_int_equal(stat(path, &file), 0);
    return file.st_mode & 07777;
}

/* A yard with a group "before" and its files. */
static void prepare(struct yard *yard)
{
    auto_free char *tls = NULL;
    struct err e = {0};

    yard_init(yard);
    resource_free(yard_add(yard, RESOURCE_GROUP, SUB_A, NULL, "before", NULL));
    tls = yard_path(yard, "tls");
    assert_ok(fs_make_folders(tls, 0700, &e), &e);
    write_file(yard, "secret.key", "the key", 0600);
    write_file(yard, "tls/ca.pem", "the authority", 0644);
}

static void back_up(struct yard *yard, const char *name)
{
    auto_free char *to = yard_path(yard, name);
    struct err e = {0};

    assert_ok(store_backup(yard->db_path, yard->folder, files, to, &e), &e);
}

/* After the backup was made: another yard altogether. */
static void go_on(struct yard *yard)
{
    write_file(yard, "secret.key", "another key", 0600);
    write_file(yard, "tls/ca.pem", "another authority", 0600);
    resource_free(yard_add(yard, RESOURCE_GROUP, SUB_A, NULL, "after", NULL));
}

static int64_t count_of(struct yard *yard, const char *sql)
{
    return yard_scalar(yard->db, sql);
}

/* The yard as it was when the backup was made, and the present one kept beside it. */
static void check_restored(struct yard *yard)
{
    autoptr(db) kept = NULL;
    auto_free char *path = yard_path(yard, "yard.db.before-restore");
    struct err e = {0};

    assert_false(is_there(yard, STORE_RESTORE_FILE));
    yard_reopen(yard);
    assert_int_equal(count_of(yard, "SELECT count(*) FROM resource"), 1);
    assert_int_equal(count_of(yard, "SELECT count(*) FROM resource WHERE name = 'before'"), 1);
    assert_int_equal(
        count_of(yard, "SELECT count(*) FROM sqlite_master WHERE name = 'backup_file'"), 0);
    check_file(yard, "secret.key", "the key");
    check_file(yard, "tls/ca.pem", "the authority");
    assert_int_equal(mode_of(yard, "secret.key"), 0600);
    assert_int_equal(mode_of(yard, "tls/ca.pem"), 0644);
    assert_false(is_there(yard, "not-there"));
    assert_ok(db_open(path, DB_READER, &kept, &e), &e);
    assert_int_equal(yard_scalar(kept, "SELECT count(*) FROM resource WHERE name = 'after'"),
                     1);
}

static bool take_over(struct yard *yard)
{
    struct err e = {0};
    bool restored = false;

    assert_ok(store_take_over_restore(yard->folder, yard->db_path, &restored, &e), &e);
    return restored;
}

static void close_yard(struct yard *yard)
{
    db_free(yard->db);
    yard->db = NULL;
}

static void a_backup_is_one_closed_file_that_only_its_owner_reads(void **state)
{
    auto_free char *path = NULL;
    struct yard yard;
    struct err e = {0};

    (void)state;
    prepare(&yard);
    umask(0);
    back_up(&yard, "copy");
    umask(022);
    path = yard_path(&yard, "copy");
    assert_int_equal(mode_of(&yard, "copy"), 0600);
    assert_false(is_there(&yard, "copy-wal"));
    assert_false(is_there(&yard, "copy-journal"));
    assert_ok(store_check_backup(path, &e), &e);
    assert_false(is_there(&yard, "copy-wal"));
    yard_done(&yard);
}

static void a_backup_is_never_put_over_a_file(void **state)
{
    auto_free char *path = NULL;
    struct yard yard;
    struct err e = {0};

    (void)state;
    prepare(&yard);
    path = yard_path(&yard, "mine");
    write_file(&yard, "mine", "precious", 0600);
    assert_int_equal(store_backup(yard.db_path, yard.folder, files, path, &e), -1);
    assert_int_equal(e.code, ERR_CONFLICT);
    check_file(&yard, "mine", "precious");
    yard_done(&yard);
}

static void a_backup_that_fails_leaves_nothing(void **state)
{
    static const char *const folder[] = {"tls", NULL}; /* is no file */
    auto_free char *path = NULL;
    struct yard yard;
    struct err e = {0};

    (void)state;
    prepare(&yard);
    path = yard_path(&yard, "copy");
    assert_int_equal(store_backup(yard.db_path, yard.folder, folder, path, &e), -1);
    assert_true(str_starts(e.msg, "could not make a backup"));
    assert_false(is_there(&yard, "copy"));
    yard_done(&yard);
}

static void nothing_waiting_is_nothing_to_do(void **state)
{
    struct yard yard;

    (void)state;
    prepare(&yard);
    close_yard(&yard);
    assert_false(take_over(&yard));
    yard_reopen(&yard);
    assert_int_equal(count_of(&yard, "SELECT count(*) FROM resource"), 1);
    assert_false(is_there(&yard, "yard.db.before-restore"));
    yard_done(&yard);
}

static void a_waiting_backup_becomes_the_yard_and_the_old_one_is_kept(void **state)
{
    struct yard yard;

    (void)state;
    prepare(&yard);
    back_up(&yard, STORE_RESTORE_FILE);
    go_on(&yard);
    close_yard(&yard);
    assert_true(take_over(&yard));
    check_restored(&yard);
    assert_false(take_over(&yard));
    yard_done(&yard);
}

/* A daemon that was killed leaves its log, with commits that are not in the file yet. */
static void commits_in_the_old_log_are_kept_too(void **state)
{
    struct yard yard;
    pid_t child;

    (void)state;
    prepare(&yard);
    back_up(&yard, STORE_RESTORE_FILE);
    close_yard(&yard);
    child = fork();
    if (child == 0) {
        yard_reopen(&yard);
        go_on(&yard);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(is_there(&yard, "yard.db-wal"));
    assert_true(take_over(&yard));
    assert_false(is_there(&yard, "yard.db-wal"));
    check_restored(&yard);
    yard_done(&yard);
}

/* --- a crash between the steps --- */

/* Files of the backup are written, the old database is where it was. */
static void after_the_files(struct yard *yard)
{
    write_file(yard, "secret.key", "the key", 0600);
}

static void move(struct yard *yard, const char *from, const char *to)
{
    auto_free char *a = yard_path(yard, from), *b = yard_path(yard, to);

    assert_int_equal(rename(a, b), 0);
}

/* The old database is moved away, the backup still waits. */
static void after_moving_away(struct yard *yard)
{
    after_the_files(yard);
    move(yard, "yard.db", "yard.db.before-restore");
}

/* The backup is in place; it was not opened since. */
static void after_the_rename(struct yard *yard)
{
    assert_true(take_over(yard));
}

static void a_crash_between_any_two_steps_does_no_harm(void **state)
{
    static void (*const crashes[])(struct yard *) = {after_the_files, after_moving_away,
                                                     after_the_rename};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(crashes); i++) {
        struct yard yard;

        prepare(&yard);
        back_up(&yard, STORE_RESTORE_FILE);
        go_on(&yard);
        close_yard(&yard);
        crashes[i](&yard);
        take_over(&yard);
        check_restored(&yard);
        yard_done(&yard);
    }
}

static void a_damaged_yard_is_rescued_and_kept_as_it_is(void **state)
{
    struct yard yard;

    (void)state;
    prepare(&yard);
    back_up(&yard, STORE_RESTORE_FILE);
    close_yard(&yard);
    write_file(&yard, "yard.db", "this was a database once, and no longer is one, alas ....",
               0600);
    assert_true(take_over(&yard));
    yard_reopen(&yard);
    assert_int_equal(count_of(&yard, "SELECT count(*) FROM resource WHERE name = 'before'"), 1);
    check_file(&yard, "yard.db.before-restore",
               "this was a database once, and no longer is one, alas ....");
    yard_done(&yard);
}

/* --- what is refused --- */

static void change_backup(struct yard *yard, const char *sql)
{
    autoptr(db) backup = NULL;
    auto_free char *path = yard_path(yard, STORE_RESTORE_FILE);
    struct err e = {0};

    assert_ok(db_open(path, DB_WRITER, &backup, &e), &e);
    assert_ok(db_script(backup, sql, &e), &e);
    assert_ok(db_script(backup, "PRAGMA journal_mode = DELETE", &e), &e);
}

/* The yard is untouched, and the reason is told. */
static void check_refused(struct yard *yard, const char *word)
{
    struct err e = {0};
    bool restored = true;

    close_yard(yard);
    assert_int_equal(store_take_over_restore(yard->folder, yard->db_path, &restored, &e), -1);
    assert_false(restored);
    assert_int_equal(e.code, ERR_INVALID);
    if (!strstr(e.msg, word))
        fail_msg("expected \"%s\" in \"%s\"", word, e.msg);
    yard_reopen(yard);
    assert_int_equal(count_of(yard, "SELECT count(*) FROM resource WHERE name = 'after'"), 1);
    check_file(yard, "secret.key", "another key");
}

static void backups_that_are_none_are_refused_and_change_nothing(void **state)
{
    static const struct {
        const char *sql, *word;
    } rows[] = {
        {"DROP TABLE backup_file", "not a backup"},
        {"PRAGMA user_version = 999", "has schema 999"},
        {"DELETE FROM meta", "not a yard's backup"},
        {"PRAGMA foreign_keys = OFF; INSERT INTO secret VALUES (99, 'key1', 'x', 1)",
         "a row of the table secret refers to one that is not there"},
        {"DELETE FROM backup_file; INSERT INTO backup_file VALUES ('/etc/x', 384, x'00')",
         "names the file \"/etc/x\""},
        {"DELETE FROM backup_file; INSERT INTO backup_file VALUES ('../x', 384, x'00')",
         "names the file \"../x\""},
        {"DELETE FROM backup_file; INSERT INTO backup_file VALUES ('tls/../../x', 384, x'00')",
         "names the file \"tls/../../x\""},
        {"DROP TABLE backup_file; CREATE TABLE backup_file (name, mode, content);"
         "INSERT INTO backup_file VALUES (NULL, 384, x'00')",
         "names the file \"\""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct yard yard;

        prepare(&yard);
        back_up(&yard, STORE_RESTORE_FILE);
        change_backup(&yard, rows[i].sql);
        go_on(&yard);
        check_refused(&yard, rows[i].word);
        yard_done(&yard);
    }
}

static void a_damaged_backup_is_the_senders_fault(void **state)
{
    static const struct {
        off_t at; /* of the damage; -1 = cut there instead */
        off_t cut;
    } rows[] = {{0, 0}, {4096 * 2, 0}, {-1, 5000}, {-1, 0}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        static const char junk[2048] = "junk";
        auto_free char *path = NULL;
        struct yard yard;
        struct err e = {0};
        int fd;

        prepare(&yard);
        back_up(&yard, STORE_RESTORE_FILE);
        go_on(&yard);
        path = yard_path(&yard, STORE_RESTORE_FILE);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (rows[i].at < 0)
            assert_int_equal(ftruncate(fd, rows[i].cut), 0);
        else
            assert_int_equal(pwrite(fd, junk, sizeof(junk), rows[i].at), sizeof(junk));
        close(fd);
        assert_int_equal(store_check_backup(path, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
        assert_string_equal(err_reason_of(&e), "InvalidBackup");
        check_refused(&yard, "");
        yard_done(&yard);
    }
}

static void who_puts_a_backup_back_is_known_to_the_yard_it_becomes(void **state)
{
    static const struct event event = {0,       7,      "ann",       "::1", "Backup_Restore",
                                       "/yard", "id-1", "Succeeded", NULL};
    auto_free char *path = NULL;
    struct yard yard;
    struct err e = {0};

    (void)state;
    prepare(&yard);
    back_up(&yard, STORE_RESTORE_FILE);
    go_on(&yard);
    path = yard_path(&yard, STORE_RESTORE_FILE);
    assert_ok(store_note_in_backup(path, &event, &e), &e);
    assert_false(is_there(&yard, STORE_RESTORE_FILE "-wal")); /* one file, as before */
    close_yard(&yard);
    assert_true(take_over(&yard));
    check_restored(&yard);
    assert_int_equal(count_of(&yard, "SELECT count(*) FROM event WHERE principal = 'ann'"), 1);
    assert_false(is_there(&yard, STORE_RESTORE_FILE "-wal"));
    assert_false(is_there(&yard, STORE_RESTORE_FILE "-shm"));
    yard_done(&yard);
}

/* A mode in a backup gives no special rights. */
static void modes_are_plain(void **state)
{
    struct yard yard;

    (void)state;
    prepare(&yard);
    back_up(&yard, STORE_RESTORE_FILE);
    change_backup(&yard, "UPDATE backup_file SET mode = 2496"); /* 04700 */
    close_yard(&yard);
    assert_true(take_over(&yard));
    assert_int_equal(mode_of(&yard, "secret.key"), 0700);
    yard_done(&yard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_backup_is_one_closed_file_that_only_its_owner_reads),
        cmocka_unit_test(a_backup_is_never_put_over_a_file),
        cmocka_unit_test(a_backup_that_fails_leaves_nothing),
        cmocka_unit_test(nothing_waiting_is_nothing_to_do),
        cmocka_unit_test(a_waiting_backup_becomes_the_yard_and_the_old_one_is_kept),
        cmocka_unit_test(commits_in_the_old_log_are_kept_too),
        cmocka_unit_test(a_crash_between_any_two_steps_does_no_harm),
        cmocka_unit_test(a_damaged_yard_is_rescued_and_kept_as_it_is),
        cmocka_unit_test(backups_that_are_none_are_refused_and_change_nothing),
        cmocka_unit_test(a_damaged_backup_is_the_senders_fault),
        cmocka_unit_test(who_puts_a_backup_back_is_known_to_the_yard_it_becomes),
        cmocka_unit_test(modes_are_plain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
