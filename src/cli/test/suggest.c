/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/suggest.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void the_nearest_word_is_meant(void **state)
{
    static const char *const words[] = {
        "create", "show", "list", "delete", "update", "exists", "--resource-group", "--name"};
    static const struct row {
        const char *typed, *want;
    } rows[] = {
        {"shwo", "show"},
        {"lst", "list"},
        {"lits", "list"},
        {"craete", "create"},
        {"delet", "delete"},
        {"updaet", "update"},
        {"exist", "exists"},
        {"xyzzy", ""},
        {"q", ""},
        {"--resource-gruop", "--resource-group"},
        {"--resource-groups", "--resource-group"},
        {"--nmae", "--name"},
        {"createall", "create"},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct suggest near;

        suggest_init(&near, rows[i].typed);
        for (size_t j = 0; j < ARRAY_SIZE(words); j++)
            suggest_see(&near, words[j]);
        if (strcmp(near.best, rows[i].want) != 0)
            fail_msg("%s: %s", rows[i].typed, near.best);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_word_is_meant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
