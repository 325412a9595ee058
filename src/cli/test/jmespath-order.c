/* SPDX-License-Identifier: Apache-2.0 */
#include "jmespath-cases.h"

static const char crew[] = "[{\"n\":\"d\",\"age\":50},{\"n\":\"g\",\"age\":30},{\"n\":\"c\","
                           "\"age\":50.0},{\"n\":\"a\",\"age\":9}]";

static void numbers_and_strings_are_put_in_order(void **state)
{
    static const struct found table[] = {
        {"sort(@)", "[3,1.5,-2,10]", "[-2,1.5,3,10]"},
        {"sort(@)", "[\"b\",\"B\",\"a\",\"ab\",\"\"]", "[\"\",\"B\",\"a\",\"ab\",\"b\"]"},
        {"sort(@)", "[\"\xf0\x9f\x9a\x82\",\"\xef\xbf\xbd\",\"z\"]",
         "[\"z\",\"\xef\xbf\xbd\",\"\xf0\x9f\x9a\x82\"]"},
        {"sort(@)", "[]", "[]"},
        {"sort(@)", "[1,1.0,0]", "[0,1,1.0]"},
        {"max(@)", "[3,1.5,10]", "10"},
        {"max(@)", "[\"a\",\"c\",\"b\"]", "\"c\""},
        {"max(@)", "[1,1.0]", "1"},
        {"max(@)", "[]", "null"},
        {"min(@)", "[3,-1.5,10]", "-1.5"},
        {"min(@)", "[\"b\",\"a\"]", "\"a\""},
        {"min(@)", "[1.0,1]", "1.0"},
        {"min(@)", "[]", "null"},
        {"max(@)", "[9007199254740993,9007199254740992.0]", "9007199254740993"},
        {"sort(@)", "[9223372036854775807,9223372036854775808.0,-9223372036854775808]",
         "[-9223372036854775808,9223372036854775807,9.223372036854776e18]"},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void values_are_put_in_order_by_an_expression(void **state)
{
    static const struct found table[] = {
        {"sort_by(@, &age)[*].n", crew, "[\"a\",\"g\",\"d\",\"c\"]"},
        {"sort_by(@, &n)[*].n", crew, "[\"a\",\"c\",\"d\",\"g\"]"},
        {"sort_by(@, &to_string(age))[0].n", crew, "\"g\""},
        {"max_by(@, &age).n", crew, "\"d\""},
        {"min_by(@, &age).n", crew, "\"a\""},
        {"max_by(@, &n).n", crew, "\"g\""},
        {"min_by(@, &abs(age)).n", crew, "\"a\""},
        {"sort_by(@, &a)", "[]", "[]"},
        {"max_by(@, &a)", "[]", "null"},
        {"min_by(@, &a)", "[]", "null"},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void equal_keys_keep_their_order(void **state)
{
    auto_str document = {0};
    auto_str wanted = {0};
    auto_str out = {0};
    struct err e = {0};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        str_addf(&document, "%s{\"k\":0,\"i\":%d}", i ? "," : "[", i);
        str_addf(&wanted, "%s%d", i ? "," : "[", i);
    }
    str_add(&document, "]");
    str_add(&wanted, "]");
    assert_int_equal(search_text("sort_by(@, &k)[*].i", str_text(&document), &out, &e), 0);
    assert_string_equal(str_text(&out), str_text(&wanted));
}

static void keys_without_order_are_refused(void **state)
{
    static const struct fault table[] = {
        {"sort_by(@, &b)", crew, "invalid-type",
         "sort_by() goes by numbers or strings, got null at position 1 of \"sort_by(@, &b)\""},
        {"sort_by(@, &@)", crew, "invalid-type",
         "sort_by() goes by numbers or strings, got obj"},
        {"max_by(@, &k)", "[{\"k\":true}]", "invalid-type",
         "max_by() goes by numbers or strings"},
        {"min_by(@, &k)", "[{\"k\":[]}]", "invalid-type",
         "min_by() goes by numbers or strings"},
        {"sort_by(@, &k)", "[{\"k\":1},{\"k\":\"1\"}]", "invalid-type",
         "sort_by() cannot go by number and string at once"},
        {"max_by(@, &k)", "[{\"k\":\"1\"},{\"k\":1}]", "invalid-type",
         "max_by() cannot go by string and number at once"},
        {"min_by(@, &abs(k))", "[{\"k\":\"1\"}]", "invalid-type", "abs() takes a number"},
    };

    (void)state;
    check_faults(table, ARRAY_SIZE(table));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_strings_are_put_in_order),
        cmocka_unit_test(values_are_put_in_order_by_an_expression),
        cmocka_unit_test(equal_keys_keep_their_order),
        cmocka_unit_test(keys_without_order_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
