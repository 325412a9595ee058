/* SPDX-License-Identifier: Apache-2.0 */
#include "store/test/yard.h"

/* The last letter of the name makes its client id and hash its own. */
static void put(struct yard *yard,
                const char *name,
                enum access_role role,
                const char *scope,
                int64_t expires_ms)
{
    autoptr(principal) p = xcalloc(1, sizeof(*p));
    struct err e = {0};

    p->name = xstrdup(name);
    p->client_id = xasprintf("client of %s", name);
    p->token_hash = xasprintf("hash of %s", name);
    p->scope = xstrdup(scope);
    p->role = role;
    p->created_ms = 5;
    p->expires_ms = expires_ms;
    assert_ok(store_put_principal(yard->db, p, &e), &e);
}

static void a_principal_comes_back_and_is_replaced_by_its_namesake(void **state)
{
    autoptr(principal) first = NULL;
    autoptr(principal) second = NULL;
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    put(&yard, "ann", ACCESS_READER, "", 0);
    assert_ok(store_find_principal(yard.db, "ann", &first, &e), &e);
    assert_string_equal(first->client_id, "client of ann");
    assert_string_equal(first->token_hash, "hash of ann");
    assert_string_equal(first->scope, "");
    assert_int_equal(first->role, ACCESS_READER);
    assert_int_equal(first->created_ms, 5);
    assert_int_equal(first->expires_ms, 0);
    put(&yard, "ann", ACCESS_CONTRIBUTOR, "the group", 99);
    assert_ok(store_find_principal(yard.db, "ann", &second, &e), &e);
    assert_int_equal(second->id, first->id);
    assert_int_equal(second->role, ACCESS_CONTRIBUTOR);
    assert_string_equal(second->scope, "the group");
    assert_int_equal(second->expires_ms, 99);
    yard_done(&yard);
}

static void add_name(const struct principal *p, void *context)
{
    str_addf(context, "%s:%s ", p->name, access_role_name(p->role));
}

static char *names(struct yard *yard)
{
    auto_str out = {0};
    struct err e = {0};

    assert_ok(store_each_principal(yard->db, add_name, &out, &e), &e);
    return str_take(&out);
}

static void they_are_listed_in_order_and_removed_by_name(void **state)
{
    auto_free char *all = NULL, *left = NULL;
    struct principal *gone = (struct principal *)&gone;
    struct yard yard;
    struct err e = {0};
    bool found = false;

    (void)state;
    yard_init(&yard);
    put(&yard, "zoe", ACCESS_OWNER, "", 0);
    put(&yard, "ann", ACCESS_READER, "", 0);
    put(&yard, "bob", ACCESS_CONTRIBUTOR, "", 0);
    put(&yard, "zoe", ACCESS_READER, "", 0); /* keeps her place */
    all = names(&yard);
    assert_string_equal(all, "zoe:reader ann:reader bob:contributor ");
    assert_ok(store_remove_principal(yard.db, "ann", &found, &e), &e);
    assert_true(found);
    assert_ok(store_remove_principal(yard.db, "ann", &found, &e), &e);
    assert_false(found);
    left = names(&yard);
    assert_string_equal(left, "zoe:reader bob:contributor ");
    assert_ok(store_find_principal(yard.db, "ann", &gone, &e), &e);
    assert_null(gone);
    yard_done(&yard);
}

static void those_of_a_group_are_removed_together(void **state)
{
    auto_free char *left = NULL;
    struct yard yard;
    struct err e = {0};
    bool found = false;

    (void)state;
    yard_init(&yard);
    put(&yard, "owner", ACCESS_OWNER, "", 0);
    put(&yard, "ann", ACCESS_READER, "ours", 0);
    put(&yard, "bob", ACCESS_READER, "ours-too", 0);
    put(&yard, "cas", ACCESS_READER, "ours", 0);
    assert_ok(store_remove_principals_of(yard.db, "ours", &found, &e), &e);
    assert_true(found);
    left = names(&yard);
    assert_string_equal(left, "owner:owner bob:reader ");
    assert_ok(store_remove_principals_of(yard.db, "ours", &found, &e), &e);
    assert_false(found);
    yard_done(&yard);
}

static void two_cannot_have_the_same_token(void **state)
{
    autoptr(principal) p = xcalloc(1, sizeof(*p));
    struct yard yard;
    struct err e = {0};

    (void)state;
    yard_init(&yard);
    put(&yard, "ann", ACCESS_READER, "", 0);
    p->name = xstrdup("bob");
    p->client_id = xstrdup("client of bob");
    p->token_hash = xstrdup("hash of ann");
    p->scope = xstrdup("");
    assert_int_equal(store_put_principal(yard.db, p, &e), -1);
    assert_int_equal(e.code, ERR_CONFLICT);
    yard_done(&yard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_principal_comes_back_and_is_replaced_by_its_namesake),
        cmocka_unit_test(they_are_listed_in_order_and_removed_by_name),
        cmocka_unit_test(those_of_a_group_are_removed_together),
        cmocka_unit_test(two_cannot_have_the_same_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
