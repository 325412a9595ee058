/* SPDX-License-Identifier: Apache-2.0 */
#include "jmespath-cases.h"

static void names_are_plain_or_quoted(void **state)
{
    static const struct found table[] = {
        {"track", "{\"track\":3}", "3"},
        {"_t2_", "{\"_t2_\":3}", "3"},
        {"T9", "{\"T9\":3,\"t9\":4}", "3"},
        {" \t\r\ntrack\n", "{\"track\":3}", "3"},
        {"\"track\"", "{\"track\":3}", "3"},
        {"\"track no. 3\"", "{\"track no. 3\":3}", "3"},
        {"\"\"", "{\"\":3}", "3"},
        {"\"a\\\"b\\\\c\\n\"", "{\"a\\\"b\\\\c\\n\":3}", "3"},
        {"\"\\u00fcber\"",
         "{\"\xc3\xbc"
         "ber\":3}",
         "3"},
        {"\"\xc3\xbc"
         "ber\"",
         "{\"\xc3\xbc"
         "ber\":3}",
         "3"},
        {"\"\\uD83D\\uDE82\"", "{\"\xf0\x9f\x9a\x82\":3}", "3"},
        {"\"a`b'c\"", "{\"a`b'c\":3}", "3"},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void a_raw_string_keeps_its_backslashes(void **state)
{
    static const struct found table[] = {
        {"'steam'", "{}", "\"steam\""},
        {"''", "{}", "\"\""},
        {"'a\"b`c'", "{}", "\"a\\\"b`c\""},
        {"'it\\'s'", "{}", "\"it's\""},
        {"'\\''", "{}", "\"'\""},
        {"'\\\\'", "{}", "\"\\\\\\\\\""},
        {"'\\\\\\''", "{}", "\"\\\\\\\\'\""},
        {"'\\q'", "{}", "\"\\\\q\""},
        {"'\\u00fc'", "{}", "\"\\\\u00fc\""},
        {"'\xf0\x9f\x9a\x82'", "{}", "\"\xf0\x9f\x9a\x82\""},
        {"'two\nlines'", "{}", "\"two\\nlines\""},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void a_literal_is_json(void **state)
{
    static const struct found table[] = {
        {"`7`", "{}", "7"},
        {"`-7.5`", "{}", "-7.5"},
        {"`1.0`", "{}", "1.0"},
        {"`true`", "{}", "true"},
        {"`null`", "{}", "null"},
        {"` [1, {\"b\": 2, \"a\": \"x\"}] `", "{}", "[1,{\"b\":2,\"a\":\"x\"}]"},
        {"`\"a\\`b\"`", "{}", "\"a`b\""},
        {"`\"a\\\"b\"`", "{}", "\"a\\\"b\""},
        {"`\"\\\\\"`", "{}", "\"\\\\\""},
        {"`\"\\u2713\"`", "{}", "\"\xe2\x9c\x93\""},
        {"`9223372036854775807`", "{}", "9223372036854775807"},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void a_literal_that_is_no_json_is_a_string(void **state)
{
    static const struct found table[] = {
        {"`steam`", "{}", "\"steam\""}, {"`  steam engine `", "{}", "\"steam engine \""},
        {"`a\\`b`", "{}", "\"a`b\""},   {"``", "{}", "\"\""},
        {"`[1, 2`", "{}", "\"[1, 2\""}, {"`2018-06-06`", "{}", "\"2018-06-06\""},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void broken_words_are_refused(void **state)
{
    static const struct fault table[] = {
        {"track#", NULL, "syntax", "unexpected \"#\" at position 6 of \"track#\""},
        {"a ? b", NULL, "syntax", "unexpected \"?\" at position 3"},
        {"a = b", NULL, "syntax", "unexpected \"=\" (\"==\" compares) at position 3"},
        {"\xc3\xbc", NULL, "syntax", "unexpected \"\xc3\xbc\" at position 1 of \"\xc3\xbc\""},
        {"'\xc3\xbc' #", NULL, "syntax", "unexpected \"#\" at position 5 of"},
        {"'steam", NULL, "syntax", "string without end at position 1 of"},
        {"'steam\\'", NULL, "syntax", "string without end at position 1 of"},
        {"'steam\\", NULL, "syntax", "string without end at position 1 of"},
        {"a.\"steam", NULL, "syntax", "quoted name without end at position 3 of"},
        {"`steam", NULL, "syntax", "literal without end at position 1 of"},
        {"\"\\q\"", NULL, "syntax", "malformed quoted name at position 1 of"},
        {"\"\\ud800\"", NULL, "syntax", "malformed quoted name"},
        {"\"a\nb\"", NULL, "syntax", "malformed quoted name"},
        {"`{\"a\": 1`", NULL, "syntax", "literal is no JSON (the JSON is malformed at line 1"},
        {"`\"a\"b`", NULL, "syntax", "literal is no JSON"},
        {"[-]", NULL, "syntax", "\"-\" without a number at position 2 of"},
        {"[9223372036854775808]", NULL, "syntax", "number too large at position 2 of"},
        {"[-9223372036854775809]", NULL, "syntax", "number too large"},
    };

    (void)state;
    check_faults(table, ARRAY_SIZE(table));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_plain_or_quoted),
        cmocka_unit_test(a_raw_string_keeps_its_backslashes),
        cmocka_unit_test(a_literal_is_json),
        cmocka_unit_test(a_literal_that_is_no_json_is_a_string),
        cmocka_unit_test(broken_words_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
