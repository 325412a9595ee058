/* SPDX-License-Identifier: Apache-2.0 */
#include "store/test/yard.h"

static struct operation *make(const char *id, int64_t resource_id, int64_t started_ms)
{
    struct operation *o = operation_new();

    o->id = xstrdup(id);
    o->kind = OPERATION_DELETE_RESOURCE;
    o->resource_id = resource_id;
    o->target = xstrdup("/the/target");
    o->started_ms = started_ms;
    return o;
}

static void put(struct yard *yard, const struct operation *o)
{
    struct err e = {0};

    assert_ok(store_put_operation(yard->db, o, "the group", &e), &e);
}

static void check(struct yard *yard, const struct operation *wanted)
{
    autoptr(operation) found = NULL;
    auto_free char *group = NULL;
    struct err e = {0};

    assert_ok(store_find_operation(yard->db, wanted->id, &found, &group, &e), &e);
    assert_non_null(found);
    assert_string_equal(found->id, wanted->id);
    assert_string_equal(found->target, wanted->target);
    assert_string_equal(group, "the group");
    assert_int_equal(found->kind, wanted->kind);
    assert_int_equal(found->state, wanted->state);
    assert_int_equal(found->resource_id, wanted->resource_id);
    assert_int_equal(found->started_ms, wanted->started_ms);
    assert_int_equal(found->ended_ms, wanted->ended_ms);
    assert_true(str_equal(found->error_code, wanted->error_code));
    assert_true(str_equal(found->error_message, wanted->error_message));
}

static void an_operation_comes_back_as_it_was_put(void **state)
{
    autoptr(operation) o = make("o1", 7, 100);
    struct yard yard;

    (void)state;
    yard_init(&yard);
    put(&yard, o);
    check(&yard, o);
    o->state = OPERATION_FAILED;
    o->ended_ms = 200;
    o->error_code = xstrdup("Conflict");
    o->error_message = xstrdup("it did not want to");
    put(&yard, o);
    check(&yard, o);
    yard_done(&yard);
}

static void what_is_not_there_is_null(void **state)
{
    struct operation *found = (struct operation *)&found;
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    assert_ok(store_find_operation(yard.db, "o1", &found, NULL, &e), &e);
    assert_null(found);
    yard_done(&yard);
}

static void the_running_one_of_a_resource_is_found(void **state)
{
    autoptr(operation) ended = make("ended", 7, 100);
    autoptr(operation) running = make("running", 7, 200);
    autoptr(operation) other = make("other", 8, 300);
    autoptr(operation) found = NULL;
    struct operation *none = NULL;
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    ended->state = OPERATION_SUCCEEDED;
    put(&yard, ended);
    put(&yard, running);
    put(&yard, other);
    assert_ok(store_find_running_operation(yard.db, 7, &found, &e), &e);
    assert_string_equal(found->id, "running");
    assert_ok(store_find_running_operation(yard.db, 9, &none, &e), &e);
    assert_null(none);
    yard_done(&yard);
}

/* A job may be ended and deleted at the same time: who deletes it again waits for the latter.
 */
static void a_delete_is_found_before_a_terminate(void **state)
{
    autoptr(operation) terminating = make("a", 7, 100);
    autoptr(operation) deleting = make("b", 7, 200);
    autoptr(operation) found = NULL;
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    terminating->kind = OPERATION_TERMINATE_JOB;
    put(&yard, terminating);
    put(&yard, deleting);
    assert_ok(store_find_running_operation(yard.db, 7, &found, &e), &e);
    assert_string_equal(found->id, "b");
    yard_done(&yard);
}

static void add_id(const char *id, void *context)
{
    str_addf(context, "%s ", id);
}

static void running_ones_are_listed_oldest_first(void **state)
{
    autoptr(operation) third = make("third", 1, 300);
    autoptr(operation) first = make("first", 2, 100);
    autoptr(operation) second = make("second", 3, 200);
    autoptr(operation) ended = make("ended", 4, 50);
    auto_str ids = {0};
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    ended->state = OPERATION_FAILED;
    put(&yard, third);
    put(&yard, first);
    put(&yard, second);
    put(&yard, ended);
    assert_ok(store_each_running_operation(yard.db, add_id, &ids, &e), &e);
    assert_string_equal(str_text(&ids), "first second third ");
    yard_done(&yard);
}

static void only_old_ended_ones_are_forgotten(void **state)
{
    static const struct {
        const char *id;
        int64_t ended_ms;
        enum operation_state state;
        bool kept;
    } rows[] = {
        {"old", 99, OPERATION_SUCCEEDED, false},
        {"old-failed", 99, OPERATION_FAILED, false},
        {"just", 100, OPERATION_SUCCEEDED, true},
        {"running", 0, OPERATION_RUNNING, true},
    };
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoptr(operation) o = make(rows[i].id, 1, 1);

        o->state = rows[i].state;
        o->ended_ms = rows[i].ended_ms;
        put(&yard, o);
    }
    assert_ok(store_remove_old_operations(yard.db, 100, &e), &e);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoptr(operation) found = NULL;

        assert_ok(store_find_operation(yard.db, rows[i].id, &found, NULL, &e), &e);
        assert_int_equal(found != NULL, rows[i].kept);
    }
    yard_done(&yard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_comes_back_as_it_was_put),
        cmocka_unit_test(what_is_not_there_is_null),
        cmocka_unit_test(the_running_one_of_a_resource_is_found),
        cmocka_unit_test(a_delete_is_found_before_a_terminate),
        cmocka_unit_test(running_ones_are_listed_oldest_first),
        cmocka_unit_test(only_old_ended_ones_are_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
