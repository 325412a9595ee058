/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* What is understood, and as what. */
static const struct {
    const char *text;
    struct odata_filter wanted;
} good[] = {
    {"tagName eq 'x'", {.tag = "x"}},
    {"tagName eq 'x' and tagValue eq 'y'", {.tag = "x", .tag_value = "y"}},
    {"tagValue eq 'y' and tagName eq 'x'", {.tag = "x", .tag_value = "y"}},
    {"TAGNAME EQ 'x' AND TagValue Eq 'y'", {.tag = "x", .tag_value = "y"}},
    {"resourceType eq 'Microsoft.BatchAI/workspaces'",
     {.type = "Microsoft.BatchAI/workspaces"}},
    {"name eq 'n'", {.name = "n"}},
    {"name eq 'n' and resourceType eq 't'", {.type = "t", .name = "n"}},
    {"  name\teq   'n'  ", {.name = "n"}},
    {"name eq'n'", {.name = "n"}},
    {"name eq 'it''s'", {.name = "it's"}},
    {"name eq ''''", {.name = "'"}},
    {"name eq ''", {.name = ""}},
    {"name eq 'a and b eq ''c'''", {.name = "a and b eq 'c'"}},
    {"name eq '\xf0\x9f\x9a\x82'", {.name = "\xf0\x9f\x9a\x82"}},
    {"name eq 'a' and name eq 'b'", {.name = "b"}},
};

/* A copy that ends where its memory ends, so that a sanitizer sees a step too far. */
static int parse(struct arena *arena, const char *text, struct odata_filter *ret, struct err *e)
{
    auto_free char *exact = xstrdup(text);

    return odata_parse(arena, exact, ret, e);
}

static void comparisons_joined_by_and_are_understood(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        autoptr(arena) arena = arena_new();
        struct odata_filter got = {0};
        struct err e = {0};

        if (parse(arena, good[i].text, &got, &e) < 0)
            fail_msg("%s", e.msg);
        if (!str_equal(got.tag, good[i].wanted.tag) ||
            !str_equal(got.tag_value, good[i].wanted.tag_value) ||
            !str_equal(got.type, good[i].wanted.type) ||
            !str_equal(got.name, good[i].wanted.name))
            fail_msg("%s: understood as something else", good[i].text);
    }
}

static void anything_else_is_refused_and_leaves_the_result_alone(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "name",
        "name ",
        "name eq",
        "name eq ",
        "name eq n",
        "name eq '",
        "name eq 'n",
        "name eq 'n''",
        "name eq \"n\"",
        "name eq 'n' and",
        "name eq 'n' and ",
        "name eq 'n' or name eq 'm'",
        "name eq 'n' name eq 'm'",
        "name eq 'n';",
        "name ne 'n'",
        "name eqs 'n'",
        "names eq 'n'",
        "nameeq 'n'",
        "and name eq 'n'",
        "tagValue eq 'y'", /* of which tag? */
        "startswith(tagName, 'x')",
        "colour eq 'red'",
        "'n' eq name",
        "(name eq 'n')",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        autoptr(arena) arena = arena_new();
        struct odata_filter got = {.name = "untouched"};
        struct err e = {0};

        if (parse(arena, bad[i], &got, &e) == 0)
            fail_msg("understood: %s", bad[i]);
        assert_int_equal(e.code, ERR_INVALID);
        assert_string_equal(e.target, "$filter");
        assert_string_equal(err_reason_of(&e), "InvalidFilterInQueryString");
        assert_string_equal(got.name, "untouched");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparisons_joined_by_and_are_understood),
        cmocka_unit_test(anything_else_is_refused_and_leaves_the_result_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
