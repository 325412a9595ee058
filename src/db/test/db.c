/* SPDX-License-Identifier: Apache-2.0 */
#include "db/db.h"

#include "base/str.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "db/test/scalar.h"

/* A folder with a database of one table, removed at the end. */
struct place {
    char folder[32];
    char path[64], copy[64];
    struct db *db;
};

static void open_place(struct place *p)
{
    struct err e = {0};

    snprintf(p->folder, sizeof(p->folder), "/tmp/yard-db-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    snprintf(p->path, sizeof(p->path), "%s/x.db", p->folder);
    snprintf(p->copy, sizeof(p->copy), "%s/copy.db", p->folder);
    if (db_open(p->path, DB_WRITER, &p->db, &e) < 0 ||
        db_script(p->db, "CREATE TABLE t (n INTEGER PRIMARY KEY, s TEXT, b BLOB) STRICT", &e) <
            0)
        fail_msg("%s", e.msg);
}

static void done_place(struct place *p)
{
    static const char *const tails[] = {"", "-wal", "-shm"};

    db_free(p->db);
    for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
        auto_free char *path = xasprintf("%s%s", p->path, tails[i]);
        auto_free char *copy = xasprintf("%s%s", p->copy, tails[i]);

        unlink(path);
        unlink(copy);
    }
    assert_int_equal(rmdir(p->folder), 0);
}

static void values_of_every_type_come_back_as_they_went_in(void **state)
{
    static const struct {
        int64_t n;
        const char *s;
        const void *b;
        size_t len;
    } rows[] = {
        {1, "text", "by\0tes", 6},         {INT64_MAX, "", "", 0},
        {INT64_MIN, NULL, NULL, 0},        {0, "'; DROP TABLE t; --", "\xff", 1},
        {-1, "\xf0\x9f\x9a\x82", "\0", 1},
    };
    struct place p;

    (void)state;
    open_place(&p);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_query q = {0};
        size_t len;
        const void *blob;

        assert_int_equal(db_run(p.db, NULL, "INSERT INTO t (n, s, b) VALUES (?, ?, ?)", "itb",
                                rows[i].n, rows[i].s, rows[i].b, rows[i].len),
                         0);
        assert_int_equal(db_last_id(p.db), rows[i].n);
        assert_int_equal(
            db_select(p.db, &q, NULL, "SELECT n, s, b FROM t WHERE n = ?", "i", rows[i].n), 0);
        assert_int_equal(db_next(&q, NULL), 1);
        assert_int_equal(db_int(&q, 0), rows[i].n);
        assert_true(str_equal(db_text(&q, 1), rows[i].s));
        blob = db_blob(&q, 2, &len);
        assert_int_equal(len, rows[i].len);
        if (len)
            assert_memory_equal(blob, rows[i].b, len);
        assert_int_equal(db_next(&q, NULL), 0);
    }
    done_place(&p);
}

static void a_statement_is_used_again_with_other_values(void **state)
{
    struct place p;

    (void)state;
    open_place(&p);
    for (int64_t i = 1; i <= 100; i++)
        assert_int_equal(db_run(p.db, NULL, "INSERT INTO t (n) VALUES (?)", "i", i), 0);
    assert_int_equal(scalar(p.db, "SELECT sum(n) FROM t"), 5050);
    /* Nothing of the last use is left: NULL where no value is said. */
    assert_int_equal(scalar(p.db, "SELECT count(*) FROM t WHERE s IS NULL"), 100);
    assert_int_equal(db_run(p.db, NULL, "DELETE FROM t WHERE n > ?", "i", INT64_C(40)), 0);
    assert_int_equal(db_changed_rows(p.db), 60);
    done_place(&p);
}

static void more_statements_than_the_cache_has_neighbours_are_kept_apart(void **state)
{
    static char texts[200][40]; /* as good as literals: each has its address */
    struct place p;

    (void)state;
    open_place(&p);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < (int)ARRAY_SIZE(texts); i++) {
            snprintf(texts[i], sizeof(texts[i]), "SELECT %d", i);
            assert_int_equal(scalar(p.db, texts[i]), i);
        }
    }
    done_place(&p);
}

static void a_half_read_query_is_closed_and_can_be_asked_again(void **state)
{
    struct place p;

    (void)state;
    open_place(&p);
    assert_int_equal(db_script(p.db, "INSERT INTO t (n) VALUES (1), (2), (3)", NULL), 0);
    for (int i = 0; i < 2; i++) {
        auto_query q = {0};

        assert_int_equal(db_select(p.db, &q, NULL, "SELECT n FROM t ORDER BY n", ""), 0);
        assert_int_equal(db_next(&q, NULL), 1);
        assert_int_equal(db_int(&q, 0), 1);
        db_query_done(&q);
        db_query_done(&q); /* twice is fine */
    }
    done_place(&p);
}

