/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include "store/test/yard.h"

static void assert_same(const struct resource *a, const struct resource *b)
{
    assert_int_equal(a->id, b->id);
    assert_int_equal(a->parent_id, b->parent_id);
    assert_int_equal(a->group_id, b->group_id);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->state, b->state);
    assert_string_equal(a->arm_id, b->arm_id);
    assert_string_equal(a->name, b->name);
    assert_true(str_equal(a->location, b->location));
    assert_true(a->tags ? json_equal(a->tags, b->tags) : !b->tags);
    assert_true(json_equal(a->properties, b->properties));
    assert_int_equal(a->created_ms, b->created_ms);
    assert_int_equal(a->state_ms, b->state_ms);
    assert_int_equal(a->modified_ms, b->modified_ms);
    assert_int_equal(a->version, b->version);
}

static void check_found(struct yard *yard, const struct resource *wanted)
{
    autoptr(arena) arena = arena_new();
    autoptr(resource) by_key = NULL;
    autoptr(resource) by_id = NULL;
    struct err e = {0};

    assert_ok(store_find_resource(yard->db, resource_key(arena, wanted->arm_id), &by_key, &e),
              &e);
    assert_ok(store_find_resource_by_id(yard->db, wanted->id, &by_id, &e), &e);
    assert_non_null(by_key);
    assert_non_null(by_id);
    assert_same(by_key, wanted);
    assert_same(by_id, wanted);
}

static void a_resource_comes_back_as_it_was_put(void **state)
{
    struct yard yard;

    (void)state;
    yard_init(&yard);
    {
        autoptr(resource) group = yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "Ours", NULL);
        autoptr(resource) work =
            yard_add(&yard, RESOURCE_WORKSPACE, SUB_A, group, "Work", "{\"a\": \"b\"}");
        autoptr(resource) try = yard_add(&yard, RESOURCE_EXPERIMENT, SUB_A, work, "Try", "{}");

        check_found(&yard, group);
        check_found(&yard, work);
        check_found(&yard, try);
        assert_int_equal(try->parent_id, work->id);
    }
    yard_done(&yard);
}

static void an_update_changes_what_may_change(void **state)
{
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    {
        autoptr(resource) r = yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "Ours", NULL);
        int64_t id = r->id;

        r->tags = json_pack("{s:s}", "who", "me");
        json_object_set_new(r->properties, "n", json_real(0.1));
        r->state = RESOURCE_DELETING;
        r->state_ms = 7;
        r->modified_ms = 8;
        r->version = 99;
        assert_ok(store_update_resource(yard.db, r, &e), &e);
        assert_int_equal(r->id, id);
        check_found(&yard, r);
        json_decref(r->tags);
        r->tags = NULL;
        assert_ok(store_update_resource(yard.db, r, &e), &e);
        check_found(&yard, r);
    }
    yard_done(&yard);
}

static void what_is_not_there_is_null_and_no_error(void **state)
{
    struct resource *found = (struct resource *)&found;
    struct err e = {0};
    struct yard yard;

    (void)state;
    yard_init(&yard);
    assert_ok(store_find_resource(yard.db, "/nowhere", &found, &e), &e);
    assert_null(found);
    assert_ok(store_find_resource_by_id(yard.db, 7, &found, &e), &e);
    assert_null(found);
    assert_ok(store_find_account(yard.db, "nobody", &found, &e), &e);
    assert_null(found);
    yard_done(&yard);
}

