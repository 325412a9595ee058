/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_zeroed_string_is_empty(void **state)
{
    auto_str s = {0};
    auto_free char *taken = NULL;

    (void)state;
    assert_string_equal(str_text(&s), "");
    str_truncate(&s, 0);
    str_add(&s, "");
    str_add_len(&s, NULL, 0);
    assert_string_equal(str_text(&s), "");
    assert_int_equal(s.len, 0);
    taken = str_take(&s);
    assert_string_equal(taken, "");
}

static void what_is_added_is_kept_through_every_growth(void **state)
{
    auto_str s = {0};

    (void)state;
    for (size_t i = 0; i < 5000; i++) {
        str_add_char(&s, (char)('a' + i % 26));
        assert_int_equal(s.len, i + 1);
        assert_true(s.room > s.len);
        assert_int_equal(s.data[s.len], '\0');
    }
    for (size_t i = 0; i < 5000; i++)
        assert_int_equal(s.data[i], 'a' + i % 26);
}

static void formats_of_any_length_fit(void **state)
{
    (void)state;
    for (int width = 1; width < 300; width++) {
        auto_str s = {0};

        str_add(&s, ">");
        str_addf(&s, "%*d|", width, 7);
        assert_int_equal(s.len, width + 2);
        assert_int_equal(strlen(s.data), s.len);
        assert_int_equal(s.data[s.len - 1], '|');
    }
}

static void bytes_with_nul_are_kept(void **state)
{
    auto_str s = {0};

    (void)state;
    str_add_len(&s, "a\0b", 3);
    str_add_char(&s, '\0');
    assert_int_equal(s.len, 4);
    assert_memory_equal(s.data, "a\0b\0", 5);
}

static void reserved_room_leaves_the_text_terminated(void **state)
{
    auto_str s = {0};

    (void)state;
    str_reserve(&s, 1000);
    assert_string_equal(str_text(&s), "");
    str_add(&s, "abc");
    memcpy(str_reserve(&s, 5000), "def", 4);
    s.len += 3;
    assert_string_equal(str_text(&s), "abcdef");
}

static void truncation_only_shortens(void **state)
{
    auto_str s = {0};

    (void)state;
    str_add(&s, "abcdef");
    str_truncate(&s, 10);
    assert_string_equal(s.data, "abcdef");
    str_truncate(&s, 2);
    assert_string_equal(s.data, "ab");
    str_add(&s, "X");
    assert_string_equal(s.data, "abX");
}

static void taking_empties(void **state)
{
    auto_str s = {0};
    auto_free char *taken = NULL;

    (void)state;
    str_add(&s, "abc");
    taken = str_take(&s);
    assert_string_equal(taken, "abc");
    assert_string_equal(str_text(&s), "");
    str_add(&s, "new");
    assert_string_equal(taken, "abc");
}

static void questions_about_strings(void **state)
{
    static const struct {
        const char *a, *b;
        bool equal, equal_nocase, starts, starts_nocase, ends;
    } table[] = {
        {"", "", true, true, true, true, true},
        {"a", "", false, false, true, true, true},
        {"", "a", false, false, false, false, false},
        {"abc", "abc", true, true, true, true, true},
        {"abc", "ABC", false, true, false, true, false},
        {"abcd", "abc", false, false, true, true, false},
        {"abcd", "BCD", false, false, false, false, false},
        {"abcd", "bcd", false, false, false, false, true},
        {"cd", "abcd", false, false, false, false, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const char *a = table[i].a, *b = table[i].b;

        assert_int_equal(str_equal(a, b), table[i].equal);
        assert_int_equal(str_equal_nocase(a, b), table[i].equal_nocase);
        assert_int_equal(str_starts(a, b), table[i].starts);
        assert_int_equal(str_starts_nocase(a, b), table[i].starts_nocase);
        assert_int_equal(str_ends(a, b), table[i].ends);
    }
}

static void null_equals_null_only(void **state)
{
    (void)state;
    assert_true(str_equal(NULL, NULL));
    assert_false(str_equal(NULL, ""));
    assert_false(str_equal("", NULL));
    assert_true(str_equal_nocase(NULL, NULL));
    assert_false(str_equal_nocase("", NULL));
}

static void lower_case_is_ascii_alone(void **state)
{
    auto_free char *lower = str_lower("ABC xyz-\xc3\x84 9");

    (void)state;
    assert_string_equal(lower, "abc xyz-\xc3\x84 9");
}

static void distance_counts_single_edits(void **state)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } table[] = {
        {"", "", 0},           {"abc", "", 3},
        {"", "abc", 3},        {"group", "group", 0},
        {"gruop", "group", 1}, /* neighbours swapped */
        {"grup", "group", 1},  {"groupp", "group", 1},
        {"gr0up", "group", 1}, {"kitten", "sitting", 3},
        {"ab", "ba", 1},       {"workspace", "experiment", 10},
    };
    char long_enough[65], too_long[66];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        assert_int_equal(str_distance(table[i].a, table[i].b), table[i].distance);
        assert_int_equal(str_distance(table[i].b, table[i].a), table[i].distance);
    }
    memset(long_enough, 'a', 64);
    long_enough[64] = '\0';
    memset(too_long, 'a', 65);
    too_long[65] = '\0';
    assert_int_equal(str_distance(long_enough, "a"), 63);
    assert_true(str_distance(too_long, "a") == SIZE_MAX);
    assert_true(str_distance("a", too_long) == SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zeroed_string_is_empty),
        cmocka_unit_test(what_is_added_is_kept_through_every_growth),
        cmocka_unit_test(formats_of_any_length_fit),
        cmocka_unit_test(bytes_with_nul_are_kept),
        cmocka_unit_test(reserved_room_leaves_the_text_terminated),
        cmocka_unit_test(truncation_only_shortens),
        cmocka_unit_test(taking_empties),
        cmocka_unit_test(questions_about_strings),
        cmocka_unit_test(null_equals_null_only),
        cmocka_unit_test(lower_case_is_ascii_alone),
        cmocka_unit_test(distance_counts_single_edits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
