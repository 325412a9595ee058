/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    MOST_SEGMENTS = 16,
};

/* A pattern cut at its slashes; in the arena. */
static size_t split(struct arena *arena, const char *pattern, char *ret[MOST_SEGMENTS])
{
    size_t count = 0;

    for (const char *p = pattern; *p == '/' && p[1]; p += strcspn(p, "/")) {
        p++;
        assert_true(count < MOST_SEGMENTS);
        ret[count++] = arena_strndup(arena, p, strcspn(p, "/"));
    }
    return count;
}

static bool is_param(const char *segment)
{
    return *segment == '{';
}

static void every_row_is_complete(void **state)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"};

    (void)state;
    assert_true(api_route_count > 0);
    for (size_t i = 0; i < api_route_count; i++) {
        const struct api_route *r = &api_routes[i];
        bool known = false;

        for (size_t m = 0; m < ARRAY_SIZE(methods); m++)
            known |= str_equal(r->route.method, methods[m]);
        if (!known || r->route.pattern[0] != '/' || !r->handle || !r->operation_id ||
            !strchr(r->operation_id, '_') || !r->summary || !*r->summary ||
            r->permission >= ACCESS_PERMISSIONS)
            fail_msg("row %zu, %s %s", i, r->route.method, r->route.pattern);
    }
}

static void an_operation_id_is_given_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < api_route_count; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(api_routes[i].operation_id, api_routes[j].operation_id);
}

/* A change needs more than to read, unless it is one of these, which change nothing. */
static void changes_are_not_for_readers(void **state)
{
    static const char *const harmless[] = {
        "OAuth_Token",
        "OAuth_TokenV1",
        "Providers_Register",
        "StorageAccounts_CheckNameAvailability",
        "Clusters_ListRemoteLoginInformation",
        "Jobs_ListOutputFiles",
        "Jobs_ListRemoteLoginInformation",
    };

    (void)state;
    for (size_t i = 0; i < api_route_count; i++) {
        const struct api_route *r = &api_routes[i];
        bool is_harmless =
            str_equal(r->route.method, "GET") || str_equal(r->route.method, "HEAD");

        for (size_t h = 0; h < ARRAY_SIZE(harmless); h++)
            is_harmless |= str_equal(r->operation_id, harmless[h]);
        if (!is_harmless && r->permission < ACCESS_WRITE)
            fail_msg("%s needs only \"%s\"", r->operation_id,
                     access_permission_name(r->permission));
    }
}

static void only_these_are_public(void **state)
{
    static const char *const public[] = {
        "Health_Get",    "Page_Get",     "OpenApi_Get",    "OAuth_Token",
        "OAuth_TokenV1", "OAuth_OpenId", "OAuth_OpenIdV1", "OAuth_Discovery",
    };

    (void)state;
    for (size_t i = 0; i < api_route_count; i++) {
        bool listed = false;

        for (size_t p = 0; p < ARRAY_SIZE(public); p++)
            listed |= str_equal(api_routes[i].operation_id, public[p]);
        if (listed != (api_routes[i].permission == ACCESS_PUBLIC))
            fail_msg("%s", api_routes[i].operation_id);
    }
}

/* Paths that fit a row, with its parameters as words, and as words that are literals elsewhere.
 */
static void every_row_is_found_by_its_path(void **state)
{
    static const char *const words[] = {"x", "providers", "resourceGroups", "%7Bname%7D"};
    struct http_router *router = http_router_new();

    (void)state;
    for (size_t i = 0; i < api_route_count; i++)
        http_router_add(router, &api_routes[i].route);
    for (size_t i = 0; i < api_route_count * ARRAY_SIZE(words); i++) {
        const struct api_route *r = &api_routes[i / ARRAY_SIZE(words)];
        const char *word = words[i % ARRAY_SIZE(words)];
        autoptr(arena) arena = arena_new();
        char *segments[MOST_SEGMENTS];
        size_t count = split(arena, r->route.pattern, segments), params = 0;
        struct http_match match = {0};
        struct err e = {0};
        auto_str path = {0};

        for (size_t s = 0; s < count; s++) {
            params += is_param(segments[s]);
            str_addf(&path, "/%s", is_param(segments[s]) ? word : segments[s]);
        }
        if (!count)
            str_add(&path, "/");
        if (http_router_find(router, r->route.method, str_text(&path), arena, &match, NULL,
                             &e) < 0)
            fail_msg("%s %s: %s", r->route.method, str_text(&path), e.msg);
        if (match.route != &r->route)
            fail_msg("%s %s: found %s", r->route.method, str_text(&path), match.route->pattern);
        assert_int_equal(match.count, params);
    }
    http_router_free(router);
}

/* Two rows that one path could fit: one of them is at every place the more literal. */
static void check_pair(const struct api_route *a, const struct api_route *b)
{
    autoptr(arena) arena = arena_new();
    char *left[MOST_SEGMENTS], *right[MOST_SEGMENTS];
    size_t count = split(arena, a->route.pattern, left);
    bool left_is_finer = false, right_is_finer = false;

    if (!str_equal(a->route.method, b->route.method) ||
        split(arena, b->route.pattern, right) != count)
        return;
    for (size_t i = 0; i < count; i++) {
        if (!is_param(left[i]) && !is_param(right[i]) && !str_equal_nocase(left[i], right[i]))
            return; /* no path fits both */
        left_is_finer |= is_param(right[i]) && !is_param(left[i]);
        right_is_finer |= is_param(left[i]) && !is_param(right[i]);
    }
    if (left_is_finer == right_is_finer)
        fail_msg("%s %s and %s are ambiguous", a->route.method, a->route.pattern,
                 b->route.pattern);
}

static void no_path_fits_two_rows_equally(void **state)
{
    (void)state;
    for (size_t i = 0; i < api_route_count; i++)
        for (size_t j = 0; j < i; j++)
            check_pair(&api_routes[i], &api_routes[j]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(an_operation_id_is_given_once),
        cmocka_unit_test(changes_are_not_for_readers),
        cmocka_unit_test(only_these_are_public),
        cmocka_unit_test(every_row_is_found_by_its_path),
        cmocka_unit_test(no_path_fits_two_rows_equally),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
