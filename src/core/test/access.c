/* SPDX-License-Identifier: Apache-2.0 */
#include "core/access.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define OURS   "/subscriptions/s/resourcegroups/ours"
#define THEIRS "/subscriptions/s/resourcegroups/theirs"
#define LONGER OURS "-too" /* a key that ours is the beginning of */

/* What each role may do: one letter per permission, in their order: public, read, write,
 * secrets, admin. A capital is granted.  The places are: what belongs to no group, our group,
 * another's. */
static const struct {
    enum access_role role;
    const char *scope;
    const char *in_none, *in_ours, *in_theirs;
} matrix[] = {
    {ACCESS_READER, "", "PRwsa", "PRwsa", "PRwsa"},
    {ACCESS_CONTRIBUTOR, "", "PRWSa", "PRWSa", "PRWSa"},
    {ACCESS_OWNER, "", "PRWSA", "PRWSA", "PRWSA"},
    {ACCESS_READER, OURS, "PRwsa", "PRwsa", "Prwsa"},
    {ACCESS_CONTRIBUTOR, OURS, "PRwsa", "PRWSa", "Prwsa"},
    {ACCESS_OWNER, OURS, "PRwsa", "PRWSa", "Prwsa"},
};

static void
check_place(enum access_role role, const char *scope, const char *group, const char *letters)
{
    assert_int_equal(strlen(letters), ACCESS_PERMISSIONS);
    for (int i = 0; i < ACCESS_PERMISSIONS; i++) {
        bool granted = letters[i] >= 'A' && letters[i] <= 'Z';

        if (access_allows(role, scope, (enum access_permission)i, group) != granted)
            fail_msg("%s of \"%s\" on \"%s\": %s should be %s", access_role_name(role), scope,
                     group, access_permission_name((enum access_permission)i),
                     granted ? "granted" : "refused");
    }
}

static void roles_have_what_the_matrix_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(matrix); i++) {
        check_place(matrix[i].role, matrix[i].scope, "", matrix[i].in_none);
        check_place(matrix[i].role, matrix[i].scope, OURS, matrix[i].in_ours);
        check_place(matrix[i].role, matrix[i].scope, THEIRS, matrix[i].in_theirs);
        check_place(matrix[i].role, matrix[i].scope, LONGER, matrix[i].in_theirs);
    }
}

static void the_matrix_has_every_role_at_both_scopes(void **state)
{
    (void)state;
    assert_int_equal(ARRAY_SIZE(matrix), 2 * ACCESS_ROLES);
}

static void a_scope_sees_its_own_group_alone(void **state)
{
    (void)state;
    assert_true(access_sees("", OURS));
    assert_true(access_sees("", ""));
    assert_true(access_sees(OURS, OURS));
    assert_false(access_sees(OURS, THEIRS));
    assert_false(access_sees(OURS, LONGER));
    assert_false(access_sees(LONGER, OURS));
    assert_false(access_sees(OURS, ""));
}

static void role_names_are_read_back_without_case(void **state)
{
    static const struct {
        const char *text;
        enum access_role role;
    } rows[] = {
        {"reader", ACCESS_READER},
        {"Contributor", ACCESS_CONTRIBUTOR},
        {"OWNER", ACCESS_OWNER},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        enum access_role role = ACCESS_ROLES;

        assert_int_equal(access_role_parse(rows[i].text, &role, NULL), 0);
        assert_int_equal(role, rows[i].role);
        assert_int_equal(access_role_parse(access_role_name(role), &role, NULL), 0);
        assert_int_equal(role, rows[i].role);
    }
}

static void an_unknown_role_is_refused_and_named(void **state)
{
    static const char *const rows[] = {"", "root", "readers", "owner "};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        enum access_role role = ACCESS_ROLES;
        struct err e = {0};

        assert_int_equal(access_role_parse(rows[i], &role, &e), -1);
        assert_int_equal(role, ACCESS_ROLES);
        assert_int_equal(e.code, ERR_INVALID);
        assert_string_equal(e.target, "role");
        assert_non_null(strstr(e.msg, rows[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles_have_what_the_matrix_says),
        cmocka_unit_test(the_matrix_has_every_role_at_both_scopes),
        cmocka_unit_test(a_scope_sees_its_own_group_alone),
        cmocka_unit_test(role_names_are_read_back_without_case),
        cmocka_unit_test(an_unknown_role_is_refused_and_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
