/* The file of measured choices: kept, read again, and not believed blindly.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/tune.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static void choices_come_back(void **state)
{
    char dir[] = "/tmp/yardbench-tune-XXXXXX";
    struct tune *tune;
    struct err e = {0};
    int choice = -1;

    (void)state;
    assert_non_null(mkdtemp(dir));
    auto_free char *inner = xasprintf("%s/a/b", dir);
    auto_free char *file = xasprintf("%s/x.tune", inner);
    tune = tune_open(inner, "x.tune");
    tune_put(tune, "conv n 3 bf16", 2, 1500);
    tune_put(tune, "conv n 4 bf16", 1, 99);
    tune_put(tune, "conv n 3 bf16", 5, 1400);
    if (tune_save(tune, &e) < 0)
        fail_msg("%s", e.msg);
    tune_free(tune);
    tune = tune_open(inner, "x.tune");
    assert_int_equal(tune_find(tune, "conv n 3 bf16", 6, &choice), 0);
    assert_int_equal(choice, 5);
    assert_int_equal(tune_find(tune, "conv n 4 bf16", 6, &choice), 0);
    assert_int_equal(choice, 1);
    assert_int_equal(tune_find(tune, "conv n 3 bf16", 5, &choice), -1); /* no such one now */
    assert_int_equal(tune_find(tune, "conv n 3", 6, &choice), -1);
    tune_free(tune);
    unlink(file);
    rmdir(inner);
    auto_free char *outer = xasprintf("%s/a", dir);
    rmdir(outer);
    assert_int_equal(rmdir(dir), 0);
}

static void broken_lines_are_passed_over(void **state)
{
    char path[] = "/tmp/yardbench-tune-XXXXXX";
    FILE *file;
    struct tune *tune;
    int choice = -1, fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    file = fdopen(fd, "w");
    fputs("x 1 a\n-1 1 b\n1\n1 2\n1 2 \n999 5 c\n3 -7 d\n1  2e\n2 77 good one", file);
    fclose(file);
    tune = tune_open("/tmp", path + sizeof "/tmp/" - 1);
    assert_int_equal(tune_find(tune, "good one", 3, &choice), 0);
    assert_int_equal(choice, 2);
    for (const char *key = "abcde"; *key; key++)
        assert_int_equal(tune_find(tune, (char[]){*key, '\0'}, 64, &choice), -1);
    tune_free(tune);
    unlink(path);
}

static void without_a_folder_nothing_is_kept(void **state)
{
    struct tune *tune = tune_open(NULL, "x");
    int choice;

    (void)state;
    tune_put(tune, "a", 1, 1);
    assert_int_equal(tune_save(tune, NULL), 0);
    assert_int_equal(tune_find(tune, "a", 2, &choice), 0);
    tune_free(tune);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_come_back),
        cmocka_unit_test(broken_lines_are_passed_over),
        cmocka_unit_test(without_a_folder_nothing_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
