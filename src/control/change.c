/* A change on its way through the writer: applied and recorded in one transaction, then told.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "control/control-internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/conductor.h"
#include "control/principals.h"
#include "store/pool.h"
#include "store/store.h"

/* The writer's view of a change; dies with it. */
struct written {
    struct db_write write;
    struct control_change *change;
};

struct control_change *control_change_new(void)
{
    struct arena *arena = arena_new();
    struct control_change *change = arena_alloc(arena, sizeof(*change));

    change->arena = arena;
    return change;
}

void control_change_free(struct control_change *change)
{
    if (!change)
        return;
    resource_free(change->resource);
    operation_free(change->operation);
    free(change->secret);
    arena_free(change->arena);
}

static void drop_json(void *value)
{
    json_decref(value);
}

json_t *control_keep_json(struct control_change *change, json_t *value)
{
    if (value)
        arena_defer(change->arena, drop_json, json_incref(value));
    return value;
}

static int record(struct control_change *change,
                  struct db *db,
                  const char *outcome,
                  const char *detail,
                  struct err *e)
{
    const struct event event = {
        .at_ms = change->now_ms,
        .principal = change->caller.principal,
        .peer = change->caller.peer,
        .operation = change->caller.operation,
        .target = change->caller.target,
        .request_id = change->caller.request_id,
        .outcome = outcome,
        .detail = detail,
    };

    return change->is_upkeep ? 0 : store_add_event(db, &event, e);
}

/* As it was before apply. */
static void forget_outcome(struct control_change *change)
{
    resource_free(take_ptr(&change->resource));
    operation_free(take_ptr(&change->operation));
    free(take_ptr(&change->secret));
    change->starts_operation = change->created = false;
    change->accounts_doomed = change->principals_changed = false;
}

static int apply(struct db_write *write, struct db *db, struct err *e)
{
    struct control_change *change = container_of(write, struct written, write)->change;

    if (change->is_repeatable)
        forget_outcome(change);
    else
        control_forget_parent(change->control);
    change->now_ms = clock_wall_ms();
    if (change->apply(change, db, e) < 0)
        return -1;
    return record(change, db, "Succeeded", NULL, e);
}

static int refused(struct db_write *write, struct db *db, const struct err *why)
{
    struct control_change *change = container_of(write, struct written, write)->change;

    return record(change, db, err_reason_of(why), why->msg, NULL);
}

/* After the commit, before the requester hears of it: a revoked token must not work once that
 * is said. */
static void reload_principals(struct control *control)
{
    auto_reader reader = {0};
    struct err e = {0};

    if (store_pool_take(control->config.pool, &reader, &e) < 0 ||
        principals_load(control->principals, reader.db, &e) < 0)
        log_error("event=principals error=\"%s\"", e.msg);
}

static void done(struct db_write *write, const struct err *why)
{
    struct control_change *change = container_of(write, struct written, write)->change;

    if (why->code == ERR_NONE && change->principals_changed)
        reload_principals(change->control);
    if (why->code == ERR_NONE && change->resource && change->control->conductor &&
        (change->resource->kind == RESOURCE_CLUSTER || change->resource->kind == RESOURCE_JOB))
        conductor_touch(change->control->conductor, change->resource->id);
    if (why->code == ERR_NONE && change->starts_operation)
        control_act(change->control, change->operation->id);
    if (why->code == ERR_NONE && change->accounts_doomed)
        control_purge_doomed(change->control);
    change->done(change, why);
}

void control_submit(struct control *control, struct control_change *change)
{
    struct written *w = arena_alloc(change->arena, sizeof(*w));

    change->control = control;
    w->change = change;
    w->write.apply = apply;
    w->write.refused = refused;
    w->write.done = done;
    w->write.is_repeatable = change->is_repeatable;
    db_writer_submit(control->writer, &w->write);
}
