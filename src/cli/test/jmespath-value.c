/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/jmespath-internal.h"
#include "jmespath-cases.h"

static int sign(int order)
{
    return (order > 0) - (order < 0);
}

static void numbers_compare_exactly(void **state)
{
    static const struct {
        const char *a, *b;
        int order;
    } table[] = {
        {"1", "2", -1},
        {"2", "1", 1},
        {"1", "1", 0},
        {"1", "1.0", 0},
        {"1", "1.5", -1},
        {"2", "1.5", 1},
        {"-1", "-1.5", 1},
        {"-2", "-1.5", -1},
        {"0", "-0.0", 0},
        {"1.5", "2.5", -1},
        {"9007199254740993", "9007199254740992.0", 1},
        {"9007199254740991", "9007199254740992.0", -1},
        {"9223372036854775807", "9223372036854775808.0", -1},
        {"-9223372036854775808", "-9223372036854775808.0", 0},
        {"-9223372036854775808", "-1e300", 1},
        {"5", "1e300", -1},
        {"0", "1e-300", -1},
        {"0", "-1e-300", 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_json json_t *a = json_loads(table[i].a, JSON_DECODE_ANY, NULL);
        auto_json json_t *b = json_loads(table[i].b, JSON_DECODE_ANY, NULL);

        if (sign(jmes_compare_numbers(a, b)) != table[i].order ||
            sign(jmes_compare_numbers(b, a)) != -table[i].order)
            fail_msg("%s against %s", table[i].a, table[i].b);
    }
}

static void strings_compare_by_code_point(void **state)
{
    static const struct {
        const char *a, *b;
        int order;
    } table[] = {
        {"", "", 0},
        {"", "a", -1},
        {"a", "b", -1},
        {"a", "aa", -1},
        {"b", "aa", 1},
        {"Z", "a", -1},
        {"z", "\xc3\xbc", -1},
        {"\xef\xbf\xbd", "\xf0\x9f\x9a\x82",
         -1}, /* U+FFFD, U+1F682: UTF-16 has it the other way */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_json json_t *a = json_string(table[i].a);
        auto_json json_t *b = json_string(table[i].b);

        assert_int_equal(sign(jmes_compare_strings(a, b)), table[i].order);
        assert_int_equal(sign(jmes_compare_strings(b, a)), -table[i].order);
    }
}

static void what_is_spent_stays_spent(void **state)
{
    auto_json json_t *tree = json_loads("[1,{\"a\":[2,3]},\"0123456789abcdef\"]", 0, NULL);
    auto_json json_t *same = json_deep_copy(tree);
    struct jmes_run run = {.left = 100};

    (void)state;
    assert_true(jmes_spend_tree(&run, tree));
    assert_int_equal(run.left, 91); /* 7 values, and 2 for the string's 16 bytes */
    assert_true(jmes_equal(&run, tree, same));
    assert_int_equal(run.left, 84);
    run.left = 5;
    assert_false(jmes_spend_tree(&run, tree));
    assert_int_equal(run.left, 0);
    assert_false(jmes_spend(&run, 1));
    run.left = 5;
    assert_false(jmes_equal(&run, tree, same));
    assert_int_equal(run.left, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_compare_exactly),
        cmocka_unit_test(strings_compare_by_code_point),
        cmocka_unit_test(what_is_spent_stays_spent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
