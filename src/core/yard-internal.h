/* yard-internal.h - how the mind keeps things.  For yard*.c and their tests alone.
 *
 * An event marks what it changed (mind_changed_*) and which clusters have to be looked at
 * (mind_touch); mind_settle then looks at each of those: shrink, grow, start jobs, let idle
 * nodes go.  So the cost of an event is that of what it touched.
 *
 * Who writes which state: node_apply, job_apply and attempt_apply (yard-machine.c), nobody
 * else.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_YARD_INTERNAL_H
#define CORE_YARD_INTERNAL_H

#include "core/ordered.h"
#include "core/schedule.h"
#include "core/yard.h"

enum {
    /* From the word to stop until the nodes are free: 30 s from TERM to KILL, 5 s until nothing
     * is alive.  For estimates and reservations. */
    MIND_STOP_MS = 35 * 1000,
    /* A broken node is not replaced sooner: what fails at once would be made without end. */
    MIND_HEAL_MS = 60 * 1000,
};

/* --- the machines: yard-machine.c.  ERR_CONFLICT and no change for a pair not in the table ---
 */

enum node_event {
    NODE_EV_UP,
    NODE_EV_TAKE,    /* an attempt holds it */
    NODE_EV_RELEASE, /* no longer */
    NODE_EV_BREAK,   /* set-up failed, or lost */
    NODE_EV_LEAVE,
    NODE_EV_GONE,
    NODE_EVENTS,
};

enum job_event {
    JOB_EV_START,
    JOB_EV_SUCCEED,
    JOB_EV_FAIL,
    JOB_EV_END, /* somebody ends it */
    JOB_EV_REQUEUE,
    JOB_EVENTS,
};

enum attempt_event {
    ATTEMPT_EV_RUN,
    ATTEMPT_EV_STOP,
    ATTEMPT_EV_END,
    ATTEMPT_EVENTS,
};

int node_apply(struct yard_node *node, enum node_event event, int64_t now_ms, struct err *e);
int job_apply(struct yard_job *job, enum job_event event, int64_t now_ms, struct err *e);
int attempt_apply(struct yard_attempt *attempt, enum attempt_event event, struct err *e);

/* --- things --- */

struct cluster {
    struct yard_cluster it;
    struct ordered_link link;
    uint64_t changed; /* the round of changes it is in */
    bool is_touched;
    bool is_new;            /* never looked at: `initial` counts */
    struct ordered nodes;   /* all of them */
    struct ordered idle;    /* by id */
    struct ordered expired; /* by id: idle or unusable for too long, may go */
    struct ordered queue;   /* of schedule_job */
    struct ordered holds;   /* of schedule_hold: live attempts */
    int count[NODE_STATES]; /* of nodes */
    int lost;               /* of NODE_UNUSABLE, those that a live attempt still holds */
    int held;               /* nodes of live attempts that are not lost */
    int64_t queued_nodes;   /* of queued jobs that the ceiling allows */
    int ceiling;            /* nodes it can have at most */
    struct cluster *next_grave;
};

struct node {
    struct yard_node it;
    struct cluster *cluster;
    struct ordered_link link, in_cluster, idle, expired, timer;
    uint64_t changed;
    int cores, gpus;
    struct node *next_grave;
};

struct job {
    struct yard_job it;
    struct cluster *cluster; /* NULL once it is final */
    struct schedule_job plan;
    struct ordered_link link;
    uint64_t changed;
    struct job *next_grave;
};

struct attempt {
    struct yard_attempt it;
    struct job *job;
    struct schedule_hold hold;
    int64_t *hold_nodes; /* its nodes, but for lost ones */
    struct ordered_link link, timer;
    uint64_t changed;
    struct attempt *next_grave;
};

struct graves {
    struct cluster *clusters;
    struct node *nodes;
    struct job *jobs;
    struct attempt *attempts;
};

struct change_list {
    struct yard_changes list;
    struct yard_action *actions;
    size_t rooms[5];
};

struct yard {
    struct yard_limits limits;
    int64_t now_ms;
    int64_t last_node_id, last_attempt_id;
    struct ordered clusters, nodes, jobs, attempts; /* by id */
    struct ordered idle_timers, wall_timers;        /* by time */
    int cores, gpus, node_count;                    /* taken by nodes */
    struct cluster **touched;
    size_t touched_count, touched_room;
    uint64_t round;
    struct change_list now, taken;
    struct graves graves, taken_graves; /* freed when nobody can look at them any more */
};

/* --- yard.c --- */

struct cluster *mind_cluster(const struct yard *y, int64_t id);
struct node *mind_node(const struct yard *y, int64_t id);
struct job *mind_job(const struct yard *y, int64_t id);
struct attempt *mind_attempt(const struct yard *y, int64_t id);

