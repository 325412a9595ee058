/* call.c - the life of a call: from the head of a request to the last byte of its reply.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-proto.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "http/request.h"
#include "loop/work.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* What a client means who does not say: the version of the eldest client that still counts. */
static const char default_version[] = "2018-11-09";

/* --- making one --- */

static void call_done(void *p)
{
    struct storage_call *call = p;

    upload_free(call->upload);
    str_done(&call->out_body);
    if (call->out_fd >= 0)
        close(call->out_fd);
}

static struct storage_call *new_call(struct storage_service *service,
                                     const struct storage_table *table,
                                     struct arena *arena)
{
    struct storage_call *call = arena_alloc(arena, sizeof(*call));

    call->service = service;
    call->table = table;
    call->arena = arena;
    call->now_ms = clock_wall_ms();
    call->out_fd = -1;
    arena_defer(arena, call_done, call);
    return call;
}

/* What cannot be decoded stands for itself: no value of the protocol looks like it. */
static const char *decode(struct arena *arena, const char *text, size_t len)
{
    auto_str out = {0};

    if (text_percent_decode(&out, text, len, true, NULL) < 0)
        return arena_strndup(arena, text, len);
    return arena_strndup(arena, str_text(&out), out.len);
}

static void read_query(struct storage_call *call)
{
    const char *p = call->raw_query;
    size_t most = 1;

    for (const char *c = p; *c; c++)
        most += *c == '&';
    call->params = arena_alloc(call->arena, most * sizeof(call->params[0]));
    while (*p) {
        size_t len = strcspn(p, "&"), name = strcspn(p, "=&");

        if (len) {
            struct storage_param *param = &call->params[call->param_count++];

            param->name = decode(call->arena, p, name);
            param->value = name < len ? decode(call->arena, p + name + 1, len - name - 1) : "";
        }
        p += len + (p[len] == '&');
    }
}

static void read_headers(struct storage_call *call)
{
    struct sharedkey_header *headers;
    const char *name, *value;
    size_t count = 0;

    while (http_req_header_at(call->req, count, &name, &value))
        count++;
    headers = arena_alloc(call->arena, (count + 1) * sizeof(headers[0]));
    for (size_t i = 0; i < count; i++)
        http_req_header_at(call->req, i, &headers[i].name, &headers[i].value);
    call->headers = headers;
    call->header_count = count;
}

static struct storage_call *call_of_request(struct storage_service *service,
                                            const struct storage_table *table,
                                            struct http_req *req)
{
    struct storage_call *call = new_call(service, table, http_req_arena(req));

    call->req = req;
    call->method = http_req_method(req);
    call->raw_path = http_req_raw_path(req);
    call->raw_query = http_req_raw_query(req);
    call->host = http_req_host(req);
    call->peer = http_req_peer(req);
    call->id = http_req_id(req);
    call->is_tls = http_req_is_tls(req);
    call->content_length = http_req_content_length(req);
    read_headers(call);
    read_query(call);
    return call;
}

struct storage_call *storage_call_part(struct storage_call *of,
                                       const char *method,
                                       const char *raw_path,
                                       const char *raw_query,
                                       const struct sharedkey_header *headers,
                                       size_t header_count)
{
    struct storage_call *call = new_call(of->service, of->table, of->arena);

    call->method = method;
    call->raw_path = raw_path;
    call->raw_query = raw_query;
    call->host = of->host;
    call->peer = of->peer;
    call->id = of->id;
    call->is_tls = of->is_tls;
    call->version = of->version;
    call->now_ms = of->now_ms;
    call->headers = headers;
    call->header_count = header_count;
    read_query(call);
    return call;
}

/* --- which operation --- */

static bool is_version(const char *text)
{
    static const char shape[] = "0000-00-00";

    for (size_t i = 0; i < sizeof(shape) - 1; i++)
        if (shape[i] == '0' ? !isdigit((unsigned char)text[i]) : text[i] != shape[i])
            return false;
    return text[sizeof(shape) - 1] == '\0';
}

/* Every well-formed version is taken: clients come out faster than servers. */
static int read_version(struct storage_call *call, struct err *e)
{
    const char *version = storage_header(call, "x-ms-version");

    if (!version)
        version = storage_query(call, "sv");
    if (!version)
        version = storage_query(call, "api-version");
    if (version && !is_version(version)) {
        storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                       "\"%.32s\" is not a version; versions are dates", version);
        return err_target(e, "x-ms-version");
    }
    call->version = version ? version : default_version;
    return 0;
}

static bool has_word(const char *want, const char *got)
{
    return want ? got && strcasecmp(want, got) == 0 : !got || !*got;
}

static bool has_header(const struct storage_call *call, const struct storage_op *op)
{
    const char *value = op->header ? storage_header(call, op->header) : NULL;

    return !op->header || (value && (!op->value || strcasecmp(value, op->value) == 0));
}

int storage_find_op(struct storage_call *call, struct err *e)
{
    const char *restype = storage_query(call, "restype"), *comp = storage_query(call, "comp");
    bool is_known = false;

    for (size_t i = 0; i < call->table->count; i++) {
        const struct storage_op *op = &call->table->ops[i];

        if (op->level != call->level || !has_word(op->restype, restype) ||
            !has_word(op->comp, comp))
            continue;
        is_known = true;
        if (strcmp(op->method, call->method) == 0 && has_header(call, op)) {
            call->op = op;
            return 0;
        }
    }
    if (is_known)
        return storage_refuse(e, ERR_METHOD, "UnsupportedHttpVerb",
                              "%.16s is not possible for this resource", call->method);
    storage_refuse(e, ERR_INVALID, "InvalidQueryParameterValue",
                   "there is no operation with comp=%.32s restype=%.32s here", comp ? comp : "",
                   restype ? restype : "");
    return err_target(e, comp ? "comp" : "restype");
}

