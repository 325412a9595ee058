/* SPDX-License-Identifier: Apache-2.0 */
#include "control/test/desk.h"

static void fill(struct desk *d)
{
    desk_init(d);
    desk_start(d);
    have(d, RESOURCE_GROUP, SUB_A, "ours");
    have(d, RESOURCE_WORKSPACE, OURS, "work");
}

/* Make a token; its text is the caller's. */
static char *make(struct desk *d, struct control_principal *p)
{
    auto_change change = ask("Token");

    control_put_principal(d->control, change, p);
    expect_ok(change);
    assert_true(crypt_is_uuid(p->client_id));
    return take_ptr(&change->secret);
}

static bool knows(struct desk *d, const char *token, struct identity *ret_who)
{
    char hash[2 * CRYPT_SHA256_BYTES + 1];

    principals_hash_token(token, hash);
    return principals_by_token(control_principals(d->control), hash, ret_who);
}

static void a_token_is_known_when_it_is_told(void **state)
{
    struct control_principal p = {.name = "ann", .role = ACCESS_READER, .group_id = OURS};
    auto_free char *token = NULL;
    struct identity who;
    struct desk d;

    (void)state;
    fill(&d);
    token = make(&d, &p);
    assert_true(strlen(token) >= 43); /* 32 bytes of base64 */
    assert_true(knows(&d, token, &who));
    assert_string_equal(who.name, "ann");
    assert_string_equal(who.scope, SUB_A "/resourcegroups/ours");
    assert_int_equal(who.role, ACCESS_READER);
    assert_int_equal(who.expires_ms, 0);
    assert_true(crypt_is_uuid(who.client_id));
    assert_true(principals_by_client(control_principals(d.control), who.client_id, &who));
    desk_stop(&d);
    desk_start(&d);
    assert_true(knows(&d, token, &who)); /* and after a start */
    desk_done(&d);
}

static void a_token_is_not_kept_itself(void **state)
{
    struct control_principal p = {.name = "ann", .role = ACCESS_READER};
    auto_free char *token = NULL;
    struct desk d;

    (void)state;
    fill(&d);
    token = make(&d, &p);
    {
        auto_reader reader = {0};
        autoptr(principal) kept = NULL;

        assert_int_equal(store_pool_take(d.pool, &reader, NULL), 0);
        assert_int_equal(store_find_principal(reader.db, "ann", &kept, NULL), 0);
        assert_string_not_equal(kept->token_hash, token);
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM event WHERE detail IS NOT NULL"), 0);
    desk_done(&d);
}

static void a_namesake_ends_the_old_token(void **state)
{
    struct control_principal first = {.name = "ann", .role = ACCESS_OWNER};
    struct control_principal second = {
        .name = "ann", .role = ACCESS_READER, .lifetime_ms = 60000};
    auto_free char *old = NULL, *new = NULL;
    struct identity who;
    struct desk d;

    (void)state;
    fill(&d);
    old = make(&d, &first);
    new = make(&d, &second);
    assert_false(knows(&d, old, &who));
    assert_true(knows(&d, new, &who));
    assert_int_equal(who.role, ACCESS_READER);
    assert_int_equal(who.expires_ms, second.expires_ms);
    assert_true(second.expires_ms > 60000);
    desk_done(&d);
}

static void a_removed_token_is_unknown_when_that_is_said(void **state)
{
    struct control_principal p = {.name = "ann", .role = ACCESS_READER};
    auto_free char *token = NULL;
    struct identity who;
    struct desk d;

    (void)state;
    fill(&d);
    token = make(&d, &p);
    for (int i = 0; i < 2; i++) {
        auto_change change = ask("Remove");

        control_remove_principal(d.control, change, "ann");
        if (i == 0)
            expect_ok(change);
        else
            expect_refused(change, ERR_NOT_FOUND, NULL);
        assert_false(knows(&d, token, &who));
    }
    desk_done(&d);
}

static void nobody_removes_their_own(void **state)
{
    struct control_principal p = {.name = "tester", .role = ACCESS_OWNER};
    auto_free char *token = NULL;
    struct identity who;
    struct desk d;

    (void)state;
    fill(&d);
    token = make(&d, &p);
    {
        auto_change change = ask("Remove");

        control_remove_principal(d.control, change, "tester");
        expect_refused(change, ERR_CONFLICT, NULL);
    }
    assert_true(knows(&d, token, &who));
    desk_done(&d);
}

static void a_scope_is_a_group_that_is_there(void **state)
{
    static const char *const ids[] = {
        SUB_A "/resourceGroups/none",
        OURS "/providers/Microsoft.BatchAI/workspaces/work",
        SUB_A,
        "nonsense",
    };
    struct desk d;

    (void)state;
    fill(&d);
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        struct control_principal p = {.name = "ann", .group_id = ids[i]};
        auto_change change = ask("Token");

        control_put_principal(d.control, change, &p);
        expect_refused(change, ERR_NOT_FOUND, "ResourceGroupNotFound");
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM principal"), 0);
    desk_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_known_when_it_is_told),
        cmocka_unit_test(a_token_is_not_kept_itself),
        cmocka_unit_test(a_namesake_ends_the_old_token),
        cmocka_unit_test(a_removed_token_is_unknown_when_that_is_said),
        cmocka_unit_test(nobody_removes_their_own),
        cmocka_unit_test(a_scope_is_a_group_that_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
