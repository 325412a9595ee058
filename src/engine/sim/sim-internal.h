/* sim-internal.h - the parts of the simulation.  For this folder alone.
 *
 *     sim.c         time, the daemon's life: apply, record, act, crash, restart
 *     sim-client.c  what clients do
 *     sim-world.c   nodes and tasks as they really are, and the engine's reports
 *     sim-tables.c  what was recorded
 *     sim-ledger.c  what must hold
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_SIM_SIM_INTERNAL_H
#define ENGINE_SIM_SIM_INTERNAL_H

#include "core/ordered.h"
#include "core/yard.h"
#include "engine/sim/sim.h"

enum {
    SIM_SECOND = 1000,
    SIM_MINUTE = 60 * SIM_SECOND,
    SIM_HOUR = 60 * SIM_MINUTE,
};

enum sim_kind {
    /* Reports of the engine to the daemon: lost when the daemon dies. */
    SIM_SAY_NODE_UP,
    SIM_SAY_NODE_FAILED,
    SIM_SAY_NODE_GONE,
    SIM_SAY_RUNNING,
    SIM_SAY_ENDED,
    /* The world: goes on without the daemon. */
    SIM_NODE_UP,
    SIM_NODE_BREAKS, /* its set-up fails */
    SIM_NODE_DIES,
    SIM_NODE_GOES,
    SIM_TASK_RUNS,
    SIM_TASK_ENDS,
    SIM_TASK_IS_KILLED,
    /* People, and the daemon's life. */
    SIM_CLIENT,
    SIM_RESTART,
    SIM_CALM,  /* faults end; all clusters to nothing */
    SIM_AGAIN, /* and back */
    SIM_KINDS,
};

struct sim_event {
    struct ordered_link link; /* major: when */
    enum sim_kind kind;
    int64_t id;
    int life;  /* of the daemon, for reports */
    int token; /* of the node or attempt: an older one is void */
};

enum sim_node_state {
    SIM_NODE_NONE,
    SIM_NODE_MAKING,
    SIM_NODE_IS_UP,
    SIM_NODE_BROKEN,
    SIM_NODE_DEAD,
    SIM_NODE_REMOVED,
};

struct sim_node {
    enum sim_node_state state;
    int token;
    int64_t attempt_id; /* alive on it */
};

enum sim_attempt_state {
    SIM_ATTEMPT_NONE,
    SIM_ATTEMPT_STARTING,
    SIM_ATTEMPT_RUNNING,
    SIM_ATTEMPT_ENDED,
};

struct sim_attempt {
    enum sim_attempt_state state;
    int64_t job_id;
    int64_t *nodes;
    size_t node_count;
    int64_t started_ms, ended_ms;
    enum attempt_end end; /* how it ended, or is going to */
    int exit_code;
    int64_t bad_node;
    bool was_killed; /* its end is not its own */
};

/* A job as the world knows it. */
struct sim_job {
    int64_t live_attempt;
};

/* Rows.  Index = id; what was never there has id 0. */
struct sim_tables {
    struct yard_cluster *clusters;
    struct yard_node *nodes;
    struct yard_job *jobs;
    struct yard_attempt *attempts;
    int64_t last_cluster, last_node, last_job, last_attempt;
    size_t rooms[4];
};

struct sim {
    struct sim_options options;
    uint64_t random;
    int64_t now_ms, sequence;
    struct ordered events;
    struct yard_limits limits;
    struct yard *yard; /* NULL while the daemon is dead */
    int life;
    bool has_faults;
    bool is_measured; /* no ledger, no tables */
    struct sim_tables tables;
    struct sim_node *nodes;
    struct sim_attempt *attempts;
    struct sim_job *jobs;
    size_t node_room, attempt_room, job_room;
    struct sim_report report;
    double mind_s;
    struct err violation; /* the first */
};

/* --- sim.c --- */

int64_t sim_roll(struct sim *s, int64_t below); /* 0 .. below - 1 */
bool sim_chance(struct sim *s, int percent);
void sim_plan(struct sim *s, enum sim_kind kind, int64_t id, int token, int64_t in_ms);
/* A report of the engine; may come twice, or late, while there are faults. */
void sim_say(struct sim *s, enum sim_kind kind, int64_t id);
void sim_violate(struct sim *s, const char *format, ...) PRINTF_LIKE(2, 3);
void sim_trace(struct sim *s, const char *format, ...) PRINTF_LIKE(2, 3);
/* The daemon may die here: then there is no mind any more. */
bool sim_dies_now(struct sim *s, const char *when);
/* Room for items[id]; new ones are zeroed. */
void *sim_room(void *items, size_t *room, int64_t id, size_t size);

/* --- sim-client.c --- */

void sim_invent(struct sim *s); /* clusters, and when clients come */
void sim_client(struct sim *s);
void sim_calm(struct sim *s);
void sim_again(struct sim *s);
void sim_put_cluster(struct sim *s, int64_t id);
void sim_put_job(struct sim *s, int64_t id);

/* --- sim-world.c --- */

void sim_act(struct sim *s, const struct yard_action *action);
void sim_happen(struct sim *s, const struct sim_event *event);
void sim_result(const struct sim_attempt *a, struct attempt_result *ret_result);

/* --- sim-tables.c --- */

void sim_record(struct sim *s, const struct yard_changes *changes);
struct yard *sim_restore(struct sim *s);
void sim_tables_done(struct sim_tables *tables);

/* --- sim-ledger.c --- */

void sim_audit_job(struct sim *s, const struct yard_job *was, const struct yard_job *is);
void sim_audit_attempt(struct sim *s,
                       const struct yard_attempt *was,
                       const struct yard_attempt *is);
void sim_audit_start(struct sim *s, int64_t attempt_id);
void sim_audit_end(struct sim *s);

#endif
