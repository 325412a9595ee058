/* What really happens to nodes and tasks, and what the engine says about it.
 *
 * The engine does what it is told again without doing it twice: a node that is there is
 * adopted, an attempt that runs goes on, one that is over is reported again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/sim/sim-internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sim_node *node_at(struct sim *s, int64_t id)
{
    s->nodes = sim_room(s->nodes, &s->node_room, id, sizeof(*s->nodes));
    return &s->nodes[id];
}

static struct sim_attempt *attempt_at(struct sim *s, int64_t id)
{
    s->attempts = sim_room(s->attempts, &s->attempt_room, id, sizeof(*s->attempts));
    return &s->attempts[id];
}

static struct sim_job *job_at(struct sim *s, int64_t id)
{
    s->jobs = sim_room(s->jobs, &s->job_room, id, sizeof(*s->jobs));
    return &s->jobs[id];
}

static bool is_alive(const struct sim_attempt *a)
{
    return a->state == SIM_ATTEMPT_STARTING || a->state == SIM_ATTEMPT_RUNNING;
}

/* --- told --- */

static void make(struct sim *s, int64_t id, struct sim_node *n)
{
    int64_t dice = s->has_faults ? sim_roll(s, 100) : 99;

    n->state = SIM_NODE_MAKING;
    n->token++;
    if (s->is_measured)
        sim_plan(s, SIM_NODE_UP, id, n->token, 0);
    else if (dice < 3)
        return; /* never comes */
    else if (dice < 10)
        sim_plan(s, SIM_NODE_BREAKS, id, n->token, sim_roll(s, SIM_MINUTE));
    else if (dice < 15)
        sim_plan(s, SIM_NODE_UP, id, n->token, sim_roll(s, 2 * SIM_HOUR));
    else
        sim_plan(s, SIM_NODE_UP, id, n->token, sim_roll(s, SIM_MINUTE));
}

static void node_add(struct sim *s, int64_t id)
{
    struct sim_node *n = node_at(s, id);

    switch (n->state) {
    case SIM_NODE_NONE:
    case SIM_NODE_MAKING:
        make(s, id, n);
        return;
    case SIM_NODE_IS_UP:
        sim_say(s, SIM_SAY_NODE_UP, id);
        return;
    case SIM_NODE_BROKEN:
    case SIM_NODE_DEAD:
        sim_say(s, SIM_SAY_NODE_FAILED, id);
        return;
    case SIM_NODE_REMOVED:
        sim_violate(s, "node %lld is made after it was removed", (long long)id);
        return;
    }
}

static void node_remove(struct sim *s, int64_t id)
{
    struct sim_node *n = node_at(s, id);

    if (n->attempt_id != 0)
        sim_violate(s, "node %lld is removed under attempt %lld", (long long)id,
                    (long long)n->attempt_id);
    if (n->state == SIM_NODE_REMOVED) {
        sim_say(s, SIM_SAY_NODE_GONE, id);
        return;
    }
    n->token++;
    sim_plan(s, SIM_NODE_GOES, id, n->token, sim_roll(s, 30 * SIM_SECOND));
}

static void attempt_start(struct sim *s, int64_t id)
{
    const struct yard_attempt *told = yard_attempt(s->yard, id);
    struct sim_attempt *a = attempt_at(s, id);

    if (a->state == SIM_ATTEMPT_RUNNING)
        sim_say(s, SIM_SAY_RUNNING, id);
    if (a->state == SIM_ATTEMPT_ENDED)
        sim_say(s, SIM_SAY_ENDED, id);
    if (a->state != SIM_ATTEMPT_NONE)
        return;
    if (!told) {
        sim_violate(s, "attempt %lld is started and is not there", (long long)id);
        return;
    }
    a->job_id = told->job_id;
    a->node_count = told->node_count;
    a->nodes = xcalloc(a->node_count, sizeof(*a->nodes));
    memcpy(a->nodes, told->nodes, a->node_count * sizeof(*a->nodes));
    if (!s->is_measured)
        sim_audit_start(s, id);
    a->state = SIM_ATTEMPT_STARTING;
    a->exit_code = -1;
    job_at(s, a->job_id)->live_attempt = id;
    for (size_t i = 0; i < a->node_count; i++)
        node_at(s, a->nodes[i])->attempt_id = id;
    s->report.decisions++;
    sim_plan(s, SIM_TASK_RUNS, id, 0, s->is_measured ? 0 : sim_roll(s, 20 * SIM_SECOND));
}

static void attempt_stop(struct sim *s, int64_t id)
{
    const struct sim_attempt *a = attempt_at(s, id);

    if (a->state == SIM_ATTEMPT_NONE)
        sim_violate(s, "attempt %lld is stopped and was never started", (long long)id);
    else if (is_alive(a))
        sim_plan(s, SIM_TASK_IS_KILLED, id, 0, sim_roll(s, 35 * SIM_SECOND));
    else
        sim_say(s, SIM_SAY_ENDED, id);
}

void sim_act(struct sim *s, const struct yard_action *action)
{
    switch (action->kind) {
    case ACTION_NODE_ADD:
        node_add(s, action->id);
        return;
    case ACTION_NODE_REMOVE:
        node_remove(s, action->id);
        return;
    case ACTION_ATTEMPT_START:
        attempt_start(s, action->id);
        return;
    case ACTION_ATTEMPT_STOP:
        attempt_stop(s, action->id);
        return;
    }
}

