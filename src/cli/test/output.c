/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static json_t *value_of(const char *text)
{
    json_t *value = NULL;
    struct err e;

    if (json_parse(text, strlen(text), &value, &e) < 0)
        fail_msg("%s: %s", text, e.msg);
    return value;
}

static void check(const struct output *how, const char *json, const char *want)
{
    auto_json json_t *value = value_of(json);
    auto_str out = {0};
    struct err e;

    if (output_format(&out, how, value, &e) < 0)
        fail_msg("%s as %s: %s", json, how->format, e.msg);
    if (!str_equal(str_text(&out), want))
        fail_msg("%s as %s:\n%s---- wanted:\n%s", json, how->format, str_text(&out), want);
}

static void each_format_writes_as_az_does(void **state)
{
    static const struct row {
        const char *format, *json, *want;
    } rows[] = {
        {"json", "{\"b\":1,\"a\":[]}", "{\n  \"a\": [],\n  \"b\": 1\n}\n"},
        {"json", "[true,null,{}]", "[\n  true,\n  null,\n  {}\n]\n"},
        {"json", "\"\\u00e9\\u0001\\n\\\"\\\\\"", "\"\xc3\xa9\\u0001\\n\\\"\\\\\"\n"},
        {"json", "0.1", "0.1\n"},
        {"json", "1.0", "1.0\n"},
        {"json", "1e16", "1e+16\n"},
        {"json", "1e15", "1000000000000000.0\n"},
        {"json", "0.0001", "0.0001\n"},
        {"json", "0.00001", "1e-05\n"},
        {"json", "-0.30000000000000004", "-0.30000000000000004\n"},
        {"json", "null", ""},
        {"none", "{\"a\":1}", ""},
        {"tsv", "[{\"a\":1,\"b\":\"x\"},{\"a\":2,\"b\":\"y\"}]", "1\tx\n2\ty\n"},
        {"tsv", "[\"a\",\"b\"]", "a\nb\n"},
        {"tsv", "\"plain\"", "plain\n"},
        {"tsv", "true", "true\n"},
        {"tsv", "[[1,true,null,[1,2],{}]]", "1\tTrue\tNone\t2\t\n"},
        {"tsv", "[]", ""},
        {"tsv", "1.5", "1.5\n"},
        {"table", "[{\"name\":\"a\",\"location\":\"eastus\"}]",
         "Name    Location\n------  ----------\na       eastus\n"},
        {"table", "[{\"name\":\"a\"},{\"name\":\"longer name\",\"size\":2}]",
         "Name         Size\n-----------  ------\na\nlonger name  2\n"},
        {"table", "{\"id\":\"x\",\"name\":\"a\",\"tags\":{},\"none\":null,\"on\":true}",
         "Name    On\n------  ----\na       True\n"},
        {"table", "[[1,\"x\"],[2,\"y\"]]",
         "Column1    Column2\n---------  ---------\n1          x\n2          y\n"},
        {"table", "\"word\"", "Result\n--------\nword\n"},
        {"table", "[]", ""},
        {"table", "{\"a\":\"two\\nlines\"}", "A\n---------\ntwo lines\n"},
        {"table", "{\"id\":\"only\"}", "Id\n----\nonly\n"},
        {"yaml", "{\"b\":[1,{\"c\":null}],\"a\":\"yes\"}", "a: 'yes'\nb:\n- 1\n- c: null\n"},
        {"yaml", "\"foo\"", "foo\n...\n"},
        {"yaml", "[]", "[]\n"},
        {"yaml", "{\"t\":\"2018-06-16T01:24:13.629000+00:00\"}",
         "t: '2018-06-16T01:24:13.629000+00:00'\n"},
        {"yaml", "{\"k\":\"a\\nb\"}", "k: 'a\n\n  b'\n"},
        {"yaml", "{\"k\":1e20}", "k: 1.0e+20\n"},
        {"yamlc", "{\"k\":1}", "k: 1\n"},
        {"jsonc", "{\"k\":1}", "{\n  \"k\": 1\n}\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct output how = {.format = rows[i].format};

        check(&how, rows[i].json, rows[i].want);
    }
}

static void a_table_has_the_columns_of_its_command(void **state)
{
    struct output how = {
        .format = "table",
        .table = "{Name: name, Workspace: idParts.workspaces, State: state}",
    };

    (void)state;
    check(&how, "[{\"id\":\"/subscriptions/s/workspaces/w/experiments/e\",\"name\":\"e\"}]",
          "Name    Workspace    State\n------  -----------  -------\ne       w\n");
    how.queried = true;
    check(&how, "[{\"x\":1}]", "X\n---\n1\n");
}

static void the_order_of_a_query_is_kept_in_tables(void **state)
{
    struct output table = {.format = "table", .queried = true};
    struct output tsv = {.format = "tsv", .queried = true};

    (void)state;
    check(&table, "[{\"b\":1,\"a\":2}]", "B    A\n---  ---\n1    2\n");
    check(&tsv, "[{\"b\":1,\"a\":2}]", "1\t2\n");
}

static void what_no_table_can_show_is_an_error(void **state)
{
    struct output how = {.format = "table"};
    auto_json json_t *value = value_of("[{\"a\":{}}]");
    auto_str out = {0};
    struct err e;

    (void)state;
    assert_int_equal(output_format(&out, &how, value, &e), -1);
    assert_non_null(strstr(e.msg, "--query"));
    assert_int_equal(out.len, 0);
}

static void colours_only_when_asked_for(void **state)
{
    struct output how = {.format = "jsonc", .colour = true};

    (void)state;
    check(&how, "{\"k\":1}", "{\n  \x1b[94m\"k\"\x1b[0m: \x1b[36m1\x1b[0m\n}\n");
    how.format = "json";
    check(&how, "{\"k\":1}", "{\n  \"k\": 1\n}\n");
    how.format = "yamlc";
    check(&how, "{\"k\":{\"x\":\"y\"}}", "\x1b[94mk\x1b[0m:\n  \x1b[94mx\x1b[0m: y\n");
}

static void a_terminal_gets_no_control_characters(void **state)
{
    static const char *const formats[] = {"json", "jsonc", "tsv", "table", "yaml"};
    auto_json json_t *value =
        value_of("{\"a\\u001b]0;x\\u0007\":\"\\u001b[2Jred\\u009b31m\\u007f\"}");

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        struct output how = {.format = formats[i], .clean = true};
        auto_str out = {0};

        assert_int_equal(output_format(&out, &how, value, NULL), 0);
        assert_null(strchr(str_text(&out), '\x1b'));
        assert_null(strchr(str_text(&out), '\x07'));
        assert_null(strchr(str_text(&out), '\x7f'));
        assert_null(strstr(str_text(&out), "\xc2\x9b"));
        assert_null(strstr(str_text(&out), "\\u001b"));
        assert_non_null(strstr(str_text(&out), "[2Jred31m"));
    }
}

static void a_member_has_the_parts_of_its_id_too(void **state)
{
    static const struct output how = {.format = "table",
                                      .table = "{C: cluster.idParts.clusters, N: name}"};

    (void)state;
    check(&how, "[{\"name\":\"j\",\"cluster\":{\"id\":\"/w/x/clusters/c\"}},{\"name\":\"k\"}]",
          "C    N\n---  ---\nc    j\n     k\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_has_the_parts_of_its_id_too),
        cmocka_unit_test(each_format_writes_as_az_does),
        cmocka_unit_test(a_table_has_the_columns_of_its_command),
        cmocka_unit_test(the_order_of_a_query_is_kept_in_tables),
        cmocka_unit_test(what_no_table_can_show_is_an_error),
        cmocka_unit_test(colours_only_when_asked_for),
        cmocka_unit_test(a_terminal_gets_no_control_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
