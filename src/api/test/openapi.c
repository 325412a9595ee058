/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static json_t *document(void)
{
    auto_free char *text = api_openapi("1.2.3");
    json_t *value = NULL;
    struct err e = {0};

    if (json_parse(text, strlen(text), &value, &e) < 0)
        fail_msg("%s", e.msg);
    return value;
}

static const char *string_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    assert_non_null(text);
    return text;
}

/* The names between braces in order, a space after each. */
static void add_params(struct str *out, const char *pattern)
{
    for (const char *p = strchr(pattern, '{'); p; p = strchr(p + 1, '{')) {
        str_add_len(out, p + 1, strcspn(p + 1, "}"));
        str_add_char(out, ' ');
    }
}

static void check_params(const json_t *operation, const char *pattern)
{
    auto_str wanted = {0}, got = {0};
    size_t i;
    json_t *param;

    add_params(&wanted, pattern);
    json_array_foreach(json_object_get(operation, "parameters"), i, param)
    {
        assert_string_equal(string_at(param, "in"), "path");
        assert_true(json_is_true(json_object_get(param, "required")));
        str_addf(&got, "%s ", string_at(param, "name"));
    }
    assert_string_equal(str_text(&got), str_text(&wanted));
}

static void check_operation(const json_t *operation, const struct api_route *r)
{
    json_t *body = json_object_get(operation, "requestBody");

    assert_true(json_is_object(operation));
    assert_string_equal(string_at(operation, "operationId"), r->operation_id);
    assert_string_equal(string_at(operation, "summary"), r->summary);
    assert_string_equal(string_at(operation, "x-permission"),
                        access_permission_name(r->permission));
    check_params(operation, r->route.pattern);
    assert_int_equal(body != NULL, r->body == BODY_JSON || r->body == BODY_FORM);
    assert_int_equal(json_object_get(operation, "security") != NULL,
                     r->permission == ACCESS_PUBLIC);
    assert_non_null(json_object_get(json_object_get(operation, "responses"), "default"));
}

static void every_route_is_there_with_its_parameters(void **state)
{
    auto_json json_t *whole = document();
    json_t *paths = json_object_get(whole, "paths");

    (void)state;
    for (size_t i = 0; i < api_route_count; i++) {
        auto_free char *method = str_lower(api_routes[i].route.method);
        json_t *path = json_object_get(paths, api_routes[i].route.pattern);

        if (!json_object_get(path, method))
            fail_msg("%s %s is missing", method, api_routes[i].route.pattern);
        check_operation(json_object_get(path, method), &api_routes[i]);
    }
}

static void there_is_nothing_but_the_routes(void **state)
{
    auto_json json_t *whole = document();
    size_t count = 0;
    const char *pattern;
    json_t *path;

    (void)state;
    json_object_foreach(json_object_get(whole, "paths"), pattern, path)
    {
        count += json_object_size(path);
    }
    assert_int_equal(count, api_route_count);
}

static void the_head_says_what_it_is(void **state)
{
    auto_json json_t *whole = document();
    json_t *security = json_object_get(whole, "security");
    json_t *schemes = json_object_get(json_object_get(whole, "components"), "securitySchemes");

    (void)state;
    assert_string_equal(string_at(whole, "openapi"), "3.0.3");
    assert_string_equal(string_at(json_object_get(whole, "info"), "version"), "1.2.3");
    assert_string_equal(string_at(json_object_get(schemes, "bearer"), "scheme"), "bearer");
    assert_non_null(json_object_get(json_array_get(security, 0), "bearer"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_is_there_with_its_parameters),
        cmocka_unit_test(there_is_nothing_but_the_routes),
        cmocka_unit_test(the_head_says_what_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
