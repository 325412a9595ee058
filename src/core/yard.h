/* yard.h - the mind of the yard: clusters, their nodes, and jobs, in memory.  Pure: no I/O, no
 * clock, no threads.
 *
 * Events go in (a cluster was put, a job was submitted, a node is up, an attempt ended, time
 * has passed); each changes the state by the rules and leaves two things behind:
 *
 *   changes   which clusters, nodes, jobs and attempts are not as they were: to be recorded
 *   actions   what the engine is to do about it, once that is recorded
 *
 * So the same mind runs under the real engine, where control records and acts, and under the
 * sim engine, where time is a number.  After a crash the mind is built again from what was
 * recorded (yard_restore_*), and yard_resume says again what the engine was told: every action
 * is one that can be repeated.
 *
 * An attempt is one try to run a job on a gang of nodes.  A job has at most one live attempt
 * (I2); attempts are numbered, and a report about one that is over is refused (yard_attempt_*
 * return ERR_CONFLICT and change nothing).  A final state never changes and has a cause (I3).
 * A node is held by at most one live attempt (I6).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_YARD_H
#define CORE_YARD_H

#include "base/err.h"
#include "base/mem.h"

#include <stddef.h>
#include <stdint.h>

/* The states:
 *
 *     job      queued -> running -> succeeded | failed
 *              running -> terminating -> failed         (somebody ended it)
 *              running -> queued                        (its node was lost, or is wanted back)
 *              queued -> failed                         (ended before it began)
 *     attempt  starting -> running -> ended; starting, running -> stopping -> ended
 *     node     creating -> idle <-> running; creating, idle, unusable -> leaving -> gone;
 *              creating, idle, running -> unusable
 *
 * Stopping and ending may cross.  What counts is what the yard has said, then what the attempt
 * did:
 *   - A job that somebody ended ("terminating": a user, a deletion, a cluster made smaller with
 *     DEALLOCATE_TERMINATE) fails with that cause, even when its attempt turns out to have
 *     ended by itself with 0 a moment before.  Whoever was told "terminating" never sees it
 *     succeed; the verdict says what really happened.
 *   - A job whose end nobody announced (wall clock, requeue; it is still "running") and whose
 *     attempt ended by itself before the stop reached it (ENDED_EXITED, not ENDED_STOPPED) has
 *     the outcome of that end.  So nothing is run twice that was done, and nothing that was
 *     killed counts as done.
 *   - A job that is stopped to be queued again, and whose wall-clock limit passes before it has
 *     ended, fails by that limit: its time is used up.
 *   - A wish that comes after the end changes nothing.
 *
 * A node whose set-up failed is unusable and stays, counted as there: replacing it would only
 * fail again.  Scaling it away and back heals.  An automatic cluster whose jobs wait makes
 * another one, as far as its maximum allows, and gives the broken one up after idle_ms (at
 * least a minute).  A node that was up and is lost is let go and
 * another one is made; the attempt on it is stopped, its job tried again elsewhere.
 *
 * now_ms is the same clock in all calls; one that goes back counts as standing still. */

struct str;
struct yard; /* opaque */

enum node_state {
    NODE_CREATING, /* being made and set up: "preparing" on the wire */
    NODE_IDLE,
    NODE_RUNNING,
    NODE_LEAVING,
    NODE_UNUSABLE, /* its set-up failed; or it is lost and its attempt is not over */
    NODE_GONE,     /* the row may go */
    NODE_STATES,
};

enum job_state {
    JOB_QUEUED,
    JOB_RUNNING,
    JOB_TERMINATING,
    JOB_SUCCEEDED,
    JOB_FAILED,
    JOB_STATES,
};

enum attempt_state {
    ATTEMPT_STARTING, /* mounts, containers, preparation */
    ATTEMPT_RUNNING,  /* its command runs */
    ATTEMPT_STOPPING, /* told to stop */
    ATTEMPT_ENDED,
    ATTEMPT_STATES,
};

enum job_priority {
    PRIORITY_LOW,
    PRIORITY_NORMAL,
    PRIORITY_HIGH,
};

/* What is to happen to the jobs on nodes that a cluster gives up. */
enum deallocation {
    DEALLOCATE_REQUEUE,
    DEALLOCATE_TERMINATE,
    DEALLOCATE_WAIT,
};

/* How an attempt ended.  Only ENDED_EXITED has an exit code that means something, and
 * ENDED_PREPARATION that of the preparation. */
enum attempt_end {
    ENDED_EXITED,      /* by itself; exit_code says how */
    ENDED_PREPARATION, /* job preparation failed */
    ENDED_SETUP,       /* mount, container, folder or program could not be had: code, message */
    ENDED_STOPPED,     /* because it was told to */
    ENDED_NODE_LOST,   /* bad_node says which */
    ENDED_UNKNOWN,     /* its supervisor died: nobody knows */
};

/* Why an attempt is told to stop. */
enum stop_reason {
    STOP_NONE,
    STOP_USER,       /* terminate */
    STOP_WALL_CLOCK, /* maxWallClockTime */
    STOP_REQUEUE,    /* its nodes are wanted back */
    STOP_SHRINK,     /* the same with DEALLOCATE_TERMINATE */
    STOP_DELETED,    /* the job, or its cluster, is being deleted */
    STOP_NODE_LOST,  /* one of its nodes is gone: the others wait for it in vain */
};

