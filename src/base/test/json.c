/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static json_t *parsed(const char *text)
{
    struct err e = {0};
    json_t *value = NULL;

    if (json_parse(text, strlen(text), &value, &e) < 0)
        fail_msg("%s: %s", text, e.msg);
    return value;
}

static void good_texts_are_written_back_compactly(void **state)
{
    static const struct {
        const char *text, *compact, *canonical;
    } table[] = {
        {"{}", "{}", "{}"},
        {" [1, 2.5, -3] ", "[1,2.5,-3]", "[1,2.5,-3]"},
        {"\"text\"", "\"text\"", "\"text\""},
        {"7", "7", "7"},
        {"null", "null", "null"},
        {"{\"b\": {\"d\":1, \"c\":true}, \"a\": []}", "{\"b\":{\"d\":1,\"c\":true},\"a\":[]}",
         "{\"a\":[],\"b\":{\"c\":true,\"d\":1}}"},
        {"\"\\u00fc\\n\\\"\"", "\"\xc3\xbc\\n\\\"\"", "\"\xc3\xbc\\n\\\"\""},
        {"9223372036854775807", "9223372036854775807", "9223372036854775807"},
        {"{\"a\\tb\":\"\\u001f\\\\\\/\x7f\"}", "{\"a\\tb\":\"\\u001F\\\\/\x7f\"}",
         "{\"a\\tb\":\"\\u001F\\\\/\x7f\"}"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_json json_t *value = parsed(table[i].text);
        auto_free char *canonical = json_canonical(value);
        auto_str out = {0};

        json_write(&out, value);
        assert_string_equal(str_text(&out), table[i].compact);
        assert_string_equal(canonical, table[i].canonical);
    }
}

static void fractions_are_written_with_the_fewest_digits(void **state)
{
    static const char *const table[] = {"33.3",
                                        "0.1",
                                        "1.0",
                                        "-0.0",
                                        "1e21",
                                        "0.30000000000000004",
                                        "1.7976931348623157e308",
                                        "1e-7",
                                        "2e-5",
                                        "5e15",
                                        "[0.1,7]"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_json json_t *value = parsed(table[i]);
        auto_str out = {0};

        json_write(&out, value);
        assert_string_equal(str_text(&out), table[i]);
    }
}

static void bad_texts_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *text, *place;
    } table[] = {
        {"", "line 1, column 0"},
        {"{", "line 1, column 1"},
        {"{\"a\":1,}", "line 1, column 8"},
        {"{\n\"a\": x}", "line 2, column 6"},
        {"[1] 2", "line 1, column 5"},
        {"{\"a\":1,\"a\":2}", "duplicate object key"},
        {"{\"a\":{\"b\":1,\"b\":2}}", "duplicate object key"},
        {"[01]", "line 1"},
        {"[1.]", "line 1"},
        {"[.5]", "line 1"},
        {"[NaN]", "line 1"},
        {"[1e999]", "real number overflow"},
        {"[9223372036854775808]", "too big integer"},
        {"'a'", "line 1"},
        {"\"a", "line 1"},
        {"\"\\x\"", "line 1"},
        {"\"a\nb\"", "line 1"},
        {"\"\\u0000\"", "\\u0000"},
        {"\"\\ud800\"", "line 1"},
        {"\"\xff\"", "line 1"},
        {"\"\xc0\x80\"", "line 1"},
        {"tru", "line 1"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        json_t *value = NULL;
        struct err e = {0};

        if (json_parse(table[i].text, strlen(table[i].text), &value, &e) == 0)
            fail_msg("accepted: %s", table[i].text);
        assert_null(value);
        assert_int_equal(e.code, ERR_INVALID);
        assert_string_equal(err_reason_of(&e), "InvalidRequestContent");
        if (!strstr(e.msg, table[i].place))
            fail_msg("%s: \"%s\" is not in \"%s\"", table[i].text, table[i].place, e.msg);
    }
}

static void only_the_given_length_is_read(void **state)
{
    json_t *value = NULL;

    (void)state;
    assert_int_equal(json_parse("[1]garbage", 3, &value, NULL), 0);
    json_decref(value);
    assert_int_equal(json_parse("[1]\0", 4, &value, NULL), -1);
}

static void nest(struct str *out, const char *open, const char *close, int depth)
{
    for (int i = 0; i < depth; i++)
        str_add(out, open);
    for (int i = 0; i < depth; i++)
        str_add(out, close);
}

