/* Jobs and their attempts: queueing, starting, stopping, ending.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/yard-internal.h"

#include <stdio.h>
#include <string.h>

struct attempt *mind_attempt_of_hold(struct ordered_link *link)
{
    struct schedule_hold *hold = container_of(link, struct schedule_hold, link);

    return container_of(hold, struct attempt, hold);
}

struct job *mind_job_of_plan(struct schedule_job *plan)
{
    return container_of(plan, struct job, plan);
}

void mind_view(const struct yard *y, const struct cluster *c, struct schedule_view *ret_view)
{
    *ret_view = (struct schedule_view){
        .now_ms = y->now_ms,
        .queue = &c->queue,
        .idle = &c->idle,
        .holds = &c->holds,
        .held = c->held,
        .coming = c->count[NODE_CREATING],
    };
}

/* --- the queue --- */

void mind_enqueue(struct yard *y, struct job *j)
{
    struct cluster *c = j->cluster;

    j->plan.id = j->it.id;
    j->plan.priority = (int)j->it.priority;
    j->plan.node_count = j->it.node_count > 0 ? j->it.node_count : 1;
    j->plan.wall_ms = schedule_add_ms(j->it.wall_ms, MIND_STOP_MS);
    j->plan.excluded = j->it.excluded;
    j->plan.excluded_count = j->it.excluded_count;
    schedule_add_job(&c->queue, &j->plan);
    if (j->plan.node_count <= c->ceiling)
        c->queued_nodes += j->plan.node_count;
    mind_touch(y, c);
}

static void dequeue(struct yard *y, struct job *j)
{
    struct cluster *c = j->cluster;

    ordered_remove(&c->queue, &j->plan.link);
    if (j->plan.node_count <= c->ceiling)
        c->queued_nodes -= j->plan.node_count;
    mind_touch(y, c);
}

/* --- the end of a job --- */

static void set_text(char **text, const char *value)
{
    free(*text);
    *text = value && value[0] ? xstrdup(value) : NULL;
}

static void note_outcome(struct yard *y, struct job *j, const struct outcome *outcome)
{
    j->it.exit_code = outcome->exit_code;
    set_text(&j->it.error_code, outcome->code);
    set_text(&j->it.error_message, outcome->code ? outcome->message : NULL);
    set_text(&j->it.error_info, outcome->code ? outcome->info : NULL);
    set_text(&j->it.verdict, outcome->verdict);
    mind_changed_job(y, j);
}

void mind_fail_job(struct yard *y, struct job *j, const struct outcome *outcome)
{
    if (job_apply(&j->it, JOB_EV_FAIL, y->now_ms, NULL) < 0)
        return;
    if (j->it.started_ms == 0)
        j->it.started_ms = y->now_ms;
    j->it.ended_ms = y->now_ms;
    note_outcome(y, j, outcome);
    j->cluster = NULL;
}

void mind_drop_job(struct yard *y, struct job *j, enum stop_reason reason)
{
    struct outcome outcome;

    outcome_of_queued(&j->it, reason, &outcome);
    if (j->cluster)
        dequeue(y, j);
    mind_fail_job(y, j, &outcome);
}

/* --- starting --- */

void mind_enter_attempt(struct yard *y, struct attempt *a)
{
    struct cluster *c = a->job->cluster;
    int64_t limit_ms = schedule_add_ms(a->it.created_ms, a->job->it.wall_ms);
    bool is_stopping = a->it.state == ATTEMPT_STOPPING;
    size_t count = 0;

    a->hold_nodes = xcalloc(a->it.node_count + 1, sizeof(*a->hold_nodes));
    for (size_t i = 0; i < a->it.node_count; i++) {
        const struct node *n = mind_node(y, a->it.nodes[i]);

        if (n && n->it.state == NODE_RUNNING)
            a->hold_nodes[count++] = n->it.id;
    }
    a->hold.nodes = a->hold_nodes;
    a->hold.node_count = count;
    c->held += (int)count;
    ordered_add(&c->holds, &a->hold.link,
                schedule_add_ms(is_stopping ? y->now_ms : limit_ms, MIND_STOP_MS), a->it.id);
    if (!is_stopping || a->it.stop == STOP_REQUEUE)
        ordered_add(&y->wall_timers, &a->timer, limit_ms, a->it.id);
}

static struct attempt *
make_attempt(struct yard *y, struct job *j, const struct schedule_view *view)
{
    auto_free int64_t *nodes = xcalloc((size_t)j->plan.node_count, sizeof(*nodes));
    struct yard_attempt values = {
        .id = ++y->last_attempt_id,
        .job_id = j->it.id,
        .number = ++j->it.attempts,
        .state = ATTEMPT_STARTING,
        .created_ms = y->now_ms,
        .nodes = nodes,
        .node_count = (size_t)j->plan.node_count,
        .result = {.exit_code = -1, .rank = -1},
    };

    schedule_nodes(view, &j->plan, nodes);
    return mind_new_attempt(y, &values);
}

