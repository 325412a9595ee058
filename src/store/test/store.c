/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store-internal.h"

#include "base/fs.h"
#include "store/test/yard.h"

static void a_fact_is_kept_and_replaced(void **state)
{
    auto_free char *none = xstrdup("untouched"), *first = NULL, *second = NULL;
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    free(take_ptr(&none));
    assert_ok(store_get_meta(yard.db, "colour", &none, &e), &e);
    assert_null(none);
    assert_ok(store_put_meta(yard.db, "colour", "red", &e), &e);
    assert_ok(store_get_meta(yard.db, "colour", &first, &e), &e);
    assert_string_equal(first, "red");
    assert_ok(store_put_meta(yard.db, "colour", "blue", &e), &e);
    yard_reopen(&yard);
    assert_ok(store_get_meta(yard.db, "colour", &second, &e), &e);
    assert_string_equal(second, "blue");
    yard_done(&yard);
}

/* --- is it ours? --- */

static void a_yards_database_is_known_as_one(void **state)
{
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    assert_ok(store_check_file(yard.db_path, &e), &e);
    yard_done(&yard);
}

static void a_foreign_or_newer_database_is_refused(void **state)
{
    static const struct {
        const char *change, *word; /* in the message */
    } rows[] = {
        {"DELETE FROM meta", "not a yard's backup"},
        {"PRAGMA user_version = 0", "has schema 0"},
        {"PRAGMA user_version = 999", "has schema 999"},
    };
    struct yard yard;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct err e = {0};

        yard_init(&yard);
        assert_ok(db_script(yard.db, rows[i].change, &e), &e);
        assert_int_equal(store_check_file(yard.db_path, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
        assert_non_null(strstr(e.msg, rows[i].word));
        yard_done(&yard);
    }
}

static void what_is_no_database_is_refused(void **state)
{
    static const char text[] =
        "a text that is no database, long enough for a header ..........";
    auto_free char *path = NULL;
    struct yard yard;

    (void)state;
    yard_init(&yard);
    path = yard_path(&yard, "text");
    assert_int_equal(store_check_file(path, NULL), -1);
    assert_int_equal(fs_write_durably(path, text, sizeof(text), 0600, NULL), 0);
    assert_int_equal(store_check_file(path, NULL), -1);
    assert_int_equal(fs_write_durably(path, "", 0, 0600, NULL), 0);
    assert_int_equal(store_check_file(path, NULL), -1);
    yard_done(&yard);
}

static void a_newer_schema_is_not_opened(void **state)
{
    struct db *db = NULL;
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    assert_ok(db_script(yard.db, "PRAGMA user_version = 999", &e), &e);
    assert_int_equal(store_open(yard.db_path, &db, &e), -1);
    assert_null(db);
    assert_non_null(strstr(e.msg, "newer version"));
    yard_done(&yard);
}

/* --- older schemas --- */

struct findings {
    size_t count;
    struct str broken; /* the names of those that do not hold, a line each */
};

static void note(const char *name, bool ok, const char *detail, void *context)
{
    struct findings *f = context;

    f->count++;
    assert_int_equal(ok, !*detail);
    if (!ok)
        str_addf(&f->broken, "%s\n", name);
}

/* As the program of schema 3 left it: the newest resource and all events were removed. */
static const char rows_of_schema_3[] =
    "INSERT INTO resource (key, parent_id, kind, group_key, arm_id, name, properties, state,"
    " created_ms, state_ms, modified_ms, version) VALUES"
    " ('/g', NULL, 'resource group', '/g', '/G', 'G', '{}', 1, 1, 1, 1, 11),"
    " ('/g/a', 1, 'storage account', '/g', '/G/a', 'a', '{}', 1, 1, 1, 1, 13),"
    " ('/g/w', 1, 'workspace', '/g', '/G/w', 'w', '{}', 1, 1, 1, 1, 12),"
    " ('/g/x', 1, 'workspace', '/g', '/G/x', 'x', '{}', 1, 1, 1, 1, 14);"
    "INSERT INTO secret VALUES (2, 'key1', 'x', 1), (2, 'key2', 'x', 1);"
    "INSERT INTO principal (name, client_id, token_hash, role, scope, created_ms, expires_ms)"
    " VALUES ('owner', 'c', 'h', 'owner', '', 1, 0);"
    "INSERT INTO event (at_ms, principal, peer, operation, target, request_id, outcome)"
    " VALUES (1, 'p', '::1', 'o', 't', 'r1', 'Succeeded'),"
    " (2, 'p', '::1', 'o', 't', 'r2', 'Succeeded');";

/* Of an older program, with these rows and then these changes, opened by this one. */
static void open_older(struct yard *yard, int schema, const char *changes)
{
    struct err e = {0};

    yard_init(yard);
    db_free(take_ptr(&yard->db));
    assert_int_equal(unlink(yard->db_path), 0);
    assert_ok(db_open(yard->db_path, DB_WRITER, &yard->db, &e), &e);
    assert_ok(db_migrate(yard->db, store_schema, (size_t)schema, &e), &e);
    assert_ok(db_script(yard->db, rows_of_schema_3, &e), &e);
    assert_ok(db_script(yard->db, changes, &e), &e);
    yard_reopen(yard);
}

static void an_older_schema_is_brought_up_with_all_its_rows(void **state)
{
    struct findings found = {0};
    struct yard yard;
    struct err e = {0};
    int64_t version;

    (void)state;
    open_older(&yard, 3, "");
    assert_int_equal(yard_scalar(yard.db, "PRAGMA user_version"), (int64_t)store_schema_count);
    assert_int_equal(yard_scalar(yard.db, "SELECT sum(id * version) FROM resource"),
                     11 + 2 * 13 + 3 * 12 + 4 * 14);
    assert_int_equal(yard_scalar(yard.db, "SELECT count(*) FROM resource WHERE group_id = 1"),
                     4);
    assert_int_equal(yard_scalar(yard.db, "SELECT sum(seq * at_ms) FROM event"), 1 + 2 * 2);
    assert_ok(store_last_version(yard.db, &version, &e), &e);
    assert_int_equal(version, 14);
    assert_ok(store_check_invariants(yard.db, note, &found, &e), &e);
    assert_string_equal(str_text(&found.broken), "");
    /* What hangs on a resource still goes with it, and what refers to none is still refused. */
    assert_ok(store_remove_tree(yard.db, 2, &e), &e);
    assert_int_equal(yard_scalar(yard.db, "SELECT count(*) FROM secret"), 0);
    assert_int_equal(db_script(yard.db, "INSERT INTO secret VALUES (2, 'key1', 'x', 1)", NULL),
                     -1);
    yard_done(&yard);
}

static void what_lay_in_a_group_called_providers_comes_back_to_it(void **state)
{
    struct findings found = {0};
    struct yard yard;
    struct err e = {0};

    (void)state;
    open_older(
        &yard, 3,
        "UPDATE resource SET group_key = '/subscriptions/s/resourcegroups/providers',"
        " key = '/subscriptions/s/resourcegroups/providers' WHERE id = 1;"
        "UPDATE resource SET group_key = '/subscriptions/s/resourcegroups' WHERE id > 1");
    assert_int_equal(yard_scalar(yard.db, "SELECT count(*) FROM resource WHERE group_id = 1"),
                     4);
    assert_ok(store_check_invariants(yard.db, note, &found, &e), &e);
    assert_string_equal(str_text(&found.broken), "");
    yard_done(&yard);
}

static void what_has_lost_its_group_is_still_brought_up_and_told_of(void **state)
{
    struct findings found = {0};
    struct yard yard;
    struct err e = {0};

    (void)state;
    open_older(&yard, 4, "UPDATE resource SET group_key = '/nowhere' WHERE id = 3");
    assert_ok(store_check_invariants(yard.db, note, &found, &e), &e);
    assert_string_equal(str_text(&found.broken),
                        "every resource belongs to a group that is there\n");
    str_done(&found.broken);
    yard_done(&yard);
}

static void numbers_of_schema_4_do_not_come_again(void **state)
{
    autoptr(resource) group = NULL;
    struct yard yard;

    (void)state;
    open_older(&yard, 4, "DELETE FROM resource WHERE id = 4");
    group = yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "new", NULL);
    assert_int_equal(group->id, 5);
    yard_done(&yard);
}

