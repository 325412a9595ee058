/* SPDX-License-Identifier: Apache-2.0 */
#include "db/writer.h"

#include "base/mem.h"
#include "db/db.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A folder with a database of one table, removed at the end. */
struct place {
    char folder[32];
    char path[64];
};

static struct db *open_place(struct place *p)
{
    struct db *db = NULL;
    struct err e = {0};

    snprintf(p->folder, sizeof(p->folder), "/tmp/yard-db-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    snprintf(p->path, sizeof(p->path), "%s/x.db", p->folder);
    assert_int_equal(db_open(p->path, DB_WRITER, &db, &e), 0);
    assert_int_equal(db_script(db, "CREATE TABLE t (n INTEGER PRIMARY KEY)", &e), 0);
    return db;
}

static void remove_place(struct place *p)
{
    static const char *const tails[] = {"", "-wal", "-shm"};

    for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
        auto_free char *path = xasprintf("%s%s", p->path, tails[i]);

        unlink(path);
    }
    rmdir(p->folder);
}

/* A write of one number, and a meeting point for those who wait for it. */
struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t all_told;
    int left, ok, refused;
};

struct number {
    struct db_write write;
    int64_t n;
    bool then_fail;
    struct meeting *meeting;
};

static int insert(struct db_write *write, struct db *db, struct err *e)
{
    struct number *number = container_of(write, struct number, write);

    if (db_run(db, e, "INSERT INTO t (n) VALUES (?)", "i", number->n) < 0)
        return -1;
    if (number->then_fail)
        return err_set(e, ERR_CONFLICT, "changed my mind");
    return 0;
}

static int note_refusal(struct db_write *write, struct db *db, const struct err *why)
{
    struct number *number = container_of(write, struct number, write);

    (void)why;
    return db_run(db, NULL, "INSERT INTO t (n) VALUES (?)", "i", -number->n);
}

static void told(struct db_write *write, const struct err *why)
{
    struct number *number = container_of(write, struct number, write);
    struct meeting *m = number->meeting;

    pthread_mutex_lock(&m->lock);
    if (why->code == ERR_NONE)
        m->ok++;
    else
        m->refused++;
    m->left--;
    pthread_cond_signal(&m->all_told);
    pthread_mutex_unlock(&m->lock);
}

static void wait_all(struct meeting *m)
{
    pthread_mutex_lock(&m->lock);
    while (m->left > 0)
        pthread_cond_wait(&m->all_told, &m->lock);
    pthread_mutex_unlock(&m->lock);
}

static int64_t scalar(const char *path, const char *sql)
{
    autoptr(db) reader = NULL;
    auto_query q;

    assert_int_equal(db_open(path, DB_READER, &reader, NULL), 0);
    assert_int_equal(db_select(reader, &q, NULL, sql, ""), 0);
    assert_int_equal(db_next(&q, NULL), 1);
    int64_t value = db_int(&q, 0);
    db_query_done(&q);
    return value;
}

static void writes_share_commits_and_all_are_kept(void **state)
{
    enum { COUNT = 1000 };
    struct meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, COUNT, 0, 0};
    struct db_writer_counts counts;
    struct db_writer_config config = {0};
    struct db_writer *writer = NULL;
    struct place place;
    auto_free struct number *numbers = xcalloc(COUNT, sizeof(*numbers));

    (void)state;
    assert_int_equal(db_writer_new(open_place(&place), &config, &writer, NULL), 0);
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = (struct number){{insert, NULL, told, NULL, {0}, false}, i + 1, false, &m};
        db_writer_submit(writer, &numbers[i].write);
    }
    wait_all(&m);
    db_writer_counts(writer, &counts);
    assert_int_equal(m.ok, COUNT);
    assert_true(counts.commits < COUNT / 2);
    assert_int_equal(scalar(place.path, "SELECT count(*) FROM t"), COUNT);
    db_writer_free(writer);
    remove_place(&place);
}

