/* Building the mind again from what was recorded.
 *
 * What was recorded together is consistent.  Where it is not all the same (a row lost with a
 * damaged disk), a job that should run and has no attempt ends "unknown", a node that nobody
 * holds is idle, an attempt without a job is left out.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/yard-internal.h"

void yard_restore_cluster(struct yard *y, const struct yard_cluster *cluster)
{
    struct cluster *c = mind_new_cluster(y, cluster);

    c->is_new = cluster->steady_ms == 0;
}

void yard_restore_node(struct yard *y, const struct yard_node *node)
{
    yard_restore_ids(y, node->id, 0);
    if (node->state != NODE_GONE)
        mind_new_node(y, node);
}

void yard_restore_job(struct yard *y, const struct yard_job *job)
{
    mind_new_job(y, job);
}

void yard_restore_attempt(struct yard *y, const struct yard_attempt *attempt)
{
    yard_restore_ids(y, 0, attempt->id);
    if (attempt_is_live(attempt->state))
        mind_new_attempt(y, attempt);
}

void yard_restore_ids(struct yard *y, int64_t last_node_id, int64_t last_attempt_id)
{
    if (last_node_id > y->last_node_id)
        y->last_node_id = last_node_id;
    if (last_attempt_id > y->last_attempt_id)
        y->last_attempt_id = last_attempt_id;
}

/* --- putting things together --- */

/* Attempts find their jobs, jobs their clusters. */
static void join_attempts(struct yard *y)
{
    struct ordered_link *link = ordered_first(&y->attempts), *next;

    for (; link; link = next) {
        struct attempt *a = container_of(link, struct attempt, link);
        struct job *j = mind_job(y, a->it.job_id);

        next = ordered_next(&y->attempts, link);
        if (j && !job_is_final(j->it.state) && mind_cluster(y, j->it.cluster_id))
            a->job = j;
        else
            mind_bury_attempt(y, a);
    }
}

static void join_nodes(struct yard *y)
{
    struct ordered_link *link = ordered_first(&y->nodes), *next;

    for (; link; link = next) {
        struct node *n = container_of(link, struct node, link);
        struct cluster *c = mind_cluster(y, n->it.cluster_id);

        next = ordered_next(&y->nodes, link);
        if (!c) {
            mind_bury_node(y, n);
            continue;
        }
        if (n->it.attempt_id && !mind_attempt(y, n->it.attempt_id)) {
            n->it.attempt_id = 0;
            node_apply(&n->it, NODE_EV_RELEASE, y->now_ms, NULL);
            mind_changed_node(y, n);
        }
        mind_enter_node(y, n, c);
    }
}

static void lose_job(struct yard *y, struct job *j)
{
    struct outcome outcome;

    outcome_of_missing(&outcome);
    mind_fail_job(y, j, &outcome);
}

static void join_jobs(struct yard *y)
{
    struct ordered_link *link = ordered_first(&y->jobs);

    for (; link; link = ordered_next(&y->jobs, link)) {
        struct job *j = container_of(link, struct job, link);
        struct attempt *a = mind_attempt(y, j->it.attempt_id);

        if (job_is_final(j->it.state))
            continue;
        j->cluster = mind_cluster(y, j->it.cluster_id);
        if (j->it.state == JOB_QUEUED && j->cluster)
            mind_enqueue(y, j);
        else if (j->it.state == JOB_QUEUED)
            mind_drop_job(y, j, STOP_DELETED);
        else if (a && a->job == j)
            mind_enter_attempt(y, a);
        else
            lose_job(y, j);
    }
}

/* --- saying it again --- */

static void say_nodes(struct yard *y)
{
    struct ordered_link *link = ordered_first(&y->nodes);

    for (; link; link = ordered_next(&y->nodes, link)) {
        const struct node *n = container_of(link, struct node, link);

        if (n->it.state == NODE_LEAVING)
            mind_act(y, ACTION_NODE_REMOVE, n->it.id);
        else if (n->it.state != NODE_UNUSABLE)
            mind_act(y, ACTION_NODE_ADD, n->it.id);
    }
}

static void say_attempts(struct yard *y)
{
    struct ordered_link *link = ordered_first(&y->attempts);

    for (; link; link = ordered_next(&y->attempts, link)) {
        const struct attempt *a = container_of(link, struct attempt, link);

        mind_act(y, ACTION_ATTEMPT_START, a->it.id);
        if (a->it.state == ATTEMPT_STOPPING)
            mind_act(y, ACTION_ATTEMPT_STOP, a->it.id);
    }
}

static void heed_jobs(struct yard *y)
{
    struct ordered_link *link = ordered_first(&y->jobs);

    for (; link; link = ordered_next(&y->jobs, link))
        mind_heed_job(y, container_of(link, struct job, link));
}

void yard_resume(struct yard *y, int64_t now_ms)
{
    struct ordered_link *link;

    mind_clock(y, now_ms);
    join_attempts(y);
    join_nodes(y);
    for (link = ordered_first(&y->clusters); link; link = ordered_next(&y->clusters, link))
        mind_weigh_cluster(y, container_of(link, struct cluster, link));
    join_jobs(y);
    say_nodes(y);
    say_attempts(y);
    heed_jobs(y);
    yard_tick(y, now_ms);
}
