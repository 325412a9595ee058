/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void what_was_set_is_found_until_removed(void **state)
{
    autoptr(table) table = table_new(free);
    char key[16];
    size_t at = 0, seen = 0;
    const char *name;
    void *value;

    (void)state;
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        table_set(table, key, xasprintf("v%d", i));
    }
    for (int i = 0; i < 5000; i += 2) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_true(table_remove(table, key));
        assert_false(table_remove(table, key));
    }
    table_set(table, "k1", xstrdup("new"));
    assert_int_equal(table_count(table), 2500);
    assert_string_equal(table_get(table, "k1"), "new");
    assert_string_equal(table_get(table, "k4999"), "v4999");
    assert_null(table_get(table, "k2"));
    assert_null(table_get(table, ""));
    while (table_next(table, &at, &name, &value))
        seen++;
    assert_int_equal(seen, 2500);
}

/* Places that were removed must not fill the table until a search never ends. */
static void coming_and_going_does_not_fill_it(void **state)
{
    autoptr(table) table = table_new(NULL);
    static char mark[] = "x";
    char key[16];

    (void)state;
    for (int i = 0; i < 20000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        table_set(table, key, mark);
        assert_true(table_remove(table, key));
    }
    assert_int_equal(table_count(table), 0);
    assert_null(table_get(table, "other"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_set_is_found_until_removed),
        cmocka_unit_test(coming_and_going_does_not_fill_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
