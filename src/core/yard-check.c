/* The invariants, looked at from outside: everything is counted again from the tables.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/yard-internal.h"

#include <string.h>

/* --- I2: at most one live attempt a job, numbered --- */

static int check_attempt(const struct yard *y, const struct attempt *a, struct err *e)
{
    const struct job *j = mind_job(y, a->it.job_id);
    long long id = (long long)a->it.id;

    if (!attempt_is_live(a->it.state))
        return err_set(e, ERR_INTERNAL, "I2: attempt %lld is over and still kept", id);
    if (!j || a->job != j)
        return err_set(e, ERR_INTERNAL, "I2: attempt %lld has no job", id);
    if (j->it.attempt_id != a->it.id)
        return err_set(e, ERR_INTERNAL, "I2: job %lld has two live attempts",
                       (long long)j->it.id);
    if (j->it.state != JOB_RUNNING && j->it.state != JOB_TERMINATING)
        return err_set(e, ERR_INTERNAL, "I2: job %lld is %s with a live attempt",
                       (long long)j->it.id, job_state_name(j->it.state));
    if (a->it.number != j->it.attempts)
        return err_set(e, ERR_INTERNAL, "I2: attempt %lld has the wrong number", id);
    if ((a->it.state == ATTEMPT_STOPPING) != (a->it.stop != STOP_NONE))
        return err_set(e, ERR_INTERNAL, "I2: attempt %lld stops for no reason", id);
    if (a->it.node_count != (size_t)(j->it.node_count > 0 ? j->it.node_count : 1))
        return err_set(e, ERR_INTERNAL, "I2: attempt %lld has half a gang", id);
    return 0;
}

/* --- I3: final states have a cause; never an invented 0 --- */

static int check_final(const struct yard_job *job, struct err *e)
{
    long long id = (long long)job->id;

    if (job->state == JOB_SUCCEEDED && (job->exit_code != 0 || job->error_code))
        return err_set(e, ERR_INTERNAL, "I3: job %lld succeeded without exit code 0", id);
    if (job->state == JOB_FAILED && (job->exit_code == 0 || !job->error_code || !job->verdict))
        return err_set(e, ERR_INTERNAL, "I3: job %lld failed without a cause", id);
    if (job->started_ms == 0 || job->ended_ms < job->started_ms)
        return err_set(e, ERR_INTERNAL, "I3: job %lld ended before it started", id);
    return 0;
}

static int check_job(const struct yard *y, const struct job *j, struct err *e)
{
    long long id = (long long)j->it.id;
    bool is_live = j->it.state == JOB_RUNNING || j->it.state == JOB_TERMINATING;

    if (is_live && !mind_attempt(y, j->it.attempt_id))
        return err_set(e, ERR_INTERNAL, "I2: job %lld runs without an attempt", id);
    if (j->it.losses > j->it.attempts)
        return err_set(e, ERR_INTERNAL, "I2: job %lld lost more than it had", id);
    if ((j->it.state == JOB_QUEUED) != (j->plan.link.set != NULL))
        return err_set(e, ERR_INTERNAL, "I2: job %lld is in no queue, or in one by mistake",
                       id);
    if (j->it.state == JOB_QUEUED && (j->it.is_unwanted || j->it.is_deleting))
        return err_set(e, ERR_INTERNAL, "I3: job %lld waits though nobody wants it", id);
    return job_is_final(j->it.state) ? check_final(&j->it, e) : 0;
}

/* --- I6: what is free is what there is, less what live attempts hold --- */

static bool holds(const struct attempt *a, int64_t node_id)
{
    for (size_t i = 0; i < a->it.node_count; i++)
        if (a->it.nodes[i] == node_id)
            return true;
    return false;
}