/* Parts of the protocol that change what a request means, and that are not here: to overlook
 * them would be to lie. */
static int refuse_unsupported(struct storage_call *call, struct err *e)
{
    static const char *const headers[] = {
        "x-ms-encryption-key",  "x-ms-encryption-scope", "x-ms-source-encryption-key",
        "x-ms-structured-body", "x-ms-legal-hold",       "x-ms-immutability-policy-until-date",
    };
    const char *version_id = storage_query(call, "versionid");
    const char *snapshot = storage_query(call, "snapshot");

    for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
        if (storage_header(call, headers[i])) {
            storage_refuse(e, ERR_INVALID, "NotImplemented", "%s is not supported here",
                           headers[i]);
            return err_target(e, headers[i]);
        }
    if (version_id && *version_id)
        return storage_refuse(e, ERR_INVALID, "NotImplemented",
                              "there are no versions of blobs here; use snapshots");
    if (snapshot && *snapshot && (call->op->flags & OP_WRITES) &&
        !(call->op->flags & OP_SNAPSHOTS)) {
        storage_refuse(e, ERR_INVALID, "InvalidQueryParameterValue",
                       "a snapshot stays as it is");
        return err_target(e, "snapshot");
    }
    return 0;
}

/* --- running it --- */

static int run_op(struct storage_call *call, struct err *e)
{
    if (call->op->handle(call, e) < 0)
        return -1;
    assert(call->status);
    return 0;
}

static void run_here(struct storage_call *call)
{
    struct err e = {0};

    if (run_op(call, &e) < 0)
        storage_reply_error(call, &e);
    storage_send(call);
}

static void on_worked(struct http_req *req, void *arg)
{
    (void)req;
    storage_send(arg);
}

static void on_worker(void *arg)
{
    struct storage_call *call = arg;
    struct err e = {0};

    if (run_op(call, &e) < 0)
        storage_reply_error(call, &e);
    http_req_post(call->req, on_worked, call);
}

static void run(struct storage_call *call)
{
    if (call->op->flags & OP_WAITS)
        work_submit(call->service->config.pool, on_worker, call);
    else
        run_here(call);
}

static void refuse_call(struct storage_call *call, const struct err *e)
{
    storage_reply_error(call, e);
    storage_send(call);
}

/* --- bodies --- */

static void on_collected(struct http_req *req)
{
    struct storage_call *call = http_req_context(req);

    call->body = http_req_body(req, &call->body_len);
    run(call);
}

static void on_data(struct http_req *req, const void *bytes, size_t len)
{
    struct storage_call *call = http_req_context(req);
    struct err e = {0};

    if (call->status)
        return; /* refused already; the rest is only thrown away */
    if (!call->upload)
        storage_refuse(&e, ERR_INVALID, "InvalidHeaderValue", "this request takes no body");
    else if (upload_write(call->upload, bytes, len, &e) == 0)
        return;
    refuse_call(call, &e);
}

static void on_end(struct http_req *req)
{
    run(http_req_context(req));
}

static void on_broken(struct http_req *req)
{
    struct storage_call *call = http_req_context(req);
    struct err e = {0};

    err_set(&e, ERR_INVALID, "the body ended early");
    refuse_call(call, &e);
}

static const struct http_sink sink = {.data = on_data, .end = on_end, .broken = on_broken};

static int need_length(struct storage_call *call, struct err *e)
{
    if (call->content_length < 0)
        return storage_refuse(e, ERR_INVALID, "MissingContentLengthHeader",
                              "the request needs a Content-Length");
    if ((call->op->flags & OP_COLLECTS) && (uint64_t)call->content_length > call->op->most)
        return storage_refuse(e, ERR_TOO_LARGE, "RequestBodyTooLarge",
                              "the body is larger than %zu bytes", call->op->most);
    return 0;
}

static void take_body(struct storage_call *call)
{
    struct err e = {0};

    http_req_set_context(call->req, call);
    if (!(call->op->flags & (OP_COLLECTS | OP_STREAMS))) {
        run(call);
    } else if (need_length(call, &e) < 0 ||
               ((call->op->flags & OP_STREAMS) && call->op->begin(call, &e) < 0)) {
        refuse_call(call, &e);
    } else if (call->op->flags & OP_STREAMS) {
        http_req_stream(call->req, &sink);
    } else {
        http_req_collect(call->req, call->op->most, on_collected);
    }
}

/* --- the whole way --- */

static int prepare(struct storage_call *call, struct err *e)
{
    if (read_version(call, e) < 0 || storage_resolve(call, e) < 0 ||
        storage_find_op(call, e) < 0 || storage_authorise(call, e) < 0 ||
        refuse_unsupported(call, e) < 0)
        return -1;
    if (call->is_secondary && (call->op->flags & OP_WRITES))
        return storage_refuse(e, ERR_FORBIDDEN, "InsufficientAccountPermissions",
                              "the secondary is there for reading only");
    return 0;
}

static void serve_preflight(struct storage_call *call)
{
    struct err e = {0};

    call->version = default_version;
    if (read_version(call, &e) < 0 || storage_resolve(call, &e) < 0 ||
        storage_preflight(call, &e) < 0)
        storage_reply_error(call, &e);
    storage_send(call);
}

void storage_serve(struct storage_service *service,
                   const struct storage_table *table,
                   struct http_req *req)
{
    struct storage_call *call = call_of_request(service, table, req);
    struct err e = {0};

    if (strcmp(call->method, "OPTIONS") == 0)
        serve_preflight(call);
    else if (prepare(call, &e) < 0)
        refuse_call(call, &e);
    else
        take_body(call);
}
