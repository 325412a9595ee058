/* What must hold between the world and what the yard says of it.
 *
 *   - no attempt is started while another of its job lives, or on a node where one lives
 *   - attempts of a job are numbered 1, 2, 3, ...
 *   - what is final stays as it is
 *   - a job that succeeded ended by itself, with 0; one that ended has no attempt alive
 *   - in the end every job is final, but for those that need more than the machine has
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/sim/sim-internal.h"

#include <string.h>

void sim_audit_start(struct sim *s, int64_t attempt_id)
{
    const struct sim_attempt *a = &s->attempts[attempt_id];

    if ((size_t)a->job_id < s->job_room && s->jobs[a->job_id].live_attempt != 0)
        sim_violate(s, "job %lld is started while attempt %lld of it lives",
                    (long long)a->job_id, (long long)s->jobs[a->job_id].live_attempt);
    for (size_t i = 0; i < a->node_count; i++) {
        int64_t id = a->nodes[i];
        const struct sim_node *n = &s->nodes[id];

        if ((size_t)id >= s->node_room || n->state == SIM_NODE_NONE ||
            n->state == SIM_NODE_MAKING || n->state == SIM_NODE_REMOVED)
            sim_violate(s, "attempt %lld is started on node %lld, which is not there",
                        (long long)attempt_id, (long long)id);
        else if (n->attempt_id != 0)
            sim_violate(s, "attempt %lld is started on node %lld beside attempt %lld",
                        (long long)attempt_id, (long long)id, (long long)n->attempt_id);
    }
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_same_end(const struct yard_job *a, const struct yard_job *b)
{
    return a->state == b->state && a->exit_code == b->exit_code &&
           a->started_ms == b->started_ms && a->ended_ms == b->ended_ms &&
           a->attempts == b->attempts && same_text(a->error_code, b->error_code) &&
           same_text(a->verdict, b->verdict);
}

static void audit_success(struct sim *s, const struct yard_job *is)
{
    const struct sim_attempt *a = &s->attempts[is->attempt_id];

    if (is->attempt_id == 0 || a->state != SIM_ATTEMPT_ENDED || a->was_killed ||
        a->end != ENDED_EXITED || a->exit_code != 0)
        sim_violate(s, "job %lld succeeded with work that did not", (long long)is->id);
}

void sim_audit_job(struct sim *s, const struct yard_job *was, const struct yard_job *is)
{
    long long id = (long long)is->id;

    if (job_is_final(was->state) && was->state_ms != 0 && !is_same_end(was, is))
        sim_violate(s, "job %lld was final and changed", id);
    if (is->attempts != was->attempts && is->attempts != was->attempts + 1)
        sim_violate(s, "job %lld: from attempt %d to %d", id, was->attempts, is->attempts);
    if (was->state == JOB_TERMINATING && is->state != JOB_TERMINATING &&
        is->state != JOB_FAILED)
        sim_violate(s, "job %lld was terminating and is %s", id, job_state_name(is->state));
    if (!job_is_final(is->state))
        return;
    if ((size_t)is->id < s->job_room && s->jobs[is->id].live_attempt != 0)
        sim_violate(s, "job %lld is final and its attempt lives", id);
    if (is->state == JOB_SUCCEEDED)
        audit_success(s, is);
}

void sim_audit_attempt(struct sim *s,
                       const struct yard_attempt *was,
                       const struct yard_attempt *is)
{
    long long id = (long long)is->id;

    if (was->id == 0 && is->id <= s->tables.last_attempt)
        sim_violate(s, "attempt %lld has a number that was given", id);
    if (was->id != 0 && (was->number != is->number || was->job_id != is->job_id))
        sim_violate(s, "attempt %lld became another", id);
    if (was->id != 0 && was->state == ATTEMPT_ENDED)
        sim_violate(s, "attempt %lld was over and changed", id);
}

/* What the machine can hold of the cluster's nodes when all others are gone. */
static bool is_servable(const struct sim *s, const struct yard_job *job)
{
    const struct yard_cluster *c = &s->tables.clusters[job->cluster_id];

    return c->id != 0 && job->node_count <= c->most;
}

void sim_audit_end(struct sim *s)
{
    for (int64_t id = 1; id <= s->tables.last_job; id++) {
        const struct yard_job *job = &s->tables.jobs[id];

        if (job->id == 0)
            continue;
        s->report.jobs++;
        s->report.succeeded += job->state == JOB_SUCCEEDED;
        s->report.failed += job->state == JOB_FAILED;
        s->report.waiting += !job_is_final(job->state);
        if (!job_is_final(job->state) && is_servable(s, job))
            sim_violate(s, "job %lld is %s for ever", (long long)id,
                        job_state_name(job->state));
    }
    for (int64_t id = 1; id <= s->tables.last_node; id++)
        if (s->tables.nodes[id].id != 0 && s->tables.nodes[id].state != NODE_GONE)
            sim_violate(s, "node %s is %s for ever", s->tables.nodes[id].name,
                        node_state_name(s->tables.nodes[id].state));
}
