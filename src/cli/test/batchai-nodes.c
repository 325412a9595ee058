/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/batchai-nodes.h"

#include "base/str.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void quotes_hold_anything_for_a_shell(void **state)
{
    static const struct row {
        const char *text, *want;
    } rows[] = {
        {"", "''"},
        {"plain", "'plain'"},
        {"$HOME `x` \"y\" \\", "'$HOME `x` \"y\" \\'"},
        {"it's", "'it'\\''s'"},
        {"'", "''\\'''"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        auto_str got = {0};

        batchai_quote(&got, rows[i].text);
        assert_string_equal(str_text(&got), rows[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotes_hold_anything_for_a_shell),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
