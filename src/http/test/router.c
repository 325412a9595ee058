/* SPDX-License-Identifier: Apache-2.0 */
#include "http/router.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct http_route routes[] = {
    {"GET", "/"},
    {"GET", "/subscriptions"},
    {"GET", "/subscriptions/{subscriptionId}"},
    {"GET", "/subscriptions/{subscriptionId}/resourceGroups"},
    {"PUT", "/subscriptions/{subscriptionId}/resourceGroups/{name}"},
    {"GET", "/subscriptions/{id}/resourceGroups/{group}"},
    {"GET", "/things/all"},
    {"POST", "/things/{name}"},
    {"DELETE", "/things/{name}"},
    {"GET", "/things/{name}/parts"},
    {"GET", "/files/{share}/{path*}"},
    {"HEAD", "/head/own"},
    {"GET", "/head/own"},
};

static int setup(void **state)
{
    struct http_router *router = http_router_new();

    for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
        http_router_add(router, &routes[i]);
    *state = router;
    return 0;
}

static int teardown(void **state)
{
    http_router_free(*state);
    return 0;
}

static const struct found {
    const char *method, *path;
    size_t route;
    const char *name, *value; /* one parameter of the match, or NULL */
} founds[] = {
    {"GET", "/", 0, NULL, NULL},
    {"GET", "", 0, NULL, NULL},
    {"GET", "/subscriptions", 1, NULL, NULL},
    {"GET", "/subscriptions/", 1, NULL, NULL},
    {"GET", "/SUBSCRIPTIONS", 1, NULL, NULL},
    {"GET", "/subscriptions/Ab%20c", 2, "subscriptionId", "Ab c"},
    {"GET", "/subscriptions/1/resourcegroups", 3, "subscriptionId", "1"},
    {"PUT", "/subscriptions/1/resourceGroups/g", 4, "name", "g"},
    {"GET", "/subscriptions/1/resourceGroups/g/", 5, "group", "g"},
    {"GET", "/subscriptions/1/resourceGroups/g", 5, "id", "1"},
    {"GET", "/things/all", 6, NULL, NULL},
    {"GET", "/things/%61ll", 6, NULL, NULL},
    {"POST", "/things/all", 7, "name", "all"},
    {"DELETE", "/things/a%2Fb", 8, "name", "a/b"},
    {"DELETE", "/things/%252e", 8, "name", "%2e"},
    {"DELETE", "/things/a+b", 8, "name", "a+b"},
    {"DELETE", "/things/..", 8, "name", ".."},
    {"GET", "/things/all/parts", 9, "name", "all"},
    {"HEAD", "/things/x/parts", 9, "name", "x"},
    {"GET", "/files/s/a", 10, "path", "a"},
    {"GET", "/files/s/a/b%20c//d/", 10, "path", "a/b c//d/"},
    {"GET", "/files/s/a", 10, "share", "s"},
    {"GET", "/files/s//a", 10, "path", "/a"},
    {"HEAD", "/head/own", 11, NULL, NULL},
    {"GET", "/head/own", 12, NULL, NULL},
};

static void paths_lead_to_their_rows(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(founds); i++) {
        const struct found *f = &founds[i];
        autoptr(arena) arena = arena_new();
        struct http_match match;
        struct err e;

        if (http_router_find(*state, f->method, f->path, arena, &match, NULL, &e) < 0)
            fail_msg("%s %s: %s", f->method, f->path, e.msg);
        if (match.route != &routes[f->route])
            fail_msg("%s %s led to %s", f->method, f->path, match.route->pattern);
        if (f->name)
            assert_string_equal(http_match_param(&match, f->name), f->value);
    }
}

static const struct missed {
    const char *method, *path;
    enum err_code code;
    const char *allow;
} misses[] = {
    {"GET", "/nothing", ERR_NOT_FOUND, NULL},
    {"GET", "//", ERR_NOT_FOUND, NULL},
    {"GET", "//subscriptions", ERR_NOT_FOUND, NULL},
    {"GET", "/subscriptions//resourceGroups", ERR_NOT_FOUND, NULL},
    {"GET", "/subscriptions/1/resourceGroups/g/more", ERR_NOT_FOUND, NULL},
    {"GET", "/subscription", ERR_NOT_FOUND, NULL},
    {"GET", "/files/s", ERR_NOT_FOUND, NULL},
    {"GET", "/files/s/", ERR_NOT_FOUND, NULL},
    {"GET", "/subscriptions%2F1", ERR_NOT_FOUND, NULL},
    {"PATCH", "/things/x", ERR_METHOD, "POST, DELETE"},
    {"PUT", "/things/all", ERR_METHOD, "GET, HEAD, POST, DELETE"},
    {"get", "/subscriptions", ERR_METHOD, "GET, HEAD"},
    {"POST", "/head/own", ERR_METHOD, "HEAD, GET"},
    {"HEAD", "/things/x", ERR_METHOD, "POST, DELETE"},
    {"GET", "/things/%", ERR_INVALID, NULL},
    {"GET", "/things/%zz", ERR_INVALID, NULL},
    {"GET", "/things/%00", ERR_INVALID, NULL},
    {"GET", "/things/%ff", ERR_INVALID, NULL},
    {"GET", "/things/%c0%af", ERR_INVALID, NULL},
};

static void other_paths_fail_with_the_right_code(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(misses); i++) {
        const struct missed *m = &misses[i];
        autoptr(arena) arena = arena_new();
        const char *allow = NULL;
        struct http_match match;
        struct err e = {0};

        assert_int_equal(
            http_router_find(*state, m->method, m->path, arena, &match, &allow, &e), -1);
        if (e.code != m->code)
            fail_msg("%s %s: code %d", m->method, m->path, (int)e.code);
        if (m->allow)
            assert_string_equal(allow, m->allow);
    }
}

static void a_path_of_many_segments_is_no_trouble(void **state)
{
    autoptr(arena) arena = arena_new();
    auto_str path = {0};
    struct http_match match;

    for (int i = 0; i < 4000; i++)
        str_add(&path, "/a");
    assert_int_equal(
        http_router_find(*state, "GET", str_text(&path), arena, &match, NULL, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_lead_to_their_rows),
        cmocka_unit_test(other_paths_fail_with_the_right_code),
        cmocka_unit_test(a_path_of_many_segments_is_no_trouble),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
