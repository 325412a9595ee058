/* SPDX-License-Identifier: Apache-2.0 */
#include "jmespath-cases.h"

static void numbers_stay_exact(void **state)
{
    static const struct found table[] = {
        {"abs(`-3`)", "{}", "3"},
        {"abs(`3`)", "{}", "3"},
        {"abs(`0`)", "{}", "0"},
        {"abs(`-2.5`)", "{}", "2.5"},
        {"abs(`-9223372036854775807`)", "{}", "9223372036854775807"},
        {"abs(@)", "-9223372036854775808", "9.223372036854776e18"},
        {"ceil(`1.2`)", "{}", "2"},
        {"ceil(`-1.2`)", "{}", "-1"},
        {"ceil(`7`)", "{}", "7"},
        {"ceil(`1e300`)", "{}", "1e300"},
        {"floor(`1.9`)", "{}", "1"},
        {"floor(`-1.2`)", "{}", "-2"},
        {"floor(`9007199254740993`)", "{}", "9007199254740993"},
        {"floor(`-1e300`)", "{}", "-1e300"},
        {"sum(@)", "[1,2,3]", "6"},
        {"sum(@)", "[1,2.5]", "3.5"},
        {"sum(@)", "[]", "0"},
        {"sum(@)", "[9007199254740993,2]", "9007199254740995"},
        {"sum(@)", "[9223372036854775807,1,-1]", "9.223372036854776e18"},
        {"avg(@)", "[1,2]", "1.5"},
        {"avg(@)", "[1,3]", "2.0"},
        {"avg(@)", "[]", "null"},
        {"avg(@)", "[9223372036854775807,9223372036854775807]", "9.223372036854776e18"},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void strings_are_unicode(void **state)
{
    static const struct found table[] = {
        {"length('')", "{}", "0"},
        {"length('train')", "{}", "5"},
        {"length('z\xc3\xbcge')", "{}", "4"},
        {"length('\xf0\x9f\x9a\x82\xe2\x9c\x93')", "{}", "2"},
        {"reverse('abc')", "{}", "\"cba\""},
        {"reverse('a\xc3\xbc\xf0\x9f\x9a\x82')", "{}",
         "\"\xf0\x9f\x9a\x82\xc3\xbc"
         "a\""},
        {"reverse('')", "{}", "\"\""},
        {"starts_with('steam', 'ste')", "{}", "true"},
        {"starts_with('steam', 'tea')", "{}", "false"},
        {"starts_with('a', 'ab')", "{}", "false"},
        {"starts_with('a', '')", "{}", "true"},
        {"ends_with('steam', 'eam')", "{}", "true"},
        {"ends_with('steam', 'tea')", "{}", "false"},
        {"ends_with('a', 'ba')", "{}", "false"},
        {"contains('steam', 'tea')", "{}", "true"},
        {"contains('steam', 'team!')", "{}", "false"},
        {"contains('steam', '')", "{}", "true"},
        {"contains('1', `1`)", "{}", "false"},
        {"join(', ', @)", "[\"a\",\"b\",\"c\"]", "\"a, b, c\""},
        {"join('', @)", "[\"a\",\"b\"]", "\"ab\""},
        {"join('-', @)", "[]", "\"\""},
        {"join('-', @)", "[\"\",\"\"]", "\"-\""},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void values_are_converted(void **state)
{
    static const struct found table[] = {
        {"to_string('a')", "{}", "\"a\""},
        {"to_string(`1`)", "{}", "\"1\""},
        {"to_string(`33.3`)", "{}", "\"33.3\""},
        {"to_string(`1.0`)", "{}", "\"1.0\""},
        {"to_string(`null`)", "{}", "\"null\""},
        {"to_string(@)", "{\"b\": [1, \"x\"], \"a\": true}",
         "\"{\\\"b\\\":[1,\\\"x\\\"],\\\"a\\\":true}\""},
        {"to_number('12')", "{}", "12"},
        {"to_number('-1.50')", "{}", "-1.5"},
        {"to_number('1e3')", "{}", "1000.0"},
        {"to_number('1e21')", "{}", "1e21"},
        {"to_number('12345678901234567890')", "{}", "1.2345678901234567e19"},
        {"to_number(`7`)", "{}", "7"},
        {"to_number('')", "{}", "null"},
        {"to_number(' 1')", "{}", "null"},
        {"to_number('1 ')", "{}", "null"},
        {"to_number('1.')", "{}", "null"},
        {"to_number('01')", "{}", "null"},
        {"to_number('0x1')", "{}", "null"},
        {"to_number('1e999')", "{}", "null"},
        {"to_number('-')", "{}", "null"},
        {"to_number('true')", "{}", "null"},
        {"to_number(`true`)", "{}", "null"},
        {"to_number(`[1]`)", "{}", "null"},
        {"to_array(`1`)", "{}", "[1]"},
        {"to_array(`[1]`)", "{}", "[1]"},
        {"to_array(`null`)", "{}", "[null]"},
        {"to_array(@)", "{\"a\":1}", "[{\"a\":1}]"},
        {"type('a')", "{}", "\"string\""},
        {"type(`1`)", "{}", "\"number\""},
        {"type(`1.5`)", "{}", "\"number\""},
        {"type(`true`)", "{}", "\"boolean\""},
        {"type(`false`)", "{}", "\"boolean\""},
        {"type(@)", "{}", "\"object\""},
        {"type(`[]`)", "{}", "\"array\""},
        {"type(a)", "{}", "\"null\""},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void arrays_and_objects_are_taken_apart(void **state)
{
    static const struct found table[] = {
        {"keys(@)", "{\"z\":1,\"a\":2,\"m\":3}", "[\"z\",\"a\",\"m\"]"},
        {"values(@)", "{\"z\":1,\"a\":null}", "[1,null]"},
        {"keys(@)", "{}", "[]"},
        {"length(@)", "{\"z\":1,\"a\":2}", "2"},
        {"length(@)", "[1,2,null]", "3"},
        {"reverse(@)", "[1,\"a\",null]", "[null,\"a\",1]"},
        {"reverse(@)", "[]", "[]"},
        {"contains(@, `2`)", "[1,2.0]", "true"},
        {"contains(@, `[1]`)", "[[1]]", "true"},
        {"contains(@, `null`)", "[1]", "false"},
        {"contains(@, a)", "[1,null]", "true"},
        {"merge(@)", "{\"a\":1}", "{\"a\":1}"},
        {"merge(a, b)", "{\"a\":{\"x\":1,\"y\":2},\"b\":{\"z\":3,\"x\":4}}",
         "{\"x\":4,\"y\":2,\"z\":3}"},
        {"merge(a, b, a)", "{\"a\":{\"x\":1},\"b\":{\"x\":2}}", "{\"x\":1}"},
        {"map(&a, @)", "[{\"a\":1},{},{\"a\":3}]", "[1,null,3]"},
        {"map(&[0], @)", "[[1],[2]]", "[1,2]"},
        {"map(&a || 'none', @)", "[{\"a\":1},{}]", "[1,\"none\"]"},
        {"map(&a, @)", "[]", "[]"},
        {"not_null(a, b, c)", "{\"b\":false,\"c\":1}", "false"},
        {"not_null(a)", "{}", "null"},
        {"not_null(a, b)", "{}", "null"},
        {"[*].length(@)", "[[1],\"ab\",{}]", "[1,2,0]"},
        {"a.length(@)", "{\"a\":[1,2]}", "2"},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void a_number_too_large_for_json_is_refused(void **state)
{
    static const struct fault table[] = {
        {"sum(@)", "[1e308,1e308]", "invalid-value",
         "sum() is too large for a number at position 1 of \"sum(@)\""},
        {"[0] && avg(@)", "[1e308,1e308]", "invalid-value",
         "avg() is too large for a number at position 8 of"},
    };

    (void)state;
    check_faults(table, ARRAY_SIZE(table));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_stay_exact),
        cmocka_unit_test(strings_are_unicode),
        cmocka_unit_test(values_are_converted),
        cmocka_unit_test(arrays_and_objects_are_taken_apart),
        cmocka_unit_test(a_number_too_large_for_json_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
