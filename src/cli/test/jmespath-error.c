/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/jmespath-internal.h"
#include "jmespath-cases.h"

static void the_expression_is_shown_whole_when_short(void **state)
{
    struct err e = {0};

    (void)state;
    assert_int_equal(jmes_fail(&e, "a\nb \xc3\xbc c", 7, jmes_syntax, "bad %d", 7), -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_string_equal(e.reason, "syntax");
    assert_string_equal(e.msg, "bad 7 at position 7 of \"a b \xc3\xbc c\"");
}

/* 200 two-byte characters, with the fault at each of them: never half a character. */
static void a_long_expression_is_shown_around_the_fault(void **state)
{
    auto_str expression = {0};

    (void)state;
    for (int i = 0; i < 200; i++)
        str_add(&expression, "\xc3\xbc");
    for (size_t at = 0; at <= 200; at++) {
        struct err e = {0};
        auto_free char *start =
            xasprintf("bad at position %zu of \"%s\xc3\xbc", at + 1, at > 40 ? "..." : "");

        jmes_fail(&e, str_text(&expression), 2 * at, jmes_syntax, "bad");
        assert_true(str_starts(e.msg, start));
        assert_true(str_ends(e.msg, at < 160 ? "\xc3\xbc...\"" : "\xc3\xbc\""));
        assert_true(strlen(e.msg) < 210);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_expression_is_shown_whole_when_short),
        cmocka_unit_test(a_long_expression_is_shown_around_the_fault),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