/* What is known at the end.  Texts are short, in UTF-8, "" when there is nothing to say. */
struct attempt_result {
    enum attempt_end end;
    int exit_code; /* -1 = none */
    int signal;    /* that ended the first failing task, 0 = none */
    bool out_of_memory;
    int rank;          /* of the first failing task, -1 = none */
    int64_t bad_node;  /* where it was, or which was lost; 0 = none */
    char node[64];     /* its name */
    char code[64];     /* the wire's word for ENDED_SETUP: AZFMountError, ... */
    char message[512]; /* for a person */
    char info[512];    /* detail, such as what mount said */
    char tail[2048];   /* the last lines the failing task wrote */
};

struct yard_cluster {
    int64_t id; /* row of the resource */
    char *name;
    bool is_automatic;
    int target;      /* manual */
    int least, most; /* automatic */
    int initial;     /* automatic: at creation */
    enum deallocation deallocation;
    int64_t idle_ms; /* an automatic cluster gives up nodes idle for so long */
    int cores, gpus; /* of one node, as the engine will give them */
    bool is_deleting;
    /* The mind's own. */
    bool is_steady;
    int64_t steady_ms;                       /* when is_steady changed */
    int wanted;                              /* nodes it is on its way to */
    char error_code[64], error_message[512]; /* why it has fewer; "" = no reason */
};

struct yard_node {
    int64_t id;
    int64_t cluster_id;
    char name[64]; /* "tvm-<cluster row>-<n>", unique for ever */
    enum node_state state;
    int64_t since_ms;   /* of the state */
    int64_t attempt_id; /* that holds it, 0 = none */
    char error_code[64], error_message[512], error_info[512];
};

struct yard_job {
    int64_t id; /* row of the resource; also the order of submission */
    int64_t cluster_id;
    int node_count;
    enum job_priority priority;
    int64_t wall_ms;   /* longest time from its start (preparation included) to its end */
    bool is_unwanted;  /* somebody asked for its end */
    bool is_deleting;  /* and for its removal */
    int most_attempts; /* so many lost nodes end it; each but the last has it tried again */
    /* The mind's own. */
    enum job_state state;
    int64_t state_ms;
    int attempts;                 /* made so far */
    int losses;                   /* of them, those that a lost node ended */
    int64_t attempt_id;           /* the live one, else the last; 0 = none */
    int64_t started_ms, ended_ms; /* of the last attempt; 0 = not yet, or queued again */
    int exit_code;                /* -1 = none or unknown; 128 + n when signal n ended it */
    char *error_code, *error_message, *error_info; /* NULL = none */
    char *verdict;     /* one line for a person; NULL while there is nothing to say */
    int64_t *excluded; /* nodes it must not get again */
    size_t excluded_count;
};

struct yard_attempt {
    int64_t id;
    int64_t job_id;
    int number; /* 1, 2, ...: without gaps */
    enum attempt_state state;
    int64_t created_ms, started_ms, ended_ms; /* started: its command; 0 = not yet, never */
    enum stop_reason stop;
    int64_t *nodes; /* the first is the master */
    size_t node_count;
    struct attempt_result result; /* when ended */
};

void yard_cluster_done(struct yard_cluster *cluster);
void yard_job_done(struct yard_job *job);
void yard_attempt_done(struct yard_attempt *attempt);

/* --- the mind --- */

/* A cluster that cannot have a node for them stays below what it wants, says so in error_code
 * and error_message, and tries again when a node is gone. */
struct yard_limits {
    int cores, gpus;    /* of the machine(s); a node that does not fit is not made */
    bool oversubscribe; /* nodes may share cores; GPUs are never shared */
    int most_nodes;     /* of all clusters together */
};

struct yard *yard_new(const struct yard_limits *limits);
void yard_free(struct yard *yard);
DEFINE_AUTOPTR(yard)

/* --- building it again from what was recorded, before anything else, in any order; the values
 * are copied.  Needed are all clusters, all nodes, jobs that are not final, attempts that are
 * not over; more does no harm.  Rows of clients that the mind never saw (steady_ms 0, queued
 * without attempts) are restored like the others. --- */
void yard_restore_cluster(struct yard *yard, const struct yard_cluster *cluster);
void yard_restore_node(struct yard *yard, const struct yard_node *node);
void yard_restore_job(struct yard *yard, const struct yard_job *job);
void yard_restore_attempt(struct yard *yard, const struct yard_attempt *attempt);
/* Above every id ever given: those of nodes and attempts are not used again. */
void yard_restore_ids(struct yard *yard, int64_t last_node_id, int64_t last_attempt_id);
/* After the last of them.  What is under way is said again: ACTION_NODE_ADD for each node that
 * is being made or is up (an engine adopts the latter and says node_up again, which is no
 * news), ACTION_NODE_REMOVE for each that leaves, ACTION_ATTEMPT_START for each attempt that is
 * not over and, after it, ACTION_ATTEMPT_STOP for one that is stopping: the engine has to know
 * an attempt to end what is left of it.  Then wishes, time and queues are looked at. */