/* What goes wrong, and which code the caller can act on. */
static void failures_carry_their_code(void **state)
{
    static const struct {
        const char *sql;
        enum err_code code;
    } rows[] = {
        {"INSERT INTO t (n) VALUES (1)", ERR_CONFLICT}, /* the key is there */
        {"INSERT INTO nowhere VALUES (1)", ERR_INTERNAL},
        {"not SQL", ERR_INTERNAL},
    };
    struct place p;

    (void)state;
    open_place(&p);
    assert_int_equal(db_script(p.db, "INSERT INTO t (n) VALUES (1)", NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct err e = {0};

        assert_int_equal(db_run(p.db, &e, rows[i].sql, ""), -1);
        assert_int_equal(e.code, rows[i].code);
        assert_true(str_starts(e.msg, "could not "));
        assert_int_equal(db_run(p.db, NULL, rows[i].sql, ""), -1);
    }
    assert_int_equal(scalar(p.db, "SELECT count(*) FROM t"), 1);
    done_place(&p);
}

static void a_reader_cannot_write(void **state)
{
    static const char *const attempts[] = {
        "INSERT INTO t (n) VALUES (1)",
        "CREATE TABLE more (x)",
        "DROP TABLE t",
        "PRAGMA user_version = 7",
    };
    autoptr(db) reader = NULL;
    struct place p;

    (void)state;
    open_place(&p);
    assert_int_equal(db_open(p.path, DB_READER, &reader, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(attempts); i++)
        if (db_run(reader, NULL, attempts[i], "") == 0)
            fail_msg("a reader could \"%s\"", attempts[i]);
    assert_int_equal(scalar(p.db, "SELECT count(*) FROM t"), 0);
    assert_int_equal(scalar(p.db, "PRAGMA user_version"), 0);
    db_free(take_ptr(&reader));
    done_place(&p);
}

static void a_reader_makes_no_file(void **state)
{
    autoptr(db) reader = NULL;
    struct err e = {0};
    struct place p;

    (void)state;
    open_place(&p);
    assert_int_equal(db_open(p.copy, DB_READER, &reader, &e), -1);
    assert_null(reader);
    assert_non_null(strstr(e.msg, p.copy));
    assert_int_equal(access(p.copy, F_OK), -1);
    done_place(&p);
}

static void a_reader_sees_commits_only_and_waits_for_nobody(void **state)
{
    autoptr(db) reader = NULL;
    struct place p;

    (void)state;
    open_place(&p);
    assert_int_equal(db_open(p.path, DB_READER, &reader, NULL), 0);
    assert_int_equal(db_script(p.db, "BEGIN IMMEDIATE; INSERT INTO t (n) VALUES (1)", NULL), 0);
    assert_int_equal(scalar(reader, "SELECT count(*) FROM t"), 0);
    assert_int_equal(db_script(p.db, "COMMIT", NULL), 0);
    assert_int_equal(scalar(reader, "SELECT count(*) FROM t"), 1);
    db_free(take_ptr(&reader));
    done_place(&p);
}

static void a_writer_syncs_every_commit_to_a_log(void **state)
{
    auto_query q = {0};
    struct place p;

    (void)state;
    open_place(&p);
    assert_int_equal(db_select(p.db, &q, NULL, "PRAGMA journal_mode", ""), 0);
    assert_int_equal(db_next(&q, NULL), 1);
    assert_string_equal(db_text(&q, 0), "wal");
    db_query_done(&q);
    assert_int_equal(scalar(p.db, "PRAGMA synchronous"), 2); /* FULL */
    assert_int_equal(scalar(p.db, "PRAGMA foreign_keys"), 1);
    done_place(&p);
}

static void a_copy_has_what_was_committed_and_is_never_put_over_a_file(void **state)
{
    autoptr(db) copy = NULL;
    struct place p;

    (void)state;
    open_place(&p);
    assert_int_equal(db_script(p.db, "INSERT INTO t (n, s) VALUES (1, 'kept')", NULL), 0);
    assert_int_equal(db_copy_to(p.db, p.copy, NULL), 0);
    assert_int_equal(db_script(p.db, "DELETE FROM t", NULL), 0);
    assert_int_equal(db_copy_to(p.db, p.copy, NULL), -1);
    assert_int_equal(db_open(p.copy, DB_READER, &copy, NULL), 0);
    assert_int_equal(scalar(copy, "SELECT count(*) FROM t WHERE s = 'kept'"), 1);
    assert_int_equal(db_check(copy, NULL), 0);
    db_free(take_ptr(&copy));
    done_place(&p);
}

/* Write over part of the file, as a bad disk does. */
static void damage(const char *path, off_t at)
{
    static const char junk[512] = "junk";
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, junk, sizeof(junk), at), sizeof(junk));
    close(fd);
}

