/* request.c - making a request from its head, and the questions a handler asks it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/http-internal.h"

#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct http_req *
http_req_new(struct http_conn *conn, const char *bytes, int *ret_status, const char **ret_why)
{
    const struct http_scan *scan = &conn->scan;
    size_t fields = scan->lines * sizeof(struct http_field);
    struct http_req *req = xmalloc(sizeof(*req) + fields + scan->length + 1);
    char *text = (char *)req->fields + fields;
    int status;

    *req = (struct http_req){.conn = conn, .worker = conn->worker, .is_tls = conn->ssl};
    memcpy(text, bytes, scan->length);
    text[scan->length] = '\0';
    status = http_parse_head(text, scan->length, req->fields, scan->lines, &req->head, ret_why);
    if (status) {
        *ret_status = status;
        free(req);
        return NULL;
    }
    req->body_left = req->head.content_length > 0 ? req->head.content_length : 0;
    req->owes_continue = req->head.expects_continue;
    req->is_close = !req->head.is_keep_alive;
    req->reply_left = -1;
    http_worker_uuid(conn->worker, req->id);
    return req;
}

void http_req_free(struct http_req *req)
{
    if (!req)
        return;
    arena_free(req->arena);
    str_done(&req->body);
    str_done(&req->headers);
    free(req);
}

const char *http_req_method(const struct http_req *req)
{
    return req->head.method;
}

const char *http_req_raw_path(const struct http_req *req)
{
    return req->head.path;
}

const char *http_req_raw_query(const struct http_req *req)
{
    return req->head.query;
}

const char *http_req_host(const struct http_req *req)
{
    return req->head.host ? req->head.host : "";
}

const char *http_req_peer(const struct http_req *req)
{
    return req->conn->peer;
}

bool http_req_is_tls(const struct http_req *req)
{
    return req->is_tls;
}

int64_t http_req_content_length(const struct http_req *req)
{
    return req->head.content_length;
}

struct arena *http_req_arena(struct http_req *req)
{
    if (!req->arena)
        req->arena = arena_new();
    return req->arena;
}

const char *http_req_id(const struct http_req *req)
{
    return req->id;
}

void http_req_set_context(struct http_req *req, void *context)
{
    req->context = context;
}

void *http_req_context(const struct http_req *req)
{
    return req->context;
}

bool http_req_is_gone(const struct http_req *req)
{
    return req->is_gone;
}

/* --- headers --- */

bool http_req_header_at(const struct http_req *req,
                        size_t index,
                        const char **ret_name,
                        const char **ret_value)
{
    if (index >= req->head.count)
        return false;
    *ret_name = req->head.fields[index].name;
    *ret_value = req->head.fields[index].value;
    return true;
}

const char *http_req_header(const struct http_req *req, const char *name)
{
    const char *value = NULL;

    for (size_t i = 0; i < req->head.count; i++) {
        const struct http_field *field = &req->head.fields[i];

        if (strcasecmp(field->name, name) != 0)
            continue;
        /* Joined text goes into the arena: the request is not changed as far as anybody can
         * see. */
        value = !value ? field->value
                       : arena_printf(http_req_arena((struct http_req *)req), "%s, %s", value,
                                      field->value);
    }
    return value;
}

/* --- query --- */

static const char *decode(struct http_req *req, const char *text, size_t len)
{
    auto_str out = {0};

    /* What cannot be decoded stands for itself: the handler will not like it and say so. */
    if (text_percent_decode(&out, text, len, true, NULL) < 0)
        return arena_strndup(http_req_arena(req), text, len);
    return arena_strndup(http_req_arena(req), str_text(&out), out.len);
}

static void parse_query(struct http_req *req)
{
    const char *p = req->head.query;
    size_t most = 1;

    for (const char *c = p; *c; c++)
        most += *c == '&';
    req->params = arena_alloc(http_req_arena(req), most * sizeof(req->params[0]));
    while (*p) {
        size_t len = strcspn(p, "&"), name = strcspn(p, "=&");

        if (len) {
            struct http_param *param = &req->params[req->param_count++];

            param->name = decode(req, p, name);
            param->value = name < len ? decode(req, p + name + 1, len - name - 1) : "";
        }
        p += len + (p[len] == '&');
    }
}

const char *http_req_query(struct http_req *req, const char *name)
{
    if (!req->params)
        parse_query(req);
    for (size_t i = 0; i < req->param_count; i++)
        if (str_equal_nocase(req->params[i].name, name))
            return req->params[i].value;
    return NULL;
}

/* --- from other threads --- */

static void run_calls(void *arg)
{
    struct http_worker *worker = arg;
    struct http_call *calls;
    size_t count;

    pthread_mutex_lock(&worker->lock);
    calls = worker->calls;
    count = worker->call_count;
    worker->calls = NULL;
    worker->call_count = worker->call_room = 0;
    pthread_mutex_unlock(&worker->lock);
    for (size_t i = 0; i < count; i++)
        calls[i].fn(calls[i].req, calls[i].arg);
    free(calls);
}

void http_req_post(struct http_req *req, void (*fn)(struct http_req *req, void *arg), void *arg)
{
    struct http_worker *worker = req->worker;
    bool is_first;

    pthread_mutex_lock(&worker->lock);
    is_first = worker->call_count == 0;
    if (worker->call_count == worker->call_room) {
        worker->call_room = worker->call_room ? worker->call_room * 2 : 16;
        worker->calls =
            xreallocarray(worker->calls, worker->call_room, sizeof(worker->calls[0]));
    }
    worker->calls[worker->call_count++] = (struct http_call){req, fn, arg};
    pthread_mutex_unlock(&worker->lock);
    if (is_first)
        loop_post(worker->loop, run_calls, worker);
}

/* --- ranges --- */

/* Digits up to *end; false when there are none or too many. */
static bool parse_number(const char **p, uint64_t *ret_number)
{
    char *end;

    if (**p < '0' || **p > '9')
        return false;
    errno = 0;
    *ret_number = strtoull(*p, &end, 10);
    *p = end;
    return errno == 0;
}

int http_range_parse(
    const char *value, uint64_t size, uint64_t *ret_first, uint64_t *ret_len, struct err *e)
{
    uint64_t first = 0, last = UINT64_MAX;
    bool has_first, has_last = false;

    if (!value || !str_starts_nocase(value, "bytes="))
        return 0;
    value += strlen("bytes=");
    has_first = parse_number(&value, &first);
    if (*value++ != '-')
        return 0;
    if (*value) {
        has_last = parse_number(&value, &last);
        if (!has_last || *value)
            return 0;
    }
    if (!has_first && !has_last)
        return 0;
    if (has_first && last < first)
        return 0;
    if (!has_first) { /* the last so many bytes */
        first = last < size ? size - last : 0;
        if (last == 0)
            first = size;
        last = UINT64_MAX;
    }
    if (first >= size)
        return err_set(e, ERR_INVALID, "the range starts at %llu, beyond the end at %llu",
                       (unsigned long long)first, (unsigned long long)size);
    *ret_first = first;
    *ret_len = (last < size - 1 ? last : size - 1) - first + 1;
    return 1;
}