static void a_key_and_an_account_name_are_unique(void **state)
{
    struct yard yard;

    (void)state;
    yard_init(&yard);
    {
        autoptr(resource) one = yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "one", NULL);
        autoptr(resource) two = yard_add(&yard, RESOURCE_GROUP, SUB_B, NULL, "two", NULL);
        autoptr(resource) account =
            yard_add(&yard, RESOURCE_STORAGE_ACCOUNT, SUB_A, one, "store1", NULL);
        autoptr(resource) found = NULL;
        autoptr(resource) again = resource_new(RESOURCE_STORAGE_ACCOUNT);
        bool is_added = true;
        struct err e = {0};

        assert_ok(store_find_account(yard.db, "store1", &found, &e), &e);
        assert_same(found, account);
        again->arm_id = xasprintf("%s/STORE1-elsewhere", two->arm_id);
        again->name = xstrdup("store1");
        again->id = 50;
        again->parent_id = again->group_id = two->id;
        again->version = 50;
        assert_int_equal(store_add_resource(yard.db, again, &is_added, &e), -1);
        assert_int_equal(e.code, ERR_CONFLICT);
        again->kind = RESOURCE_GROUP;
        free(again->arm_id);
        again->arm_id = xasprintf("%s", one->arm_id);
        again->arm_id[strlen(again->arm_id) - 1] = 'E'; /* the same key in another case */
        assert_ok(store_add_resource(yard.db, again, &is_added, &e), &e);
        assert_false(is_added);
    }
    yard_done(&yard);
}

static void a_taken_key_is_not_added_and_nothing_changes(void **state)
{
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    {
        autoptr(resource) group = yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "ours", NULL);
        autoptr(resource) work = yard_add(&yard, RESOURCE_WORKSPACE, SUB_A, group, "w", NULL);
        autoptr(resource) again = resource_new(RESOURCE_WORKSPACE);
        bool is_added = true;

        again->arm_id = xstrdup(work->arm_id);
        again->name = xstrdup("W");
        again->id = 50;
        again->parent_id = again->group_id = group->id;
        again->version = 50;
        assert_ok(store_add_resource(yard.db, again, &is_added, &e), &e);
        assert_false(is_added);
        check_found(&yard, work);
        again->arm_id[strlen(again->arm_id) - 1] = 'x';
        assert_ok(store_add_resource(yard.db, again, &is_added, &e), &e);
        assert_true(is_added);
        check_found(&yard, again);
    }
    yard_done(&yard);
}

static void an_id_never_comes_again(void **state)
{
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    {
        autoptr(resource) group = yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "ours", NULL);
        autoptr(resource) old = yard_add(&yard, RESOURCE_WORKSPACE, SUB_A, group, "w", NULL);
        autoptr(resource) more = NULL;
        autoptr(resource) last = NULL;

        assert_ok(store_remove_tree(yard.db, old->id, &e), &e);
        more = yard_add(&yard, RESOURCE_WORKSPACE, SUB_A, group, "w", NULL);
        assert_int_equal(more->id, old->id + 1);
        /* Neither when an older one goes, nor when all are gone, nor after a start. */
        assert_ok(store_remove_tree(yard.db, group->id, &e), &e);
        assert_ok(store_remove_tree(yard.db, group->id, &e), &e);
        yard_reopen(&yard);
        last = yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "ours", NULL);
        assert_int_equal(last->id, more->id + 1);
        assert_int_equal(yard_scalar(yard.db, "SELECT group_id FROM resource"), last->id);
    }
    yard_done(&yard);
}

static void removing_a_tree_takes_all_below_it_and_its_secrets(void **state)
{
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    {
        autoptr(resource) goes = yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "goes", NULL);
        autoptr(resource) stays = yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "stays", NULL);
        autoptr(resource) work = yard_add(&yard, RESOURCE_WORKSPACE, SUB_A, goes, "work", NULL);
        autoptr(resource) account =
            yard_add(&yard, RESOURCE_STORAGE_ACCOUNT, SUB_A, goes, "gone1", NULL);
        autoptr(resource) kept =
            yard_add(&yard, RESOURCE_STORAGE_ACCOUNT, SUB_A, stays, "kept1", NULL);

        resource_free(yard_add(&yard, RESOURCE_EXPERIMENT, SUB_A, work, "try", NULL));
        assert_ok(store_put_secret(yard.db, account->id, "key1", "sealed", 1, &e), &e);
        assert_ok(store_put_secret(yard.db, kept->id, "key1", "sealed", 1, &e), &e);
        assert_ok(store_remove_tree(yard.db, goes->id, &e), &e);
        assert_int_equal(yard_scalar(yard.db, "SELECT count(*) FROM resource"), 2);
        assert_int_equal(yard_scalar(yard.db, "SELECT count(*) FROM secret"), 1);
        check_found(&yard, stays);
        check_found(&yard, kept);
        assert_ok(store_remove_tree(yard.db, goes->id, &e), &e); /* again: nothing to do */
        assert_int_equal(yard_scalar(yard.db, "SELECT count(*) FROM resource"), 2);
    }
    yard_done(&yard);
}