static void a_refused_write_leaves_nothing_and_harms_no_neighbour(void **state)
{
    struct meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 4, 0, 0};
    struct number numbers[] = {
        {{insert, NULL, told, NULL, {0}, false}, 1, false, &m},
        {{insert, NULL, told, NULL, {0}, false}, 2, true, &m},
        {{insert, note_refusal, told, NULL, {0}, false}, 3, true, &m},
        {{insert, NULL, told, NULL, {0}, false}, 1, false, &m}, /* breaks the primary key */
    };
    struct db_writer_config config = {0};
    struct db_writer *writer = NULL;
    struct place place;

    (void)state;
    assert_int_equal(db_writer_new(open_place(&place), &config, &writer, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        db_writer_submit(writer, &numbers[i].write);
    wait_all(&m);
    assert_int_equal(m.ok, 1);
    assert_int_equal(m.refused, 3);
    assert_int_equal(scalar(place.path, "SELECT count(*) FROM t WHERE n = 1"), 1);
    assert_int_equal(scalar(place.path, "SELECT count(*) FROM t WHERE n IN (2, 3)"), 0);
    assert_int_equal(scalar(place.path, "SELECT count(*) FROM t WHERE n = -3"), 1);
    db_writer_free(writer);
    remove_place(&place);
}

/* One that says when it is under way and then waits to be let go on. */
struct late {
    struct number number;
    pthread_barrier_t *both;
};

static int insert_held_up(struct db_write *write, struct db *db, struct err *e)
{
    struct late *late = container_of(write, struct late, number.write);

    if (late->both) {
        pthread_barrier_wait(late->both);
        pthread_barrier_wait(late->both);
    }
    return insert(write, db, e);
}

/* Repeatable writes that gather behind the first, which waits until all are handed in. */
struct turns {
    struct number number;
    pthread_barrier_t *all_in; /* of the first */
    bool fail_before, fail_after;
    int runs;
};

static int take_turn(struct db_write *write, struct db *db, struct err *e)
{
    struct turns *t = container_of(write, struct turns, number.write);

    if (t->runs++ == 0 && t->all_in)
        pthread_barrier_wait(t->all_in);
    if (t->fail_before)
        return err_set(e, ERR_CONFLICT, "not at all");
    if (db_run(db, e, "INSERT INTO t (n) VALUES (?)", "i", t->number.n) < 0)
        return -1;
    return t->fail_after ? err_set(e, ERR_CONFLICT, "changed my mind") : 0;
}

static void run_turns(struct place *place, struct turns *turns, size_t count, struct meeting *m)
{
    struct db_writer_config config = {0};
    struct db_writer_counts counts;
    struct db_writer *writer = NULL;
    pthread_barrier_t all_in;

    pthread_barrier_init(&all_in, NULL, 2);
    turns[0].all_in = &all_in;
    m->left = (int)count;
    assert_int_equal(db_writer_new(open_place(place), &config, &writer, NULL), 0);
    for (size_t i = 0; i < count; i++) {
        bool is_repeatable = turns[i].number.write.is_repeatable;

        turns[i].number.write =
            (struct db_write){take_turn, note_refusal, told, NULL, {0}, is_repeatable};
        turns[i].number.n = (int64_t)i + 1;
        turns[i].number.meeting = m;
        db_writer_submit(writer, &turns[i].number.write);
    }
    pthread_barrier_wait(&all_in);
    wait_all(m);
    db_writer_counts(writer, &counts);
    assert_int_equal(counts.commits, 1);
    db_writer_free(writer);
    pthread_barrier_destroy(&all_in);
}

#define REPEATABLE .number.write.is_repeatable = true

static void a_refusal_before_any_change_repeats_nobody(void **state)
{
    struct meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};
    struct turns turns[] = {{REPEATABLE}, {REPEATABLE, .fail_before = true}, {REPEATABLE}};
    struct place place;

    (void)state;
    run_turns(&place, turns, ARRAY_SIZE(turns), &m);
    for (size_t i = 0; i < ARRAY_SIZE(turns); i++)
        assert_int_equal(turns[i].runs, 1);
    assert_int_equal(m.ok, 2);
    assert_int_equal(scalar(place.path, "SELECT count(*) FROM t WHERE n IN (1, -2, 3)"), 3);
    assert_int_equal(scalar(place.path, "SELECT count(*) FROM t"), 3);
    remove_place(&place);
}

static void a_refusal_after_a_change_runs_the_group_again_without_it(void **state)
{
    struct meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};
    struct turns turns[] = {
        {REPEATABLE}, {REPEATABLE, .fail_before = true}, {REPEATABLE, .fail_after = true},
        {REPEATABLE}, {REPEATABLE, .fail_after = true},  {.fail_after = true},
    };
    static const int runs[] = {2, 2, 2, 1, 1, 1};
    struct place place;

    (void)state;
    run_turns(&place, turns, ARRAY_SIZE(turns), &m);
    for (size_t i = 0; i < ARRAY_SIZE(turns); i++)
        assert_int_equal(turns[i].runs, runs[i]);
    assert_int_equal(m.ok, 2);
    assert_int_equal(m.refused, 4);
    assert_int_equal(scalar(place.path, "SELECT count(*) FROM t WHERE n IN (1, 4)"), 2);
    assert_int_equal(scalar(place.path, "SELECT count(*) FROM t WHERE n IN (-2, -3, -5, -6)"),
                     4);
    assert_int_equal(scalar(place.path, "SELECT count(*) FROM t"), 6);
    remove_place(&place);
}

