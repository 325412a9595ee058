/* desk.h - for tests: a control over a yard of its own, and a way to ask it and wait.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTROL_TEST_DESK_H
#define CONTROL_TEST_DESK_H

#include "control/control.h"
#include "control/principals.h"
#include "control/vault.h"
#include "store/pool.h"
#include "store/test/yard.h"

#include <pthread.h>
#include <semaphore.h>

struct desk {
    struct yard yard;
    struct vault vault;
    struct store_pool *pool;
    struct control *control;
};

static inline void desk_start(struct desk *d)
{
    struct control_config config = {.pool = d->pool, .vault = &d->vault};
    struct err e = {0};

    assert_ok(control_new(take_ptr(&d->yard.db), &config, &d->control, &e), &e);
}

static inline void desk_stop(struct desk *d)
{
    control_free(d->control);
    d->control = NULL;
    yard_reopen(&d->yard);
}

/* A stopped one: what must be there before the start is planted through d->yard.db. */
static inline void desk_init(struct desk *d)
{
    yard_init(&d->yard);
    memset(&d->vault, 7, sizeof(d->vault));
    d->pool = store_pool_new(d->yard.db_path);
    d->control = NULL;
}

static inline void desk_done(struct desk *d)
{
    control_free(d->control);
    store_pool_free(d->pool);
    yard_done(&d->yard);
}

/* --- asking --- */

/* What the requester's thread waits for. */
struct asked {
    sem_t told;
    struct err why;
};

static inline void asked_done(struct control_change *change, const struct err *why)
{
    struct asked *asked = change->context;

    asked->why = *why;
    sem_post(&asked->told);
}

/* A change of "tester" that one can wait for. */
static inline struct control_change *ask(const char *operation)
{
    struct control_change *change = control_change_new();
    struct asked *asked = arena_alloc(change->arena, sizeof(*asked));

    sem_init(&asked->told, 0, 0);
    change->caller = (struct control_caller){"tester", "::1", operation, "/target", "id-1"};
    change->done = asked_done;
    change->context = asked;
    return change;
}

/* The outcome; borrowed until the change is freed. */
static inline const struct err *wait_for(struct control_change *change)
{
    struct asked *asked = change->context;

    while (sem_wait(&asked->told) < 0)
        continue;
    sem_post(&asked->told); /* for whoever asks again */
    return &asked->why;
}

static inline void change_autofree(struct control_change **change)
{
    control_change_free(*change);
}
#define auto_change __attribute__((cleanup(change_autofree))) struct control_change *

static inline void expect_ok(struct control_change *change)
{
    const struct err *why = wait_for(change);

    if (why->code != ERR_NONE)
        fail_msg("%s: %s", change->caller.operation, why->msg);
}

static inline void
expect_refused(struct control_change *change, enum err_code code, const char *reason)
{
    const struct err *why = wait_for(change);

    if (why->code != code || (reason && !str_equal(err_reason_of(why), reason)))
        fail_msg("%s: expected %s, got %s: %s", change->caller.operation,
                 reason ? reason : err_info(code)->reason,
                 why->code ? err_reason_of(why) : "success", why->msg);
}

#define OURS SUB_A "/resourceGroups/ours"

static inline struct control_change *
put(struct desk *d, enum resource_kind kind, const char *parent, const char *name)
{
    struct control_put wanted = {.kind = kind, .parent_id = parent, .name = name};
    struct control_change *change = ask("Put");

    if (kind != RESOURCE_EXPERIMENT)
        wanted.location = "eastus";
    control_put_resource(d->control, change, &wanted);
    return change;
}

/* The same, which must succeed. */
static inline void
have(struct desk *d, enum resource_kind kind, const char *parent, const char *name)
{
    auto_change change = put(d, kind, parent, name);

    expect_ok(change);
}

static inline struct control_change *
delete_it(struct desk *d, enum resource_kind kind, const char *id, bool at_once)
{
    struct control_delete wanted = {
        .kind = kind, .arm_id = id, .name = strrchr(id, '/') + 1, .at_once = at_once};
    struct control_change *change = ask("Delete");

    control_delete_resource(d->control, change, &wanted);
    return change;
}

/* A number out of the database as last committed. */
static inline int64_t count(struct desk *d, const char *sql)
{
    auto_reader reader = {0};
    struct err e = {0};

    assert_ok(store_pool_take(d->pool, &reader, &e), &e);
    return yard_scalar(reader.db, sql);
}

/* Wait until the query gives the number, 10 s at most. */
static inline void eventually(struct desk *d, const char *sql, int64_t wanted)
{
    for (int i = 0; i < 10000 && count(d, sql) != wanted; i++)
        usleep(1000);
    if (count(d, sql) != wanted)
        fail_msg("%s: %d, not %d", sql, (int)count(d, sql), (int)wanted);
}

/* --- a change that holds the writer up, so that others gather behind it --- */

struct gate {
    sem_t entered, open;
    bool is_past; /* the writer may run it again */
    struct control_change *change;
};

static inline int gate_apply(struct control_change *change, struct db *db, struct err *e)
{
    struct gate *gate = *(struct gate *const *)change->request;

    (void)db;
    (void)e;
    if (gate->is_past)
        return 0;
    gate->is_past = true;
    sem_post(&gate->entered);
    while (sem_wait(&gate->open) < 0)
        continue;
    return 0;
}

static inline void gate_shut(struct gate *gate, struct desk *d)
{
    struct gate **at;

    sem_init(&gate->entered, 0, 0);
    sem_init(&gate->open, 0, 0);
    gate->is_past = false;
    gate->change = ask("Gate");
    at = arena_alloc(gate->change->arena, sizeof(*at));
    *at = gate;
    gate->change->request = at;
    gate->change->apply = gate_apply;
    gate->change->is_repeatable = true;
    control_submit(d->control, gate->change);
    while (sem_wait(&gate->entered) < 0)
        continue;
}

static inline void gate_open(struct gate *gate)
{
    sem_post(&gate->open);
    expect_ok(gate->change);
    control_change_free(gate->change);
}

#endif
