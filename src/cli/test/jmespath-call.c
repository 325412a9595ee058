/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/jmespath-internal.h"
#include "jmespath-cases.h"

static void unknown_functions_are_refused_when_parsed(void **state)
{
    static const struct fault table[] = {
        {"lenght(@)", NULL, "unknown-function",
         "unknown function \"lenght\" (did you mean \"length\"?) at position 1 of "
         "\"lenght(@)\""},
        {"a.b.frobnicate(@)", NULL, "unknown-function",
         "unknown function \"frobnicate\" at position 5 of"},
        {"LENGTH(@)", NULL, "unknown-function", "unknown function \"LENGTH\" at"},
        {"a || nope()", NULL, "unknown-function", "unknown function \"nope\""},
    };

    (void)state;
    check_faults(table, ARRAY_SIZE(table));
}

/* Every function with none, and with one more than it takes. */
static void wrong_numbers_of_arguments_are_refused_when_parsed(void **state)
{
    static const char *const names[] = {
        "abs",      "avg",       "ceil",      "contains", "ends_with", "floor",       "join",
        "keys",     "length",    "map",       "max",      "max_by",    "merge",       "min",
        "min_by",   "not_null",  "reverse",   "sort",     "sort_by",   "starts_with", "sum",
        "to_array", "to_number", "to_string", "type",     "values"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const struct jmes_function *f = jmes_function_find(names[i]);
        auto_free char *none = xasprintf("%s()", names[i]);
        auto_free char *more =
            xasprintf("%s(@, @%s)", names[i], f->parameters > 1 ? ", @" : "");
        const struct fault table[] = {
            {none, NULL, "invalid-arity", names[i]},
            {more, NULL, "invalid-arity", names[i]},
        };

        check_faults(table, f->repeats ? 1 : 2);
    }
}

static void arity_is_told_in_words(void **state)
{
    static const struct fault table[] = {
        {"abs()", NULL, "invalid-arity",
         "abs() takes 1 argument, got 0 at position 1 of \"abs()\""},
        {"join('')", NULL, "invalid-arity", "join() takes 2 arguments, got 1"},
        {"merge()", NULL, "invalid-arity", "merge() takes at least 1 argument, got 0"},
    };

    (void)state;
    check_faults(table, ARRAY_SIZE(table));
}

static void expressions_go_where_they_are_due(void **state)
{
    static const struct fault table[] = {
        {"sort_by(@, a)", NULL, "invalid-type",
         "sort_by() takes an &expression as argument 2, got a value at position 12 of"},
        {"map(@, &a)", NULL, "invalid-type", "map() takes an &expression as argument 1"},
        {"map(&a, &b)", NULL, "invalid-type",
         "map() takes a value as argument 2, got an &expression"},
        {"abs(&a)", NULL, "invalid-type", "abs() takes a value as argument 1"},
        {"not_null(a, b, &c)", NULL, "invalid-type", "not_null() takes a value as argument 3"},
    };

    (void)state;
    check_faults(table, ARRAY_SIZE(table));
}

static void wrong_types_are_named_with_the_argument(void **state)
{
    static const char document[] = "{\"s\":\"x\",\"n\":1,\"a\":[1,\"x\"],\"o\":{},\"t\":true}";
    static const struct fault table[] = {
        {"abs(s)", document, "invalid-type",
         "abs() takes a number as argument 1, got string at position 5 of \"abs(s)\""},
        {"ceil(t)", document, "invalid-type", "ceil() takes a number"},
        {"floor(nothing)", document, "invalid-type",
         "floor() takes a number as argument 1, got null"},
        {"avg(a)", document, "invalid-type",
         "avg() takes an array of numbers as argument 1, got array with string"},
        {"sum(n)", document, "invalid-type", "sum() takes an array of numbers"},
        {"sum(`[\"a\"]`)", document, "invalid-type", "sum() takes an array of numbers"},
        {"max(a)", document, "invalid-type",
         "max() takes an array of numbers or an array of strings as argument 1, got array "
         "with"},
        {"min(`[true]`)", document, "invalid-type", "min() takes an array of numbers or"},
        {"sort(`[[]]`)", document, "invalid-type", "sort() takes an array of numbers or"},
        {"sort(`[\"a\", 1]`)", document, "invalid-type", "sort() takes an array of numbers or"},
        {"contains(n, n)", document, "invalid-type",
         "contains() takes a string or an array as argument 1, got number"},
        {"starts_with(s, n)", document, "invalid-type",
         "starts_with() takes a string as argument 2"},
        {"ends_with(n, s)", document, "invalid-type",
         "ends_with() takes a string as argument 1"},
        {"join(s, a)", document, "invalid-type",
         "join() takes an array of strings as argument 2, got array with number"},
        {"join(s, s)", document, "invalid-type", "join() takes an array of strings"},
        {"join(n, `[]`)", document, "invalid-type", "join() takes a string as argument 1"},
        {"keys(a)", document, "invalid-type",
         "keys() takes an object as argument 1, got array"},
        {"values(s)", document, "invalid-type", "values() takes an object"},
        {"length(n)", document, "invalid-type",
         "length() takes a string or an array or an object as argument 1, got number"},
        {"reverse(o)", document, "invalid-type", "reverse() takes a string or an array"},
        {"merge(o, o, n)", document, "invalid-type", "merge() takes an object as argument 3"},
        {"map(&a, o)", document, "invalid-type", "map() takes an array as argument 2"},
        {"sort_by(o, &a)", document, "invalid-type", "sort_by() takes an array as argument 1"},
        {"max_by(s, &a)", document, "invalid-type", "max_by() takes an array"},
        {"min_by(nothing, &a)", document, "invalid-type", "min_by() takes an array"},
        {"[s, abs(s)]", document, "invalid-type", "abs() takes a number"},
        {"{a: abs(s)}", document, "invalid-type", "abs() takes a number"},
        {"a[?abs(s)]", document, "invalid-type", "abs() takes a number"},
        {"a[*].abs(s)", document, "invalid-type", "abs() takes a number"},
        {"abs(s)[]", document, "invalid-type", "abs() takes a number"},
        {"n == abs(s)", document, "invalid-type", "abs() takes a number"},
        {"!abs(s)", document, "invalid-type", "abs() takes a number"},
        {"map(&abs(@), a)", document, "invalid-type", "abs() takes a number"},
        {"type(abs(s))", document, "invalid-type", "abs() takes a number"},
    };

    (void)state;
    check_faults(table, ARRAY_SIZE(table));
}

static void what_is_not_evaluated_does_not_fail(void **state)
{
    static const struct found table[] = {
        {"a[*].abs(@)", "{\"a\":[]}", "[]"},
        {"t || abs(t)", "{\"t\":true}", "true"},
        {"n && abs(t)", "{\"t\":true}", "null"},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_functions_are_refused_when_parsed),
        cmocka_unit_test(wrong_numbers_of_arguments_are_refused_when_parsed),
        cmocka_unit_test(arity_is_told_in_words),
        cmocka_unit_test(expressions_go_where_they_are_due),
        cmocka_unit_test(wrong_types_are_named_with_the_argument),
        cmocka_unit_test(what_is_not_evaluated_does_not_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
