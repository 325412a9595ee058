/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "control/test/desk.h"

#define STORE OURS "/providers/Microsoft.Storage/storageAccounts/store1"

static void fill(struct desk *d)
{
    desk_init(d);
    desk_start(d);
    have(d, RESOURCE_GROUP, SUB_A, "ours");
    have(d, RESOURCE_STORAGE_ACCOUNT, OURS, "store1");
    have(d, RESOURCE_STORAGE_ACCOUNT, OURS, "store2");
}

/* The key of an account as its holder sees it; caller frees. */
static char *key_of(struct desk *d, const char *account, const char *name)
{
    auto_reader reader = {0};
    autoptr(resource) r = NULL;
    auto_str key = {0};
    int64_t created_ms;
    struct err e = {0};

    assert_ok(store_pool_take(d->pool, &reader, &e), &e);
    assert_ok(store_find_account(reader.db, account, &r, &e), &e);
    assert_non_null(r);
    assert_ok(vault_get(&d->vault, reader.db, r->id, name, &key, &created_ms, &e), &e);
    assert_true(created_ms > 0);
    return str_take(&key);
}

static void an_account_has_two_keys_of_its_own(void **state)
{
    static const char *const accounts[] = {"store1", "store2"};
    char *all[4];
    struct desk d;

    (void)state;
    fill(&d);
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        auto_str raw = {0};

        all[i] = key_of(&d, accounts[i / 2], i % 2 ? "key2" : "key1");
        assert_int_equal(text_base64_decode(&raw, all[i], NULL), 0);
        assert_int_equal(raw.len, 64);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(all[i], all[j]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        free(all[i]);
    desk_done(&d);
}

static void keys_are_sealed_in_the_database(void **state)
{
    auto_free char *key = NULL;
    auto_str found = {0};
    struct desk d;

    (void)state;
    fill(&d);
    key = key_of(&d, "store1", "key1");
    {
        auto_reader reader = {0};
        auto_query q = {0};

        assert_int_equal(store_pool_take(d.pool, &reader, NULL), 0);
        assert_int_equal(
            db_select(reader.db, &q, NULL,
                      "SELECT sealed FROM secret UNION SELECT properties FROM resource", ""),
            0);
        while (db_next(&q, NULL) > 0)
            str_add(&found, db_text(&q, 0));
    }
    assert_null(strstr(str_text(&found), key));
    desk_done(&d);
}

static void rotating_changes_one_key_and_no_other(void **state)
{
    static const char *const names[] = {"key1", "key2"};
    struct desk d;

    (void)state;
    fill(&d);
    for (int i = 0; i < 2; i++) {
        auto_free char *before = key_of(&d, "store1", names[i]);
        auto_free char *other_before = key_of(&d, "store1", names[!i]);
        auto_free char *theirs_before = key_of(&d, "store2", names[i]);
        auto_free char *after = NULL, *other_after = NULL, *theirs_after = NULL;
        auto_change change = ask("Rotate");

        control_rotate_key(d.control, change, STORE, names[i]);
        expect_ok(change);
        assert_string_equal(change->resource->name, "store1");
        after = key_of(&d, "store1", names[i]);
        other_after = key_of(&d, "store1", names[!i]);
        theirs_after = key_of(&d, "store2", names[i]);
        assert_string_not_equal(before, after);
        assert_string_equal(other_before, other_after);
        assert_string_equal(theirs_before, theirs_after);
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM secret"), 4);
    desk_done(&d);
}

static void a_put_of_an_account_keeps_its_keys(void **state)
{
    auto_free char *before = NULL, *after = NULL;
    struct desk d;

    (void)state;
    fill(&d);
    before = key_of(&d, "store1", "key1");
    have(&d, RESOURCE_STORAGE_ACCOUNT, OURS, "store1");
    after = key_of(&d, "store1", "key1");
    assert_string_equal(before, after);
    desk_done(&d);
}

static void rotating_what_is_missing_or_going_is_refused(void **state)
{
    struct desk d;
    struct err e = {0};

    (void)state;
    fill(&d);
    {
        auto_change change = ask("Rotate");

        control_rotate_key(d.control, change, STORE "x", "key1");
        expect_refused(change, ERR_NOT_FOUND, "ResourceNotFound");
    }
    desk_stop(&d);
    assert_ok(db_script(d.yard.db, "UPDATE resource SET state = 2 WHERE name = 'ours'", &e),
              &e);
    desk_start(&d);
    {
        auto_free char *before = key_of(&d, "store1", "key1"), *after = NULL;
        auto_change change = ask("Rotate");

        control_rotate_key(d.control, change, STORE, "key1");
        expect_refused(change, ERR_CONFLICT, "ResourceGroupBeingDeleted");
        after = key_of(&d, "store1", "key1");
        assert_string_equal(before, after);
    }
    desk_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_account_has_two_keys_of_its_own),
        cmocka_unit_test(keys_are_sealed_in_the_database),
        cmocka_unit_test(rotating_changes_one_key_and_no_other),
        cmocka_unit_test(a_put_of_an_account_keeps_its_keys),
        cmocka_unit_test(rotating_what_is_missing_or_going_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
