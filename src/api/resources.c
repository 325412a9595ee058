/* What the handlers of all kinds share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "api/cache.h"
#include "base/text.h"
#include "core/names.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PAGE_MOST = 1000,
};

/* The path parameter that names a kind, and the kind it hangs on. */
static const struct {
    const char *param;
    enum resource_kind parent; /* itself for groups */
} places[RESOURCE_KINDS] = {
    [RESOURCE_GROUP] = {"resourceGroupName", RESOURCE_GROUP},
    [RESOURCE_STORAGE_ACCOUNT] = {"accountName", RESOURCE_GROUP},
    [RESOURCE_WORKSPACE] = {"workspaceName", RESOURCE_GROUP},
    [RESOURCE_EXPERIMENT] = {"experimentName", RESOURCE_WORKSPACE},
    [RESOURCE_CLUSTER] = {"clusterName", RESOURCE_WORKSPACE},
    [RESOURCE_FILE_SERVER] = {"fileServerName", RESOURCE_WORKSPACE},
    [RESOURCE_JOB] = {"jobName", RESOURCE_EXPERIMENT},
};

const char *call_name(struct call *call, enum resource_kind kind)
{
    return call_param(call, places[kind].param);
}

const char *call_parent_id(struct call *call, enum resource_kind kind)
{
    if (kind == RESOURCE_GROUP)
        return resource_subscription_id(call->arena, call_param(call, "subscriptionId"));
    return call_arm_id(call, places[kind].parent);
}

const char *call_arm_id(struct call *call, enum resource_kind kind)
{
    return resource_child_id(call->arena, kind, call_parent_id(call, kind),
                             call_name(call, kind));
}

/* The first of the resource and its parents, from the top, that is missing. */
static int missing(struct call *call, struct db *db, enum resource_kind kind, struct err *e)
{
    if (places[kind].parent != kind) {
        enum resource_kind parent = places[kind].parent;
        autoptr(resource) found = NULL;

        if (store_find_resource(db, resource_key(call->arena, call_arm_id(call, parent)),
                                &found, e) < 0)
            return -1;
        if (!found)
            return missing(call, db, parent, e);
    }
    return resource_not_found(e, kind, call_name(call, kind));
}

int call_find(struct call *call,
              enum resource_kind kind,
              struct resource **ret_resource,
              struct err *e)
{
    autoptr(resource) found = NULL;
    auto_reader reader = {0};

    if (store_pool_take(call->api->config.pool, &reader, e) < 0)
        return -1;
    if (store_find_resource(reader.db, resource_key(call->arena, call_arm_id(call, kind)),
                            &found, e) < 0)
        return -1;
    if (!found) {
        missing(call, reader.db, kind, e); /* which always fails */
        return -1;
    }
    *ret_resource = take_ptr(&found);
    return 0;
}

/* Read it, and keep its form for whoever asks next. */
static void
read_and_keep(struct call *call, enum resource_kind kind, const char *key, uint64_t generation)
{
    autoptr(resource) found = NULL;
    auto_reader reader = {0};
    auto_str body = {0};
    struct err e = {0};
    struct wire *wire;

    if (call_find(call, kind, &found, &e) < 0 ||
        store_pool_take(call->api->config.pool, &reader, &e) < 0 ||
        shape_resource(&body, call->api, reader.db, found, &e) < 0) {
        reply_error(call, &e);
        return;
    }
    wire = wire_new(found, str_text(&body), key, generation);
    cache_keep(call->api->cache, wire);
    reply_wire(call, wire);
    wire_unref(wire);
}

void call_get(struct call *call, enum resource_kind kind)
{
    uint64_t generation = control_generation(call->api->config.control);
    const char *key = resource_key(call->arena, call_arm_id(call, kind));
    struct wire *wire = cache_find(call->api->cache, key, generation);

    if (wire)
        reply_wire(call, wire);
    else
        read_and_keep(call, kind, key, generation);
    wire_unref(wire);
}

void call_put(struct call *call, enum resource_kind kind, struct control_put *put)
{
    struct control_change *change;
    struct err e = {0};

    if (names_check(kind, call_name(call, kind), &e) < 0) {
        call_refuse(call, &e);
        return;
    }
    change = call_change(call);
    put->kind = kind;
    put->parent_id = call_parent_id(call, kind);
    put->name = call_name(call, kind);
    put->if_match = http_req_header(call->req, "If-Match");
    put->if_none_match = http_req_header(call->req, "If-None-Match");
    call_when_done(call, change, call_reply_put);
    control_put_resource(call->api->config.control, change, put);
}

void call_delete(struct call *call, enum resource_kind kind, bool at_once)
{
    struct control_change *change = call_change(call);
    struct control_delete del = {
        .kind = kind,
        .arm_id = call_arm_id(call, kind),
        .name = call_name(call, kind),
        .if_match = http_req_header(call->req, "If-Match"),
        .at_once = at_once,
    };

    call_when_done(call, change, call_reply_delete);
    control_delete_resource(call->api->config.control, change, &del);
}

int call_read_location(struct call *call,
                       bool required,
                       const char **ret_location,
                       struct err *e)
{
    const char *given;
    char *shorter;

    *ret_location = NULL;
    if (json_get_string(call->body, "location", &given, e) < 0)
        return -1;
    if (!given && !required)
        return 0;
    if (!given) {
        err_set(e, ERR_INVALID,
                "location: it is required; give a name such as \"eastus\" (a yard takes any)");
        err_reason(e, "LocationRequired");
        return err_target(e, "location");
    }
    if (names_location(call->arena, given, &shorter, e) < 0)
        return -1;
    *ret_location = shorter;
    return 0;
}

