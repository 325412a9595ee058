/* router.c - a tree of segments: literal children, one for a parameter, one for the rest.
 *
 * Which names the parameters have is kept with the row and not with the tree, since rows that
 * share a prefix may call them differently.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/router.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

struct row {
    const struct http_route *route;
    size_t count;
    char *names[HTTP_ROUTE_MOST_PARAMS];
};

struct node {
    char *text;                   /* literal; NULL for parameter and rest */
    struct node *literals, *next; /* children, and the sibling among them */
    struct node *param, *rest;
    struct row *rows; /* that end here, one per method */
    size_t row_count;
};

struct http_router {
    struct node root;
};

struct http_router *http_router_new(void)
{
    return xcalloc(1, sizeof(struct http_router));
}

/* --- building --- */

static void node_done(struct node *node)
{
    struct node *children[] = {node->param, node->rest};

    for (struct node *child = node->literals, *next; child; child = next) {
        next = child->next;
        node_done(child);
        free(child);
    }
    for (size_t i = 0; i < ARRAY_SIZE(children); i++)
        if (children[i]) {
            node_done(children[i]);
            free(children[i]);
        }
    for (size_t i = 0; i < node->row_count; i++)
        for (size_t j = 0; j < node->rows[i].count; j++)
            free(node->rows[i].names[j]);
    free(node->rows);
    free(node->text);
}

void http_router_free(struct http_router *router)
{
    if (!router)
        return;
    node_done(&router->root);
    free(router);
}

static struct node *child_or_new(struct node **place)
{
    if (!*place)
        *place = xcalloc(1, sizeof(**place));
    return *place;
}

static struct node *literal_child(struct node *node, const char *text, size_t len)
{
    struct node *child = node->literals;

    while (child && !(strlen(child->text) == len && strncasecmp(child->text, text, len) == 0))
        child = child->next;
    if (!child) {
        child = xcalloc(1, sizeof(*child));
        child->text = xstrndup(text, len);
        child->next = node->literals;
        node->literals = child;
    }
    return child;
}

/* The child for one segment of a pattern; a parameter's name goes into the row. */
static struct node *
add_segment(struct node *node, struct row *row, const char *text, size_t len)
{
    bool is_rest = len > 3 && strncmp(text + len - 2, "*}", 2) == 0;

    if (text[0] != '{')
        return literal_child(node, text, len);
    assert(len > 2 && text[len - 1] == '}' && row->count < HTTP_ROUTE_MOST_PARAMS);
    assert(!is_rest || text[len] == '\0');
    row->names[row->count++] = xstrndup(text + 1, len - 2 - is_rest);
    return child_or_new(is_rest ? &node->rest : &node->param);
}

void http_router_add(struct http_router *router, const struct http_route *route)
{
    struct node *node = &router->root;
    struct row row = {.route = route};
    const char *p = route->pattern;

    assert(*p == '/');
    while (*p == '/' && p[1]) {
        size_t len = strcspn(++p, "/");

        assert(len);
        node = add_segment(node, &row, p, len);
        p += len;
    }
    for (size_t i = 0; i < node->row_count; i++)
        assert(strcmp(node->rows[i].route->method, route->method) != 0);
    node->rows = xreallocarray(node->rows, node->row_count + 1, sizeof(node->rows[0]));
    node->rows[node->row_count++] = row;
}

/* --- finding --- */

struct segment {
    const char *raw;  /* from here on, to the end of the path */
    const char *text; /* this one, decoded */
};

struct search {
    const char *method;
    struct arena *arena;
    const struct segment *segments;
    size_t segment_count;
    const char *values[HTTP_ROUTE_MOST_PARAMS];
    size_t value_count;
    struct str allow; /* methods of the rows that fit but for their method */
    struct http_match *ret;
};

static void add_allowed(struct str *allow, const char *method)
{
    if (allow->len)
        str_add(allow, ", ");
    str_add(allow, method);
}

static const struct row *find_row(const struct node *node, const char *method)
{
    for (size_t i = 0; i < node->row_count; i++)
        if (strcmp(node->rows[i].route->method, method) == 0)
            return &node->rows[i];
    return NULL;
}

