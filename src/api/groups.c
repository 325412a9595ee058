/* Microsoft.Resources: resource groups, and the lists over everything.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include <string.h>

void handle_group_put(struct call *call)
{
    /* Who has rights in one group alone cannot bring it back once it is gone. */
    struct control_put put = {.must_exist = *call->who.scope != '\0'};
    struct err e = {0};

    if (call_read_location(call, true, &put.location, &e) < 0 ||
        call_read_tags(call, &put.tags, &e) < 0) {
        call_record_refusal(call, &e);
        reply_error(call, &e);
        return;
    }
    call_put(call, RESOURCE_GROUP, &put);
}

void handle_group_patch(struct call *call)
{
    struct control_put put = {.must_exist = true};
    struct err e = {0};

    if (call_read_tags(call, &put.tags, &e) < 0) {
        call_record_refusal(call, &e);
        reply_error(call, &e);
        return;
    }
    call_put(call, RESOURCE_GROUP, &put);
}

void handle_group_get(struct call *call)
{
    call_get(call, RESOURCE_GROUP);
}

void handle_group_head(struct call *call)
{
    autoptr(resource) found = NULL;
    struct err e = {0};

    if (call_find(call, RESOURCE_GROUP, &found, &e) == 0)
        reply_empty(call, 204);
    else
        reply_error(call, &e);
}

/* A missing group is a 404 for ARM, not a 204. */
static void
reply_group_delete(struct call *call, struct control_change *change, const struct err *why)
{
    struct err e = {0};

    if (why->code == ERR_NONE && !change->resource) {
        resource_not_found(&e, RESOURCE_GROUP, call_name(call, RESOURCE_GROUP));
        reply_error(call, &e);
    } else {
        call_reply_delete(call, change, why);
    }
}

void handle_group_delete(struct call *call)
{
    struct control_change *change = call_change(call);
    struct control_delete del = {
        .kind = RESOURCE_GROUP,
        .arm_id = call_arm_id(call, RESOURCE_GROUP),
        .name = call_name(call, RESOURCE_GROUP),
        .if_match = http_req_header(call->req, "If-Match"),
    };

    call_when_done(call, change, reply_group_delete);
    control_delete_resource(call->api->config.control, change, &del);
}

static int read_filter(struct call *call, struct odata_filter *ret, struct err *e)
{
    const char *text = http_req_query(call->req, "$filter");

    *ret = (struct odata_filter){0};
    return text && *text ? odata_parse(call->arena, text, ret, e) : 0;
}

static const char *subscription_key(struct call *call)
{
    return resource_key(
        call->arena, resource_subscription_id(call->arena, call_param(call, "subscriptionId")));
}

void handle_group_list(struct call *call)
{
    struct odata_filter odata;
    struct store_filter filter = {.kind = RESOURCE_GROUP};
    struct err e = {0};

    if (read_filter(call, &odata, &e) == 0 && odata.type) {
        err_set(&e, ERR_INVALID,
                "$filter: groups are not filtered by resourceType; write tagName eq 'x' and "
                "tagValue eq 'y'");
        err_reason(&e, "InvalidFilterInQueryString");
        err_target(&e, "$filter");
    }
    if (e.code != ERR_NONE) {
        reply_error(call, &e);
        return;
    }
    filter.tag = odata.tag;
    filter.tag_value = odata.tag_value;
    filter.name = odata.name;
    filter.key_prefix = subscription_key(call);
    call_list(call, &filter);
}

/* Of all kinds, or of the one that the filter names. */
static void list_resources(struct call *call, struct store_filter *filter)
{
    struct odata_filter odata;
    struct err e = {0};

    if (read_filter(call, &odata, &e) < 0) {
        reply_error(call, &e);
        return;
    }
    filter->kind = -1;
    filter->tag = odata.tag;
    filter->tag_value = odata.tag_value;
    filter->name = odata.name;
    for (int kind = 0; odata.type && kind < RESOURCE_KINDS; kind++) {
        if (str_equal_nocase(odata.type, resource_kind_info((enum resource_kind)kind)->type))
            filter->kind = kind;
    }
    if (odata.type && filter->kind < 0)
        reply_json(call, 200, json_pack("{s:[]}", "value"));
    else
        call_list(call, filter);
}

void handle_resource_list(struct call *call)
{
    struct store_filter filter = {.key_prefix = subscription_key(call)};

    list_resources(call, &filter);
}

void handle_group_resource_list(struct call *call)
{
    struct store_filter filter = {.group_key = call->group_key};
    autoptr(resource) group = NULL;
    struct err e = {0};

    if (call_find(call, RESOURCE_GROUP, &group, &e) < 0)
        reply_error(call, &e);
    else
        list_resources(call, &filter);
}