/* --- nodes --- */

static void node_comes_up(struct sim *s, int64_t id, struct sim_node *n)
{
    n->state = SIM_NODE_IS_UP;
    sim_say(s, SIM_SAY_NODE_UP, id);
    if (s->has_faults && sim_chance(s, 25))
        sim_plan(s, SIM_NODE_DIES, id, n->token, sim_roll(s, 4 * SIM_HOUR));
}

/* The attempt on it may notice before the node's keeper does, or instead of it, or see nothing
 * but a broken connection. */
static void node_dies(struct sim *s, int64_t id, struct sim_node *n)
{
    struct sim_attempt *a = n->attempt_id ? attempt_at(s, n->attempt_id) : NULL;
    int64_t dice = sim_roll(s, 100);

    if (!s->has_faults)
        return;
    n->state = SIM_NODE_DEAD;
    if (dice < 75 || !a)
        sim_say(s, SIM_SAY_NODE_FAILED, id);
    if (sim_chance(s, 20))
        sim_say(s, SIM_SAY_NODE_UP, id); /* it flaps */
    if (!a)
        return;
    a->end = dice < 85 ? ENDED_NODE_LOST : ENDED_EXITED;
    a->exit_code = dice < 85 ? -1 : 1;
    a->bad_node = id;
    a->was_killed = true;
    if (dice < 50 || dice >= 75)
        sim_plan(s, SIM_TASK_ENDS, n->attempt_id, 0, sim_roll(s, 30 * SIM_SECOND));
}

/* --- tasks --- */

static void task_is_over(struct sim *s, int64_t id, struct sim_attempt *a)
{
    a->state = SIM_ATTEMPT_ENDED;
    a->ended_ms = s->now_ms;
    job_at(s, a->job_id)->live_attempt = 0;
    for (size_t i = 0; i < a->node_count; i++)
        node_at(s, a->nodes[i])->attempt_id = 0;
    sim_say(s, SIM_SAY_ENDED, id);
}

void sim_result(const struct sim_attempt *a, struct attempt_result *ret_result)
{
    struct attempt_result *r = ret_result;

    *r = (struct attempt_result){
        .end = a->end, .exit_code = a->exit_code, .rank = -1, .bad_node = a->bad_node};
    if (a->bad_node)
        snprintf(r->node, sizeof(r->node), "%lld", (long long)a->bad_node);
    if (a->end == ENDED_SETUP) {
        snprintf(r->code, sizeof(r->code), "AZFMountError");
        snprintf(r->message, sizeof(r->message), "Unable to mount Azure File");
    }
}

static void task_runs(struct sim *s, int64_t id, struct sim_attempt *a)
{
    int64_t dice = s->has_faults ? sim_roll(s, 100) : 50;

    if (a->state != SIM_ATTEMPT_STARTING)
        return;
    if (dice < 6) {
        a->end = dice < 3 ? ENDED_SETUP : ENDED_PREPARATION;
        a->exit_code = dice < 3 ? -1 : 2;
        task_is_over(s, id, a);
        return;
    }
    a->state = SIM_ATTEMPT_RUNNING;
    a->started_ms = s->now_ms;
    if (!a->was_killed) {
        a->end = dice < 10 ? ENDED_UNKNOWN : ENDED_EXITED;
        a->exit_code = dice < 10 ? -1 : dice < 25 ? 3 : 0;
    }
    sim_say(s, SIM_SAY_RUNNING, id);
    if (dice < 96) /* else it hangs */
        sim_plan(s, SIM_TASK_ENDS, id, 0,
                 1 + sim_roll(s, s->is_measured ? SIM_HOUR / 2 : 3 * SIM_HOUR));
}

static void task_is_killed(struct sim *s, int64_t id, struct sim_attempt *a)
{
    if (!is_alive(a))
        return;
    a->was_killed = true;
    a->end = sim_chance(s, 90) ? ENDED_STOPPED : ENDED_UNKNOWN;
    a->exit_code = -1;
    task_is_over(s, id, a);
}

/* --- all of it --- */

static void happen_to_node(struct sim *s, const struct sim_event *event)
{
    struct sim_node *n = node_at(s, event->id);

    if (n->token != event->token)
        return;
    if (event->kind == SIM_NODE_UP) {
        node_comes_up(s, event->id, n);
    } else if (event->kind == SIM_NODE_DIES) {
        node_dies(s, event->id, n);
    } else {
        n->state = event->kind == SIM_NODE_GOES ? SIM_NODE_REMOVED : SIM_NODE_BROKEN;
        sim_say(s, event->kind == SIM_NODE_GOES ? SIM_SAY_NODE_GONE : SIM_SAY_NODE_FAILED,
                event->id);
    }
}

void sim_happen(struct sim *s, const struct sim_event *event)
{
    struct sim_attempt *a;

    if (event->kind < SIM_TASK_RUNS) {
        happen_to_node(s, event);
        return;
    }
    a = attempt_at(s, event->id);
    if (event->kind == SIM_TASK_RUNS)
        task_runs(s, event->id, a);
    else if (event->kind == SIM_TASK_IS_KILLED)
        task_is_killed(s, event->id, a);
    else if (is_alive(a))
        task_is_over(s, event->id, a);
}
