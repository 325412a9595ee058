/* SPDX-License-Identifier: Apache-2.0 */
#include "control/test/desk.h"

/* What the audit log says, oldest first: "operation outcome; ". */
static char *log_of(struct desk *d)
{
    auto_reader reader = {0};
    auto_query q = {0};
    auto_str out = {0};
    struct err e = {0};

    assert_ok(store_pool_take(d->pool, &reader, &e), &e);
    assert_ok(
        db_select(reader.db, &q, &e, "SELECT operation, outcome FROM event ORDER BY seq", ""),
        &e);
    while (db_next(&q, &e) > 0)
        str_addf(&out, "%s %s; ", db_text(&q, 0), db_text(&q, 1));
    return str_take(&out);
}

static int refuse(struct control_change *change, struct db *db, struct err *e)
{
    (void)change;
    assert_int_equal(store_put_meta(db, "trace", "left behind", e), 0);
    err_set(e, ERR_CONFLICT, "changed my mind");
    return err_reason(e, "Moody");
}

static void every_change_is_recorded_once_and_so_is_every_refusal(void **state)
{
    auto_free char *log = NULL;
    struct desk d;

    (void)state;
    desk_init(&d);
    desk_start(&d);
    {
        auto_change good = put(&d, RESOURCE_GROUP, SUB_A, "ours");
        auto_change same = put(&d, RESOURCE_GROUP, SUB_A, "ours");
        auto_change bad = put(&d, RESOURCE_WORKSPACE, SUB_A "/resourceGroups/none", "w");
        auto_change own = ask("Own");
        auto_change gone = delete_it(&d, RESOURCE_GROUP, OURS, true);

        own->apply = refuse;
        control_submit(d.control, own);
        expect_ok(good);
        expect_ok(same);
        expect_refused(bad, ERR_NOT_FOUND, NULL);
        expect_ok(gone);
        expect_refused(own, ERR_CONFLICT, "Moody");
    }
    desk_stop(&d);
    log = log_of(&d);
    assert_string_equal(log, "Put Succeeded; Put Succeeded; Put ResourceGroupNotFound; "
                             "Delete Succeeded; Own Moody; ");
    assert_int_equal(count(&d, "SELECT count(*) FROM meta WHERE name = 'trace'"), 0);
    desk_done(&d);
}

/* In one commit with it: they are run again, and have their effect and their event once. */
static void a_refusal_after_a_change_costs_its_neighbours_nothing(void **state)
{
    auto_free char *log = NULL;
    struct gate gate;
    struct desk d;

    (void)state;
    desk_init(&d);
    desk_start(&d);
    have(&d, RESOURCE_GROUP, SUB_A, "ours");
    gate_shut(&gate, &d);
    {
        auto_change first = put(&d, RESOURCE_WORKSPACE, OURS, "first");
        auto_change own = ask("Own");
        auto_change second = NULL;

        own->apply = refuse;
        own->is_repeatable = true;
        control_submit(d.control, own);
        second = put(&d, RESOURCE_WORKSPACE, OURS, "second");
        gate_open(&gate);
        expect_ok(first);
        expect_ok(second);
        expect_refused(own, ERR_CONFLICT, "Moody");
        assert_true(first->created && second->created);
        assert_true(first->resource->id != second->resource->id);
    }
    desk_stop(&d);
    log = log_of(&d);
    assert_string_equal(log, "Put Succeeded; Gate Succeeded; Put Succeeded; Own Moody; "
                             "Put Succeeded; ");
    assert_int_equal(count(&d, "SELECT count(*) FROM meta WHERE name = 'trace'"), 0);
    assert_int_equal(count(&d, "SELECT count(*) FROM resource"), 3);
    desk_done(&d);
}

static void check_event(const struct event *v, void *context)
{
    const struct control_change *change = context;

    assert_string_equal(v->principal, "tester");
    assert_string_equal(v->peer, "::1");
    assert_string_equal(v->operation, "Own");
    assert_string_equal(v->target, "/target");
    assert_string_equal(v->request_id, "id-1");
    assert_string_equal(v->outcome, "Moody");
    assert_string_equal(v->detail, "changed my mind");
    assert_int_equal(v->at_ms, change->now_ms);
}

