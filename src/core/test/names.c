/* SPDX-License-Identifier: Apache-2.0 */
#include "core/names.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* "a" repeated; caller frees. */
static char *run_of(const char *text, size_t count)
{
    auto_str out = {0};

    for (size_t i = 0; i < count; i++)
        str_add(&out, text);
    return str_take(&out);
}

static const struct kind_row {
    enum resource_kind kind;
    size_t least, most; /* lengths */
    const char *also;   /* characters beside lower-case letters and digits */
    const char * not ;  /* characters that must be refused */
    const char *target, *reason;
} kinds[] = {
    {RESOURCE_GROUP, 1, 90, "AZ-_.()", "/ %:\\\"'<>&?#*+~\t\n\x7f", "resourceGroupName",
     "InvalidResourceName"},
    {RESOURCE_STORAGE_ACCOUNT, 3, 24, "", "AZ-_./ %:", "accountName", "AccountNameInvalid"},
    {RESOURCE_WORKSPACE, 1, 64, "AZ-_", ".()/ %:\\\"\n", "workspaceName",
     "InvalidResourceName"},
    {RESOURCE_EXPERIMENT, 1, 64, "AZ-_", ".()/ %:\\\"\n", "experimentName",
     "InvalidResourceName"},
    {RESOURCE_CLUSTER, 1, 64, "AZ-_", ".()/ %:\\\"\n", "clusterName", "InvalidResourceName"},
    {RESOURCE_FILE_SERVER, 1, 64, "AZ-_", ".()/ %:\\\"\n", "fileServerName",
     "InvalidResourceName"},
    {RESOURCE_JOB, 1, 64, "AZ-_", ".()/ %:\\\"\n", "jobName", "InvalidResourceName"},
};

static void accept_name(enum resource_kind kind, const char *name)
{
    struct err e = {0};

    if (names_check(kind, name, &e) < 0)
        fail_msg("\"%s\": %s", name, e.msg);
}

static void refuse_name(const struct kind_row *row, const char *name)
{
    struct err e = {0};

    if (names_check(row->kind, name, &e) == 0)
        fail_msg("\"%s\" should be refused for a %s", name,
                 resource_kind_info(row->kind)->noun);
    assert_int_equal(e.code, ERR_INVALID);
    assert_string_equal(e.target, row->target);
    assert_string_equal(err_reason_of(&e), row->reason);
}

static void names_keep_within_their_lengths(void **state)
{
    (void)state;
    assert_int_equal(ARRAY_SIZE(kinds), RESOURCE_KINDS);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        auto_free char *least = run_of("a", kinds[i].least);
        auto_free char *most = run_of("z", kinds[i].most);
        auto_free char *shorter = run_of("a", kinds[i].least - 1);
        auto_free char *longer = run_of("0", kinds[i].most + 1);
        auto_free char *monster = run_of("9", 100000);

        accept_name(kinds[i].kind, least);
        accept_name(kinds[i].kind, most);
        refuse_name(&kinds[i], shorter);
        refuse_name(&kinds[i], longer);
        refuse_name(&kinds[i], monster);
    }
}

static void names_are_made_of_their_characters(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        char name[] = "ab?cd";

        for (const char *c = kinds[i].also; *c; c++) {
            name[2] = *c;
            accept_name(kinds[i].kind, name);
        }
        for (const char *c = kinds[i].not ; *c; c++) {
            name[2] = *c;
            refuse_name(&kinds[i], name);
        }
        refuse_name(&kinds[i], "b\xc3\xbc"
                               "cher");
        refuse_name(&kinds[i], "b\xff"
                               "cher");
    }
}

static void a_group_does_not_end_in_a_point(void **state)
{
    (void)state;
    refuse_name(&kinds[0], "group.");
    refuse_name(&kinds[0], ".");
    accept_name(RESOURCE_GROUP, ".group");
    accept_name(RESOURCE_GROUP, "(group)");
}

static void an_account_name_has_a_problem_or_none(void **state)
{
    (void)state;
    assert_null(names_account_problem("abc"));
    assert_null(names_account_problem("123456789012345678901234"));
    assert_non_null(strstr(names_account_problem("ab"), "between 3 and 24 characters"));
    assert_non_null(names_account_problem(""));
    assert_non_null(names_account_problem("1234567890123456789012345"));
    assert_non_null(names_account_problem("Abc"));
}

static void a_subscription_is_a_uuid(void **state)
{
    static const struct {
        const char *id;
        bool good;
    } rows[] = {
        {"00000000-0000-0000-0000-000000000000", true},
        {"1cba1da6-5a83-45e1-a88e-8b397eb84356", true},
        {"1CBA1DA6-5A83-45E1-A88E-8B397EB84356", true},
        {"", false},
        {"mine", false},
        {"1cba1da6-5a83-45e1-a88e-8b397eb8435", false},
        {"1cba1da6-5a83-45e1-a88e-8b397eb843566", false},
        {"1cba1da65a83-45e1-a88e-8b397eb84356-", false},
        {"gcba1da6-5a83-45e1-a88e-8b397eb84356", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct err e = {0};

        assert_int_equal(names_check_subscription(rows[i].id, &e), rows[i].good ? 0 : -1);
        if (!rows[i].good)
            assert_string_equal(e.target, "subscriptionId");
    }
}

static void a_location_becomes_its_short_form(void **state)
{
    static const struct {
        const char *given, *wanted; /* NULL = refused */
    } rows[] = {
        {"eastus", "eastus"},
        {"East US", "eastus"},
        {" West US 2 ", "westus2"},
        {"my-lab_1.2", "my-lab_1.2"},
        {"x", "x"},
        {"1234567890123456789012345678901234567890123456789012345678901234",
         "1234567890123456789012345678901234567890123456789012345678901234"},
        {"", NULL},
        {"   ", NULL},
        {"east/us", NULL},
        {"east\nus", NULL},
        {"\xc3\xa9st", NULL},
        {"12345678901234567890123456789012345678901234567890123456789012345", NULL},
    };
    autoptr(arena) arena = arena_new();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char *got = NULL;
        struct err e = {0};

        if (names_location(arena, rows[i].given, &got, &e) != (rows[i].wanted ? 0 : -1))
            fail_msg("location \"%s\"", rows[i].given);
        if (rows[i].wanted) {
            assert_string_equal(got, rows[i].wanted);
        } else {
            assert_null(got);
            assert_string_equal(e.target, "location");
        }
    }
}

