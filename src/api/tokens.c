/* The yard's own administration: access tokens and the audit log.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "base/text.h"
#include "core/names.h"

#include <inttypes.h>
#include <string.h>

static const char *group_id(struct call *call, const char *group)
{
    return resource_child_id(
        call->arena, RESOURCE_GROUP,
        resource_subscription_id(call->arena, call->api->config.subscription_id), group);
}

static int read_principal(struct call *call, struct control_principal *p, struct err *e)
{
    enum { MOST_YEARS = 10 };
    const char *role, *group;
    int64_t seconds = 0;

    p->name = call_param(call, "tokenName");
    if (names_check_token(p->name, e) < 0 ||
        json_get_string(call->body, "role", &role, e) < 0 ||
        json_get_string(call->body, "resourceGroup", &group, e) < 0 ||
        json_get_int(call->body, "expiresInSeconds", 1, INT64_C(31536000) * MOST_YEARS,
                     &seconds, e) < 0)
        return -1;
    if (access_role_parse(role ? role : "", &p->role, e) < 0)
        return -1;
    p->lifetime_ms = seconds * 1000;
    /* A whole ARM id names a group of any subscription. */
    if (group)
        p->group_id = *group == '/' ? group : group_id(call, group);
    return 0;
}

static void token_made(struct call *call, struct control_change *change, const struct err *why)
{
    const struct control_principal *p = change->request;
    json_t *out;

    if (why->code != ERR_NONE) {
        reply_error(call, why);
        return;
    }
    out = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "name", p->name, "role",
                    access_role_name(p->role), "scope", p->group_id ? p->group_id : "/",
                    "tenantId", call->api->config.tenant_id, "clientId", p->client_id,
                    "clientSecret", change->secret, "token", change->secret);
    if (p->expires_ms)
        json_object_set_new(out, "expiresOn", shape_time(p->expires_ms));
    reply_json(call, 200, out);
}

void handle_token_put(struct call *call)
{
    struct control_principal *p = arena_alloc(call->arena, sizeof(*p));
    struct control_change *change;
    struct err e = {0};

    if (read_principal(call, p, &e) < 0) {
        call_refuse(call, &e);
        return;
    }
    if (str_equal(p->name, call->who.name)) {
        err_set(&e, ERR_FORBIDDEN,
                "tokenName: a token cannot replace itself or change its own role; use another "
                "owner's");
        err_target(&e, "tokenName");
        call_refuse(call, &e);
        return;
    }
    change = call_change(call);
    call_when_done(call, change, token_made);
    control_put_principal(call->api->config.control, change, p);
}

static void shape_token(const struct principal *p, void *context)
{
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", p->name, "role",
                            access_role_name(p->role), "scope", *p->scope ? p->scope : "/",
                            "clientId", p->client_id, "createdOn", shape_time(p->created_ms));

    if (p->expires_ms)
        json_object_set_new(row, "expiresOn", shape_time(p->expires_ms));
    json_array_append_new(context, row);
}

void handle_token_list(struct call *call)
{
    auto_reader reader = {0};
    struct err e = {0};
    json_t *value = json_array();

    if (store_pool_take(call->api->config.pool, &reader, &e) < 0 ||
        store_each_principal(reader.db, shape_token, value, &e) < 0) {
        json_decref(value);
        reply_error(call, &e);
        return;
    }
    reply_json(call, 200, json_pack("{s:o}", "value", value));
}

static void token_gone(struct call *call, struct control_change *change, const struct err *why)
{
    (void)change;
    if (why->code != ERR_NONE)
        reply_error(call, why);
    else
        reply_empty(call, 200);
}

void handle_token_delete(struct call *call)
{
    struct control_change *change = call_change(call);

    call_when_done(call, change, token_gone);
    control_remove_principal(call->api->config.control, change, call_param(call, "tokenName"));
}

struct page {
    json_t *value;
    int64_t last_seq;
};

static void shape_event(const struct event *v, void *context)
{
    struct page *page = context;
    json_t *row = json_pack("{s:I, s:o, s:s, s:s, s:s, s:s, s:s, s:s}", "sequence",
                            (json_int_t)v->seq, "time", shape_time(v->at_ms), "principal",
                            v->principal, "peer", v->peer, "operation", v->operation, "target",
                            v->target, "requestId", v->request_id, "outcome", v->outcome);

    if (v->detail)
        json_object_set_new(row, "detail", json_string(v->detail));
    json_array_append_new(page->value, row);
    page->last_seq = v->seq;
}

void handle_audit(struct call *call)
{
    enum { DEFAULT_MOST = 100, MOST = 1000 };
    int64_t most = DEFAULT_MOST, before = 0;
    struct page page = {json_array(), 0};
    auto_reader reader = {0};
    struct err e = {0};
    json_t *out;

    if (call_read_number(call, "maxresults", 1, MOST, &most, &e) < 0 ||
        call_read_number(call, "before", 1, INT64_MAX, &before, &e) < 0 ||
        store_pool_take(call->api->config.pool, &reader, &e) < 0 ||
        store_each_event(reader.db, before, (size_t)most, shape_event, &page, &e) < 0) {
        json_decref(page.value);
        reply_error(call, &e);
        return;
    }
    out = json_pack("{s:o}", "value", page.value);
    if (json_array_size(page.value) == (size_t)most && page.last_seq > 1)
        json_object_set_new(out, "nextLink",
                            json_sprintf("%s%s?maxresults=%" PRId64 "&before=%" PRId64,
                                         call_base_url(call), http_req_raw_path(call->req),
                                         most, page.last_seq));
    reply_json(call, 200, out);
}
