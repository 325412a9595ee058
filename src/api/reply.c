/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "api/cache.h"
#include "base/clock.h"

#include <string.h>

enum {
    RETRY_AFTER_S = 1, /* clients take 30 s when nothing is said */
};

void reply_usual_headers(struct call *call)
{
    const char *client_id = http_req_header(call->req, "x-ms-client-request-id");

    http_reply_header(call->req, "Cache-Control", "no-cache");
    http_reply_header(call->req, "X-Content-Type-Options", "nosniff");
    if (client_id)
        http_reply_header(call->req, "x-ms-client-request-id", client_id);
}

void reply_text(struct call *call, int status, const char *type, const char *text)
{
    reply_usual_headers(call);
    http_reply_header(call->req, "Content-Type", type);
    http_reply(call->req, status, text, strlen(text));
}

void reply_json(struct call *call, int status, json_t *body)
{
    auto_str text = {0};

    json_write(&text, body);
    json_decref(body);
    reply_text(call, status, "application/json; charset=utf-8", str_text(&text));
}

void reply_empty(struct call *call, int status)
{
    reply_usual_headers(call);
    http_reply(call->req, status, NULL, 0);
}

void reply_error(struct call *call, const struct err *e)
{
    const struct err_info *info = err_info(e->code);
    json_t *error = json_pack("{s:s, s:s}", "code", err_reason_of(e), "message", e->msg);

    /* A message cut inside a character is no UTF-8 and would lose the whole envelope. */
    if (!error)
        error = json_pack("{s:s, s:s}", "code", err_reason_of(e), "message",
                          "the message cannot be shown");
    if (e->target[0])
        json_object_set_new(error, "target", json_string(e->target));
    if (e->code == ERR_UNAUTHORIZED)
        http_reply_header(call->req, "WWW-Authenticate", "Bearer realm=\"trainyard\"");
    if (info->retry)
        http_reply_headerf(call->req, "Retry-After", "%d", RETRY_AFTER_S);
    reply_json(call, info->http_status, json_pack("{s:o}", "error", error));
}

void reply_resource(struct call *call, int status, const struct resource *r)
{
    char etag[RESOURCE_ETAG_BYTES], modified[CLOCK_HTTP_BYTES];
    auto_reader reader = {0};
    auto_str body = {0};
    struct err e = {0};

    if (store_pool_take(call->api->config.pool, &reader, &e) < 0 ||
        shape_resource(&body, call->api, reader.db, r, &e) < 0) {
        reply_error(call, &e);
        return;
    }
    http_reply_header(call->req, "ETag", resource_etag(r, etag));
    http_reply_header(call->req, "Last-Modified", clock_format_http(r->modified_ms, modified));
    reply_text(call, status, "application/json; charset=utf-8", str_text(&body));
}

void reply_wire(struct call *call, const struct wire *wire)
{
    const char *none_match = http_req_header(call->req, "If-None-Match");

    http_reply_header(call->req, "ETag", wire->etag);
    http_reply_header(call->req, "Last-Modified", wire->modified);
    if (none_match && !wire->is_moving && resource_etag_in(none_match, wire->etag))
        reply_empty(call, 304);
    else
        reply_text(call, 200, "application/json; charset=utf-8", wire->body);
}

const char *call_base_url(struct call *call)
{
    return arena_printf(call->arena, "%s://%s", http_req_is_tls(call->req) ? "https" : "http",
                        http_req_host(call->req));
}

/* Where an operation is polled: below the provider's location for Batch AI (as its clients know
 * it), below the subscription for the rest. */
static const char *
poll_url(struct call *call, const struct operation *o, const char *collection)
{
    const char *version = http_req_query(call->req, "api-version");
    bool is_batchai = strcasestr(o->target, "/providers/Microsoft.BatchAI/") != NULL;

    return arena_printf(call->arena, "%s/subscriptions/%s%s/%s/%s?api-version=%s",
                        call_base_url(call), call_param(call, "subscriptionId"),
                        is_batchai ? "/providers/Microsoft.BatchAI/locations/local" : "",
                        collection, o->id, version ? version : "2018-05-01");
}

void reply_accepted(struct call *call, const struct operation *o)
{
    /* The names look swapped; the original's are so, and its clients follow whatever they are
     * told. */
    http_reply_header(call->req, "Azure-AsyncOperation", poll_url(call, o, "operationresults"));
    http_reply_header(call->req, "Location", poll_url(call, o, "operationstatuses"));
    http_reply_headerf(call->req, "Retry-After", "%d", RETRY_AFTER_S);
    reply_empty(call, 202);
}
