/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/jmespath-internal.h"
#include "jmespath-cases.h"

static const char train[] =
    "{\"name\":\"x\",\"cars\":[{\"id\":1,\"load\":2.5,\"tags\":[\"a\",\"b\"]},"
    "{\"id\":2,\"load\":0,\"tags\":[]},{\"id\":3,\"tags\":[\"c\"]}],"
    "\"crew\":{\"driver\":{\"age\":50},\"guard\":{\"age\":30},\"cook\":{}},"
    "\"none\":null,\"no\":false,\"zero\":0,\"blank\":\"\",\"empty\":[],\"hollow\":{},"
    "\"n\":[0,1,2,3,4,5]}";

static void fields_and_indices_are_found_or_null(void **state)
{
    static const struct found table[] = {
        {"name", train, "\"x\""},
        {"crew.driver.age", train, "50"},
        {"crew.fireman.age", train, "null"},
        {"name.age", train, "null"},
        {"cars.id", train, "null"},
        {"none", train, "null"},
        {"n[0]", train, "0"},
        {"n[5]", train, "5"},
        {"n[6]", train, "null"},
        {"n[-1]", train, "5"},
        {"n[-6]", train, "0"},
        {"n[-7]", train, "null"},
        {"n[9223372036854775807]", train, "null"},
        {"n[-9223372036854775808]", train, "null"},
        {"name[0]", train, "null"},
        {"crew[0]", train, "null"},
        {"cars[0].tags[1]", train, "\"b\""},
        {"[0]", "[7]", "7"},
        {"@", "[7]", "[7]"},
        {"@.name", train, "\"x\""},
        {"@", "null", "null"},
        {"a.b", "5", "null"},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void slices_walk_both_ways(void **state)
{
    static const struct found table[] = {
        {"n[:]", train, "[0,1,2,3,4,5]"},
        {"n[::]", train, "[0,1,2,3,4,5]"},
        {"n[1:3]", train, "[1,2]"},
        {"n[4:]", train, "[4,5]"},
        {"n[:2]", train, "[0,1]"},
        {"n[-2:]", train, "[4,5]"},
        {"n[:-4]", train, "[0,1]"},
        {"n[::2]", train, "[0,2,4]"},
        {"n[1::2]", train, "[1,3,5]"},
        {"n[::-1]", train, "[5,4,3,2,1,0]"},
        {"n[4:1:-1]", train, "[4,3,2]"},
        {"n[3::-2]", train, "[3,1]"},
        {"n[:3:-1]", train, "[5,4]"},
        {"n[3:1]", train, "[]"},
        {"n[10:20]", train, "[]"},
        {"n[-100:100]", train, "[0,1,2,3,4,5]"},
        {"n[100:-100:-1]", train, "[5,4,3,2,1,0]"},
        {"n[::9223372036854775807]", train, "[0]"},
        {"n[::-9223372036854775808]", train, "[5]"},
        {"n[1::9223372036854775807]", train, "[1]"},
        {"empty[::-1]", train, "[]"},
        {"name[0:1]", train, "null"},
        {"cars[:2].id", train, "[1,2]"},
        {"cars[::-1].id", train, "[3,2,1]"},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void projections_leave_nulls_out(void **state)
{
    static const struct found table[] = {
        {"cars[*].id", train, "[1,2,3]"},
        {"cars[*].load", train, "[2.5,0]"},
        {"cars[*].nothing", train, "[]"},
        {"name[*]", train, "null"},
        {"crew[*]", train, "null"},
        {"empty[*].a", train, "[]"},
        {"crew.*.age", train, "[50,30]"},
        {"crew.*", train, "[{\"age\":50},{\"age\":30},{}]"},
        {"cars.*", train, "null"},
        {"*.age", "{\"z\":{\"age\":1},\"a\":{\"age\":2},\"m\":3}", "[1,2]"},
        {"*", "[1]", "null"},
        {"cars[*].tags[]", train, "[\"a\",\"b\",\"c\"]"},
        {"[]", "[1,[2,[3]],[],{\"a\":[4]}]", "[1,2,[3],{\"a\":[4]}]"},
        {"[][]", "[1,[2,[3]],[]]", "[1,2,3]"},
        {"[]", "[null,[null]]", "[]"},
        {"name[]", train, "null"},
        {"crew[]", train, "null"},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void filters_keep_what_is_true(void **state)
{
    static const struct found table[] = {
        {"cars[?id > `1`].id", train, "[2,3]"},
        {"cars[?id >= `1` && id < `3`].id", train, "[1,2]"},
        {"cars[?load].id", train, "[1,2]"},
        {"cars[?!load].id", train, "[3]"},
        {"cars[?tags].id", train, "[1,3]"},
        {"cars[?load == `null`].id", train, "[3]"},
        {"cars[?contains(tags, 'c')].id", train, "[3]"},
        {"cars[?id == `2.0`].id | [0]", train, "2"},
        {"cars[?tags[?@ == 'a']].id", train, "[1]"},
        {"cars[?`true`].id", train, "[1,2,3]"},
        {"cars[?`false`]", train, "[]"},
        {"cars[?nothing]", train, "[]"},
        {"crew[?age]", train, "null"},
        {"[?@ > `1`]", "[1,2,3]", "[2,3]"},
        {"[?a == b].c", "[{\"a\":1,\"b\":1,\"c\":\"y\"},{\"a\":1,\"b\":2,\"c\":\"n\"}]",
         "[\"y\"]"},
        {"[?weight <= `44.4`].weight",
         "[{\"weight\":33.3},{\"weight\":44.4},{\"weight\":55.5}]", "[33.3,44.4]"},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void truth_is_that_of_the_language(void **state)
{
    static const struct found table[] = {
        {"!none", train, "true"},
        {"!nothing", train, "true"},
        {"!no", train, "true"},
        {"!blank", train, "true"},
        {"!empty", train, "true"},
        {"!hollow", train, "true"},
        {"!zero", train, "false"},
        {"!name", train, "false"},
        {"!n", train, "false"},
        {"!crew", train, "false"},
        {"blank || name", train, "\"x\""},
        {"name || blank", train, "\"x\""},
        {"zero || name", train, "0"},
        {"no || none", train, "null"},
        {"empty && name", train, "[]"},
        {"name && zero", train, "0"},
        {"none && name", train, "null"},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void comparators_know_types(void **state)
{
    static const struct found table[] = {
        {"`1` == `1.0`", "{}", "true"},
        {"`1` != `1.0`", "{}", "false"},
        {"`1` == `true`", "{}", "false"},
        {"`0` == `false`", "{}", "false"},
        {"`1` == '1'", "{}", "false"},
        {"`null` == a", "{}", "true"},
        {"`[1, {\"a\": 2}]` == `[1.0, {\"a\": 2.0}]`", "{}", "true"},
        {"`[1, 2]` == `[2, 1]`", "{}", "false"},
        {"`[1]` == `[1, 2]`", "{}", "false"},
        {"`{\"a\": 1, \"b\": 2}` == `{\"b\": 2, \"a\": 1}`", "{}", "true"},
        {"`{\"a\": 1}` == `{\"b\": 1}`", "{}", "false"},
        {"`{\"a\": 1}` != `{\"a\": 1, \"b\": 1}`", "{}", "true"},
        {"'a' == 'a'", "{}", "true"},
        {"'a' == 'ab'", "{}", "false"},
        {"`2` < `10`", "{}", "true"},
        {"`2` <= `2`", "{}", "true"},
        {"`2` > `2`", "{}", "false"},
        {"`2.5` >= `2`", "{}", "true"},
        {"'2018-06-06' < '2018-06-07'", "{}", "true"},
        {"'b' <= 'a'", "{}", "false"},
        {"'a' > `1`", "{}", "null"},
        {"`true` > `false`", "{}", "null"},
        {"`[]` < `[1]`", "{}", "null"},
        {"`null` >= `null`", "{}", "null"},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

static void multi_selects_build_lists_and_objects(void **state)
{
    static const struct found table[] = {
        {"[name, zero, nothing]", train, "[\"x\",0,null]"},
        {"{who: name, \"car count\": length(cars)}", train, "{\"who\":\"x\",\"car count\":3}"},
        {"cars[*].[id, tags[0]]", train, "[[1,\"a\"],[2,null],[3,\"c\"]]"},
        {"cars[0].{z: id, a: load}", train, "{\"z\":1,\"a\":2.5}"},
        {"{a: `1`, b: `2`, a: `3`}", train, "{\"a\":3,\"b\":2}"},
        {"nothing.[a]", train, "null"},
        {"nothing.{a: @}", train, "null"},
        {"none | [@]", train, "null"},
        {"name.[@]", train, "[\"x\"]"},
        {"crew.*.[age]", train, "[[50],[30],[null]]"},
        {"[*]", "[1,null,2]", "[1,2]"},
        {"[*.*]", "[]", "[null]"},
    };

    (void)state;
    check_found(table, ARRAY_SIZE(table));
}

/* Each step doubles the tree while the memory stays small, or doubles the memory, or the time.
 */
static void an_exploding_search_is_refused(void **state)
{
    static const struct {
        const char *head, *step, *tail;
    } table[] = {
        {"@", "|[@,@]", ""},
        {"@", "|[@,@][]", ""},
        {"@", "|[to_string(@),to_string(@)]", ""},
        {"@", "|join('',[to_string(@),to_string(@)])", ""},
        {"@", "|[@,@]", "|to_string(@)"},
        {"@", "|{x: @, y: @}", "|length(to_string(@))"},
        {"{x: @, y: reverse(reverse(@))}", "|{x: [x,x], y: [y,y]}", "|x == y"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_str expression = {0};
        auto_json json_t *document = json_loads("[\"0123456789abcdef\"]", 0, NULL);
        auto_json json_t *value = NULL;
        autoptr(jmespath) path = NULL;
        struct err e = {0};

        str_add(&expression, table[i].head);
        for (int n = 0; n < 64; n++)
            str_add(&expression, table[i].step);
        str_add(&expression, table[i].tail);
        assert_int_equal(jmespath_parse(str_text(&expression), &path, &e), 0);
        assert_int_equal(jmes_search(path, document, 100000, &value, &e), -1);
        assert_string_equal(e.reason, "invalid-value");
        assert_true(str_starts(e.msg, "more than 100000 values are made at position"));
    }
}

static void the_document_is_left_as_it_was(void **state)
{
    auto_json json_t *document = json_loads(train, 0, NULL);
    auto_json json_t *before = json_deep_copy(document);
    autoptr(jmespath) path = NULL;

    (void)state;
    assert_int_equal(
        jmespath_parse("merge(@, {n: reverse(n), cars: sort_by(cars, &id)[]})", &path, NULL),
        0);
    for (int i = 0; i < 2; i++) {
        auto_json json_t *value = NULL;

        assert_int_equal(jmespath_search(path, document, &value, NULL), 0);
        assert_true(json_equal(document, before));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_and_indices_are_found_or_null),
        cmocka_unit_test(slices_walk_both_ways),
        cmocka_unit_test(projections_leave_nulls_out),
        cmocka_unit_test(filters_keep_what_is_true),
        cmocka_unit_test(truth_is_that_of_the_language),
        cmocka_unit_test(comparators_know_types),
        cmocka_unit_test(multi_selects_build_lists_and_objects),
        cmocka_unit_test(an_exploding_search_is_refused),
        cmocka_unit_test(the_document_is_left_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
