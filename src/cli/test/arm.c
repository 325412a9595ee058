/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/arm.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ID "/subscriptions/s/resourceGroups/g/providers/P/workspaces/w/experiments/e"

static void parts_of_an_id_are_found_without_case(void **state)
{
    static const struct row {
        const char *id, *type, *want;
    } rows[] = {
        {ID, "resourceGroups", "g"}, {ID, "resourcegroups", "g"},
        {ID, "experiments", "e"},    {ID, "clusters", NULL},
        {ID, "work", NULL},          {"/workspaces/", "workspaces", NULL},
        {"", "workspaces", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_free char *got = arm_id_part(rows[i].id, rows[i].type);

        if (!str_equal(got, rows[i].want))
            fail_msg("%s of %s: %s", rows[i].type, rows[i].id, got ? got : "(null)");
    }
}

static struct args *parsed(int count, const char *const words[])
{
    struct args *args = NULL;
    struct err e;

    if (args_parse(count, (char *const *)(void *)words, &args, &e) < 0)
        fail_msg("%s", e.msg);
    return args;
}

static void an_id_fills_the_options_that_name_the_resource(void **state)
{
    const char *const words[] = {"batchai", "experiment", "show", "--ids", ID};
    autoptr(args) args = parsed(5, words);
    struct err e = {0};

    (void)state;
    assert_int_equal(arm_use_id(args, ID,
                                "resourceGroups=resource-group workspaces=workspace "
                                "experiments=name",
                                &e),
                     0);
    assert_string_equal(args_get(args, "resource-group"), "g");
    assert_string_equal(args_get(args, "workspace"), "w");
    assert_string_equal(args_get(args, "name"), "e");
    assert_string_equal(args_get(args, "subscription"), "s");
    assert_int_equal(
        arm_use_id(args, ID, "resourceGroups=resource-group storageAccounts=name", &e), -1);
    assert_true(args_failed(&e));
    assert_non_null(strstr(e.msg, "storageAccounts"));
    assert_int_equal(arm_use_id(args, "e", "workspaces=workspace", &e), -1);
}

static void names_in_paths_are_encoded_and_cannot_climb(void **state)
{
    static const struct row {
        const char *name, *want; /* NULL = refused */
    } rows[] = {
        {"plain-1.x_y", "plain-1.x_y"},
        {"a/b?c#d e%", "a%2Fb%3Fc%23d%20e%25"},
        {"\xc3\xa9", "%C3%A9"},
        {"..", NULL},
        {".", NULL},
        {"", NULL},
        {"...", "..."},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *const words[] = {"group", "show", "--name", rows[i].name};
        autoptr(args) args = parsed(4, words);
        struct call call = {.args = args, .subscription = xstrdup("sub")};
        auto_free char *path = NULL, *want = NULL;
        struct err e = {0};
        int rc = arm_path(&call, "/resourcegroups/{name}/x", "1", &path, &e);

        free(call.subscription);
        assert_int_equal(rc == 0, rows[i].want != NULL);
        if (!rows[i].want)
            continue;
        want = xasprintf("/subscriptions/sub/resourcegroups/%s/x?api-version=1", rows[i].want);
        assert_string_equal(path, want);
    }
}

static void tags_become_an_object(void **state)
{
    const char *const some[] = {"group", "create", "--tags", "a=b", "c", "d=e=f", "=x"};
    const char *const cleared[] = {"group", "create", "--tags", ""};
    const char *const none[] = {"group", "create"};
    autoptr(args) with = parsed(7, some);
    autoptr(args) empty = parsed(4, cleared);
    autoptr(args) without = parsed(2, none);
    auto_json json_t *tags = arm_tags(with), *no_tags = arm_tags(empty);
    auto_free char *text = json_canonical(tags);

    (void)state;
    assert_string_equal(text, "{\"a\":\"b\",\"c\":\"\",\"d\":\"e=f\"}");
    assert_int_equal(json_object_size(no_tags), 0);
    assert_true(json_is_object(no_tags));
    assert_null(arm_tags(without));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_an_id_are_found_without_case),
        cmocka_unit_test(an_id_fills_the_options_that_name_the_resource),
        cmocka_unit_test(names_in_paths_are_encoded_and_cannot_climb),
        cmocka_unit_test(tags_become_an_object),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
