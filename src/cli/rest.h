/* rest.h - calls to the yard's REST interface: token, JSON both ways, errors, paging, waiting.
 *
 * A path is what follows the address: "/subscriptions/...?api-version=...".  Links that the
 * server sends (nextLink, Azure-AsyncOperation, Location) are followed by their path alone, on
 * the address that we know: the token never goes elsewhere.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_REST_H
#define CLI_REST_H

#include "base/err.h"
#include "base/mem.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

struct place;
struct http_answer;
struct http_call;
struct rest; /* opaque */

struct rest_config {
    const struct place *place; /* borrowed as long as the rest lives */
    /* Trace lines for --debug, secrets taken out; NULL = none. */
    void (*trace)(const char *line);
    int most_retries; /* 4; fewer where a quick "no" is wanted */
};

int rest_new(const struct rest_config *config, struct rest **ret_rest, struct err *e);
void rest_free(struct rest *rest);
DEFINE_AUTOPTR(rest)

/* One call.  body NULL = none.  *ret_result is NULL when the answer has no body; ret_result may
 * be NULL. An answer of 300 and more fails with the server's own words: "(WorkspaceNotFound)
 * The ...". */
int rest_call(struct rest *rest,
              const char *method,
              const char *path,
              const json_t *body,
              json_t **ret_result,
              struct err *e);

/* The same, with everything of the HTTP call open to the caller: headers, streams.  call->url
 * is filled in from path; the token is added.  Answers of 400 and more are no failure here: see
 * rest_failure. */
int rest_raw(struct rest *rest,
             const char *path,
             struct http_call *call,
             struct http_answer *ret_answer,
             struct err *e);

/* Turn an answer of 400 and more into an error; always returns -1. */
int rest_failure(const struct http_answer *answer, struct err *e);

/* GET a list, page by page: *ret_items is an array with all of them. */
int rest_list(struct rest *rest, const char *path, json_t **ret_items, struct err *e);

/* PUT, PATCH, POST or DELETE something that may go on after the answer: wait until it has
 * ended, unless wait is false.  *ret_result is the answer's body, if there was one at once. */
int rest_long(struct rest *rest,
              const char *method,
              const char *path,
              const json_t *body,
              bool wait,
              json_t **ret_result,
              struct err *e);

/* HEAD: is it there? */
int rest_exists(struct rest *rest, const char *path, bool *ret_exists, struct err *e);

#endif
