/* SPDX-License-Identifier: Apache-2.0 */
#include "control/test/desk.h"

#define WORK OURS "/providers/Microsoft.BatchAI/workspaces/work"

static void fill(struct desk *d)
{
    desk_init(d);
    desk_start(d);
    have(d, RESOURCE_GROUP, SUB_A, "ours");
    have(d, RESOURCE_WORKSPACE, OURS, "work");
}

/* A put with everything that can be said, for the tests of what changes. */
static struct control_change *put_more(struct desk *d,
                                       const char *name,
                                       const char *location,
                                       const char *tags,
                                       const char *properties,
                                       bool must_exist)
{
    struct control_change *change = ask("Put");
    json_t *t = tags ? json_loads(tags, 0, NULL) : NULL;
    json_t *p = properties ? json_loads(properties, 0, NULL) : NULL;
    struct control_put wanted = {
        .kind = RESOURCE_WORKSPACE,
        .parent_id = OURS,
        .name = name,
        .location = location,
        .tags = t,
        .properties = p,
        .must_exist = must_exist,
    };

    control_put_resource(d->control, change, &wanted);
    expect_ok(change);
    json_decref(t); /* control keeps references of its own */
    json_decref(p);
    return change;
}

static void a_resource_is_created_once(void **state)
{
    struct desk d;

    (void)state;
    desk_init(&d);
    desk_start(&d);
    {
        auto_change first = put(&d, RESOURCE_GROUP, SUB_A, "ours");
        auto_change second = NULL;

        expect_ok(first);
        assert_true(first->created);
        assert_int_equal(first->resource->state, RESOURCE_READY);
        assert_string_equal(first->resource->arm_id, OURS);
        assert_true(first->resource->version > 0);
        assert_int_equal(first->resource->created_ms, first->now_ms);
        second = put(&d, RESOURCE_GROUP, SUB_A, "OURS"); /* names have no case */
        expect_ok(second);
        assert_false(second->created);
        assert_string_equal(second->resource->arm_id, OURS);
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM resource"), 1);
    desk_done(&d);
}

/* From what is there to what is there afterwards; the version grows when something changed. */
static const struct {
    const char *tags, *properties;
    const char *tags_after, *properties_after;
    bool changes;
} edits[] = {
    {NULL, NULL, "{\"a\":\"1\"}", "{\"x\":1,\"o\":{\"i\":1,\"j\":2}}", false},
    {"{\"a\": \"1\"}", "{\"x\": 1}", "{\"a\":\"1\"}", "{\"x\":1,\"o\":{\"i\":1,\"j\":2}}",
     false},
    {NULL, "{\"o\": {\"j\": 2}}", "{\"a\":\"1\"}", "{\"x\":1,\"o\":{\"i\":1,\"j\":2}}", false},
    {"{}", NULL, "{}", "{\"x\":1,\"o\":{\"i\":1,\"j\":2}}", true},
    {"{\"b\": \"2\"}", NULL, "{\"b\":\"2\"}", "{\"x\":1,\"o\":{\"i\":1,\"j\":2}}", true},
    {NULL, "{\"x\": 2}", "{\"a\":\"1\"}", "{\"x\":2,\"o\":{\"i\":1,\"j\":2}}", true},
    {NULL, "{\"y\": []}", "{\"a\":\"1\"}", "{\"x\":1,\"o\":{\"i\":1,\"j\":2},\"y\":[]}", true},
    {NULL, "{\"o\": {\"j\": 3}}", "{\"a\":\"1\"}", "{\"x\":1,\"o\":{\"i\":1,\"j\":3}}", true},
    {NULL, "{\"o\": 5}", "{\"a\":\"1\"}", "{\"x\":1,\"o\":5}", true},
};

static void check_json(const json_t *value, const char *wanted)
{
    json_t *parsed = json_loads(wanted, 0, NULL);

    assert_non_null(parsed);
    if (!json_equal(value, parsed))
        fail_msg("expected %s", wanted);
    json_decref(parsed);
}

static void a_put_or_patch_changes_what_it_says_and_only_that(void **state)
{
    struct desk d;

    (void)state;
    fill(&d);
    for (size_t i = 0; i < 2 * ARRAY_SIZE(edits); i++) {
        bool is_patch = i % 2;
        auto_free char *name = xasprintf("w%zu", i);
        auto_change before = put_more(&d, name, "eastus", "{\"a\": \"1\"}",
                                      "{\"x\": 1, \"o\": {\"i\": 1, \"j\": 2}}", false);
        auto_change after = put_more(&d, name, is_patch ? NULL : "eastus", edits[i / 2].tags,
                                     edits[i / 2].properties, is_patch);
        const struct resource *old = before->resource, *new = after->resource;

        check_json(new->tags, edits[i / 2].tags_after);
        check_json(new->properties, edits[i / 2].properties_after);
        assert_int_equal(new->version > old->version, edits[i / 2].changes);
        assert_int_equal(new->id, old->id);
        assert_int_equal(new->created_ms, old->created_ms);
        assert_int_equal(new->state_ms, old->state_ms);
        assert_string_equal(new->location, "eastus");
        if (!edits[i / 2].changes)
            assert_int_equal(new->modified_ms, old->modified_ms);
    }
    desk_done(&d);
}

static void a_patch_of_nothing_makes_nothing(void **state)
{
    struct control_put wanted = {
        .kind = RESOURCE_WORKSPACE, .parent_id = OURS, .name = "new", .must_exist = true};
    struct desk d;

    (void)state;
    fill(&d);
    {
        auto_change change = ask("Patch");

        control_put_resource(d.control, change, &wanted);
        expect_refused(change, ERR_NOT_FOUND, "WorkspaceNotFound");
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM resource"), 2);
    desk_done(&d);
}

static void a_resource_does_not_move(void **state)
{
    static const struct {
        enum resource_kind kind;
        const char *parent, *name, *reason;
    } rows[] = {
        {RESOURCE_GROUP, SUB_A, "ours", "InvalidResourceGroupLocation"},
        {RESOURCE_WORKSPACE, OURS, "work", "InvalidResourceLocation"},
    };
    struct desk d;

    (void)state;
    fill(&d);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_change change = ask("Put");
        struct control_put wanted = {.kind = rows[i].kind,
                                     .parent_id = rows[i].parent,
                                     .name = rows[i].name,
                                     .location = "westus"};

        control_put_resource(d.control, change, &wanted);
        expect_refused(change, ERR_CONFLICT, rows[i].reason);
        assert_string_equal(wait_for(change)->target, "location");
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM resource WHERE location = 'westus'"), 0);
    desk_done(&d);
}

static void conditions_are_asked_before_anything_changes(void **state)
{
    static const struct {
        const char *name, *if_match, *if_none_match;
        bool holds;
    } rows[] = {
        {"work", "*", NULL, true},  {"work", "\"0x1\"", NULL, false},
        {"work", NULL, "*", false}, {"new1", NULL, "*", true},
        {"new2", "*", NULL, false}, {"new3", "\"0x1\"", NULL, false},
    };
    struct desk d;

    (void)state;
    fill(&d);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_change change = ask("Put");
        struct control_put wanted = {.kind = RESOURCE_WORKSPACE,
                                     .parent_id = OURS,
                                     .name = rows[i].name,
                                     .location = "eastus",
                                     .if_match = rows[i].if_match,
                                     .if_none_match = rows[i].if_none_match};

        control_put_resource(d.control, change, &wanted);
        if (rows[i].holds)
            expect_ok(change);
        else
            expect_refused(change, ERR_PRECONDITION, NULL);
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM resource"), 3);
    desk_done(&d);
}

static void a_missing_parent_is_named_from_the_top(void **state)
{
    static const struct {
        enum resource_kind kind;
        const char *parent, *reason, *word;
    } rows[] = {
        {RESOURCE_WORKSPACE, SUB_A "/resourceGroups/none", "ResourceGroupNotFound", "'none'"},
        {RESOURCE_EXPERIMENT,
         SUB_A "/resourceGroups/none/providers/Microsoft.BatchAI/workspaces/w",
         "ResourceGroupNotFound", "'none'"},
        {RESOURCE_EXPERIMENT, OURS "/providers/Microsoft.BatchAI/workspaces/w9",
         "WorkspaceNotFound", "w9"},
        {RESOURCE_STORAGE_ACCOUNT, SUB_B "/resourceGroups/ours", "ResourceGroupNotFound",
         "'ours'"},
    };
    struct desk d;

    (void)state;
    fill(&d);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_change change = put(&d, rows[i].kind, rows[i].parent, "thing1");

        expect_refused(change, ERR_NOT_FOUND, rows[i].reason);
        assert_non_null(strstr(wait_for(change)->msg, rows[i].word));
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM resource"), 2);
    desk_done(&d);
}

/* A group and a workspace in it that are being deleted and stay so: no operation finishes them.
 */
static void fill_deleting(struct desk *d)
{
    struct err e = {0};

    fill(d);
    have(d, RESOURCE_EXPERIMENT, WORK, "try");
    desk_stop(d);
    assert_ok(db_script(d->yard.db, "UPDATE resource SET state = 2 WHERE name = 'ours'", &e),
              &e);
    desk_start(d);
}

static void what_is_being_deleted_refuses_updates_and_children(void **state)
{
    static const struct {
        enum resource_kind kind;
        const char *parent, *name;
    } rows[] = {
        {RESOURCE_GROUP, SUB_A, "ours"},    {RESOURCE_WORKSPACE, OURS, "work"},
        {RESOURCE_WORKSPACE, OURS, "new"},  {RESOURCE_EXPERIMENT, WORK, "try"},
        {RESOURCE_EXPERIMENT, WORK, "new"}, {RESOURCE_STORAGE_ACCOUNT, OURS, "store1"},
    };
    struct desk d;

    (void)state;
    fill_deleting(&d);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_change change = put(&d, rows[i].kind, rows[i].parent, rows[i].name);

        expect_refused(change, ERR_CONFLICT, "ResourceGroupBeingDeleted");
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM resource"), 3);
    assert_int_equal(count(&d, "SELECT count(*) FROM secret"), 0);
    desk_done(&d);
}

/* Within one commit too, though the parent was fine a moment ago. */
static void a_parent_that_goes_within_a_commit_takes_no_more_children(void **state)
{
    struct gate gate;
    struct desk d;

    (void)state;
    desk_init(&d);
    desk_start(&d);
    have(&d, RESOURCE_GROUP, SUB_A, "ours");
    gate_shut(&gate, &d);
    {
        auto_change before = put(&d, RESOURCE_WORKSPACE, OURS, "before");
        auto_change gone = delete_it(&d, RESOURCE_GROUP, OURS, true);
        auto_change after = put(&d, RESOURCE_WORKSPACE, OURS, "after");
        auto_change group = put(&d, RESOURCE_GROUP, SUB_A, "ours");
        auto_change again = put(&d, RESOURCE_WORKSPACE, OURS, "again");

        gate_open(&gate);
        expect_ok(before);
        expect_ok(gone);
        expect_refused(after, ERR_NOT_FOUND, "ResourceGroupNotFound");
        expect_ok(group);
        expect_ok(again);
        assert_int_equal(again->resource->parent_id, group->resource->id);
    }
    desk_done(&d);
}

/* Behind a create nobody looks whether the next in its place is new: that must not show. */
static void what_is_there_is_found_behind_a_create_within_a_commit(void **state)
{
    struct gate gate;
    struct desk d;

    (void)state;
    desk_init(&d);
    desk_start(&d);
    have(&d, RESOURCE_GROUP, SUB_A, "ours");
    have(&d, RESOURCE_WORKSPACE, OURS, "old");
    gate_shut(&gate, &d);
    {
        auto_change first = put(&d, RESOURCE_WORKSPACE, OURS, "new");
        auto_change old = put(&d, RESOURCE_WORKSPACE, OURS, "OLD");
        auto_change twice = put(&d, RESOURCE_WORKSPACE, OURS, "new");
        auto_change below = put(&d, RESOURCE_EXPERIMENT,
                                OURS "/providers/Microsoft.BatchAI/workspaces/new", "e");
        auto_change second = put(&d, RESOURCE_EXPERIMENT,
                                 OURS "/providers/Microsoft.BatchAI/workspaces/new", "f");

        gate_open(&gate);
        expect_ok(first);
        expect_ok(old);
        expect_ok(twice);
        expect_ok(below);
        expect_ok(second);
        assert_true(first->created && below->created && second->created);
        assert_false(old->created || twice->created);
        assert_string_equal(old->resource->name, "old");
        assert_int_equal(twice->resource->id, first->resource->id);
        assert_int_equal(twice->resource->version, first->resource->version);
        assert_int_equal(second->resource->parent_id, first->resource->id);
        assert_int_equal(second->resource->group_id, first->resource->group_id);
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM resource"), 5);
    assert_int_equal(count(&d, "SELECT count(*) FROM resource WHERE group_id = 1"), 5);
    desk_done(&d);
}

static void an_account_name_is_taken_in_the_whole_yard(void **state)
{
    struct desk d;

    (void)state;
    fill(&d);
    have(&d, RESOURCE_GROUP, SUB_B, "theirs");
    have(&d, RESOURCE_STORAGE_ACCOUNT, OURS, "store1");
    {
        auto_change change =
            put(&d, RESOURCE_STORAGE_ACCOUNT, SUB_B "/resourceGroups/theirs", "store1");

        expect_refused(change, ERR_CONFLICT, "StorageAccountAlreadyTaken");
        assert_string_equal(wait_for(change)->target, "accountName");
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM secret"), 2);
    desk_done(&d);
}

static void a_new_group_does_not_open_to_tokens_of_an_old_one(void **state)
{
    struct control_principal scoped = {.name = "ann", .role = ACCESS_OWNER, .group_id = OURS};
    char hash[2 * CRYPT_SHA256_BYTES + 1];
    struct identity who;
    struct desk d;

    (void)state;
    fill(&d);
    {
        auto_change change = ask("Token");

        control_put_principal(d.control, change, &scoped);
        expect_ok(change);
        principals_hash_token(change->secret, hash);
    }
    assert_true(principals_by_token(control_principals(d.control), hash, &who));
    {
        auto_change change = delete_it(&d, RESOURCE_GROUP, OURS, true);

        expect_ok(change);
    }
    have(&d, RESOURCE_GROUP, SUB_A, "ours");
    assert_false(principals_by_token(control_principals(d.control), hash, &who));
    desk_done(&d);
}

/* --- deleting --- */

static void deleting_at_once_takes_all_below_in_one_step(void **state)
{
    struct desk d;

    (void)state;
    fill(&d);
    have(&d, RESOURCE_EXPERIMENT, WORK, "try");
    have(&d, RESOURCE_STORAGE_ACCOUNT, OURS, "store1");
    {
        auto_change change = delete_it(&d, RESOURCE_GROUP, OURS, true);

        expect_ok(change);
        assert_null(change->operation);
        assert_string_equal(change->resource->arm_id, OURS);
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM resource"), 0);
    assert_int_equal(count(&d, "SELECT count(*) FROM secret"), 0);
    assert_int_equal(count(&d, "SELECT count(*) FROM operation"), 0);
    desk_done(&d);
}

static void deleting_nothing_is_no_error(void **state)
{
    struct desk d;

    (void)state;
    fill(&d);
    for (int at_once = 0; at_once < 2; at_once++) {
        auto_change change =
            delete_it(&d, RESOURCE_WORKSPACE,
                      OURS "/providers/Microsoft.BatchAI/workspaces/none", at_once);

        expect_ok(change);
        assert_null(change->resource);
        assert_null(change->operation);
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM resource"), 2);
    desk_done(&d);
}

static void a_delete_asks_its_condition(void **state)
{
    struct control_delete wanted = {
        .kind = RESOURCE_GROUP, .arm_id = OURS, .name = "ours", .if_match = "\"0x1\""};
    struct desk d;

    (void)state;
    fill(&d);
    {
        auto_change change = ask("Delete");

        control_delete_resource(d.control, change, &wanted);
        expect_refused(change, ERR_PRECONDITION, NULL);
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM resource WHERE state = 1"), 2);
    desk_done(&d);
}

static void versions_grow_even_when_the_clock_was_ahead(void **state)
{
    struct desk d;
    struct err e = {0};

    (void)state;
    fill(&d);
    desk_stop(&d);
    /* A version far in the future, then its resource goes, then the daemon starts anew. */
    assert_ok(db_script(d.yard.db,
                        "UPDATE resource SET version = 9000000000000000000"
                        " WHERE name = 'work'",
                        &e),
              &e);
    desk_start(&d);
    {
        auto_change change = delete_it(&d, RESOURCE_WORKSPACE, WORK, true);

        expect_ok(change);
    }
    desk_stop(&d);
    desk_start(&d);
    {
        auto_change change = put(&d, RESOURCE_WORKSPACE, OURS, "work");

        expect_ok(change);
        assert_true(change->resource->version > INT64_C(9000000000000000000));
    }
    desk_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resource_is_created_once),
        cmocka_unit_test(a_put_or_patch_changes_what_it_says_and_only_that),
        cmocka_unit_test(a_patch_of_nothing_makes_nothing),
        cmocka_unit_test(a_resource_does_not_move),
        cmocka_unit_test(conditions_are_asked_before_anything_changes),
        cmocka_unit_test(a_missing_parent_is_named_from_the_top),
        cmocka_unit_test(what_is_being_deleted_refuses_updates_and_children),
        cmocka_unit_test(a_parent_that_goes_within_a_commit_takes_no_more_children),
        cmocka_unit_test(what_is_there_is_found_behind_a_create_within_a_commit),
        cmocka_unit_test(an_account_name_is_taken_in_the_whole_yard),
        cmocka_unit_test(a_new_group_does_not_open_to_tokens_of_an_old_one),
        cmocka_unit_test(deleting_at_once_takes_all_below_in_one_step),
        cmocka_unit_test(deleting_nothing_is_no_error),
        cmocka_unit_test(a_delete_asks_its_condition),
        cmocka_unit_test(versions_grow_even_when_the_clock_was_ahead),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