int call_read_tags(struct call *call, json_t **ret_tags, struct err *e)
{
    json_t *tags = json_object_get(call->body, "tags");

    *ret_tags = NULL;
    if (!tags || json_is_null(tags))
        return 0;
    if (names_check_tags(tags, e) < 0)
        return -1;
    *ret_tags = tags;
    return 0;
}

int call_read_number(struct call *call,
                     const char *name,
                     int64_t least,
                     int64_t most,
                     int64_t *ret_number,
                     struct err *e)
{
    const char *text = http_req_query(call->req, name);
    char *end;
    int64_t number;

    if (!text)
        return 0;
    number = strtoll(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || number < least || number > most) {
        err_set(e, ERR_INVALID, "%s: \"%.40s\" is not a number from %" PRId64 " to %" PRId64,
                name, text, least, most);
        err_reason(e, "InvalidParameterValue");
        return err_target(e, name);
    }
    *ret_number = number;
    return 0;
}

static int not_our_token(const char *text, struct err *e)
{
    err_set(e, ERR_INVALID, "$skiptoken: \"%.40s\" is not one of ours; start the list anew",
            text);
    err_reason(e, "InvalidParameterValue");
    return err_target(e, "$skiptoken");
}

int call_read_skip_text(struct call *call, const char **ret_last, struct err *e)
{
    const char *text = http_req_query(call->req, "$skiptoken");
    auto_str raw = {0};

    if (!text)
        return 0;
    if (text_base64_decode(&raw, text, NULL) < 0 || strlen(str_text(&raw)) != raw.len ||
        !text_is_utf8(str_text(&raw), raw.len))
        return not_our_token(text, e);
    *ret_last = arena_strdup(call->arena, str_text(&raw));
    return 0;
}

/* A skip token is the last row's id in base64: opaque to clients, checked all the same. */
int call_read_skip(struct call *call, int64_t *ret_after, struct err *e)
{
    const char *text = NULL;
    char *end;

    if (call_read_skip_text(call, &text, e) < 0)
        return -1;
    if (!text)
        return 0;
    if (isdigit((unsigned char)*text)) {
        *ret_after = strtoll(text, &end, 10);
        if (!*end && *ret_after >= 0)
            return 0;
    }
    return not_our_token(http_req_query(call->req, "$skiptoken"), e);
}

void call_add_next_link(struct call *call, const char *last, struct str *out)
{
    auto_str link = {0}, token = {0}, query = {0};
    char *saved = NULL, *copy = arena_strdup(call->arena, http_req_raw_query(call->req));

    for (char *part = strtok_r(copy, "&", &saved); part; part = strtok_r(NULL, "&", &saved)) {
        if (str_starts_nocase(part, "$skiptoken=") || str_starts_nocase(part, "%24skiptoken="))
            continue;
        str_addf(&query, "%s%s", query.len ? "&" : "", part);
    }
    text_base64url(&token, last, strlen(last));
    str_addf(&link, "%s%s?%s%s$skiptoken=%s", call_base_url(call), http_req_raw_path(call->req),
             str_text(&query), query.len ? "&" : "", str_text(&token));
    str_add(out, ",\"nextLink\":");
    json_write_string(out, str_text(&link), link.len);
}

static void reply_list(struct call *call, struct db *db, const struct resource_list *list)
{
    auto_str out = {0};
    struct err e = {0};

    str_add(&out, "{\"value\":[");
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            str_add_char(&out, ',');
        if (shape_resource(&out, call->api, db, list->items[i], &e) < 0) {
            reply_error(call, &e);
            return;
        }
    }
    str_add_char(&out, ']');
    if (list->more) {
        auto_free char *id = xasprintf("%" PRId64, list->items[list->count - 1]->id);

        call_add_next_link(call, id, &out);
    }
    str_add_char(&out, '}');
    reply_text(call, 200, "application/json; charset=utf-8", str_text(&out));
}

void call_list(struct call *call, struct store_filter *filter)
{
    auto_resource_list list = {0};
    auto_reader reader = {0};
    struct err e = {0};
    int64_t most = PAGE_MOST;

    if (*call->who.scope && !filter->group_key)
        filter->group_key = call->who.scope; /* the rest is not theirs to see */
    if (call_read_number(call, "maxresults", 1, PAGE_MOST, &most, &e) < 0 ||
        call_read_number(call, "$top", 1, PAGE_MOST, &most, &e) < 0 ||
        call_read_skip(call, &filter->after_id, &e) < 0 ||
        store_pool_take(call->api->config.pool, &reader, &e) < 0) {
        reply_error(call, &e);
        return;
    }
    filter->most = (size_t)most;
    if (store_list_resources(reader.db, filter, &list, &e) < 0) {
        reply_error(call, &e);
        return;
    }
    reply_list(call, reader.db, &list);
}

void call_list_below(struct call *call, enum resource_kind parent, enum resource_kind kind)
{
    struct store_filter filter = {.kind = (int)kind};
    autoptr(resource) found = NULL;
    struct err e = {0};

    if (call_find(call, parent, &found, &e) < 0) {
        reply_error(call, &e);
        return;
    }
    filter.parent_id = found->id;
    call_list(call, &filter);
}
