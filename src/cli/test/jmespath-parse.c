/* SPDX-License-Identifier: Apache-2.0 */
#include "jmespath-cases.h"

static void operators_bind_as_the_grammar_says(void **state)
{
    static const char yard[] =
        "{\"t\":true,\"f\":false,\"one\":1,\"two\":2,\"o\":{\"x\":[1,2]}}";
    const struct found table[] = {
        {"t || f && f", yard, "true"},
        {"(t || f) && f", yard, "false"},
        {"f && f || t", yard, "true"},
        {"!f && t", yard, "true"},
        {"!(f && t)", yard, "true"},
        {"!t || t", yard, "true"},
        {"!!t", yard, "true"},
        {"!o.x", yard, "false"},
        {"!one == f", yard, "true"},
        {"one < two && two > one", yard, "true"},
        {"one == two || t", yard, "true"},
        {"one == one == t", yard, "true"},
        {"f || o | x", yard, "[1,2]"},
        {"o.x | [0]", yard, "1"},
        {"o.x|[1]|@", yard, "2"},
        {"(o).x", yard, "[1,2]"},
        {"((((one))))", yard, "1"},
        {"o.x[0] || two", yard, "1"},
        {"[one, two | @]", yard, "[1,2]"},
        {"{a: one || two, b: !t}", yard, "{\"a\":1,\"b\":false}"},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void a_projection_takes_what_follows_up_to_a_weaker_operator(void **state)
{
    static const char cars[] = "[{\"a\":[[1,2],[3]]},{\"a\":[[4]]},{\"b\":5}]";
    static const struct found table[] = {
        {"[*].a[0]", cars, "[[1,2],[4]]"},
        {"[*].a | [0]", cars, "[[1,2],[3]]"},
        {"([*].a)[0]", cars, "[[1,2],[3]]"},
        {"[*].a[*][0]", cars, "[[1,3],[4]]"},
        {"[*].a[]", cars, "[[1,2],[3],[4]]"},
        {"[*].a[][]", cars, "[1,2,3,4]"},
        {"[*].a[][0]", cars, "[1,3,4]"},
        {"[].a[]|[0]", cars, "[1,2]"},
        {"[0:2].a[0]", cars, "[[1,2],[4]]"},
        {"[?a].a[0][0]", cars, "[1,4]"},
        {"[?a][]", cars, "[{\"a\":[[1,2],[3]]},{\"a\":[[4]]}]"},
        {"[*].*", cars, "[[[[1,2],[3]]],[[[4]]],[5]]"},
        {"[*].a == `1`", cars, "false"},
        {"[*].b || `2`", cars, "[5]"},
        {"[*].[b]", cars, "[[null],[null],[5]]"},
        {"[*][b]", cars, "[[null],[null],[5]]"},
        {"[*].{b: b}", cars, "[{\"b\":null},{\"b\":null},{\"b\":5}]"},
        {"[-1].*", cars, "[5]"},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void broken_expressions_are_refused_with_their_place(void **state)
{
    static const struct fault table[] = {
        {"", NULL, "syntax", "unexpected end (wanted an expression) at position 1 of \"\""},
        {"  ", NULL, "syntax", "unexpected end"},
        {"foo[*]]", NULL, "syntax", "unexpected \"]\" at position 7 of \"foo[*]]\""},
        {"a b", NULL, "syntax", "unexpected \"b\" at position 3 of \"a b\""},
        {"a \"b\"", NULL, "syntax", "unexpected \"b\" at position 3 of"},
        {"a.", NULL, "syntax", "unexpected end (wanted a name, \"*\", \"[\" or \"{\" after"},
        {".a", NULL, "syntax", "unexpected \".\" (wanted an expression) at position 1"},
        {"a..b", NULL, "syntax", "unexpected \".\" (wanted a name"},
        {"a.1", NULL, "syntax", "unexpected \"1\" (wanted a name"},
        {"a.'b'", NULL, "syntax", "unexpected \"'b'\" (wanted a name"},
        {"a.(b)", NULL, "syntax", "unexpected \"(\""},
        {"a[", NULL, "syntax", "unexpected end (wanted a number, \":\" or \"*\")"},
        {"a[b]", NULL, "syntax", "unexpected \"b\" (wanted a number"},
        {"a[0", NULL, "syntax", "unexpected end (wanted \"]\")"},
        {"a[0, 1]", NULL, "syntax", "unexpected \",\" (wanted \"]\")"},
        {"a[*", NULL, "syntax", "unexpected end (wanted \"]\")"},
        {"a[ ?b]", NULL, "syntax", "unexpected \"?\""},
        {"a[?b", NULL, "syntax", "unexpected end (wanted \"]\")"},
        {"a[?]", NULL, "syntax", "unexpected \"]\" (wanted an expression)"},
        {"a[1:2:3:4]", NULL, "syntax", "unexpected \":\" (wanted \"]\")"},
        {"a[1:b]", NULL, "syntax", "unexpected \"b\" (wanted \"]\")"},
        {"a[::0]", NULL, "invalid-value", "slice with step 0 at position 3 of \"a[::0]\""},
        {"[", NULL, "syntax", "unexpected end (wanted an expression)"},
        {"[ ]", NULL, "syntax", "unexpected \"]\" (wanted an expression)"},
        {"[a", NULL, "syntax", "unexpected end (wanted \",\" or \"]\")"},
        {"[a,]", NULL, "syntax", "unexpected \"]\" (wanted an expression)"},
        {"[a,,b]", NULL, "syntax", "unexpected \",\" (wanted an expression)"},
        {"a.[0]", NULL, "syntax", "unexpected \"0\" (wanted an expression)"},
        {"{}", NULL, "syntax", "unexpected \"}\" (wanted a key) at position 2"},
        {"{a}", NULL, "syntax", "unexpected \"}\" (wanted \":\")"},
        {"{a:}", NULL, "syntax", "unexpected \"}\" (wanted an expression)"},
        {"{a: b", NULL, "syntax", "unexpected end (wanted \",\" or \"}\")"},
        {"{a: b,}", NULL, "syntax", "unexpected \"}\" (wanted a key)"},
        {"{'a': b}", NULL, "syntax", "unexpected \"'a'\" (wanted a key)"},
        {"a{b: c}", NULL, "syntax", "unexpected \"{\" at position 2"},
        {"(a", NULL, "syntax", "unexpected end (wanted \")\")"},
        {"a)", NULL, "syntax", "unexpected \")\" at position 2"},
        {"()", NULL, "syntax", "unexpected \")\" (wanted an expression)"},
        {"!", NULL, "syntax", "unexpected end (wanted an expression)"},
        {"a ||", NULL, "syntax", "unexpected end"},
        {"a || && b", NULL, "syntax", "unexpected \"&&\" (wanted an expression)"},
        {"| a", NULL, "syntax", "unexpected \"|\" (wanted an expression)"},
        {"a ==", NULL, "syntax", "unexpected end"},
        {"a <> b", NULL, "syntax", "unexpected \">\" (wanted an expression)"},
        {"*a", NULL, "syntax", "unexpected \"a\" at position 2"},
        {"a[*]b", NULL, "syntax", "unexpected \"b\" at position 5"},
        {"a[*]*", NULL, "syntax", "unexpected \"*\" at position 5"},
        {"@(a)", NULL, "syntax", "unexpected \"(\" at position 2"},
        {"&a", NULL, "syntax", "unexpected \"&\" (wanted an expression)"},
        {"\"length\"(@)", NULL, "syntax", "unexpected \"(\" at position 9"},
        {"length(", NULL, "syntax", "unexpected end (wanted an expression)"},
        {"length(@", NULL, "syntax", "unexpected end (wanted \",\" or \")\")"},
        {"length(@,)", NULL, "syntax", "unexpected \")\" (wanted an expression)"},
        {"5", NULL, "syntax", "unexpected \"5\" (wanted an expression)"},
        {"'\xff'", NULL, "syntax", "the expression is not UTF-8"},
    };

    (void)state;
    check_faults(table, ARRAY_SIZE(table));
}

static char *repeat(const char *head, const char *text, size_t count, const char *tail)
{
    struct str out = {0};

    str_add(&out, head);
    for (size_t i = 0; i < count; i++)
        str_add(&out, text);
    str_add(&out, tail);
    return str_take(&out);
}

/* Each way to nest, taken to just below the limit and beyond it. */
static void depth_has_a_limit(void **state)
{
    static const struct {
        const char *head, *text;
        size_t good, bad;
    } table[] = {
        {"", "(", JMESPATH_MOST_DEPTH + 10, JMESPATH_MOST_DEPTH + 10},
        {"a", ".a", 400, 600},
        {"a", "|a", 400, 600},
        {"a", "||a", 400, 600},
        {"a", "[0]", 400, 600},
        {"a", "[*]", 400, 600},
        {"a", "[]", 200, 600},
        {"a", "[?a]", 400, 600},
        {"", "!", JMESPATH_MOST_DEPTH + 10, JMESPATH_MOST_DEPTH + 10},
        {"", "[", 30000, 30000},
        {"", "[?", 30000, 30000},
        {"", "{a:", 20000, 20000},
        {"", "abs(", 16000, 16000},
        {"a", ".*", 400, 600},
        {"a", "[::]", 200, 600},
        {"a", "==a", 400, 600},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_free char *good = repeat(table[i].head, table[i].text, table[i].good, "");
        auto_free char *bad = repeat(table[i].head, table[i].text, table[i].bad, "");
        autoptr(jmespath) path = NULL;
        struct err e = {0};

        if (table[i].good < table[i].bad && jmespath_parse(good, &path, &e) < 0)
            fail_msg("%s: %s", table[i].text, e.msg);
        assert_int_equal(jmespath_parse(bad, &path, &e), -1);
        assert_string_equal(e.reason, "syntax");
        if (!str_starts(e.msg, "more than 512 levels deep at position"))
            fail_msg("%s: %s", table[i].text, e.msg);
    }
}

static void length_has_a_limit(void **state)
{
    auto_free char *good = repeat("'", "a", JMESPATH_MOST_BYTES - 2, "'");
    auto_free char *bad = repeat("'", "a", JMESPATH_MOST_BYTES - 1, "'");
    autoptr(jmespath) path = NULL;
    struct err e = {0};

    (void)state;
    assert_int_equal(jmespath_parse(bad, &path, &e), -1);
    assert_string_equal(e.msg, "the expression is longer than 65536 bytes");
    assert_string_equal(e.reason, "syntax");
    assert_null(path);
    assert_int_equal(jmespath_parse(good, &path, &e), 0);
}

static void an_error_is_optional(void **state)
{
    autoptr(jmespath) path = NULL;

    (void)state;
    assert_int_equal(jmespath_parse("a[", &path, NULL), -1);
    assert_int_equal(jmespath_parse("lenght(a)", &path, NULL), -1);
    assert_null(path);
    jmespath_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_bind_as_the_grammar_says),
        cmocka_unit_test(a_projection_takes_what_follows_up_to_a_weaker_operator),
        cmocka_unit_test(broken_expressions_are_refused_with_their_place),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(length_has_a_limit),
        cmocka_unit_test(an_error_is_optional),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
