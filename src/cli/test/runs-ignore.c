/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runs-ignore.h"

#include "base/fs.h"
#include "base/str.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct row {
    const char *rules, *path;
    bool is_folder, is_left_out;
};

static void check(const struct row *row)
{
    autoptr(ignore) ignore = ignore_parse(row->rules);

    if (ignore_skips(ignore, row->path, row->is_folder) != row->is_left_out)
        fail_msg("\"%s\" and %s", row->rules, row->path);
}

static void patterns_mean_what_git_means(void **state)
{
    static const struct row rows[] = {
        {"", "a.c", false, false},
        {"", ".git", true, true},
        {"", "sub/.git", true, true},
        {"", ".gitignore", false, false},
        {"*.o", "a.o", false, true},
        {"*.o", "deep/down/a.o", false, true},
        {"*.o\r", "a.o", false, true},
        {"*.o  ", "a.o", false, true},
        {"# *.o", "a.o", false, false},
        {"build/", "build", true, true},
        {"build/", "build", false, false},
        {"build/", "x/build", true, true},
        {"/build", "build", true, true},
        {"/build", "x/build", true, false},
        {"a/b", "a/b", false, true},
        {"a/b", "x/a/b", false, false},
        {"a/*.txt", "a/x.txt", false, true},
        {"a/*.txt", "a/b/x.txt", false, false},
        {"**/x.txt", "x.txt", false, true},
        {"**/x.txt", "a/b/x.txt", false, true},
        {"data/**", "data/a/b", false, true},
        {"data/**", "data", true, false},
        {"*.txt\n!keep.txt", "a.txt", false, true},
        {"*.txt\n!keep.txt", "keep.txt", false, false},
        {"!keep.txt\n*.txt", "keep.txt", false, true},
        {"[ab].c", "a.c", false, true},
        {"[ab].c", "c.c", false, false},
        {"/", "a", false, false},
        {"!\n\n/\n", "a", false, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        check(&rows[i]);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);
    struct err e;

    if (fs_write_durably(path, text, strlen(text), 0600, &e) < 0)
        fail_msg("%s", e.msg);
}

static void the_yards_own_file_wins_over_gits(void **state)
{
    char folder[] = "/tmp/yard-ignore-XXXXXX";
    auto_free char *own = NULL, *gits = NULL;
    struct err e;

    (void)state;
    assert_non_null(mkdtemp(folder));
    own = xasprintf("%s/.yardignore", folder);
    gits = xasprintf("%s/.gitignore", folder);
    for (int i = 0; i < 3; i++) {
        autoptr(ignore) ignore = NULL;

        if (i == 1)
            write_file(folder, ".gitignore", "git\n");
        if (i == 2)
            write_file(folder, ".yardignore", "yard\n");
        assert_int_equal(ignore_read(folder, &ignore, &e), 0);
        assert_int_equal(ignore_skips(ignore, "git", false), i == 1);
        assert_int_equal(ignore_skips(ignore, "yard", false), i == 2);
    }
    unlink(own);
    unlink(gits);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_mean_what_git_means),
        cmocka_unit_test(the_yards_own_file_wins_over_gits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