static void numbers_of_an_older_schema_do_not_come_again(void **state)
{
    autoptr(resource) group = NULL;
    struct yard yard;
    struct err e = {0};
    const struct event event = {0, 3, "p", "::1", "o", "t", "r3", "Succeeded", NULL};

    (void)state;
    open_older(&yard, 3, "DELETE FROM resource WHERE id = 4; DELETE FROM event");
    group = yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "new", NULL);
    assert_int_equal(group->id, 5);
    assert_ok(store_add_event(yard.db, &event, &e), &e);
    assert_int_equal(yard_scalar(yard.db, "SELECT max(seq) FROM event"), 3);
    yard_done(&yard);
}

/* --- invariants --- */

/* A yard in which everything is as it should be. */
static void fill(struct yard *yard)
{
    autoptr(resource) group = yard_add(yard, RESOURCE_GROUP, SUB_A, NULL, "ours", NULL);
    autoptr(resource) work = yard_add(yard, RESOURCE_WORKSPACE, SUB_A, group, "work", NULL);
    autoptr(resource) account =
        yard_add(yard, RESOURCE_STORAGE_ACCOUNT, SUB_A, group, "store1", NULL);
    autoptr(operation) ended = operation_new();
    autoptr(operation) running = operation_new();
    struct principal owner = {
        0, (char[]){"owner"}, (char[]){"c"}, (char[]){"h"}, (char[]){""}, ACCESS_OWNER, 1, 0};
    struct err e = {0};

    assert_ok(store_put_secret(yard->db, account->id, "key1", "x", 1, &e), &e);
    assert_ok(store_put_secret(yard->db, account->id, "key2", "x", 1, &e), &e);
    ended->id = xstrdup("ended");
    ended->target = xstrdup("/gone");
    ended->state = OPERATION_FAILED;
    ended->ended_ms = 5;
    ended->error_code = xstrdup("Conflict");
    assert_ok(store_put_operation(yard->db, ended, "g", &e), &e);
    running->id = xstrdup("running");
    running->target = xstrdup(work->arm_id);
    running->resource_id = work->id;
    assert_ok(store_put_operation(yard->db, running, "g", &e), &e);
    work->state = RESOURCE_DELETING;
    assert_ok(store_update_resource(yard->db, work, &e), &e);
    assert_ok(store_put_principal(yard->db, &owner, &e), &e);
}

