/* Acting: long-running operations are finished here, by control's own thread, again after every
 * start.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "control/control-internal.h"

#include "base/fault.h"
#include "base/log.h"
#include "control/conductor.h"
#include "store/pool.h"
#include "store/store.h"

#include <string.h>

enum {
    RETRY_MS = 1000,
    SWEEP_MS = 60 * 60 * 1000,
    KEEP_MS = 24 * 60 * 60 * 1000, /* clients poll for minutes; a day is generous */
};

struct errand {
    struct errand *next, **at; /* in control's list */
    struct control *control;
    struct loop_timer timer; /* for the next try */
    char id[];
};

static void run(void *arg);

static void errand_add(struct errand *errand)
{
    struct control *control = errand->control;

    pthread_mutex_lock(&control->errands_lock);
    errand->at = &control->errands;
    errand->next = control->errands;
    if (errand->next)
        errand->next->at = &errand->next;
    control->errands = errand;
    pthread_mutex_unlock(&control->errands_lock);
}

static void errand_remove(struct errand *errand)
{
    struct control *control = errand->control;

    pthread_mutex_lock(&control->errands_lock);
    *errand->at = errand->next;
    if (errand->next)
        errand->next->at = errand->at;
    pthread_mutex_unlock(&control->errands_lock);
    free(errand);
}

void control_drop_errands(struct control *control)
{
    for (struct errand *errand = control->errands, *next; errand; errand = next) {
        next = errand->next;
        loop_timer_cancel(&errand->timer);
        free(errand);
    }
    control->errands = NULL;
}

static void retry(struct loop_timer *timer)
{
    run(container_of(timer, struct errand, timer));
}

static void set_retry(void *arg)
{
    struct errand *errand = arg;

    errand->timer.fired = retry;
    loop_timer_set(errand->control->loop, &errand->timer, RETRY_MS);
}

/* What the operation has to wait for has happened. */
static int finish(struct control_change *change, struct db *db, struct err *e)
{
    autoptr(resource) r = NULL;

    if (change->operation->kind != OPERATION_DELETE_RESOURCE)
        return 0;
    if (store_find_resource_by_id(db, change->operation->resource_id, &r, e) < 0)
        return -1;
    if (r && (resource_apply(r, RESOURCE_REMOVED, change->now_ms, e) < 0 ||
              store_remove_tree(db, r->id, e) < 0))
        return -1;
    change->accounts_doomed = true;
    return 0;
}

/* The operation's resource and all below it go, if that is what it is for; the operation has
 * succeeded. */
static int apply_finish(struct control_change *change, struct db *db, struct err *e)
{
    const char *id = change->request;
    auto_free char *group_key = NULL;

    if (store_find_operation(db, id, &change->operation, &group_key, e) < 0)
        return -1;
    if (!change->operation || change->operation->state != OPERATION_RUNNING)
        return 0; /* done before a crash, told again */
    if (finish(change, db, e) < 0)
        return -1;
    if (operation_apply(change->operation, OPERATION_DONE, change->now_ms, e) < 0)
        return -1;
    return store_put_operation(db, change->operation, group_key, e);
}

static void sweep_up(void *conductor)
{
    conductor_sweep_file_servers(conductor);
}

static void finished(struct control_change *change, const struct err *why)
{
    struct errand *errand = change->context;

    if (change->accounts_doomed && errand->control->conductor)
        loop_post(errand->control->loop, sweep_up, errand->control->conductor);
    if (why->code != ERR_NONE && err_info(why->code)->retry) {
        log_warning("event=operation id=%s error=\"%s\" next=retry", errand->id, why->msg);
        loop_post(errand->control->loop, set_retry, errand);
    } else {
        if (why->code != ERR_NONE)
            log_error("event=operation id=%s error=\"%s\"", errand->id, why->msg);
        errand_remove(errand);
    }
    control_change_free(change);
}

/* Has what the operation waits for happened?  If not, run comes again when it may have. */
static bool may_finish(struct errand *errand)
{
    struct conductor *conductor = errand->control->conductor;
    autoptr(operation) o = NULL;
    auto_reader reader = {0};
    struct err e = {0};

    if (!conductor)
        return true;
    if (store_pool_take(errand->control->config.pool, &reader, &e) < 0 ||
        store_find_operation(reader.db, errand->id, &o, NULL, &e) < 0) {
        log_warning("event=operation id=%s error=\"%s\" next=retry", errand->id, e.msg);
        set_retry(errand);
        return false;
    }
    if (o && o->kind == OPERATION_DELETE_RESOURCE)
        return conductor_is_clear(conductor, o->resource_id, o->target, run, errand);
    if (o && o->kind == OPERATION_TERMINATE_JOB)
        return conductor_job_has_ended(conductor, o->resource_id, run, errand);
    return true;
}

static void run(void *arg)
{
    struct errand *errand = arg;
    struct control_change *change;

    if (!may_finish(errand))
        return;
    change = control_change_new();
    FAULT("control.act");
    change->caller = (struct control_caller){
        .principal = "yard",
        .peer = "",
        .operation = "Operations_Finish",
        .target = arena_strdup(change->arena, errand->id),
        .request_id = "",
    };
    change->request = change->caller.target;
    change->context = errand;
    change->apply = apply_finish;
    change->done = finished;
    control_submit(errand->control, change);
}

void control_act(struct control *control, const char *operation_id)
{
    size_t len = strlen(operation_id) + 1;
    struct errand *errand = xcalloc(1, sizeof(*errand) + len);

    errand->control = control;
    memcpy(errand->id, operation_id, len);
    errand_add(errand);
    loop_post(control->loop, run, errand);
}

static void act_on(const char *id, void *context)
{
    control_act(context, id);
}

int control_act_on_all(struct control *control, struct db *db, struct err *e)
{
    return store_each_running_operation(db, act_on, control, e);
}

static int apply_sweep(struct control_change *change, struct db *db, struct err *e)
{
    int64_t keep_events_ms = change->control->config.keep_events_ms;

    if (keep_events_ms && store_remove_old_events(db, change->now_ms - keep_events_ms, e) < 0)
        return -1;
    return store_remove_old_operations(db, change->now_ms - KEEP_MS, e);
}

static void swept(struct control_change *change, const struct err *why)
{
    if (why->code != ERR_NONE)
        log_warning("event=sweep error=\"%s\", ignoring", why->msg);
    control_change_free(change);
}

static void sweep(struct loop_timer *timer)
{
    struct control *control = container_of(timer, struct control, sweep);
    struct control_change *change = control_change_new();

    change->is_upkeep = true;
    change->apply = apply_sweep;
    change->done = swept;
    control_submit(control, change);
    loop_timer_set(control->loop, timer, SWEEP_MS);
}

void control_start_sweeping(struct control *control)
{
    control->sweep.fired = sweep;
    loop_timer_set(control->loop, &control->sweep, SWEEP_MS);
}