static void a_check_finds_damage(void **state)
{
    autoptr(db) copy = NULL;
    struct err e = {0};
    struct place p;

    (void)state;
    open_place(&p);
    assert_int_equal(db_script(p.db, "BEGIN", NULL), 0);
    for (int64_t i = 0; i < 1000; i++)
        assert_int_equal(db_run(p.db, NULL, "INSERT INTO t (n, s) VALUES (?, ?)", "it", i,
                                "some text that fills pages"),
                         0);
    assert_int_equal(db_script(p.db, "COMMIT", NULL), 0);
    assert_int_equal(db_check(p.db, &e), 0);
    assert_int_equal(db_copy_to(p.db, p.copy, NULL), 0);
    damage(p.copy, 4096 * 3);
    assert_int_equal(db_open(p.copy, DB_READER, &copy, NULL), 0);
    assert_int_equal(db_check(copy, &e), -1);
    assert_int_equal(e.code, ERR_INTERNAL);
    db_free(take_ptr(&copy));
    done_place(&p);
}

static void what_is_no_database_is_told_so(void **state)
{
    autoptr(db) copy = NULL;
    struct err e = {0};
    struct place p;

    (void)state;
    open_place(&p);
    assert_int_equal(db_copy_to(p.db, p.copy, NULL), 0);
    damage(p.copy, 0);
    assert_int_equal(db_open(p.copy, DB_WRITER, &copy, &e), -1);
    assert_non_null(strstr(e.msg, p.copy));
    assert_non_null(strstr(e.msg, "not a database"));
    done_place(&p);
}

/* Eight readers, each with a connection of its own, while the table grows. */
struct reading {
    const char *path;
    int64_t last;
    const char *problem;
};

static void *read_on(void *arg)
{
    struct reading *reading = arg;
    autoptr(db) db = NULL;

    if (db_open(reading->path, DB_READER, &db, NULL) < 0)
        reading->problem = "could not open";
    while (!reading->problem && reading->last < 200) {
        auto_query q = {0};
        int64_t count;

        if (db_select(db, &q, NULL, "SELECT count(*) FROM t", "") < 0 ||
            db_next(&q, NULL) != 1) {
            reading->problem = "could not read";
            break;
        }
        count = db_int(&q, 0);
        if (count < reading->last)
            reading->problem = "went back";
        reading->last = count;
    }
    return NULL;
}

static void readers_of_many_threads_see_the_table_grow(void **state)
{
    enum { READERS = 8 };
    struct reading readings[READERS];
    pthread_t threads[READERS];
    struct place p;

    (void)state;
    open_place(&p);
    for (int i = 0; i < READERS; i++) {
        readings[i] = (struct reading){p.path, 0, NULL};
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &readings[i]), 0);
    }
    for (int64_t i = 0; i < 200; i++)
        assert_int_equal(db_run(p.db, NULL, "INSERT INTO t (n) VALUES (?)", "i", i), 0);
    for (int i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        if (readings[i].problem)
            fail_msg("reader %d %s", i, readings[i].problem);
    }
    done_place(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_every_type_come_back_as_they_went_in),
        cmocka_unit_test(a_statement_is_used_again_with_other_values),
        cmocka_unit_test(more_statements_than_the_cache_has_neighbours_are_kept_apart),
        cmocka_unit_test(a_half_read_query_is_closed_and_can_be_asked_again),
        cmocka_unit_test(failures_carry_their_code),
        cmocka_unit_test(a_reader_cannot_write),
        cmocka_unit_test(a_reader_makes_no_file),
        cmocka_unit_test(a_reader_sees_commits_only_and_waits_for_nobody),
        cmocka_unit_test(a_writer_syncs_every_commit_to_a_log),
        cmocka_unit_test(a_copy_has_what_was_committed_and_is_never_put_over_a_file),
        cmocka_unit_test(a_check_finds_damage),
        cmocka_unit_test(what_is_no_database_is_told_so),
        cmocka_unit_test(readers_of_many_threads_see_the_table_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
