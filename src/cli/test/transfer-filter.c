/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-filter.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void files_are_taken_by_name_and_path(void **state)
{
    static const struct row {
        struct filter filter;
        const char *path;
        bool want;
    } rows[] = {
        {{0}, "a/b.txt", true},
        {{.include_pattern = ""}, "a/b.txt", true},
        {{.include_pattern = "*.jpg;*.png"}, "d/a.png", true},
        {{.include_pattern = "*.jpg;*.png"}, "d/a.txt", false},
        {{.include_pattern = "a*"}, "a/b", false},
        {{.exclude_pattern = "*.tmp"}, "x/a.tmp", false},
        {{.exclude_pattern = "*.tmp"}, "x.tmp/a", true},
        {{.include_pattern = "*.jpg", .exclude_pattern = "b*"}, "b.jpg", false},
        {{.include_path = "train;val/a.jpg"}, "train/x/y", true},
        {{.include_path = "train/"}, "train/x", true},
        {{.include_path = "train;val/a.jpg"}, "val/a.jpg", true},
        {{.include_path = "train;val/a.jpg"}, "val/a.jpgx", false},
        {{.include_path = "train"}, "training/x", false},
        {{.exclude_path = "old"}, "old/x", false},
        {{.exclude_path = "old"}, "older/x", true},
        {{.whole_pattern = "*.jpg"}, "d/e/a.jpg", true},
        {{.whole_pattern = "d/*"}, "d/e/a", true},
        {{.whole_pattern = "d/*"}, "e/d/a", false},
        {{.whole_pattern = "[ab]?.txt"}, "a1.txt", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (filter_takes(&rows[i].filter, rows[i].path) != rows[i].want)
            fail_msg("row %zu: %s", i, rows[i].path);
    }
}

static void folders_are_made_only_without_patterns(void **state)
{
    const struct filter none = {0}, pattern = {.include_pattern = "*"},
                        path = {.include_path = "a"};

    (void)state;
    assert_true(filter_takes_folder(&none, "a"));
    assert_false(filter_takes_folder(&pattern, "a"));
    assert_true(filter_takes_folder(&path, "a/b"));
    assert_false(filter_takes_folder(&path, "b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_taken_by_name_and_path),
        cmocka_unit_test(folders_are_made_only_without_patterns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
