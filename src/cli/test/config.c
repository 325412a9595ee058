/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/config.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char *make_folder(void)
{
    char *folder = xstrdup("/tmp/yard-config-XXXXXX");

    assert_non_null(mkdtemp(folder));
    return folder;
}

static void remove_folder(const char *folder)
{
    auto_free char *file = xasprintf("%s/cli.ini", folder);

    unlink(file);
    rmdir(folder);
}

static void what_is_saved_is_read_again(void **state)
{
    auto_free char *folder = make_folder();
    autoptr(config) config = NULL;
    autoptr(config) again = NULL;
    struct stat st;

    (void)state;
    assert_int_equal(config_open(folder, &config, NULL), 0);
    assert_null(config_get(config, "defaults", "group"));
    assert_int_equal(config_set(config, "defaults", "group", "recipes", NULL), 0);
    assert_int_equal(config_set(config, "remote", "url", "https://h:1", NULL), 0);
    assert_int_equal(config_set(config, "defaults", "location", "a = b # c", NULL), 0);
    assert_int_equal(config_set(config, "defaults", "group", "other", NULL), 0);
    assert_int_equal(config_save(config, NULL), 0);
    assert_int_equal(stat(config_path(config), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);

    assert_int_equal(config_open(folder, &again, NULL), 0);
    assert_string_equal(config_get(again, "defaults", "group"), "other");
    assert_string_equal(config_get(again, "defaults", "location"), "a = b # c");
    assert_string_equal(config_get(again, "remote", "url"), "https://h:1");
    assert_null(config_get(again, "remote", "group"));
    remove_folder(folder);
}

static void an_empty_value_takes_an_entry_away(void **state)
{
    auto_free char *folder = make_folder();
    autoptr(config) config = NULL;
    const char *key, *value;

    (void)state;
    assert_int_equal(config_open(folder, &config, NULL), 0);
    config_set(config, "defaults", "a", "1", NULL);
    config_set(config, "defaults", "b", "2", NULL);
    config_set(config, "x", "a", "3", NULL);
    config_set(config, "defaults", "a", "", NULL);
    config_set(config, "defaults", "never there", NULL, NULL);
    assert_null(config_get(config, "defaults", "a"));
    assert_true(config_at(config, "defaults", 0, &key, &value));
    assert_string_equal(key, "b");
    assert_false(config_at(config, "defaults", 1, &key, &value));
    config_clear(config, "defaults");
    assert_false(config_at(config, "defaults", 0, &key, &value));
    assert_string_equal(config_get(config, "x", "a"), "3");
    remove_folder(folder);
}

static void a_broken_file_is_named_with_its_line(void **state)
{
    static const struct row {
        const char *text, *says; /* NULL = it is right */
    } rows[] = {
        {"[a]\nx\n", "line 2"},
        {"x = 1\n", "line 1"},
        {"[a]\n= 1\n", "line 2"},
        {"# c\n; d\n\n[ a ]\n x = 1 \r\n", NULL},
        {"", NULL},
    };
    auto_free char *folder = make_folder();
    auto_free char *file = xasprintf("%s/cli.ini", folder);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoptr(config) config = NULL;
        struct err e;
        int rc;

        assert_int_equal(fs_write_durably(file, rows[i].text, strlen(rows[i].text), 0600, NULL),
                         0);
        rc = config_open(folder, &config, &e);
        assert_int_equal(rc < 0, rows[i].says != NULL);
        if (rows[i].says)
            assert_non_null(strstr(e.msg, rows[i].says));
        else if (rows[i].text[0])
            assert_string_equal(config_get(config, "a", "x"), "1");
    }
    remove_folder(folder);
}

static void a_value_cannot_forge_lines(void **state)
{
    auto_free char *folder = make_folder();
    autoptr(config) config = NULL;
    struct err e;

    (void)state;
    assert_int_equal(config_open(folder, &config, NULL), 0);
    assert_int_equal(config_set(config, "defaults", "group", "a\n[remote]\nurl=x", &e), -1);
    assert_string_equal(e.target, "group");
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_read_again),
        cmocka_unit_test(an_empty_value_takes_an_entry_away),
        cmocka_unit_test(a_broken_file_is_named_with_its_line),
        cmocka_unit_test(a_value_cannot_forge_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