static int64_t last_version(struct yard *yard)
{
    struct err e = {0};
    int64_t version = -1;

    assert_ok(store_last_version(yard->db, &version, &e), &e);
    return version;
}

static void the_highest_version_outlives_its_resource(void **state)
{
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    assert_int_equal(last_version(&yard), 0);
    {
        autoptr(resource) one = yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "one", NULL);
        autoptr(resource) two = yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "two", NULL);

        assert_int_equal(last_version(&yard), 2);
        assert_ok(store_remove_tree(yard.db, two->id, &e), &e);
        assert_int_equal(last_version(&yard), 2);
        assert_ok(store_remove_tree(yard.db, one->id, &e), &e);
        assert_int_equal(last_version(&yard), 2);
    }
    yard_reopen(&yard);
    assert_int_equal(last_version(&yard), 2);
    yard_done(&yard);
}

/* --- listing --- */

/* Two subscriptions with much in them.  Of SUB_A's id, SHORT's is the beginning. */
#define SHORT "/subscriptions/1111"

static void fill(struct yard *yard)
{
    static const struct {
        const char *subscription, *group, *tags;
    } groups[] = {
        {SUB_A, "ours", "{\"team\": \"red\", \"Stage\": \"test\"}"},
        {SUB_A, "ours-too", "{\"team\": \"blue\"}"},
        {SUB_B, "ours", NULL},
        {SHORT, "ours", "{\"TEAM\": \"red\"}"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        const char *sub = groups[i].subscription;
        auto_free char *account = xasprintf("account%zu", i);
        autoptr(resource) group =
            yard_add(yard, RESOURCE_GROUP, sub, NULL, groups[i].group, groups[i].tags);
        autoptr(resource) w1 =
            yard_add(yard, RESOURCE_WORKSPACE, sub, group, "W1", groups[i].tags);

        resource_free(yard_add(yard, RESOURCE_WORKSPACE, sub, group, "w2", "{}"));
        resource_free(yard_add(yard, RESOURCE_EXPERIMENT, sub, w1, "e1", NULL));
        resource_free(yard_add(yard, RESOURCE_EXPERIMENT, sub, w1, "w1", NULL));
        resource_free(yard_add(yard, RESOURCE_STORAGE_ACCOUNT, sub, group, account, NULL));
    }
}

/* The rows of a listing as "id id id", with "+" when there are more.  Ids are 1 to 24, six for
 * each group: the group, W1, w2, e1, w1, the account. */
static const struct listing {
    struct store_filter filter;
    const char *wanted;
} listings[] = {
    {{.kind = RESOURCE_GROUP, .most = 99}, "1 7 13 19"},
    {{.kind = RESOURCE_GROUP, .most = 99, .key_prefix = SUB_A}, "1 7"},
    {{.kind = RESOURCE_GROUP, .most = 99, .key_prefix = SUB_B}, "13"},
    {{.kind = RESOURCE_GROUP, .most = 99, .key_prefix = SHORT}, "19"},
    {{.kind = RESOURCE_GROUP, .most = 99, .key_prefix = "/subscriptions/3"}, ""},
    /* The next character of SUB_A's id is less than '/', of SHORT's more than it. */
    {{.kind = RESOURCE_GROUP, .most = 99, .key_prefix = "/subscriptions/11111111"}, ""},
    {{.kind = -1, .most = 99, .key_prefix = "/subscriptions/11111111"}, ""},
    {{.kind = RESOURCE_GROUP,
      .most = 99,
      .key_prefix = "/subscriptions/11111111",
      .group_key = SUB_A "/resourcegroups/ours"},
     ""},
    {{.kind = RESOURCE_GROUP, .most = 2}, "1 7 +"},
    {{.kind = RESOURCE_GROUP, .most = 4}, "1 7 13 19"},
    {{.kind = RESOURCE_GROUP, .most = 2, .after_id = 7}, "13 19"},
    {{.kind = RESOURCE_GROUP, .most = 1, .after_id = 7}, "13 +"},
    {{.kind = RESOURCE_GROUP, .most = 1, .after_id = 19}, ""},
    {{.kind = RESOURCE_WORKSPACE, .most = 99, .key_prefix = SUB_A}, "2 3 8 9"},
    {{.kind = RESOURCE_WORKSPACE, .most = 99, .group_key = SUB_A "/resourcegroups/ours"},
     "2 3"},
    {{.kind = RESOURCE_WORKSPACE,
      .most = 99,
      .key_prefix = SUB_B,
      .group_key = SUB_A "/resourcegroups/ours"},
     ""},
    {{.kind = RESOURCE_GROUP, .most = 99, .group_key = SUB_A "/resourcegroups/ours"}, "1"},
    {{.kind = RESOURCE_STORAGE_ACCOUNT, .most = 99}, "6 12 18 24"},
    {{.kind = -1, .most = 99, .key_prefix = SUB_B}, "14 15 16 17 18"},
    {{.kind = -1, .most = 99, .key_prefix = SHORT}, "20 21 22 23 24"},
    {{.kind = -1, .most = 3, .key_prefix = SUB_B}, "14 15 16 +"},
    {{.kind = -1, .most = 3, .key_prefix = SUB_B, .after_id = 16}, "17 18"},
    {{.kind = -1, .most = 99, .group_key = SUB_A "/resourcegroups/ours"}, "2 3 4 5 6"},
    {{.kind = -1, .most = 99, .group_key = SUB_A "/resourcegroups/our"}, ""},
    {{.kind = RESOURCE_EXPERIMENT, .most = 99, .parent_id = 2}, "4 5"},
    {{.kind = RESOURCE_EXPERIMENT, .most = 1, .parent_id = 2}, "4 +"},
    {{.kind = RESOURCE_EXPERIMENT, .most = 1, .parent_id = 2, .after_id = 4}, "5"},
    {{.kind = RESOURCE_EXPERIMENT, .most = 99, .parent_id = 3}, ""},
    {{.kind = RESOURCE_WORKSPACE, .most = 99, .parent_id = 1}, "2 3"},
    {{.kind = RESOURCE_WORKSPACE,
      .most = 99,
      .parent_id = 1,
      .group_key = SUB_A "/resourcegroups/ours-too"},
     ""},
    {{.kind = RESOURCE_GROUP, .most = 99, .tag = "team"}, "1 7 19"},
    {{.kind = RESOURCE_GROUP, .most = 99, .tag = "TEAM", .tag_value = "red"}, "1 19"},
    {{.kind = RESOURCE_GROUP, .most = 99, .tag = "team", .tag_value = "Red"}, ""},
    {{.kind = RESOURCE_GROUP, .most = 99, .tag = "stage", .tag_value = "test"}, "1"},
    {{.kind = RESOURCE_GROUP, .most = 99, .tag = "tea"}, ""},
    {{.kind = RESOURCE_GROUP, .most = 1, .tag = "team", .key_prefix = SUB_A}, "1 +"},
    {{.kind = -1, .most = 99, .tag = "team", .tag_value = "blue"}, "8"},
    {{.kind = -1, .most = 99, .tag = "' OR 1=1 --"}, ""},
    {{.kind = RESOURCE_WORKSPACE, .most = 99, .parent_id = 1, .tag = "team"}, "2"},
    {{.kind = -1, .most = 99, .name = "w1", .key_prefix = SUB_A}, "2 5 8 11"},
    {{.kind = RESOURCE_WORKSPACE, .most = 99, .name = "W1", .key_prefix = SUB_A}, "2 8"},
    {{.kind = RESOURCE_GROUP, .most = 99, .name = "ours"}, "1 13 19"},
};

static char *list(struct yard *yard, const struct store_filter *filter)
{
    auto_resource_list rows = {0};
    auto_str out = {0};
    struct err e = {0};

    assert_ok(store_list_resources(yard->db, filter, &rows, &e), &e);
    for (size_t i = 0; i < rows.count; i++)
        str_addf(&out, "%s%d", i ? " " : "", (int)rows.items[i]->id);
    if (rows.more)
        str_add(&out, " +");
    return str_take(&out);
}

static void listings_have_what_their_filter_says(void **state)
{
    struct yard yard;

    (void)state;
    yard_init(&yard);
    fill(&yard);
    for (size_t i = 0; i < ARRAY_SIZE(listings); i++) {
        auto_free char *got = list(&yard, &listings[i].filter);

        if (!str_equal(got, listings[i].wanted))
            fail_msg("listing %zu: expected \"%s\", got \"%s\"", i, listings[i].wanted, got);
    }
    yard_done(&yard);
}

static void pages_of_any_size_make_up_the_whole(void **state)
{
    struct yard yard;

    (void)state;
    yard_init(&yard);
    fill(&yard);
    for (size_t most = 1; most <= 21; most++) {
        struct store_filter filter = {.kind = -1, .most = most};
        int64_t seen = 0;
        bool more = true;

        while (more) {
            auto_resource_list rows = {0};
            struct err e = {0};

            assert_ok(store_list_resources(yard.db, &filter, &rows, &e), &e);
            assert_true(rows.count > 0 && rows.count <= most);
            seen += (int64_t)rows.count;
            filter.after_id = rows.items[rows.count - 1]->id;
            more = rows.more;
        }
        assert_int_equal(seen, 20);
    }
    yard_done(&yard);
}

static void add_line(const char *id, void *context)
{
    str_addf(context, "%.4s ", id);
}

static void subscriptions_are_those_that_have_groups(void **state)
{
    auto_str all = {0}, one = {0}, none = {0};
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    resource_free(yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "one", NULL));
    resource_free(yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "two", NULL));
    resource_free(yard_add(&yard, RESOURCE_GROUP, SUB_B, NULL, "one", NULL));

    assert_ok(store_each_subscription(yard.db, "", add_line, &all, &e), &e);
    assert_string_equal(str_text(&all), "1111 2222 ");
    assert_ok(store_each_subscription(yard.db, SUB_B "/resourcegroups/one", add_line, &one, &e),
              &e);
    assert_string_equal(str_text(&one), "2222 ");
    assert_ok(
        store_each_subscription(yard.db, SUB_B "/resourcegroups/two", add_line, &none, &e), &e);
    assert_int_equal(none.len, 0);
    yard_done(&yard);
}