static void a_sound_yard_has_nothing_to_find(void **state)
{
    struct findings found = {0};
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    fill(&yard);
    assert_ok(store_check_invariants(yard.db, note, &found, &e), &e);
    assert_string_equal(str_text(&found.broken), "");
    assert_true(found.count >= 9);
    yard_done(&yard);
}

/* What is planted, and what must be found for it: that and nothing else. */
static const struct {
    const char *sql, *found;
} plants[] = {
    {"UPDATE resource SET parent_id = NULL WHERE name = 'work'",
     "every resource hangs on a parent that is there\n"},
    {"UPDATE resource SET parent_id = 999 WHERE name = 'work'",
     "every resource hangs on a parent that is there\n"},
    {"UPDATE resource SET group_id = 999 WHERE name = 'work'",
     "every resource belongs to a group that is there\n"},
    {"UPDATE resource SET group_id = id WHERE name = 'work'",
     "every resource belongs to its parent's group, and a group to itself\n"},
    {"UPDATE resource SET kind = 'resource group', parent_id = NULL, group_id = id"
     " WHERE name = 'store1'; UPDATE resource SET group_id ="
     " (SELECT id FROM resource WHERE name = 'store1') WHERE name = 'work'",
     "every resource belongs to its parent's group, and a group to itself\n"},
    {"UPDATE resource SET version = (SELECT version FROM resource WHERE name = 'ours')"
     " WHERE name = 'work'",
     "every resource has a version of its own\n"},
    {"UPDATE operation SET state = 1, ended_ms = 9 WHERE id = 'running'",
     "every resource being deleted has a running operation\n"},
    {"DELETE FROM operation WHERE id = 'running'",
     "every resource being deleted has a running operation\n"},
    {"UPDATE operation SET ended_ms = 0 WHERE id = 'ended'",
     "every ended operation has a time of its end\n"},
    {"UPDATE operation SET error_code = NULL WHERE id = 'ended'",
     "every failed operation has a cause\n"},
    {"DELETE FROM secret WHERE name = 'key2'", "every storage account has its two keys\n"},
    {"INSERT INTO secret VALUES (999, 'key1', 'x', 1)", "every secret belongs to a resource\n"},
    {"DELETE FROM principal", "there is an owner of the whole yard\n"},
    {"UPDATE principal SET scope = 'g'", "there is an owner of the whole yard\n"},
    {"UPDATE principal SET role = 'reader'", "there is an owner of the whole yard\n"},
};

static void each_planted_violation_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(plants); i++) {
        struct findings found = {0};
        struct yard yard;
        struct err e = {0};

        yard_init(&yard);
        fill(&yard);
        assert_ok(db_script(yard.db, "PRAGMA foreign_keys = OFF", &e), &e);
        assert_ok(db_script(yard.db, plants[i].sql, &e), &e);
        assert_ok(store_check_invariants(yard.db, note, &found, &e), &e);
        if (!str_equal(str_text(&found.broken), plants[i].found))
            fail_msg("%s: found \"%s\"", plants[i].sql, str_text(&found.broken));
        str_done(&found.broken);
        yard_done(&yard);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fact_is_kept_and_replaced),
        cmocka_unit_test(a_yards_database_is_known_as_one),
        cmocka_unit_test(a_foreign_or_newer_database_is_refused),
        cmocka_unit_test(what_is_no_database_is_refused),
        cmocka_unit_test(a_newer_schema_is_not_opened),
        cmocka_unit_test(an_older_schema_is_brought_up_with_all_its_rows),
        cmocka_unit_test(what_lay_in_a_group_called_providers_comes_back_to_it),
        cmocka_unit_test(numbers_of_an_older_schema_do_not_come_again),
        cmocka_unit_test(numbers_of_schema_4_do_not_come_again),
        cmocka_unit_test(what_has_lost_its_group_is_still_brought_up_and_told_of),
        cmocka_unit_test(a_sound_yard_has_nothing_to_find),
        cmocka_unit_test(each_planted_violation_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