void yard_resume(struct yard *yard, int64_t now_ms);

/* --- events from clients --- */

/* New, or with other settings; "the mind's own" members are ignored, and the size of a node
 * holds for new ones.  is_deleting lets its nodes go; its jobs end with the code
 * ClusterDeleted. */
void yard_put_cluster(struct yard *yard, const struct yard_cluster *cluster, int64_t now_ms);
/* New, or with other wishes (is_unwanted, is_deleting; they are never taken back).  One whose
 * state is final is left alone: a job that was forgotten is not run again by a late wish. */
void yard_put_job(struct yard *yard, const struct yard_job *job, int64_t now_ms);
/* Forget a cluster without nodes and waiting jobs, or a final job (its attempt is over then).
 * ERR_BUSY otherwise; ERR_NOT_FOUND.  A final job is of no more use to the mind: it may be
 * forgotten as soon as it is recorded. */
int yard_forget_cluster(struct yard *yard, int64_t id, struct err *e);
int yard_forget_job(struct yard *yard, int64_t id, struct err *e);

/* --- events from the engine.  ERR_CONFLICT: late or out of order, refused, nothing changed.
 * --- */

int yard_node_up(struct yard *yard, int64_t node_id, int64_t now_ms, struct err *e);
/* Set-up failed (while it is being made), or the node is lost (when it was up; then the attempt
 * on it is told to stop, and ends by its own event). */
int yard_node_failed(struct yard *yard,
                     int64_t node_id,
                     const char *code,
                     const char *message,
                     const char *info,
                     int64_t now_ms,
                     struct err *e);
int yard_node_gone(struct yard *yard, int64_t node_id, int64_t now_ms, struct err *e);
int yard_attempt_running(struct yard *yard, int64_t attempt_id, int64_t now_ms, struct err *e);
/* started_ms (of the command; 0 = as attempt_running said, or never) and ended_ms (0 = now) are
 * when it really happened: the daemon may have been away. */
int yard_attempt_ended(struct yard *yard,
                       int64_t attempt_id,
                       const struct attempt_result *result,
                       int64_t started_ms,
                       int64_t ended_ms,
                       int64_t now_ms,
                       struct err *e);

/* --- time --- */

/* Look at what depends on it: wall-clock limits, idle nodes. */
void yard_tick(struct yard *yard, int64_t now_ms);
/* When the next tick has something to do; INT64_MAX = never. */
int64_t yard_next_tick(const struct yard *yard);

/* --- what came of it --- */

enum yard_action_kind {
    ACTION_NODE_ADD,
    ACTION_NODE_REMOVE,
    ACTION_ATTEMPT_START,
    ACTION_ATTEMPT_STOP,
};
struct yard_action {
    enum yard_action_kind kind;
    int64_t id; /* of the node or attempt */
};

/* The changed things, each once, in no order; borrowed until the next event. */
struct yard_changes {
    const struct yard_cluster **clusters;
    const struct yard_node **nodes; /* NODE_GONE: forgotten after this */
    const struct yard_job **jobs;
    const struct yard_attempt **attempts; /* ATTEMPT_ENDED: forgotten after this */
    const struct yard_action *actions;    /* in order */
    size_t cluster_count, node_count, job_count, attempt_count, action_count;
};
/* Everything since the last call.  All of it is one step: recorded together or not at all. */
void yard_take_changes(struct yard *yard, struct yard_changes *ret_changes);

/* --- looking; NULL when there is none; borrowed until the next event --- */

const struct yard_cluster *yard_cluster(const struct yard *yard, int64_t id);
const struct yard_node *yard_node(const struct yard *yard, int64_t id);
const struct yard_job *yard_job(const struct yard *yard, int64_t id);
const struct yard_attempt *yard_attempt(const struct yard *yard, int64_t id);

struct node_counts {
    int idle, running, preparing, unusable, leaving;
};
void yard_count_nodes(const struct yard *yard, int64_t cluster_id, struct node_counts *ret);
/* Call each(node) for the nodes of a cluster, in order of id. */
void yard_each_node(const struct yard *yard,
                    int64_t cluster_id,
                    void (*each)(const struct yard_node *node, void *context),
                    void *context);

/* One line: what a queued job waits for, who holds it, its place, an estimate of its start;
 * what a running one does; the verdict of a failed one.  name_of gives a job's name for its id.
 */
void yard_why(const struct yard *yard,
              int64_t job_id,
              int64_t now_ms,
              const char *(*name_of)(int64_t job_id, void *context),
              void *context,
              struct str *out);

/* Are I2, I3 and I6 kept?  For tests, the sim and doctor.  ERR_INTERNAL says which is not. */
int yard_check(const struct yard *yard, struct err *e);

const char *job_state_name(enum job_state state);   /* as the wire spells it */
const char *node_state_name(enum node_state state); /* idle, running, preparing, ... */
bool job_is_final(enum job_state state);
bool attempt_is_live(enum attempt_state state);

#endif
