/* SPDX-License-Identifier: Apache-2.0 */
#include "core/resource.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SUB        "/subscriptions/S1"
#define GROUP      SUB "/resourceGroups/Ours"
#define WORKSPACE  GROUP "/providers/Microsoft.BatchAI/workspaces/Work"
#define EXPERIMENT WORKSPACE "/experiments/Try"
#define ACCOUNT    GROUP "/providers/Microsoft.Storage/storageAccounts/store1"

enum {
    NO = RESOURCE_STATES, /* refused */
};

/* Every (state, event) pair and where it leads. */
static const int wanted[RESOURCE_STATES][RESOURCE_EVENTS] = {
    [RESOURCE_ABSENT] = {[RESOURCE_CREATE] = RESOURCE_READY,
                         [RESOURCE_UPDATE] = NO,
                         [RESOURCE_DELETE] = NO,
                         [RESOURCE_REMOVED] = NO},
    [RESOURCE_READY] = {[RESOURCE_CREATE] = NO,
                        [RESOURCE_UPDATE] = RESOURCE_READY,
                        [RESOURCE_DELETE] = RESOURCE_DELETING,
                        [RESOURCE_REMOVED] = NO},
    [RESOURCE_DELETING] = {[RESOURCE_CREATE] = NO,
                           [RESOURCE_UPDATE] = NO,
                           [RESOURCE_DELETE] = RESOURCE_DELETING,
                           [RESOURCE_REMOVED] = RESOURCE_GONE},
    [RESOURCE_GONE] = {[RESOURCE_CREATE] = NO,
                       [RESOURCE_UPDATE] = NO,
                       [RESOURCE_DELETE] = NO,
                       [RESOURCE_REMOVED] = NO},
};

static void check_pair(enum resource_state from, enum resource_event on)
{
    autoptr(resource) r = resource_new(RESOURCE_WORKSPACE);
    int to = wanted[from][on];
    struct err e = {0};

    r->name = xstrdup("work");
    r->state = from;
    r->state_ms = 5;
    if (resource_apply(r, on, 99, &e) != (to == NO ? -1 : 0))
        fail_msg("state %d, event %d: %s", from, on, e.msg);
    assert_int_equal(r->state, to == NO ? (int)from : to);
    assert_int_equal(r->state_ms, to == NO || to == (int)from ? 5 : 99);
    assert_int_equal(e.code, to == NO ? ERR_CONFLICT : ERR_NONE);
}

static void every_pair_leads_where_the_table_says(void **state)
{
    (void)state;
    for (int from = 0; from < RESOURCE_STATES; from++)
        for (int on = 0; on < RESOURCE_EVENTS; on++)
            check_pair((enum resource_state)from, (enum resource_event)on);
}

