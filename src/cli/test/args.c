/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/args.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum {
    MOST_WORDS = 24,
};

struct words {
    char *list[MOST_WORDS + 1];
    int count;
};

static void words_done(struct words *words)
{
    for (int i = 0; i < words->count; i++)
        free(words->list[i]);
}
#define auto_words __attribute__((cleanup(words_done))) struct words

/* Words of a line, at single spaces; '~' stands for a space within a word. */
static struct words split(const char *line)
{
    struct words words = {0};

    while (*line) {
        size_t len = strcspn(line, " ");

        assert_true(words.count < MOST_WORDS);
        words.list[words.count] = xstrndup(line, len);
        for (char *p = words.list[words.count]; *p; p++)
            *p = *p == '~' ? ' ' : *p;
        words.count++;
        line += len;
        line += *line == ' ';
    }
    return words;
}

static struct args *parsed(const char *line)
{
    auto_words words = split(line);
    struct args *args;
    struct err e = {0};

    if (args_parse(words.count, words.list, &args, &e) < 0)
        fail_msg("%s: %s", line, e.msg);
    return args;
}

static void every_way_to_write_an_option_is_understood(void **state)
{
    static const struct row {
        const char *line, *key, *want;
    } rows[] = {
        {"group create --name a -l b", "name", "a"},
        {"group create --name=a -l b", "name", "a"},
        {"group create -n a -l b", "name", "a"},
        {"group create -na -l b", "name", "a"},
        {"group create -n=a -l b", "name", "a"},
        {"group create --resource-group a", "name", "a"},
        {"group create -g a", "name", "a"},
        {"group create --na a", "name", "a"},
        {"group create --resource a", "name", "a"},
        {"group create --loc eastus", "location", "eastus"},
        {"group create -n a -n b", "name", "b"},
        {"group create -n=", "name", ""},
        {"group create --name=a=b", "name", "a=b"},
        {"group create -n -5", "name", "-5"},
        {"group create -n -~x", "name", "- x"},
        {"-o table group list", "output", "table"},
        {"group -o table list", "output", "table"},
        {"group list -o TABLE", "output", "table"},
        {"group list --query [].name", "query", "[].name"},
        {"query -- -x", "EXPRESSION", "-x"},
        {"query a.b -o yaml", "EXPRESSION", "a.b"},
        {"storage account update -n a --https-only", "https-only", "true"},
        {"storage account update -n a --https-only False", "https-only", "false"},
        {"storage account create -n a --sku standard_lrs", "sku", "Standard_LRS"},
        {"batchai workspace create -n w", "workspace", "w"},
        {"batchai workspace create --workspace w", "workspace", "w"},
        {"batchai experiment create -w w -n x", "name", "x"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoptr(args) args = parsed(rows[i].line);
        const char *got = args_get(args, rows[i].key);

        if (!got || !str_equal(got, rows[i].want))
            fail_msg("%s: %s is %s", rows[i].line, rows[i].key, got ? got : "(null)");
    }
}

static void words_and_unique_prefixes_lead_to_a_command(void **state)
{
    static const struct row {
        const char *line, *path;
    } rows[] = {
        {"group create", "group create"},
        {"gr cr", "group create"},
        {"sto acc k l", "storage account keys list"},
        {"storage account list", "storage account list"},
        {"bat w sh", "batchai workspace show"},
        {"batchai li", "batchai list-usages"},
        {"account list", "account list"},
        {"man", "man"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoptr(args) args = parsed(rows[i].line);

        assert_non_null(args_command(args));
        assert_string_equal(args_command(args)->path, rows[i].path);
        assert_string_equal(args_path(args), rows[i].path);
    }
}

static void a_group_alone_is_no_command(void **state)
{
    autoptr(args) args = parsed("storage account");
    autoptr(args) none = parsed("");

    (void)state;
    assert_null(args_command(args));
    assert_string_equal(args_path(args), "storage account");
    assert_null(args_command(none));
    assert_string_equal(args_path(none), "");
}

static void mistakes_are_usage_errors_that_name_them(void **state)
{
    static const struct row {
        const char *line, *says;
    } rows[] = {
        {"grup list", "did you mean group?"},
        {"group lsit", "did you mean list?"},
        {"group xyzzy", "\"xyzzy\" is not a command of \"yard group\""},
        {"st", "could be storage or status"},
        {"storage account c", "could be create or check-name"},
        {"group create --nmae a", "did you mean --name?"},
        {"group create --zzzzzz", "unrecognized option: --zzzzzz"},
        {"group create -n", "--name needs a value"},
        {"group create -n -l x", "--name needs a value"},
        {"group create --name", "--name needs a value"},
        {"group list -o xml", "\"xml\" is not a valid value"},
        {"group list -o jsn", "did you mean json?"},
        {"group delete -n a --yes=1", "--yes takes no value"},
        {"group show -n a b", "unrecognized argument: \"b\""},
        {"--name x group show", "must come after a command"},
        {"group list --", NULL},
        {"group show -x", "unrecognized option: -x"},
        {"storage account update --https-only maybe", "--https-only: \"maybe\""},
        {"storage account create --s x", "could be --sku or --subscription"},
        {"man x y", "unrecognized argument: \"y\""},
        {"group \xff", "argument 2 is not UTF-8"},
        {"group create -n \xc3(", "not UTF-8"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_words words = split(rows[i].line);
        autoptr(args) args = NULL;
        struct err e = {0};
        int rc = args_parse(words.count, words.list, &args, &e);

        if (!rows[i].says) {
            assert_int_equal(rc, 0);
            continue;
        }
        if (rc == 0 || !strstr(e.msg, rows[i].says))
            fail_msg("%s: rc %d, %s", rows[i].line, rc, e.msg);
        assert_true(args_failed(&e));
    }
}

static void lists_take_everything_up_to_the_next_option(void **state)
{
    autoptr(args) args = parsed("group create -n a --tags x=1 y z=3 -l b");
    autoptr(args) empty = parsed("group create -n a --tags -l b");
    autoptr(args) none = parsed("group create -n a -l b");
    size_t count;
    const char *const *tags = args_list(args, "tags", &count);

    (void)state;
    assert_int_equal(count, 3);
    assert_string_equal(tags[0], "x=1");
    assert_string_equal(tags[1], "y");
    assert_string_equal(tags[2], "z=3");
    assert_string_equal(args_get(args, "location"), "b");
    args_list(empty, "tags", &count);
    assert_int_equal(count, 0);
    assert_true(args_has(empty, "tags"));
    assert_false(args_has(none, "tags"));
}

static void short_flags_can_stand_together(void **state)
{
    autoptr(args) args = parsed("group delete -yn a");

    (void)state;
    assert_true(args_flag(args, "yes"));
    assert_string_equal(args_get(args, "name"), "a");
}

static void switches_have_three_states(void **state)
{
    autoptr(args) on = parsed("storage account update -n a --https-only");
    autoptr(args) off = parsed("storage account update -n a --https-only=false");
    autoptr(args) unset = parsed("storage account update -n a");

    (void)state;
    assert_int_equal(args_switch(on, "https-only"), 1);
    assert_int_equal(args_switch(off, "https-only"), 0);
    assert_int_equal(args_switch(unset, "https-only"), -1);
}

static const char *look(void *context, const char *key)
{
    (void)context;
    return str_equal(key, "group") ? "remembered" : NULL;
}

static void defaults_fill_what_was_not_typed(void **state)
{
    autoptr(args) typed = parsed("storage account create -n a -g mine");
    autoptr(args) not_typed = parsed("storage account create -n a");

    (void)state;
    args_defaults(typed, look, NULL);
    args_defaults(not_typed, look, NULL);
    assert_string_equal(args_get(typed, "resource-group"), "mine");
    assert_string_equal(args_get(not_typed, "resource-group"), "remembered");
    assert_string_equal(args_get(not_typed, "kind"), "StorageV2");
    assert_null(args_get(not_typed, "location"));
}

static void required_options_are_asked_for(void **state)
{
    static const struct row {
        const char *line, *says;
    } rows[] = {
        {"group create -n a -l b", NULL},
        {"group create -n a", "required: --location/-l"},
        {"group create", "required: --name/-n/--resource-group/-g, --location/-l"},
        {"query", "required: EXPRESSION"},
        {"batchai experiment show --ids /subscriptions/s", NULL},
        {"batchai experiment show --ids", "--ids needs at least one"},
        {"batchai experiment show -n x", "required: --workspace/-w, --resource-group/-g"},
        {"batchai workspace update --ids /subscriptions/s", "required: --tags"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoptr(args) args = parsed(rows[i].line);
        struct err e = {0};
        int rc = args_check(args, &e);

        if (rows[i].says ? rc == 0 || !strstr(e.msg, rows[i].says) : rc < 0)
            fail_msg("%s: rc %d, %s", rows[i].line, rc, e.msg);
        assert_int_equal(rc < 0, args_failed(&e));
    }
}

static void help_wins_over_what_comes_behind_it(void **state)
{
    autoptr(args) args = parsed("group create -h --bogus");
    autoptr(args) before = parsed("-h group create");

    (void)state;
    assert_true(args_flag(args, "help"));
    assert_true(args_flag(before, "help"));
    assert_string_equal(args_command(before)->path, "group create");
}

static void some_options_add_up(void **state)
{
    autoptr(args) args = parsed("run --env A=1 --nodes 1 --nodes 2 --env B=2 -- ./x --env C=3");
    const char *const *texts;
    size_t count;

    (void)state;
    texts = args_list(args, "env", &count);
    assert_int_equal(count, 2);
    assert_string_equal(texts[0], "A=1");
    assert_string_equal(texts[1], "B=2");
    assert_string_equal(args_get(args, "nodes"), "2");
    texts = args_list(args, "COMMAND", &count);
    assert_int_equal(count, 3);
    assert_string_equal(texts[1], "--env");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(some_options_add_up),
        cmocka_unit_test(every_way_to_write_an_option_is_understood),
        cmocka_unit_test(words_and_unique_prefixes_lead_to_a_command),
        cmocka_unit_test(a_group_alone_is_no_command),
        cmocka_unit_test(mistakes_are_usage_errors_that_name_them),
        cmocka_unit_test(lists_take_everything_up_to_the_next_option),
        cmocka_unit_test(short_flags_can_stand_together),
        cmocka_unit_test(switches_have_three_states),
        cmocka_unit_test(defaults_fill_what_was_not_typed),
        cmocka_unit_test(required_options_are_asked_for),
        cmocka_unit_test(help_wins_over_what_comes_behind_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