static void an_event_says_who_what_when_and_why(void **state)
{
    auto_change change = ask("Own");
    struct desk d;

    (void)state;
    desk_init(&d);
    desk_start(&d);
    change->apply = refuse;
    control_submit(d.control, change);
    expect_refused(change, ERR_CONFLICT, "Moody");
    {
        auto_reader reader = {0};

        assert_int_equal(store_pool_take(d.pool, &reader, NULL), 0);
        assert_int_equal(store_each_event(reader.db, 0, 9, check_event, change, NULL), 0);
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM event"), 1);
    desk_done(&d);
}

static void kept_json_lives_as_long_as_the_change(void **state)
{
    struct control_change *change = control_change_new();
    json_t *value = json_object();

    (void)state;
    assert_ptr_equal(control_keep_json(change, value), value);
    assert_null(control_keep_json(change, NULL));
    assert_int_equal(value->refcount, 2);
    control_change_free(change);
    assert_int_equal(value->refcount, 1);
    json_decref(value);
    control_change_free(NULL);
}

/* Eight threads put, rotate, delete and look, each in a group of its own. */
struct busy {
    struct desk *desk;
    int number;
};

static void *be_busy(void *arg)
{
    const struct busy *busy = arg;
    struct desk *d = busy->desk;
    auto_free char *group = xasprintf("g%d", busy->number);
    auto_free char *id = xasprintf(SUB_A "/resourceGroups/%s", group);
    auto_free char *store = xasprintf("store%d", busy->number);
    auto_free char *store_id =
        xasprintf("%s/providers/Microsoft.Storage/storageAccounts/%s", id, store);
    struct control_principal p = {.name = group, .role = ACCESS_READER, .group_id = id};
    struct control_change *steps[5] = {put(d, RESOURCE_GROUP, SUB_A, group)};
    struct identity who;
    char hash[2 * CRYPT_SHA256_BYTES + 1];

    wait_for(steps[0]);
    for (int i = 0; i < 5; i++) {
        auto_free char *name = xasprintf("w%d", i);
        auto_change work = put(d, RESOURCE_WORKSPACE, id, name);

        if (wait_for(work)->code != ERR_NONE)
            return arg;
    }
    steps[1] = put(d, RESOURCE_STORAGE_ACCOUNT, id, store);
    wait_for(steps[1]);
    steps[2] = ask("Rotate");
    control_rotate_key(d->control, steps[2], store_id, "key1");
    wait_for(steps[2]);
    steps[3] = ask("Token");
    control_put_principal(d->control, steps[3], &p);
    if (wait_for(steps[3])->code != ERR_NONE)
        return arg;
    principals_hash_token(steps[3]->secret, hash);
    if (!principals_by_token(control_principals(d->control), hash, &who))
        return arg;
    steps[4] = delete_it(d, RESOURCE_GROUP, id, busy->number % 2);
    wait_for(steps[4]);
    for (int i = 0; i < 5; i++)
        control_change_free(steps[i]);
    return NULL;
}

static void many_threads_change_at_once(void **state)
{
    struct busy busy[8];
    pthread_t threads[8];
    struct desk d;

    (void)state;
    desk_init(&d);
    desk_start(&d);
    for (int i = 0; i < 8; i++) {
        busy[i] = (struct busy){&d, i};
        assert_int_equal(pthread_create(&threads[i], NULL, be_busy, &busy[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    eventually(&d, "SELECT count(*) FROM resource", 0);
    eventually(&d, "SELECT count(*) FROM operation WHERE state = 1", 4);
    desk_stop(&d);
    /* 10 by each thread, and 4 endings. */
    assert_int_equal(count(&d, "SELECT count(*) FROM event"), 84);
    assert_int_equal(count(&d, "SELECT count(*) FROM event WHERE outcome = 'Succeeded'"), 84);
    desk_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_is_recorded_once_and_so_is_every_refusal),
        cmocka_unit_test(a_refusal_after_a_change_costs_its_neighbours_nothing),
        cmocka_unit_test(an_event_says_who_what_when_and_why),
        cmocka_unit_test(kept_json_lives_as_long_as_the_change),
        cmocka_unit_test(many_threads_change_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