static void a_refusal_while_deleting_says_so_in_the_kinds_word(void **state)
{
    static const struct {
        enum resource_kind kind;
        const char *reason;
    } rows[] = {
        {RESOURCE_GROUP, "ResourceGroupBeingDeleted"},
        {RESOURCE_WORKSPACE, "ResourceBeingDeleted"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoptr(resource) r = resource_new(rows[i].kind);
        struct err e = {0};

        r->name = xstrdup("thing");
        r->state = RESOURCE_DELETING;
        assert_int_equal(resource_apply(r, RESOURCE_UPDATE, 1, &e), -1);
        assert_string_equal(err_reason_of(&e), rows[i].reason);
        assert_non_null(strstr(e.msg, "thing is being deleted"));
    }
}

static void a_new_resource_is_absent_and_has_properties(void **state)
{
    autoptr(resource) r = resource_new(RESOURCE_EXPERIMENT);

    (void)state;
    assert_int_equal(r->state, RESOURCE_ABSENT);
    assert_int_equal(r->kind, RESOURCE_EXPERIMENT);
    assert_true(json_is_object(r->properties));
    assert_null(r->tags);
}

static void ids_are_built_from_their_parents(void **state)
{
    static const struct {
        enum resource_kind kind;
        const char *parent, *name, *id, *type;
    } rows[] = {
        {RESOURCE_GROUP, SUB, "Ours", GROUP, "Microsoft.Resources/resourceGroups"},
        {RESOURCE_STORAGE_ACCOUNT, GROUP, "store1", ACCOUNT,
         "Microsoft.Storage/storageAccounts"},
        {RESOURCE_WORKSPACE, GROUP, "Work", WORKSPACE, "Microsoft.BatchAI/workspaces"},
        {RESOURCE_EXPERIMENT, WORKSPACE, "Try", EXPERIMENT,
         "Microsoft.BatchAI/workspaces/experiments"},
        {RESOURCE_CLUSTER, WORKSPACE, "c", WORKSPACE "/clusters/c",
         "Microsoft.BatchAI/workspaces/clusters"},
        {RESOURCE_FILE_SERVER, WORKSPACE, "f", WORKSPACE "/fileservers/f",
         "Microsoft.BatchAI/workspaces/fileservers"},
        {RESOURCE_JOB, EXPERIMENT, "j", EXPERIMENT "/jobs/j",
         "Microsoft.BatchAI/workspaces/experiments/jobs"},
    };
    autoptr(arena) arena = arena_new();

    (void)state;
    assert_int_equal(ARRAY_SIZE(rows), RESOURCE_KINDS);
    assert_string_equal(resource_subscription_id(arena, "S1"), SUB);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_string_equal(
            resource_child_id(arena, rows[i].kind, rows[i].parent, rows[i].name), rows[i].id);
        assert_string_equal(resource_kind_info(rows[i].kind)->type, rows[i].type);
    }
}

static void a_kind_is_read_back_from_its_noun(void **state)
{
    struct err e = {0};
    enum resource_kind kind;

    (void)state;
    for (int i = 0; i < RESOURCE_KINDS; i++) {
        kind = RESOURCE_KINDS;
        assert_int_equal(
            resource_kind_parse(resource_kind_info((enum resource_kind)i)->noun, &kind, NULL),
            0);
        assert_int_equal(kind, i);
    }
    assert_int_equal(resource_kind_parse("cluster of stars", &kind, &e), -1);
    assert_int_equal(e.code, ERR_INTERNAL);
}

static void a_key_is_the_id_without_case(void **state)
{
    autoptr(arena) arena = arena_new();

    (void)state;
    assert_string_equal(resource_key(arena, GROUP), "/subscriptions/s1/resourcegroups/ours");
    assert_string_equal(resource_key(arena, resource_key(arena, EXPERIMENT)),
                        resource_key(arena, EXPERIMENT));
}

static void parts_of_an_id_are_found(void **state)
{
    static const struct {
        const char *id, *dollars, *group;
    } rows[] = {
        {"", "", ""},
        {"/", "", ""},
        {"/subscriptions", "", ""},
        {SUB, "S1", ""},
        {SUB "/", "S1", ""},
        {SUB "/resourceGroups", "S1", ""},
        {GROUP, "S1$Ours", "Ours"},
        {WORKSPACE, "S1$Ours$Work", "Ours"},
        {EXPERIMENT, "S1$Ours$Work$Try", "Ours"},
        {ACCOUNT, "S1$Ours$store1", "Ours"},
        {"/subscriptions/s1/resourcegroups/ours", "s1$ours", "ours"},
        {SUB "/resourceGroupsX/Ours", "S1$Ours", ""},
        {SUB "/providers/Microsoft.BatchAI", "S1$Microsoft.BatchAI", ""},
    };
    autoptr(arena) arena = arena_new();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_string_equal(resource_dollar_path(arena, rows[i].id), rows[i].dollars);
        assert_string_equal(resource_group_part(arena, rows[i].id), rows[i].group);
    }
}

