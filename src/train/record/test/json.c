/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "train/record/json-plain.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void what_is_written_reads_back(void **state)
{
    autoptr(arena) arena = arena_new();
    auto_str out = {0};
    const struct jsonr *value, *list;
    struct jsonw w;
    int64_t number;

    (void)state;
    jsonw_begin(&w, &out);
    jsonw_text(&w, "a\"b", "x\n\\y \xc3\xa4 \xff");
    jsonw_open_array(&w, "list");
    jsonw_int(&w, NULL, -5);
    jsonw_double(&w, NULL, 0.1);
    jsonw_double(&w, NULL, NAN);
    jsonw_bool(&w, NULL, true);
    jsonw_open_object(&w, NULL);
    jsonw_close(&w);
    jsonw_close(&w);
    jsonw_text(&w, "none", NULL);
    jsonw_end(&w);
    assert_int_equal(jsonr_parse(arena, out.data, out.len, &value, NULL), 0);
    assert_string_equal(jsonr_get(value, "a\"b")->text, "x\n\\y \xc3\xa4 ?");
    list = jsonr_get(value, "list")->first;
    assert_int_equal(jsonr_int(list, -10, 10, &number, NULL), 0);
    assert_int_equal(number, -5);
    assert_float_equal(list->next->number, 0.1, 0);
    assert_string_equal(list->next->text, "0.1"); /* the fewest digits */
    assert_int_equal(list->next->next->type, JSONR_NULL);
    assert_true(list->next->next->next->boolean);
    assert_int_equal(jsonr_get(value, "none")->type, JSONR_NULL);
    assert_null(jsonr_get(value, "missing"));
}

static void numbers_keep_their_bits(void **state)
{
    static const double numbers[] = {1.0 / 3, 1e300, 5e-324, 123456789.123, -0.0, 1e15};
    autoptr(arena) arena = arena_new();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        auto_str out = {0};
        const struct jsonr *value;
        struct jsonw w;

        jsonw_begin(&w, &out);
        jsonw_double(&w, "x", numbers[i]);
        jsonw_end(&w);
        assert_int_equal(jsonr_parse(arena, out.data, out.len, &value, NULL), 0);
        assert_memory_equal(&value->first->number, &numbers[i], sizeof(double));
    }
}

static void escapes_are_undone(void **state)
{
    static const char text[] = "\"\\u00e4\\ud83d\\ude00\\/\\t\"";
    autoptr(arena) arena = arena_new();
    const struct jsonr *value;

    (void)state;
    assert_int_equal(jsonr_parse(arena, text, strlen(text), &value, NULL), 0);
    assert_string_equal(value->text, "\xc3\xa4\xf0\x9f\x98\x80/\t");
}

static void what_is_no_json_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "{",
        "{\"a\"}",
        "{\"a\":1,}",
        "[1,]",
        "01",
        "1.",
        "1e",
        ".5",
        "+1",
        "nul",
        "\"a",
        "\"\\x\"",
        "\"\n\"",
        "1 2",
        "{\"a\":1,\"a\":2}",
        "\"\\u00\"",
        "\"\\ud800\"",
        "\"\xff\"",
        "1e999",
        "\"\\u0000\"",
        "[",
        "{a:1}",
        "-",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "]",
        "truex",
    };
    autoptr(arena) arena = arena_new();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        const struct jsonr *value;
        struct err e;

        if (jsonr_parse(arena, bad[i], strlen(bad[i]), &value, &e) == 0)
            fail_msg("taken: %s", bad[i]);
    }
}

static void depth_is_bounded(void **state)
{
    autoptr(arena) arena = arena_new();
    const struct jsonr *value;
    auto_str text = {0};

    (void)state;
    for (int i = 0; i < 64; i++)
        str_add_char(&text, '[');
    for (int i = 0; i < 64; i++)
        str_add_char(&text, ']');
    assert_int_equal(jsonr_parse(arena, text.data, text.len, &value, NULL), 0);
    str_truncate(&text, 0);
    for (int i = 0; i < 100000; i++)
        str_add_char(&text, '[');
    assert_int_equal(jsonr_parse(arena, text.data, text.len, &value, NULL), -1);
}

static void whole_numbers_are_whole(void **state)
{
    static const char *const bad[] = {"1.0", "1e3", "\"1\"", "11", "-1", "9223372036854775808"};
    autoptr(arena) arena = arena_new();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        const struct jsonr *value;
        int64_t number;

        assert_int_equal(jsonr_parse(arena, bad[i], strlen(bad[i]), &value, NULL), 0);
        assert_int_equal(jsonr_int(value, 0, 10, &number, NULL), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(numbers_keep_their_bits),
        cmocka_unit_test(escapes_are_undone),
        cmocka_unit_test(what_is_no_json_is_refused),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(whole_numbers_are_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