void mind_changed_cluster(struct yard *y, struct cluster *c);
void mind_changed_node(struct yard *y, struct node *n);
void mind_changed_job(struct yard *y, struct job *j);
void mind_changed_attempt(struct yard *y, struct attempt *a);
void mind_act(struct yard *y, enum yard_action_kind kind, int64_t id);

/* Every event begins with this: the time, which never goes back. */
void mind_clock(struct yard *y, int64_t now_ms);

/* A new one with a copy of these values, in the table of its kind and nowhere else. */
struct cluster *mind_new_cluster(struct yard *y, const struct yard_cluster *values);
struct node *mind_new_node(struct yard *y, const struct yard_node *values);
struct job *mind_new_job(struct yard *y, const struct yard_job *values);
struct attempt *mind_new_attempt(struct yard *y, const struct yard_attempt *values);

/* Take it out of its table and free it when the changes that name it are gone. */
void mind_bury_node(struct yard *y, struct node *n);
void mind_bury_attempt(struct yard *y, struct attempt *a);

/* --- yard-node.c --- */

/* Apply an event and keep the cluster's counts, sets and timers. */
int mind_move_node(struct yard *y, struct node *n, enum node_event event, struct err *e);
/* Put a restored or new node among those of its cluster. */
void mind_enter_node(struct yard *y, struct node *n, struct cluster *c);
struct node *mind_make_node(struct yard *y, struct cluster *c);
/* Leaving: any state but running, leaving, gone. */
void mind_let_node_go(struct yard *y, struct node *n);
/* Its attempt is over: idle again, or, when it was lost, leaving. */
void mind_release_node(struct yard *y, struct node *n);
/* Up nodes that turn out to be lost. */
void mind_lose_node(struct yard *y, struct node *n);
/* Set or clear the timer of an idle or unusable node by the settings of its cluster. */
void mind_time_node(struct yard *y, struct node *n);

/* --- yard-cluster.c --- */

void mind_touch(struct yard *y, struct cluster *c);
/* Clusters that lack nodes may have some now. */
void mind_touch_short(struct yard *y);
void mind_settle(struct yard *y);
/* Take over what follows from its settings. */
void mind_weigh_cluster(struct yard *y, struct cluster *c);
int mind_live_nodes(const struct cluster *c); /* without leaving and lost ones */
/* How many of its nodes an empty machine could hold. */
int mind_machine_room(const struct yard *y, const struct yard_cluster *c);

/* --- yard-verdict.c: what the end of an attempt means for its job; pure --- */

struct outcome {
    enum job_event event; /* JOB_EV_SUCCEED, JOB_EV_FAIL or JOB_EV_REQUEUE */
    bool is_loss;         /* a lost node ended it */
    int exit_code;        /* -1 = none */
    const char *code;     /* NULL = no error; static, or of the result */
    char message[512], info[512], verdict[512];
};

/* job as it was while the attempt lived; attempt with its result. */
void outcome_of_attempt(const struct yard_job *job,
                        const struct yard_attempt *attempt,
                        struct outcome *ret);
/* A job that ends before it began. */
void outcome_of_queued(const struct yard_job *job,
                       enum stop_reason reason,
                       struct outcome *ret);
/* A job that should have a live attempt and has none. */
void outcome_of_missing(struct outcome *ret);

/* --- yard-job.c --- */

void mind_enqueue(struct yard *y, struct job *j);
void mind_start_job(struct yard *y, struct job *j, const struct schedule_view *view);
void mind_stop_attempt(struct yard *y, struct attempt *a, enum stop_reason reason);
/* A job without a live attempt fails, now. */
void mind_fail_job(struct yard *y, struct job *j, const struct outcome *outcome);
/* End a queued job. */
void mind_drop_job(struct yard *y, struct job *j, enum stop_reason reason);
/* What somebody wishes of it is done. */
void mind_heed_job(struct yard *y, struct job *j);
/* A live attempt takes its place among the holds of its cluster. */
void mind_enter_attempt(struct yard *y, struct attempt *a);
void mind_lose_hold(struct attempt *a, int64_t node_id);
struct attempt *mind_attempt_of_hold(struct ordered_link *link);
struct job *mind_job_of_plan(struct schedule_job *plan);
void mind_view(const struct yard *y, const struct cluster *c, struct schedule_view *ret_view);

/* --- yard-why.c --- */

/* "1 h 20 min", "35 s", "6 d 23 h": two units, the second left out when it is 0. */
void mind_add_duration(struct str *out, int64_t ms);

#endif
