/* What clients do: each writes its row, which is durable, and then the mind is told; between
 * the two the daemon may die.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/sim/sim-internal.h"

#include <limits.h>
#include <stdlib.h>

enum {
    MOST_CLUSTERS = 4,
    CALM_MS = 12 * SIM_HOUR,
    /* Long enough for every wall clock to run out. */
    AGAIN_MS = 12 * SIM_HOUR,
};

/* --- rows --- */

void sim_put_cluster(struct sim *s, int64_t id)
{
    if (s->yard && !sim_dies_now(s, "before the mind was told"))
        yard_put_cluster(s->yard, &s->tables.clusters[id], s->now_ms);
}

void sim_put_job(struct sim *s, int64_t id)
{
    const struct yard_job *row = &s->tables.jobs[id];

    if (!job_is_final(row->state) && s->yard && !sim_dies_now(s, "before the mind was told"))
        yard_put_job(s->yard, row, s->now_ms);
}

/* --- clusters --- */

static void scale(struct sim *s, struct yard_cluster *c)
{
    c->is_automatic = sim_chance(s, 50);
    c->target = (int)sim_roll(s, 8);
    c->least = sim_chance(s, 70) ? 0 : (int)sim_roll(s, 3);
    c->most = c->least + (int)sim_roll(s, 8);
    c->initial = (int)sim_roll(s, 4);
    c->deallocation = (enum deallocation)sim_roll(s, 3);
    c->idle_ms = SIM_MINUTE * sim_roll(s, 11);
}

static int64_t add_cluster(struct sim *s)
{
    struct sim_tables *t = &s->tables;
    int64_t id = ++t->last_cluster;
    struct yard_cluster *c;

    t->clusters = sim_room(t->clusters, &t->rooms[0], id, sizeof(*t->clusters));
    c = &t->clusters[id];
    c->id = id;
    c->name = xasprintf("c%lld", (long long)id);
    c->cores = 1 + (int)sim_roll(s, 2);
    c->gpus = sim_chance(s, 15) ? 1 : 0;
    scale(s, c);
    return id;
}

static int64_t any_cluster(struct sim *s)
{
    return 1 + sim_roll(s, s->tables.last_cluster);
}

/* --- jobs --- */

static int64_t add_job(struct sim *s)
{
    struct sim_tables *t = &s->tables;
    int64_t id = ++t->last_job;

    t->jobs = sim_room(t->jobs, &t->rooms[2], id, sizeof(*t->jobs));
    t->jobs[id] = (struct yard_job){
        .id = id,
        .cluster_id = any_cluster(s),
        .node_count = 1 + (int)sim_roll(s, sim_chance(s, 70) ? 3 : 8),
        .priority = (enum job_priority)sim_roll(s, 3),
        .wall_ms = SIM_MINUTE * (1 + sim_roll(s, 480)),
        .most_attempts = 1 + (int)sim_roll(s, 4),
        .state_ms = s->now_ms,
        .exit_code = -1,
    };
    return id;
}

static int64_t any_job(struct sim *s)
{
    return s->tables.last_job > 0 ? 1 + sim_roll(s, s->tables.last_job) : 0;
}

static void submit(struct sim *s)
{
    int64_t id = add_job(s);
    const struct yard_job *job = &s->tables.jobs[id];

    sim_trace(s, "    submits job %lld to cluster %lld: %d nodes, priority %d", (long long)id,
              (long long)job->cluster_id, job->node_count, (int)job->priority);
    sim_put_job(s, id);
}

static void unwish(struct sim *s)
{
    int64_t id = any_job(s);

    if (id == 0)
        return;
    if (sim_chance(s, 30))
        s->tables.jobs[id].is_deleting = true;
    else
        s->tables.jobs[id].is_unwanted = true;
    sim_trace(s, "    ends job %lld", (long long)id);
    sim_put_job(s, id);
}

static void rescale(struct sim *s)
{
    struct yard_cluster *c = &s->tables.clusters[any_cluster(s)];

    if (c->id == 0)
        return;
    scale(s, c);
    sim_trace(s, "    scales cluster %lld: %s %d..%d, target %d", (long long)c->id,
              c->is_automatic ? "automatic" : "manual", c->least, c->most, c->target);
    sim_put_cluster(s, c->id);
}

static void delete_cluster(struct sim *s)
{
    struct yard_cluster *c = &s->tables.clusters[any_cluster(s)];

    if (c->id == 0 || s->tables.last_cluster < 2)
        return;
    sim_trace(s, "    deletes cluster %lld", (long long)c->id);
    c->is_deleting = true;
    sim_put_cluster(s, c->id);
}

void sim_client(struct sim *s)
{
    int64_t dice = sim_roll(s, 100);

    if (dice < 70)
        submit(s);
    else if (dice < 85)
        unwish(s);
    else if (dice < 98)
        rescale(s);
    else
        delete_cluster(s);
}

void sim_invent(struct sim *s)
{
    int64_t clusters = 1 + sim_roll(s, MOST_CLUSTERS);
    int64_t visits = 5 + sim_roll(s, 120);

    for (int64_t i = 0; i < clusters; i++)
        sim_put_cluster(s, add_cluster(s));
    for (int64_t i = 0; i < visits; i++)
        sim_plan(s, SIM_CLIENT, 0, 0, sim_roll(s, sim_chance(s, 50) ? SIM_HOUR : CALM_MS));
    sim_plan(s, SIM_CALM, 0, 0, CALM_MS);
}

/* --- the end --- */

/* What the original's users did to heal: to nothing, and back. */
void sim_calm(struct sim *s)
{
    s->has_faults = false;
    for (int64_t id = 1; id <= s->tables.last_cluster; id++) {
        struct yard_cluster *c = &s->tables.clusters[id];

        c->is_automatic = false;
        c->target = 0;
        if (c->id)
            sim_put_cluster(s, id);
    }
    sim_plan(s, SIM_AGAIN, 0, 0, AGAIN_MS);
}

static int room(const struct sim *s, const struct yard_cluster *c)
{
    int nodes = s->limits.most_nodes;

    if (!s->limits.oversubscribe && s->limits.cores / c->cores < nodes)
        nodes = s->limits.cores / c->cores;
    if (c->gpus > 0 && s->limits.gpus / c->gpus < nodes)
        nodes = s->limits.gpus / c->gpus;
    return nodes;
}

/* Automatic, up to all the machine has: they compete for it, and none may starve. */
void sim_again(struct sim *s)
{
    for (int64_t id = 1; id <= s->tables.last_cluster; id++) {
        struct yard_cluster *c = &s->tables.clusters[id];

        c->is_automatic = true;
        c->least = 0;
        c->most = room(s, c);
        c->idle_ms = 5 * SIM_MINUTE;
        if (c->id)
            sim_put_cluster(s, id);
    }
}