static int check_node(const struct yard *y, const struct node *n, struct err *e)
{
    const struct attempt *a = n->it.attempt_id ? mind_attempt(y, n->it.attempt_id) : NULL;
    bool may_be_held = n->it.state == NODE_RUNNING || n->it.state == NODE_UNUSABLE;

    if (n->it.attempt_id && (!a || !holds(a, n->it.id) || !may_be_held))
        return err_set(e, ERR_INTERNAL, "I6: node %s is held by nobody", n->it.name);
    if (n->it.state == NODE_RUNNING && !a)
        return err_set(e, ERR_INTERNAL, "I6: node %s runs nothing", n->it.name);
    if ((n->it.state == NODE_IDLE) != (n->idle.set != NULL))
        return err_set(e, ERR_INTERNAL, "I6: node %s is counted as idle wrongly", n->it.name);
    return 0;
}

static int check_hold(const struct yard *y, const struct attempt *a, struct err *e)
{
    size_t held = 0;

    for (size_t i = 0; i < a->it.node_count; i++) {
        const struct node *n = mind_node(y, a->it.nodes[i]);

        if (!n || n->it.attempt_id != a->it.id)
            return err_set(e, ERR_INTERNAL, "I6: attempt %lld does not hold its node %lld",
                           (long long)a->it.id, (long long)a->it.nodes[i]);
        held += n->it.state == NODE_RUNNING;
    }
    if (held != a->hold.node_count)
        return err_set(e, ERR_INTERNAL, "I6: attempt %lld is counted wrongly",
                       (long long)a->it.id);
    return 0;
}

static int check_counts(const struct cluster *c, struct err *e)
{
    const struct ordered_link *link = ordered_first(&c->nodes);
    int count[NODE_STATES] = {0}, lost = 0;
    int64_t queued = 0;

    for (; link; link = ordered_next(&c->nodes, link)) {
        const struct node *n = container_of(link, const struct node, in_cluster);

        count[n->it.state]++;
        lost += n->it.state == NODE_UNUSABLE && n->it.attempt_id != 0;
    }
    for (link = ordered_first(&c->queue); link; link = ordered_next(&c->queue, link)) {
        int nodes = container_of(link, const struct schedule_job, link)->node_count;

        queued += nodes <= c->ceiling ? nodes : 0;
    }
    if (memcmp(count, c->count, sizeof(count)) != 0 || lost != c->lost)
        return err_set(e, ERR_INTERNAL, "I6: nodes of %s are counted wrongly", c->it.name);
    if (queued != c->queued_nodes)
        return err_set(e, ERR_INTERNAL, "I6: demand of %s is counted wrongly", c->it.name);
    if (c->held != c->count[NODE_RUNNING])
        return err_set(e, ERR_INTERNAL, "I6: %s has nodes that are neither", c->it.name);
    return 0;
}

static int check_limits(const struct yard *y, struct err *e)
{
    const struct ordered_link *link = ordered_first(&y->nodes);
    int cores = 0, gpus = 0;

    for (; link; link = ordered_next(&y->nodes, link)) {
        const struct node *n = container_of(link, const struct node, link);

        cores += n->cores;
        gpus += n->gpus;
    }
    if (cores != y->cores || gpus != y->gpus ||
        ordered_count(&y->nodes) != (size_t)y->node_count)
        return err_set(e, ERR_INTERNAL, "I6: what nodes take is counted wrongly");
    return 0;
}

int yard_check(const struct yard *y, struct err *e)
{
    const struct ordered_link *link;

    for (link = ordered_first(&y->attempts); link; link = ordered_next(&y->attempts, link)) {
        const struct attempt *a = container_of(link, const struct attempt, link);

        if (check_attempt(y, a, e) < 0 || check_hold(y, a, e) < 0)
            return -1;
    }
    for (link = ordered_first(&y->jobs); link; link = ordered_next(&y->jobs, link))
        if (check_job(y, container_of(link, const struct job, link), e) < 0)
            return -1;
    for (link = ordered_first(&y->nodes); link; link = ordered_next(&y->nodes, link))
        if (check_node(y, container_of(link, const struct node, link), e) < 0)
            return -1;
    for (link = ordered_first(&y->clusters); link; link = ordered_next(&y->clusters, link))
        if (check_counts(container_of(link, const struct cluster, link), e) < 0)
            return -1;
    return check_limits(y, e);
}
