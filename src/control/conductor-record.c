/* The mind to rows: one transaction at a time, then the engine is told.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "control/conductor-internal.h"

#include "base/fault.h"
#include "base/log.h"
#include "store/pool.h"
#include "store/work.h"

#include <string.h>

enum {
    RETRY_MS = 500, /* a full disk: somebody may make room */
};

/* A copy of what changed: the mind goes on while it is written. */
struct record {
    struct conductor *conductor;
    struct arena *arena;
    struct yard_cluster *clusters;
    struct yard_node *nodes;
    struct yard_job *jobs;
    struct yard_attempt *attempts;
    struct yard_action *actions;
    size_t cluster_count, node_count, job_count, attempt_count, action_count;
    struct err why;
};

static void *copy_array(struct arena *arena, const void *from, size_t bytes)
{
    return bytes ? memcpy(arena_alloc(arena, bytes), from, bytes) : NULL;
}

static void copy_rows(struct record *r, const struct yard_changes *changes)
{
    r->cluster_count = changes->cluster_count;
    r->clusters = arena_alloc(r->arena, changes->cluster_count * sizeof(*r->clusters) + 1);
    for (size_t i = 0; i < changes->cluster_count; i++)
        r->clusters[i] = *changes->clusters[i];
    r->node_count = changes->node_count;
    r->nodes = arena_alloc(r->arena, changes->node_count * sizeof(*r->nodes) + 1);
    for (size_t i = 0; i < changes->node_count; i++)
        r->nodes[i] = *changes->nodes[i];
}

static char *copy_text(struct arena *arena, const char *text)
{
    return text ? arena_strdup(arena, text) : NULL;
}

static void copy_texts(struct arena *arena, struct yard_job *job)
{
    job->error_code = copy_text(arena, job->error_code);
    job->error_message = copy_text(arena, job->error_message);
    job->error_info = copy_text(arena, job->error_info);
    job->verdict = copy_text(arena, job->verdict);
}

static void copy_jobs(struct record *r, const struct yard_changes *changes)
{
    r->job_count = changes->job_count;
    r->jobs = arena_alloc(r->arena, changes->job_count * sizeof(*r->jobs) + 1);
    for (size_t i = 0; i < changes->job_count; i++) {
        r->jobs[i] = *changes->jobs[i];
        copy_texts(r->arena, &r->jobs[i]);
        r->jobs[i].excluded =
            copy_array(r->arena, changes->jobs[i]->excluded,
                       changes->jobs[i]->excluded_count * sizeof(*r->jobs[i].excluded));
    }
    r->attempt_count = changes->attempt_count;
    r->attempts = arena_alloc(r->arena, changes->attempt_count * sizeof(*r->attempts) + 1);
    for (size_t i = 0; i < changes->attempt_count; i++) {
        r->attempts[i] = *changes->attempts[i];
        r->attempts[i].nodes =
            copy_array(r->arena, changes->attempts[i]->nodes,
                       changes->attempts[i]->node_count * sizeof(*r->attempts[i].nodes));
    }
}

static struct record *record_new(struct conductor *c, const struct yard_changes *changes)
{
    struct arena *arena = arena_new();
    struct record *r = arena_alloc(arena, sizeof(*r));

    r->conductor = c;
    r->arena = arena;
    copy_rows(r, changes);
    copy_jobs(r, changes);
    r->action_count = changes->action_count;
    r->actions =
        copy_array(arena, changes->actions, changes->action_count * sizeof(*r->actions));
    return r;
}

/* On the writer thread. */
static int apply(struct control_change *change, struct db *db, struct err *e)
{
    const struct record *r = change->context;

    for (size_t i = 0; i < r->cluster_count; i++) {
        if (store_put_cluster(db, &r->clusters[i], e) < 0)
            return -1;
    }
    for (size_t i = 0; i < r->node_count; i++) {
        if (store_put_node(db, &r->nodes[i], e) < 0)
            return -1;
    }
    for (size_t i = 0; i < r->job_count; i++) {
        if (store_put_job(db, &r->jobs[i], e) < 0)
            return -1;
    }
    for (size_t i = 0; i < r->attempt_count; i++) {
        if (store_put_attempt(db, &r->attempts[i], e) < 0)
            return -1;
    }
    return 0;
}