static void a_write_that_cannot_be_repeated_is_not(void **state)
{
    struct meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};
    struct turns turns[] = {
        {REPEATABLE}, {.fail_after = false}, {REPEATABLE, .fail_after = true}};
    struct place place;

    (void)state;
    run_turns(&place, turns, ARRAY_SIZE(turns), &m);
    for (size_t i = 0; i < ARRAY_SIZE(turns); i++)
        assert_int_equal(turns[i].runs, 1);
    assert_int_equal(scalar(place.path, "SELECT count(*) FROM t WHERE n IN (1, 2, -3)"), 3);
    assert_int_equal(scalar(place.path, "SELECT count(*) FROM t"), 3);
    remove_place(&place);
}

/* A write of more bytes than the database may hold. */
static int insert_too_much(struct db_write *write, struct db *db, struct err *e)
{
    if (insert(write, db, e) < 0)
        return -1;
    return db_run(db, e, "INSERT INTO large (x) VALUES (zeroblob(1000000))", "");
}

/* The first is under way when the others are handed in.  -> the commits that it took. */
static uint64_t commits_of_late_comers(struct db_writer *writer, int64_t first_n)
{
    enum { COUNT = 8 };
    struct meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, COUNT, 0, 0};
    struct late late[COUNT] = {0};
    struct db_writer_counts before, after;
    pthread_barrier_t both;

    db_writer_counts(writer, &before);
    pthread_barrier_init(&both, NULL, 2);
    for (int i = 0; i < COUNT; i++) {
        late[i] = (struct late){
            {{insert_held_up, NULL, told, NULL, {0}, false}, first_n + i, false, &m},
            i == 0 ? &both : NULL};
        db_writer_submit(writer, &late[i].number.write);
        if (i == 0)
            pthread_barrier_wait(&both);
    }
    pthread_barrier_wait(&both);
    wait_all(&m);
    assert_int_equal(m.ok, COUNT);
    pthread_barrier_destroy(&both);
    db_writer_counts(writer, &after);
    return after.commits - before.commits;
}

static void late_comers_fill_a_group_up_to_half_where_commits_are_quick(void **state)
{
    static const struct {
        int64_t quick_commit_us;
        uint64_t commits;
    } rows[] = {{INT64_MAX, 2}, {1, 1}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct db_writer_config config = {.quick_commit_us = rows[i].quick_commit_us};
        struct db_writer *writer = NULL;
        struct place place;

        assert_int_equal(db_writer_new(open_place(&place), &config, &writer, NULL), 0);
        /* Nothing is known yet: all in one. */
        assert_int_equal(commits_of_late_comers(writer, 1), 1);
        /* Eight were about: the first and three more, then the rest. */
        assert_int_equal(commits_of_late_comers(writer, 101), rows[i].commits);
        db_writer_free(writer);
        remove_place(&place);
    }
}

static void a_full_disk_fails_writes_with_its_reason_and_the_next_one_fits(void **state)
{
    struct meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1, 0, 0};
    struct number too_much = {{insert_too_much, NULL, told, NULL, {0}, false}, 1, false, &m};
    struct number small = {{insert, NULL, told, NULL, {0}, false}, 2, false, &m};
    struct db_writer_config config = {0};
    struct db_writer *writer = NULL;
    struct place place;
    struct db *db = open_place(&place);

    (void)state;
    assert_int_equal(db_script(db, "CREATE TABLE large (x); PRAGMA max_page_count = 50", NULL),
                     0);
    assert_int_equal(db_writer_new(db, &config, &writer, NULL), 0);
    db_writer_submit(writer, &too_much.write);
    wait_all(&m);
    assert_int_equal(too_much.write.outcome.code, ERR_NO_SPACE);
    m.left = 1;
    db_writer_submit(writer, &small.write);
    wait_all(&m);
    assert_int_equal(m.ok, 1);
    assert_int_equal(scalar(place.path, "SELECT sum(n) FROM t"), 2);
    db_writer_free(writer);
    remove_place(&place);
}

