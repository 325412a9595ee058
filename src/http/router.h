/* router.h - from method and path to a row of one table.
 *
 * A pattern is made of segments: "/subscriptions/{subscriptionId}/resourceGroups".  Literal
 * segments match case-insensitively; {name} matches one non-empty segment; a last {name*}
 * matches the rest, slashes included.  Literal beats parameter when two rows fit.  Each segment
 * of the path is percent-decoded once, after splitting, so that %2F never makes a new segment.
 * A trailing slash is ignored.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_ROUTER_H
#define HTTP_ROUTER_H

#include "base/err.h"

#include <stddef.h>

struct arena;
struct http_router; /* opaque */

enum {
    HTTP_ROUTE_MOST_PARAMS = 12,
};

/* The part of a row that the router reads.  Tables embed it first and add what their layer
 * needs (handler, operation id, permission). */
struct http_route {
    const char *method;  /* "GET" */
    const char *pattern; /* borrowed, static */
};

struct http_match {
    const struct http_route *route;
    size_t count;
    const char *names[HTTP_ROUTE_MOST_PARAMS];  /* without braces */
    const char *values[HTTP_ROUTE_MOST_PARAMS]; /* decoded, in the arena */
};

struct http_router *http_router_new(void);
void http_router_free(struct http_router *router);
/* Two rows with the same method and shape are a programming error (assert). */
void http_router_add(struct http_router *router, const struct http_route *route);

/* Find the row.  ERR_NOT_FOUND when no pattern fits, ERR_METHOD when one does but not for this
 * method (HEAD falls back to GET), ERR_INVALID when a segment cannot be decoded, is not UTF-8
 * or holds a NUL. On ERR_METHOD *ret_allow, in the arena, lists the methods for an Allow
 * header. */
int http_router_find(const struct http_router *router,
                     const char *method,
                     const char *raw_path,
                     struct arena *arena,
                     struct http_match *ret_match,
                     const char **ret_allow,
                     struct err *e);

/* The value of a parameter of the match; asserts that the pattern has it. */
const char *http_match_param(const struct http_match *match, const char *name);

#endif
