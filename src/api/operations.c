/* Polling of long-running operations, in the two ways that clients know.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

static int find(struct call *call, struct operation **ret_operation, struct err *e)
{
    const char *id = call_param(call, "operationId");
    autoptr(operation) o = NULL;
    auto_free char *group_key = NULL;
    auto_reader reader = {0};

    if (store_pool_take(call->api->config.pool, &reader, e) < 0 ||
        store_find_operation(reader.db, id, &o, &group_key, e) < 0)
        return -1;
    if (!o || !access_sees(call->who.scope, group_key)) {
        err_set(e, ERR_NOT_FOUND, "there is no operation %.64s; they are kept for a day", id);
        return err_reason(e, "OperationNotFound");
    }
    *ret_operation = take_ptr(&o);
    return 0;
}

/* Azure-AsyncOperation: always 200, the state is in the body. */
void handle_operation_result(struct call *call)
{
    autoptr(operation) o = NULL;
    struct err e = {0};
    json_t *body;

    if (find(call, &o, &e) < 0) {
        reply_error(call, &e);
        return;
    }
    body = json_pack("{s:o, s:s, s:s, s:o}", "id",
                     json_sprintf("%s%s", call_base_url(call), http_req_raw_path(call->req)),
                     "name", o->id, "status", operation_state_name(o->state), "startTime",
                     shape_time(o->started_ms));
    if (o->state == OPERATION_RUNNING)
        http_reply_header(call->req, "Retry-After", "1");
    else
        json_object_set_new(body, "endTime", shape_time(o->ended_ms));
    if (o->state == OPERATION_SUCCEEDED)
        json_object_set_new(
            body, "properties",
            json_pack("{s:s}", "resourceId", resource_dollar_path(call->arena, o->target)));
    if (o->state == OPERATION_FAILED)
        json_object_set_new(
            body, "error",
            json_pack("{s:s, s:s}", "code", o->error_code, "message", o->error_message));
    reply_json(call, 200, body);
}

/* Location: 202 while it runs, then what the request itself would have answered. */
void handle_operation_status(struct call *call)
{
    autoptr(operation) o = NULL;
    struct err e = {0};

    if (find(call, &o, &e) < 0) {
        reply_error(call, &e);
        return;
    }
    if (o->state == OPERATION_RUNNING) {
        http_reply_headerf(call->req, "Location", "%s%s?%s", call_base_url(call),
                           http_req_raw_path(call->req), http_req_raw_query(call->req));
        http_reply_header(call->req, "Retry-After", "1");
        reply_empty(call, 202);
    } else if (o->state == OPERATION_SUCCEEDED) {
        reply_empty(call, 204);
    } else {
        err_set(&e, ERR_CONFLICT, "%s", o->error_message);
        err_reason(&e, o->error_code);
        reply_error(call, &e);
    }
}