/* One tag; takes over the value. */
static void check_tag(const char *key, json_t *value, bool good)
{
    json_t *tags = json_object();
    struct err e = {0};

    json_object_set_new(tags, key, value);
    if (names_check_tags(tags, &e) != (good ? 0 : -1))
        fail_msg("tag \"%.40s\" should be %s: %s", key, good ? "taken" : "refused", e.msg);
    if (!good) {
        assert_int_equal(e.code, ERR_INVALID);
        assert_string_equal(e.target, "tags");
        assert_string_equal(err_reason_of(&e), "InvalidTag");
    }
    json_decref(tags);
}

static void tags_keep_within_their_lengths(void **state)
{
    auto_free char *key = run_of("k", 512), *long_key = run_of("k", 513);
    auto_free char *value = run_of("v", 256), *long_value = run_of("v", 257);
    /* Characters are counted, not bytes. */
    auto_free char *wide_key = run_of("\xc3\xa9", 512), *wider_key = run_of("\xc3\xa9", 513);
    auto_free char *wide = run_of("\xf0\x9f\x9a\x82", 256);
    auto_free char *wider = run_of("\xf0\x9f\x9a\x82", 257);

    (void)state;
    check_tag(key, json_string(""), true);
    check_tag(long_key, json_string(""), false);
    check_tag("", json_string("x"), false);
    check_tag("k", json_string(value), true);
    check_tag("k", json_string(long_value), false);
    check_tag(wide_key, json_string("x"), true);
    check_tag(wider_key, json_string("x"), false);
    check_tag("k", json_string(wide), true);
    check_tag("k", json_string(wider), false);
}

static void tag_names_leave_out_some_characters(void **state)
{
    char name[] = "a?b";

    (void)state;
    for (const char *c = "<>%&\\?/"; *c; c++) {
        name[1] = *c;
        check_tag(name, json_string("x"), false);
    }
    for (const char *c = " -_.:=+@()'\""; *c; c++) {
        name[1] = *c;
        check_tag(name, json_string("<>%&\\?/"), true);
    }
}

static void tags_are_an_object_of_strings(void **state)
{
    struct err e = {0};
    json_t *array = json_array();

    (void)state;
    check_tag("k", json_integer(1), false);
    check_tag("k", json_null(), false);
    check_tag("k", json_object(), false);
    assert_int_equal(names_check_tags(array, &e), -1);
    assert_non_null(strstr(e.msg, "got an array"));
    assert_string_equal(err_reason_of(&e), "InvalidRequestContent");
    json_decref(array);
}

static void there_are_at_most_fifty_tags(void **state)
{
    json_t *tags = json_object();
    struct err e = {0};
    char key[8];

    (void)state;
    for (int i = 0; i < 50; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        json_object_set_new(tags, key, json_string("v"));
    }
    assert_int_equal(names_check_tags(tags, &e), 0);
    json_object_set_new(tags, "more", json_string("v"));
    assert_int_equal(names_check_tags(tags, &e), -1);
    assert_non_null(strstr(e.msg, "at most 50"));
    json_decref(tags);
}

static void token_names_follow_their_rule(void **state)
{
    static const struct {
        const char *name;
        bool good;
    } rows[] = {
        {"ci", true},    {"a.b-c_D9", true}, {"", false}, {"a b", false},      {"a/b", false},
        {"a\nb", false}, {"a:b", false},     {".", true}, {"\xc3\xa9", false},
    };
    auto_free char *most = run_of("t", 64), *longer = run_of("t", 65);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct err e = {0};

        if (names_check_token(rows[i].name, &e) != (rows[i].good ? 0 : -1))
            fail_msg("token name \"%s\"", rows[i].name);
        if (!rows[i].good)
            assert_string_equal(e.target, "tokenName");
    }
    assert_int_equal(names_check_token(most, NULL), 0);
    assert_int_equal(names_check_token(longer, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_keep_within_their_lengths),
        cmocka_unit_test(names_are_made_of_their_characters),
        cmocka_unit_test(a_group_does_not_end_in_a_point),
        cmocka_unit_test(an_account_name_has_a_problem_or_none),
        cmocka_unit_test(a_subscription_is_a_uuid),
        cmocka_unit_test(a_location_becomes_its_short_form),
        cmocka_unit_test(tags_keep_within_their_lengths),
        cmocka_unit_test(tag_names_leave_out_some_characters),
        cmocka_unit_test(tags_are_an_object_of_strings),
        cmocka_unit_test(there_are_at_most_fifty_tags),
        cmocka_unit_test(token_names_follow_their_rule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