static void take_nodes(struct yard *y, const struct attempt *a)
{
    for (size_t i = 0; i < a->it.node_count; i++) {
        struct node *n = mind_node(y, a->it.nodes[i]);

        n->it.attempt_id = a->it.id;
        mind_move_node(y, n, NODE_EV_TAKE, NULL);
    }
}

void mind_start_job(struct yard *y, struct job *j, const struct schedule_view *view)
{
    struct attempt *a = make_attempt(y, j, view);

    a->job = j;
    dequeue(y, j);
    job_apply(&j->it, JOB_EV_START, y->now_ms, NULL);
    j->it.attempt_id = a->it.id;
    j->it.started_ms = y->now_ms;
    j->it.ended_ms = 0;
    note_outcome(y, j, &(struct outcome){.exit_code = -1});
    take_nodes(y, a);
    mind_enter_attempt(y, a);
    mind_changed_attempt(y, a);
    mind_act(y, ACTION_ATTEMPT_START, a->it.id);
}

/* --- stopping --- */

/* Somebody's word outweighs the yard's own reasons; between equals the first stands. */
static const struct stop_rule {
    int weight;
    bool is_announced; /* the job is "terminating" from then on */
} stop_rules[] = {
    [STOP_NONE] = {0, false},      [STOP_WALL_CLOCK] = {1, false}, [STOP_REQUEUE] = {1, false},
    [STOP_NODE_LOST] = {1, false}, [STOP_USER] = {2, true},        [STOP_SHRINK] = {2, true},
    [STOP_DELETED] = {2, true},
};

/* Who has used up his time while his nodes were being freed does not get it a second time. */
static bool overrides(enum stop_reason reason, enum stop_reason current)
{
    return stop_rules[reason].weight > stop_rules[current].weight ||
           (reason == STOP_WALL_CLOCK && current == STOP_REQUEUE);
}

void mind_stop_attempt(struct yard *y, struct attempt *a, enum stop_reason reason)
{
    struct cluster *c = a->job->cluster;
    bool is_first = a->it.state != ATTEMPT_STOPPING;

    if (!overrides(reason, a->it.stop) || attempt_apply(&a->it, ATTEMPT_EV_STOP, NULL) < 0)
        return;
    a->it.stop = reason;
    mind_changed_attempt(y, a);
    if (stop_rules[reason].is_announced &&
        job_apply(&a->job->it, JOB_EV_END, y->now_ms, NULL) == 0)
        mind_changed_job(y, a->job);
    if (reason != STOP_REQUEUE)
        ordered_remove(&y->wall_timers, &a->timer);
    if (!is_first)
        return;
    ordered_remove(&c->holds, &a->hold.link);
    ordered_add(&c->holds, &a->hold.link, schedule_add_ms(y->now_ms, MIND_STOP_MS), a->it.id);
    mind_act(y, ACTION_ATTEMPT_STOP, a->it.id);
    mind_touch(y, c);
}

void mind_heed_job(struct yard *y, struct job *j)
{
    enum stop_reason reason = j->it.is_deleting ? STOP_DELETED : STOP_USER;
    struct attempt *a;

    if (job_is_final(j->it.state) || (!j->it.is_deleting && !j->it.is_unwanted))
        return;
    if (j->it.state == JOB_QUEUED) {
        mind_drop_job(y, j, reason);
        return;
    }
    a = mind_attempt(y, j->it.attempt_id);
    if (a)
        mind_stop_attempt(y, a, reason);
}

void mind_lose_hold(struct attempt *a, int64_t node_id)
{
    for (size_t i = 0; i < a->hold.node_count; i++) {
        if (a->hold_nodes[i] == node_id) {
            a->hold_nodes[i] = a->hold_nodes[--a->hold.node_count];
            return;
        }
    }
}

/* --- events: clients --- */

void yard_put_job(struct yard *y, const struct yard_job *job, int64_t now_ms)
{
    struct job *j = mind_job(y, job->id);

    mind_clock(y, now_ms);
    if (!j && job_is_final(job->state))
        return;
    if (!j) {
        struct yard_job values = {
            .id = job->id,
            .cluster_id = job->cluster_id,
            .node_count = job->node_count,
            .priority = job->priority,
            .wall_ms = job->wall_ms,
            .most_attempts = job->most_attempts,
            .state = JOB_QUEUED,
            .state_ms = y->now_ms,
            .exit_code = -1,
        };

        j = mind_new_job(y, &values);
        mind_changed_job(y, j);
        j->cluster = mind_cluster(y, job->cluster_id);
        if (j->cluster)
            mind_enqueue(y, j);
        else
            mind_drop_job(y, j, STOP_DELETED);
    }
    j->it.is_unwanted |= job->is_unwanted;
    j->it.is_deleting |= job->is_deleting;
    mind_heed_job(y, j);
    mind_settle(y);
}