static bool end_at(struct search *search, const struct node *node)
{
    const struct row *row = find_row(node, search->method);
    const struct row *get = find_row(node, "GET");

    if (!row && strcmp(search->method, "HEAD") == 0)
        row = get;
    if (!row) {
        for (size_t i = 0; i < node->row_count; i++)
            add_allowed(&search->allow, node->rows[i].route->method);
        if (get && !find_row(node, "HEAD"))
            add_allowed(&search->allow, "HEAD");
        return false;
    }
    *search->ret = (struct http_match){.route = row->route, .count = row->count};
    for (size_t i = 0; i < row->count; i++) {
        search->ret->names[i] = row->names[i];
        search->ret->values[i] = search->values[i];
    }
    return true;
}

static bool search_from(struct search *search, const struct node *node, size_t index);

static bool
try_param(struct search *search, const struct node *node, const char *value, size_t next)
{
    bool is_found;

    search->values[search->value_count++] = value;
    is_found = search_from(search, node, next);
    search->value_count--;
    return is_found;
}

/* Literal, parameter, rest: in this order, going back where one leads nowhere.  As deep as the
 * deepest pattern. */
static bool search_from(struct search *search, const struct node *node, size_t index)
{
    const struct segment *segment = &search->segments[index];

    if (index >= search->segment_count)
        return end_at(search, node);
    if (*segment->text) {
        for (const struct node *child = node->literals; child; child = child->next)
            if (strcasecmp(child->text, segment->text) == 0 &&
                search_from(search, child, index + 1))
                return true;
        if (node->param && try_param(search, node->param, segment->text, index + 1))
            return true;
    }
    if (node->rest) {
        auto_str text = {0};

        if (text_percent_decode(&text, segment->raw, strlen(segment->raw), false, NULL) == 0)
            return try_param(search, node->rest,
                             arena_strndup(search->arena, str_text(&text), text.len),
                             search->segment_count);
    }
    return false;
}

/* Split at the slashes, then decode.  A slash at the end makes no segment. */
static int split(const char *path, struct arena *arena, struct search *search, struct err *e)
{
    size_t most = 1;
    struct segment *segments;
    auto_str text = {0};

    for (const char *p = path; *p; p++)
        most += *p == '/';
    segments = arena_alloc(arena, most * sizeof(segments[0]));
    search->segments = segments;
    while (*path == '/' && path[1]) {
        struct segment *segment = &segments[search->segment_count++];
        size_t len = strcspn(++path, "/");

        str_truncate(&text, 0);
        if (text_percent_decode(&text, path, len, false, e) < 0)
            return err_wrap(e, "cannot decode the path");
        if (!text_is_utf8(str_text(&text), text.len))
            return err_set(e, ERR_INVALID, "the path is not UTF-8");
        segment->raw = path;
        segment->text = arena_strndup(arena, str_text(&text), text.len);
        path += len;
    }
    return 0;
}

int http_router_find(const struct http_router *router,
                     const char *method,
                     const char *raw_path,
                     struct arena *arena,
                     struct http_match *ret_match,
                     const char **ret_allow,
                     struct err *e)
{
    struct search search = {.method = method, .arena = arena, .ret = ret_match};
    bool is_found, is_method;

    if (split(raw_path, arena, &search, e) < 0)
        return -1;
    is_found = search_from(&search, &router->root, 0);
    is_method = !is_found && search.allow.len;
    if (is_method && ret_allow)
        *ret_allow = arena_strdup(arena, str_text(&search.allow));
    str_done(&search.allow);
    if (is_found)
        return 0;
    if (is_method)
        return err_set(e, ERR_METHOD, "%s is not possible here", method);
    return err_set(e, ERR_NOT_FOUND, "there is nothing at \"%s\"", raw_path);
}

const char *http_match_param(const struct http_match *match, const char *name)
{
    for (size_t i = 0; i < match->count; i++)
        if (strcmp(match->names[i], name) == 0)
            return match->values[i];
    assert(!"the pattern has no such parameter");
    return NULL;
}