static void the_group_of_an_id_is_found_by_its_place(void **state)
{
    static const struct {
        const char *id, *key;
    } rows[] = {
        {SUB, "/subscriptions/s1"},
        {SUB "/providers/Microsoft.BatchAI/usages", "/subscriptions/s1"},
        {GROUP, "/subscriptions/s1/resourcegroups/ours"},
        {EXPERIMENT, "/subscriptions/s1/resourcegroups/ours"},
        {SUB "/resourceGroups/providers", "/subscriptions/s1/resourcegroups/providers"},
        {SUB "/resourceGroups/Providers/providers/Microsoft.BatchAI/workspaces/w",
         "/subscriptions/s1/resourcegroups/providers"},
    };
    autoptr(arena) arena = arena_new();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_string_equal(resource_group_key(arena, rows[i].id), rows[i].key);
}

static void names_above_an_id_are_found(void **state)
{
    autoptr(arena) arena = arena_new();

    (void)state;
    assert_string_equal(resource_name_above(arena, EXPERIMENT "/jobs/j", 0), "j");
    assert_string_equal(resource_name_above(arena, EXPERIMENT "/jobs/j", 1), "Try");
    assert_string_equal(resource_name_above(arena, EXPERIMENT "/jobs/j", 2), "Work");
    assert_string_equal(resource_name_above(arena, "x", 0), "x");
    assert_string_equal(resource_name_above(arena, "x", 1), "");
    assert_string_equal(resource_name_above(arena, "", 3), "");
}

static void output_lies_below_the_names_and_a_uuid(void **state)
{
    autoptr(arena) arena = arena_new();

    (void)state;
    assert_string_equal(resource_output_segment(arena, EXPERIMENT "/jobs/j", "u-1"),
                        "S1/Ours/workspaces/Work/experiments/Try/jobs/j/u-1");
}

static void a_missing_resource_is_told_in_its_kinds_word(void **state)
{
    static const char *const reasons[RESOURCE_KINDS] = {
        [RESOURCE_GROUP] = "ResourceGroupNotFound",
        [RESOURCE_STORAGE_ACCOUNT] = "ResourceNotFound",
        [RESOURCE_WORKSPACE] = "WorkspaceNotFound",
        [RESOURCE_EXPERIMENT] = "ExperimentNotFound",
        [RESOURCE_CLUSTER] = "ClusterNotFound",
        [RESOURCE_FILE_SERVER] = "FileServerNotFound",
        [RESOURCE_JOB] = "JobNotFound",
    };

    (void)state;
    for (int i = 0; i < RESOURCE_KINDS; i++) {
        struct err e = {0};

        assert_int_equal(resource_not_found(&e, (enum resource_kind)i, "x-1"), -1);
        assert_int_equal(e.code, ERR_NOT_FOUND);
        assert_string_equal(err_reason_of(&e), reasons[i]);
        assert_non_null(strstr(e.msg, "x-1"));
    }
}

static void an_etag_is_the_version_in_hex(void **state)
{
    static const struct {
        int64_t version;
        const char *etag;
    } rows[] = {
        {0, "\"0x0\""},
        {INT64_C(0x8D5CBDCD4B8D591), "\"0x8D5CBDCD4B8D591\""},
        {INT64_MAX, "\"0x7FFFFFFFFFFFFFFF\""},
    };
    autoptr(resource) r = resource_new(RESOURCE_GROUP);
    char etag[RESOURCE_ETAG_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        r->version = rows[i].version;
        assert_string_equal(resource_etag(r, etag), rows[i].etag);
    }
}