/* --- events: the engine --- */

static int find(struct yard *y, int64_t id, struct attempt **ret_attempt, struct err *e)
{
    struct attempt *a = mind_attempt(y, id);

    if (!a)
        return err_set(e, ERR_CONFLICT, "attempt %lld is over: the report comes too late",
                       (long long)id);
    *ret_attempt = a;
    return 0;
}

int yard_attempt_running(struct yard *y, int64_t attempt_id, int64_t now_ms, struct err *e)
{
    struct attempt *a;

    if (find(y, attempt_id, &a, e) < 0 || attempt_apply(&a->it, ATTEMPT_EV_RUN, e) < 0)
        return -1;
    mind_clock(y, now_ms);
    if (a->it.started_ms == 0) {
        a->it.started_ms = y->now_ms;
        mind_changed_attempt(y, a);
    }
    return 0;
}

static void exclude(struct job *j, int64_t node_id)
{
    for (size_t i = 0; i < j->it.excluded_count; i++)
        if (j->it.excluded[i] == node_id)
            return;
    j->it.excluded =
        xreallocarray(j->it.excluded, j->it.excluded_count + 1, sizeof(*j->it.excluded));
    j->it.excluded[j->it.excluded_count++] = node_id;
}

/* Where the others failed is no news once a node of them was lost. */
static void note_lost_node(struct yard_attempt *attempt, const struct node *n)
{
    struct attempt_result *result = &attempt->result;

    if (attempt->stop != STOP_NODE_LOST && result->end != ENDED_NODE_LOST)
        return;
    result->bad_node = n->it.id;
    snprintf(result->node, sizeof(result->node), "%s", n->it.name);
}

/* Back to the cluster; the bad ones are let go, and the job does not get them again. */
static void release_nodes(struct yard *y, struct attempt *a)
{
    const struct attempt_result *result = &a->it.result;
    struct cluster *c = a->job->cluster;

    c->held -= (int)a->hold.node_count;
    ordered_remove(&c->holds, &a->hold.link);
    ordered_remove(&y->wall_timers, &a->timer);
    for (size_t i = 0; i < a->it.node_count; i++) {
        struct node *n = mind_node(y, a->it.nodes[i]);

        if (!n || n->it.attempt_id != a->it.id)
            continue;
        if (n->it.state == NODE_RUNNING && result->end == ENDED_NODE_LOST &&
            result->bad_node == n->it.id) {
            mind_move_node(y, n, NODE_EV_BREAK, NULL);
            c->lost++;
        }
        if (n->it.state == NODE_UNUSABLE) {
            exclude(a->job, n->it.id);
            note_lost_node(&a->it, n);
        }
        mind_release_node(y, n);
    }
}

/* Times as they were, but in order and not in the future. */
static void note_times(struct attempt *a, int64_t started_ms, int64_t ended_ms, int64_t now_ms)
{
    struct yard_attempt *it = &a->it;

    if (started_ms != 0)
        it->started_ms = started_ms;
    if (it->started_ms != 0 && it->started_ms < it->created_ms)
        it->started_ms = it->created_ms;
    it->ended_ms = ended_ms != 0 && ended_ms < now_ms ? ended_ms : now_ms;
    if (it->ended_ms < it->created_ms)
        it->ended_ms = it->created_ms;
    if (it->started_ms > it->ended_ms)
        it->started_ms = it->ended_ms;
}

static void end_job(struct yard *y, struct job *j, const struct attempt *a)
{
    struct outcome outcome;

    outcome_of_attempt(&j->it, &a->it, &outcome);
    job_apply(&j->it, outcome.event,
              outcome.event == JOB_EV_REQUEUE ? y->now_ms : a->it.ended_ms, NULL);
    j->it.losses += outcome.is_loss;
    note_outcome(y, j, &outcome);
    if (outcome.event == JOB_EV_REQUEUE) {
        j->it.started_ms = j->it.ended_ms = 0;
        mind_enqueue(y, j);
    } else {
        j->it.ended_ms = a->it.ended_ms;
        j->cluster = NULL;
    }
}

int yard_attempt_ended(struct yard *y,
                       int64_t attempt_id,
                       const struct attempt_result *result,
                       int64_t started_ms,
                       int64_t ended_ms,
                       int64_t now_ms,
                       struct err *e)
{
    struct attempt *a;

    if (find(y, attempt_id, &a, e) < 0 || attempt_apply(&a->it, ATTEMPT_EV_END, e) < 0)
        return -1;
    mind_clock(y, now_ms);
    a->it.result = *result;
    note_times(a, started_ms, ended_ms, y->now_ms);
    mind_changed_attempt(y, a);
    release_nodes(y, a);
    mind_touch(y, a->job->cluster);
    end_job(y, a->job, a);
    mind_bury_attempt(y, a);
    mind_settle(y);
    return 0;
}