static void recorded(void *arg);

static void done(struct control_change *change, const struct err *why)
{
    struct record *r = change->context;

    r->why = *why;
    loop_post(r->conductor->control->loop, recorded, r);
    control_change_free(change);
}

static void submit(struct record *r)
{
    struct control_change *change = control_change_new();

    change->is_upkeep = true;
    change->context = r;
    change->apply = apply;
    change->done = done;
    control_submit(r->conductor->control, change);
}

/* Whoever waits asks again; those who must go on waiting come back to the list. */
void conductor_wake_waiters(struct conductor *c)
{
    struct waiter *waiter = c->waiters;

    c->waiters = NULL;
    while (waiter) {
        struct waiter *next = waiter->next;

        waiter->again(waiter->arg);
        free(waiter);
        waiter = next;
    }
}

/* What has ended for good is of no more use to the mind. */
static void forget_ended(struct conductor *c, const struct record *r)
{
    for (size_t i = 0; i < r->attempt_count; i++) {
        if (r->attempts[i].state == ATTEMPT_ENDED)
            conductor_forget_attempt(c, r->attempts[i].job_id, r->attempts[i].number);
    }
    for (size_t i = 0; i < r->job_count; i++) {
        if (job_is_final(r->jobs[i].state))
            yard_forget_job(c->yard, r->jobs[i].id, NULL); /* busy: its attempt still stops */
    }
}

static void retry(struct loop_timer *timer)
{
    struct conductor *c = container_of(timer, struct conductor, retry);

    submit(c->record);
}

static void act_later(struct loop_timer *timer)
{
    recorded(container_of(timer, struct conductor, retry)->record);
}

static void
set_retry(struct conductor *c, void (*fired)(struct loop_timer *timer), const struct err *why)
{
    log_error("event=record error=\"%s\" next=retry", why->msg);
    c->retry.fired = fired;
    loop_timer_set(c->control->loop, &c->retry, RETRY_MS);
}

static void recorded(void *arg)
{
    struct record *r = arg;
    struct conductor *c = r->conductor;
    auto_reader reader = {0};
    struct err e = {0};

    if (c->is_stopping)
        return; /* conductor_free drops it */
    if (r->why.code != ERR_NONE) {
        set_retry(c, retry, &r->why);
        return;
    }
    /* No job fails because the yard is short of descriptors for a moment. */
    if (r->action_count > 0 && store_pool_take(c->control->config.pool, &reader, &e) < 0) {
        set_retry(c, act_later, &e);
        return;
    }
    FAULT("conductor.act");
    for (size_t i = 0; i < r->action_count; i++)
        conductor_act(c, reader.db, &r->actions[i]);
    conductor_resumed(c);
    for (size_t i = 0; i < r->job_count; i++)
        control_tell_job(c->control, r->jobs[i].id, r->jobs[i].state);
    forget_ended(c, r);
    conductor_drop_record(c);
    conductor_wake_waiters(c);
    conductor_settle(c);
}

void conductor_drop_record(struct conductor *c)
{
    if (c->record)
        arena_free(c->record->arena);
    c->record = NULL;
}

static void settle(struct loop_task *task)
{
    struct conductor *c = container_of(task, struct conductor, settle);
    struct yard_changes changes;

    if (c->record || c->is_stopping || !c->is_started)
        return;
    yard_take_changes(c->yard, &changes);
    if (changes.cluster_count + changes.node_count + changes.job_count + changes.attempt_count +
            changes.action_count ==
        0) {
        conductor_resumed(c);
        return;
    }
    c->record = record_new(c, &changes);
    submit(c->record);
}

void conductor_settle(struct conductor *c)
{
    c->settle.run = settle;
    loop_task_add(c->control->loop, &c->settle);
}