static void versions_follow_the_clock_but_never_go_back(void **state)
{
    /* 2018-06-06T18:39:26.490Z; the ticks of that moment since year 1. */
    const int64_t wall = INT64_C(1528310366490), ticks = INT64_C(636639071664900000);
    int64_t last = 0;

    (void)state;
    assert_int_equal(resource_next_version(wall, 0), ticks);
    assert_int_equal(resource_next_version(wall, ticks - 1), ticks);
    assert_int_equal(resource_next_version(wall, ticks), ticks + 1);
    assert_int_equal(resource_next_version(wall - 60000, ticks), ticks + 1);
    for (int i = 0; i < 1000; i++) {
        int64_t next = resource_next_version(wall + (i % 7 - 3) * 10, last);

        assert_true(next > last);
        last = next;
    }
}

#define TAG "\"0xAB\""

/* Does the pair of conditions hold for a resource with that tag, and for none? */
static const struct condition {
    const char *if_match, *if_none_match;
    bool there, absent;
} conditions[] = {
    {NULL, NULL, true, true},
    {TAG, NULL, true, false},
    {"\"0xAC\"", NULL, false, false},
    {"\"0xA\"", NULL, false, false},
    {"\"0xABC\"", NULL, false, false},
    {"0xAB", NULL, false, false}, /* the quotes belong to it */
    {"*", NULL, true, false},
    {"", NULL, false, false},
    {" , ,", NULL, false, false},
    {"W/" TAG, NULL, true, false},
    {"W/", NULL, false, false},
    {"\"x\", " TAG, NULL, true, false},
    {"\"x\"," TAG ",\"y\"", NULL, true, false},
    {"\"x\",\t W/" TAG, NULL, true, false},
    {"\"x\", \"y\"", NULL, false, false},
    {NULL, TAG, false, true},
    {NULL, "\"0xAC\"", true, true},
    {NULL, "*", false, true},
    {NULL, "\"x\", W/" TAG, false, true},
    {NULL, "\"x\", \"y\"", true, true},
    {TAG, "\"0xAC\"", true, false},
    {TAG, TAG, false, false},
    {"*", "*", false, false},
};

static void check_condition(const struct condition *c, const struct resource *r, bool holds)
{
    struct err e = {0};

    if (resource_check_match(r, c->if_match, c->if_none_match, &e) != (holds ? 0 : -1))
        fail_msg("If-Match %s, If-None-Match %s, %s: should %shold",
                 c->if_match ? c->if_match : "-", c->if_none_match ? c->if_none_match : "-",
                 r ? "there" : "absent", holds ? "" : "not ");
    assert_int_equal(e.code, holds ? ERR_NONE : ERR_PRECONDITION);
    if (!holds)
        assert_true(str_equal(e.target, "If-Match") || str_equal(e.target, "If-None-Match"));
}

static void conditions_hold_as_the_table_says(void **state)
{
    autoptr(resource) r = resource_new(RESOURCE_GROUP);

    (void)state;
    r->version = 0xAB;
    for (size_t i = 0; i < ARRAY_SIZE(conditions); i++) {
        check_condition(&conditions[i], r, conditions[i].there);
        check_condition(&conditions[i], NULL, conditions[i].absent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_leads_where_the_table_says),
        cmocka_unit_test(a_refusal_while_deleting_says_so_in_the_kinds_word),
        cmocka_unit_test(a_new_resource_is_absent_and_has_properties),
        cmocka_unit_test(ids_are_built_from_their_parents),
        cmocka_unit_test(a_kind_is_read_back_from_its_noun),
        cmocka_unit_test(a_key_is_the_id_without_case),
        cmocka_unit_test(parts_of_an_id_are_found),
        cmocka_unit_test(the_group_of_an_id_is_found_by_its_place),
        cmocka_unit_test(names_above_an_id_are_found),
        cmocka_unit_test(output_lies_below_the_names_and_a_uuid),
        cmocka_unit_test(a_missing_resource_is_told_in_its_kinds_word),
        cmocka_unit_test(an_etag_is_the_version_in_hex),
        cmocka_unit_test(versions_follow_the_clock_but_never_go_back),
        cmocka_unit_test(conditions_hold_as_the_table_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
