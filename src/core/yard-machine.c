/* The tables of edges, and the only writers of the three states.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/yard-internal.h"

#include <assert.h>

static const char *const node_names[NODE_STATES] = {
    [NODE_CREATING] = "preparing", [NODE_IDLE] = "idle",         [NODE_RUNNING] = "running",
    [NODE_LEAVING] = "leaving",    [NODE_UNUSABLE] = "unusable", [NODE_GONE] = "gone",
};

static const char *const job_names[JOB_STATES] = {
    [JOB_QUEUED] = "queued",       [JOB_RUNNING] = "running", [JOB_TERMINATING] = "terminating",
    [JOB_SUCCEEDED] = "succeeded", [JOB_FAILED] = "failed",
};

const char *node_state_name(enum node_state state)
{
    assert(state < NODE_STATES);
    return node_names[state];
}

const char *job_state_name(enum job_state state)
{
    assert(state < JOB_STATES);
    return job_names[state];
}

bool job_is_final(enum job_state state)
{
    return state == JOB_SUCCEEDED || state == JOB_FAILED;
}

bool attempt_is_live(enum attempt_state state)
{
    return state != ATTEMPT_ENDED;
}

static const struct node_edge {
    enum node_event on;
    enum node_state from, to;
} node_edges[] = {
    {NODE_EV_UP, NODE_CREATING, NODE_IDLE},       {NODE_EV_TAKE, NODE_IDLE, NODE_RUNNING},
    {NODE_EV_RELEASE, NODE_RUNNING, NODE_IDLE},   {NODE_EV_BREAK, NODE_CREATING, NODE_UNUSABLE},
    {NODE_EV_BREAK, NODE_IDLE, NODE_UNUSABLE},    {NODE_EV_BREAK, NODE_RUNNING, NODE_UNUSABLE},
    {NODE_EV_LEAVE, NODE_CREATING, NODE_LEAVING}, {NODE_EV_LEAVE, NODE_IDLE, NODE_LEAVING},
    {NODE_EV_LEAVE, NODE_UNUSABLE, NODE_LEAVING}, {NODE_EV_GONE, NODE_LEAVING, NODE_GONE},
};

static const struct job_edge {
    enum job_event on;
    enum job_state from, to;
} job_edges[] = {
    {JOB_EV_START, JOB_QUEUED, JOB_RUNNING},    {JOB_EV_SUCCEED, JOB_RUNNING, JOB_SUCCEEDED},
    {JOB_EV_FAIL, JOB_QUEUED, JOB_FAILED},      {JOB_EV_FAIL, JOB_RUNNING, JOB_FAILED},
    {JOB_EV_FAIL, JOB_TERMINATING, JOB_FAILED}, {JOB_EV_END, JOB_RUNNING, JOB_TERMINATING},
    {JOB_EV_REQUEUE, JOB_RUNNING, JOB_QUEUED},
};

/* RUN twice, and RUN that crosses a stop, are no contradictions: an engine says again what it
 * said before a restart. */
static const struct attempt_edge {
    enum attempt_event on;
    enum attempt_state from, to;
} attempt_edges[] = {
    {ATTEMPT_EV_RUN, ATTEMPT_STARTING, ATTEMPT_RUNNING},
    {ATTEMPT_EV_RUN, ATTEMPT_RUNNING, ATTEMPT_RUNNING},
    {ATTEMPT_EV_RUN, ATTEMPT_STOPPING, ATTEMPT_STOPPING},
    {ATTEMPT_EV_STOP, ATTEMPT_STARTING, ATTEMPT_STOPPING},
    {ATTEMPT_EV_STOP, ATTEMPT_RUNNING, ATTEMPT_STOPPING},
    {ATTEMPT_EV_STOP, ATTEMPT_STOPPING, ATTEMPT_STOPPING},
    {ATTEMPT_EV_END, ATTEMPT_STARTING, ATTEMPT_ENDED},
    {ATTEMPT_EV_END, ATTEMPT_RUNNING, ATTEMPT_ENDED},
    {ATTEMPT_EV_END, ATTEMPT_STOPPING, ATTEMPT_ENDED},
};

int node_apply(struct yard_node *node, enum node_event event, int64_t now_ms, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(node_edges); i++) {
        if (node_edges[i].on == event && node_edges[i].from == node->state) {
            node->state = node_edges[i].to;
            node->since_ms = now_ms;
            return 0;
        }
    }
    return err_set(e, ERR_CONFLICT, "node %s is %s: the report comes too late", node->name,
                   node_state_name(node->state));
}

int job_apply(struct yard_job *job, enum job_event event, int64_t now_ms, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(job_edges); i++) {
        if (job_edges[i].on == event && job_edges[i].from == job->state) {
            job->state = job_edges[i].to;
            job->state_ms = now_ms;
            return 0;
        }
    }
    return err_set(e, ERR_CONFLICT, "job %lld is %s", (long long)job->id,
                   job_state_name(job->state));
}

int attempt_apply(struct yard_attempt *attempt, enum attempt_event event, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(attempt_edges); i++) {
        if (attempt_edges[i].on == event && attempt_edges[i].from == attempt->state) {
            attempt->state = attempt_edges[i].to;
            return 0;
        }
    }
    return err_set(e, ERR_CONFLICT, "attempt %lld is over: the report comes too late",
                   (long long)attempt->id);
}