static void the_generation_moves_with_each_commit_and_rests_at_even_numbers(void **state)
{
    struct meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};
    struct db_writer_config config = {0};
    struct db_writer *writer = NULL;
    struct place place;
    uint64_t before;

    (void)state;
    assert_int_equal(db_writer_new(open_place(&place), &config, &writer, NULL), 0);
    before = db_writer_generation(writer);
    assert_int_equal(before % 2, 0);
    for (int i = 1; i <= 3; i++) {
        struct number number = {{insert, NULL, told, NULL, {0}, false}, i, false, &m};

        m.left = 1;
        db_writer_submit(writer, &number.write);
        wait_all(&m);
        /* Whoever was told must find it moved already. */
        assert_true(db_writer_generation(writer) == before + 2);
        before += 2;
    }
    db_writer_free(writer);
    remove_place(&place);
}

/* Some 250 pages. */
static int insert_fat(struct db_write *write, struct db *db, struct err *e)
{
    if (insert(write, db, e) < 0)
        return -1;
    return db_run(db, e, "INSERT INTO fat (x) VALUES (zeroblob(1000000))", "");
}

static void the_log_is_moved_into_the_database_once_it_is_long(void **state)
{
    enum { COUNT = 20 }; /* 5000 pages; see CHECKPOINT_PAGES */
    struct meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};
    struct db_writer_config config = {0};
    struct db_writer *writer = NULL;
    struct place place;
    struct db *db = open_place(&place);
    struct stat file;

    (void)state;
    assert_int_equal(db_script(db, "CREATE TABLE fat (x)", NULL), 0);
    assert_int_equal(db_writer_new(db, &config, &writer, NULL), 0);
    for (int i = 1; i <= COUNT; i++) {
        struct number number = {{insert_fat, NULL, told, NULL, {0}, false}, i, false, &m};

        if (i == COUNT / 2) {
            assert_int_equal(stat(place.path, &file), 0);
            assert_true(file.st_size < 100000); /* it is all still in the log */
        }
        m.left = 1;
        db_writer_submit(writer, &number.write);
        wait_all(&m);
    }
    assert_int_equal(m.ok, COUNT);
    assert_int_equal(stat(place.path, &file), 0);
    assert_true(file.st_size > 10 * 1000000);
    db_writer_free(writer);
    remove_place(&place);
}

static void migrations_run_once_in_order_and_a_newer_schema_is_refused(void **state)
{
    static const struct db_migration list[] = {
        {1, "one", "CREATE TABLE a (x)"},
        {2, "two", "INSERT INTO a VALUES (1)"},
    };
    struct err e = {0};
    struct place place;
    struct db *db = open_place(&place);

    (void)state;
    assert_int_equal(db_migrate(db, list, 1, &e), 0);
    assert_int_equal(db_migrate(db, list, 2, &e), 0);
    assert_int_equal(db_migrate(db, list, 2, &e), 0);
    assert_int_equal(scalar(place.path, "SELECT count(*) FROM a"), 1);
    assert_int_equal(db_migrate(db, list, 1, &e), -1);
    assert_non_null(strstr(e.msg, "newer version"));
    db_free(db);
    remove_place(&place);
}

static void a_failed_migration_changes_nothing(void **state)
{
    static const struct db_migration list[] = {
        {1, "half", "CREATE TABLE a (x); INSERT INTO nowhere VALUES (1)"},
    };
    struct err e = {0};
    struct place place;
    struct db *db = open_place(&place);

    (void)state;
    assert_int_equal(db_migrate(db, list, 1, &e), -1);
    assert_non_null(strstr(e.msg, "migration 1 (half)"));
    assert_int_equal(scalar(place.path, "SELECT count(*) FROM sqlite_master WHERE name = 'a'"),
                     0);
    db_free(db);
    remove_place(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_share_commits_and_all_are_kept),
        cmocka_unit_test(a_refused_write_leaves_nothing_and_harms_no_neighbour),
        cmocka_unit_test(a_refusal_before_any_change_repeats_nobody),
        cmocka_unit_test(a_refusal_after_a_change_runs_the_group_again_without_it),
        cmocka_unit_test(a_write_that_cannot_be_repeated_is_not),
        cmocka_unit_test(late_comers_fill_a_group_up_to_half_where_commits_are_quick),
        cmocka_unit_test(a_full_disk_fails_writes_with_its_reason_and_the_next_one_fits),
        cmocka_unit_test(the_generation_moves_with_each_commit_and_rests_at_even_numbers),
        cmocka_unit_test(the_log_is_moved_into_the_database_once_it_is_long),
        cmocka_unit_test(migrations_run_once_in_order_and_a_newer_schema_is_refused),
        cmocka_unit_test(a_failed_migration_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
