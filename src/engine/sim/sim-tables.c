/* What was recorded: rows, written by two writers as in the real tables.  Clients write what
 * they want, the daemon what became of it; neither touches the other's columns.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/sim/sim-internal.h"

#include <stdlib.h>
#include <string.h>

static char *copy_text(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static int64_t *copy_ids(const int64_t *ids, size_t count)
{
    int64_t *copy = xcalloc(count + 1, sizeof(*copy));

    if (count > 0)
        memcpy(copy, ids, count * sizeof(*copy));
    return copy;
}

static void record_cluster(struct sim *s, const struct yard_cluster *is)
{
    struct yard_cluster *row = &s->tables.clusters[is->id];

    row->is_steady = is->is_steady;
    row->steady_ms = is->steady_ms;
    row->wanted = is->wanted;
    memcpy(row->error_code, is->error_code, sizeof(row->error_code));
    memcpy(row->error_message, is->error_message, sizeof(row->error_message));
}

static void record_node(struct sim *s, const struct yard_node *is)
{
    struct sim_tables *t = &s->tables;

    t->nodes = sim_room(t->nodes, &t->rooms[1], is->id, sizeof(*t->nodes));
    t->nodes[is->id] = *is;
    if (is->id > t->last_node)
        t->last_node = is->id;
}

static void record_job(struct sim *s, const struct yard_job *is)
{
    struct yard_job *row = &s->tables.jobs[is->id];
    struct yard_job old = *row;

    sim_audit_job(s, &old, is);
    *row = *is;
    row->is_unwanted = old.is_unwanted;
    row->is_deleting = old.is_deleting;
    row->error_code = copy_text(is->error_code);
    row->error_message = copy_text(is->error_message);
    row->error_info = copy_text(is->error_info);
    row->verdict = copy_text(is->verdict);
    row->excluded = copy_ids(is->excluded, is->excluded_count);
    yard_job_done(&old);
}

static void record_attempt(struct sim *s, const struct yard_attempt *is)
{
    struct sim_tables *t = &s->tables;
    struct yard_attempt *row;

    t->attempts = sim_room(t->attempts, &t->rooms[3], is->id, sizeof(*t->attempts));
    row = &t->attempts[is->id];
    sim_audit_attempt(s, row, is);
    yard_attempt_done(row);
    *row = *is;
    row->nodes = copy_ids(is->nodes, is->node_count);
    if (is->id > t->last_attempt)
        t->last_attempt = is->id;
}

void sim_record(struct sim *s, const struct yard_changes *changes)
{
    for (size_t i = 0; i < changes->cluster_count; i++)
        record_cluster(s, changes->clusters[i]);
    for (size_t i = 0; i < changes->node_count; i++)
        record_node(s, changes->nodes[i]);
    for (size_t i = 0; i < changes->attempt_count; i++)
        record_attempt(s, changes->attempts[i]);
    for (size_t i = 0; i < changes->job_count; i++)
        record_job(s, changes->jobs[i]);
}

/* Rows in no order that the mind could rely on: jobs before clusters. */
struct yard *sim_restore(struct sim *s)
{
    struct yard *yard = yard_new(&s->limits);
    const struct sim_tables *t = &s->tables;

    for (int64_t id = 1; id <= t->last_job; id++)
        if (t->jobs[id].id && !job_is_final(t->jobs[id].state))
            yard_restore_job(yard, &t->jobs[id]);
    for (int64_t id = 1; id <= t->last_attempt; id++)
        if (t->attempts[id].id)
            yard_restore_attempt(yard, &t->attempts[id]);
    for (int64_t id = 1; id <= t->last_node; id++)
        if (t->nodes[id].id)
            yard_restore_node(yard, &t->nodes[id]);
    for (int64_t id = 1; id <= t->last_cluster; id++)
        if (t->clusters[id].id)
            yard_restore_cluster(yard, &t->clusters[id]);
    yard_restore_ids(yard, t->last_node, t->last_attempt);
    return yard;
}

void sim_tables_done(struct sim_tables *t)
{
    for (int64_t id = 1; id <= t->last_cluster; id++)
        yard_cluster_done(&t->clusters[id]);
    for (int64_t id = 1; id <= t->last_job; id++)
        yard_job_done(&t->jobs[id]);
    for (int64_t id = 1; id <= t->last_attempt; id++)
        yard_attempt_done(&t->attempts[id]);
    free(t->clusters);
    free(t->nodes);
    free(t->jobs);
    free(t->attempts);
}
