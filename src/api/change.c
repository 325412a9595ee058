/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

/* What waits for a change: kept in the change's own arena, since the call's may not be touched
 * by the writer. */
struct waiting {
    struct call *call;
    void (*reply)(struct call *call, struct control_change *change, const struct err *why);
    struct err why;
};

struct control_change *call_change(struct call *call)
{
    struct control_change *change = control_change_new();
    struct arena *arena = change->arena;

    change->caller = (struct control_caller){
        .principal = arena_strdup(arena, call->who.name),
        .peer = arena_strdup(arena, http_req_peer(call->req)),
        .operation = call->route->operation_id,
        .target = arena_strdup(arena, http_req_raw_path(call->req)),
        .request_id = arena_strdup(arena, http_req_id(call->req)),
    };
    return change;
}

static void answer(struct http_req *req, void *arg)
{
    struct control_change *change = arg;
    struct waiting *w = change->context;

    (void)req;
    w->reply(w->call, change, &w->why);
    control_change_free(change);
}

/* On the writer thread: only the post back may happen here. */
static void committed(struct control_change *change, const struct err *why)
{
    struct waiting *w = change->context;

    if (why->code != ERR_NONE) /* half a kilobyte, zeroed already */
        w->why = *why;
    http_req_post(w->call->req, answer, change);
}

void call_when_done(struct call *call,
                    struct control_change *change,
                    void (*reply)(struct call *call,
                                  struct control_change *change,
                                  const struct err *why))
{
    struct waiting *w = arena_alloc(change->arena, sizeof(*w));

    w->call = call;
    w->reply = reply;
    change->context = w;
    change->done = committed;
}

struct refusal {
    struct err why;
};

static int refuse(struct control_change *change, struct db *db, struct err *e)
{
    const struct refusal *refusal = change->request;

    (void)db;
    *e = refusal->why;
    return -1;
}

static void forget(struct control_change *change, const struct err *why)
{
    (void)why;
    control_change_free(change);
}

void call_record_refusal(struct call *call, const struct err *why)
{
    struct control_change *change = call_change(call);
    struct refusal *refusal = arena_alloc(change->arena, sizeof(*refusal));

    refusal->why = *why;
    change->request = refusal;
    change->apply = refuse;
    change->is_repeatable = true;
    change->done = forget;
    control_submit(call->api->config.control, change);
}

void call_refuse(struct call *call, const struct err *why)
{
    call_record_refusal(call, why); /* first: the call may end with its reply */
    reply_error(call, why);
}

static int nothing(struct control_change *change, struct db *db, struct err *e)
{
    (void)change;
    (void)db;
    (void)e;
    return 0;
}

void call_record_use(struct call *call)
{
    struct control_change *change = call_change(call);

    change->apply = nothing;
    change->is_repeatable = true;
    change->done = forget;
    control_submit(call->api->config.control, change);
}

void call_reply_put(struct call *call, struct control_change *change, const struct err *why)
{
    if (why->code != ERR_NONE)
        reply_error(call, why);
    else if (change->operation) /* of clusters, file servers and jobs */
        reply_accepted(call, change->operation);
    else
        /* Only groups say 201; the other providers always said 200. */
        reply_resource(call,
                       change->created && change->resource->kind == RESOURCE_GROUP ? 201 : 200,
                       change->resource);
}

void call_reply_delete(struct call *call, struct control_change *change, const struct err *why)
{
    if (why->code != ERR_NONE)
        reply_error(call, why);
    else if (change->operation)
        reply_accepted(call, change->operation);
    else
        reply_empty(call, change->resource ? 200 : 204);
}