static void a_row_of_an_unknown_kind_or_broken_json_is_an_error(void **state)
{
    static const char *const damages[] = {
        "UPDATE resource SET kind = 'star'",
        "UPDATE resource SET properties = '{'",
        "UPDATE resource SET tags = 'x'",
    };
    struct yard yard;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
        struct resource *found = NULL;
        struct err e = {0};

        yard_init(&yard);
        resource_free(yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "ours", NULL));
        assert_ok(db_script(yard.db, damages[i], &e), &e);
        assert_int_equal(store_find_resource_by_id(yard.db, 1, &found, &e), -1);
        assert_null(found);
        assert_true(e.msg[0]);
        yard_done(&yard);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resource_comes_back_as_it_was_put),
        cmocka_unit_test(an_update_changes_what_may_change),
        cmocka_unit_test(what_is_not_there_is_null_and_no_error),
        cmocka_unit_test(a_key_and_an_account_name_are_unique),
        cmocka_unit_test(a_taken_key_is_not_added_and_nothing_changes),
        cmocka_unit_test(an_id_never_comes_again),
        cmocka_unit_test(removing_a_tree_takes_all_below_it_and_its_secrets),
        cmocka_unit_test(the_highest_version_outlives_its_resource),
        cmocka_unit_test(listings_have_what_their_filter_says),
        cmocka_unit_test(pages_of_any_size_make_up_the_whole),
        cmocka_unit_test(subscriptions_are_those_that_have_groups),
        cmocka_unit_test(a_row_of_an_unknown_kind_or_broken_json_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