static void nesting_has_a_limit(void **state)
{
    static const struct {
        int depth;
        bool good;
    } table[] = {
        {1, true},
        {JSON_MOST_DEPTH, true},
        {JSON_MOST_DEPTH + 1, false},
        {100000, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_str text = {0};
        auto_json json_t *value = NULL;
        struct err e = {0};

        nest(&text, "[", "]", table[i].depth);
        assert_int_equal(json_parse(text.data, text.len, &value, &e), table[i].good ? 0 : -1);
        if (!table[i].good)
            assert_non_null(strstr(e.msg, "nested more than 64 levels"));
    }
}

static void brackets_in_strings_are_not_depth(void **state)
{
    auto_str text = {0};
    auto_json json_t *value = NULL;

    (void)state;
    str_add(&text, "[\"\\\"");
    nest(&text, "[{", "}]", 500);
    str_add(&text, "\"]");
    assert_int_equal(json_parse(text.data, text.len, &value, NULL), 0);
}

static const char fields[] = "{\"o\":{},\"a\":[],\"s\":\"x\",\"i\":7,\"f\":1.5,\"t\":true,"
                             "\"b\":false,\"n\":null}";

enum getter { OBJECT, ARRAY, STRING, INT, BOOL };

static int get(const json_t *object, enum getter getter, const char *key, struct err *e)
{
    json_t *value;
    const char *text;
    int64_t number;
    bool flag;

    switch (getter) {
    case OBJECT:
        return json_get_object(object, key, &value, e);
    case ARRAY:
        return json_get_array(object, key, &value, e);
    case STRING:
        return json_get_string(object, key, &text, e);
    case INT:
        return json_get_int(object, key, 0, 100, &number, e);
    case BOOL:
        return json_get_bool(object, key, &flag, e);
    }
    return -2;
}

static void a_wrong_type_is_named_with_its_field(void **state)
{
    static const struct {
        enum getter getter;
        const char *key, *msg;
    } table[] = {
        {OBJECT, "a", "a: expected an object, got an array"},
        {OBJECT, "s", "s: expected an object, got a string"},
        {ARRAY, "o", "o: expected an array, got an object"},
        {STRING, "i", "i: expected a string, got an integer"},
        {STRING, "t", "t: expected a string, got a boolean"},
        {INT, "f", "f: expected an integer, got a fraction"},
        {INT, "s", "s: expected an integer, got a string"},
        {BOOL, "i", "i: expected a boolean, got an integer"},
        {BOOL, "s", "s: expected a boolean, got a string"},
    };
    auto_json json_t *object = parsed(fields);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};

        assert_int_equal(get(object, table[i].getter, table[i].key, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
        assert_string_equal(e.msg, table[i].msg);
        assert_string_equal(e.target, table[i].key);
        assert_string_equal(err_reason_of(&e), "InvalidRequestContent");
    }
}

static void right_types_are_given(void **state)
{
    auto_json json_t *object = parsed(fields);
    json_t *value = NULL;
    const char *text = NULL;
    int64_t number = 0;
    bool flag = false;

    (void)state;
    assert_int_equal(json_get_object(object, "o", &value, NULL), 0);
    assert_true(json_is_object(value));
    assert_int_equal(json_get_array(object, "a", &value, NULL), 0);
    assert_true(json_is_array(value));
    assert_int_equal(json_get_string(object, "s", &text, NULL), 0);
    assert_string_equal(text, "x");
    assert_int_equal(json_get_int(object, "i", 7, 7, &number, NULL), 0);
    assert_int_equal(number, 7);
    assert_int_equal(json_get_bool(object, "t", &flag, NULL), 0);
    assert_true(flag);
    assert_int_equal(json_get_bool(object, "b", &flag, NULL), 0);
    assert_false(flag);
}

static void absent_and_null_are_not_there(void **state)
{
    static const char *const keys[] = {"n", "absent"};
    auto_json json_t *object = parsed(fields);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        json_t *value = object;
        const char *text = "x";
        int64_t number = 42;
        bool flag = true;

        assert_int_equal(json_get_object(object, keys[i], &value, NULL), 0);
        assert_null(value);
        value = object;
        assert_int_equal(json_get_array(object, keys[i], &value, NULL), 0);
        assert_null(value);
        assert_int_equal(json_get_string(object, keys[i], &text, NULL), 0);
        assert_null(text);
        assert_int_equal(json_get_int(object, keys[i], 0, 1, &number, NULL), 0);
        assert_int_equal(number, 42);
        assert_int_equal(json_get_bool(object, keys[i], &flag, NULL), 0);
        assert_true(flag);
    }
}

static void a_number_out_of_range_is_named_with_the_range(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } table[] = {
        {"{\"n\":0}", false},
        {"{\"n\":1}", true},
        {"{\"n\":10}", true},
        {"{\"n\":11}", false},
        {"{\"n\":-9223372036854775808}", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_json json_t *object = parsed(table[i].text);
        struct err e = {0};
        int64_t number = 42;

        assert_int_equal(json_get_int(object, "n", 1, 10, &number, &e), table[i].good ? 0 : -1);
        if (table[i].good)
            continue;
        assert_int_equal(number, 42);
        assert_string_equal(err_reason_of(&e), "InvalidParameterValue");
        assert_string_equal(e.target, "n");
        assert_non_null(strstr(e.msg, "is out of range; take 1 to 10"));
    }
}

static void types_have_names(void **state)
{
    (void)state;
    assert_string_equal(json_type_name(json_null()), "null");
    assert_string_equal(json_type_name(NULL), "nothing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_texts_are_written_back_compactly),
        cmocka_unit_test(fractions_are_written_with_the_fewest_digits),
        cmocka_unit_test(bad_texts_are_refused_with_their_place),
        cmocka_unit_test(only_the_given_length_is_read),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(brackets_in_strings_are_not_depth),
        cmocka_unit_test(a_wrong_type_is_named_with_its_field),
        cmocka_unit_test(right_types_are_given),
        cmocka_unit_test(absent_and_null_are_not_there),
        cmocka_unit_test(a_number_out_of_range_is_named_with_the_range),
        cmocka_unit_test(types_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
