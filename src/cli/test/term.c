/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/term.h"

#include "base/mem.h"
#include "base/str.h"

#include <locale.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void control_characters_are_taken_out(void **state)
{
    static const struct row {
        const char *text, *want;
    } rows[] = {
        {"plain\ttext\n", "plain\ttext\n"},
        {"\x1b[31mred\x1b[0m", "[31mred[0m"},
        {"a\x07\x08\x7f\rb", "ab"},
        {"c1 \xc2\x9b"
         "31m",
         "c1 31m"},
        {"\xc3\xa9 \xe2\x98\x83 \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x98\x83 \xf0\x9f\x98\x80"},
        {"bad \xff end", "bad \xef\xbf\xbd end"},
        {"overlong \xc0\xaf", "overlong \xef\xbf\xbd\xef\xbf\xbd"},
        {"cut \xe2\x98", "cut \xef\xbf\xbd\xef\xbf\xbd"},
        {"surrogate \xed\xa0\x80", "surrogate \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_str out = {0};

        term_clean(&out, rows[i].text, strlen(rows[i].text));
        assert_string_equal(str_text(&out), rows[i].want);
    }
}

static void width_counts_columns(void **state)
{
    (void)state;
    assert_int_equal(term_width(""), 0);
    assert_int_equal(term_width("abc"), 3);
    assert_int_equal(term_width("\xc3\xa9"), 1);
    assert_int_equal(term_width("\xff"), 1);
    if (setlocale(LC_CTYPE, "C.UTF-8"))
        assert_int_equal(term_width("\xe6\x97\xa5\xe6\x9c\xac"), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_characters_are_taken_out),
        cmocka_unit_test(width_counts_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
