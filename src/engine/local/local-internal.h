/* local-internal.h - what the files of the local engine share.
 *
 * Two kinds of code: the loop side owns every struct below and moves states; the worker side
 * (errand.h: functions called on the engine's threads) blocks, reads what does not change, and
 * hands its findings back in the errand.  A node has at most one errand of its own under way,
 * an attempt at most one for each of its nodes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_LOCAL_INTERNAL_H
#define ENGINE_LOCAL_LOCAL_INTERNAL_H

#include "base/mem.h"
#include "base/str.h"
#include "core/launch.h"
#include "engine/local/cgroup.h"
#include "engine/local/container.h"
#include "engine/local/cpu.h"
#include "engine/local/errand.h"
#include "engine/local/gpu.h"
#include "engine/local/local.h"
#include "engine/local/net.h"
#include "engine/local/task.h"
#include "loop/child.h"
#include "loop/loop.h"
#include "shim/node.h"

#include <pthread.h>
#include <stdatomic.h>

#define LOCAL_ROOT    "/mnt/batch/tasks/shared/LS_root"
#define LOCAL_STARTUP "/mnt/batch/tasks/startup"
#define LOCAL_HOME    "/mnt/batch/home"

/* Why a node cannot be used. */
struct node_outcome {
    char code[64], message[512], info[512];
};

enum node_stage {
    NODE_IS_MAKING,
    NODE_IS_SETTING_UP, /* its set-up task runs */
    NODE_IS_READY,
    NODE_IS_BROKEN, /* said to have failed */
    NODE_IS_LEAVING,
};

struct node {
    struct local *local;
    struct arena *arena;
    int64_t id;
    const char *name;
    const struct engine_cluster *cluster;
    const char *folder; /* <home>/nodes/<name> */
    const char *root;   /* AZ_BATCHAI_ROOT as its tasks see it */
    /* Written by the errand that makes it, before it is ready. */
    char address[NET_ADDRESS_BYTES];
    char gpus[GPU_LIST_BYTES]; /* "0,3" */
    char cpus[CPU_LIST_BYTES]; /* "0-3,8" */
    struct shim_keeper keeper; /* net 0 = none: a folder is all there is */
    int keeper_fd;             /* pidfd for entering; -1 = none */
    int net_fd;                /* holds the network namespace; -1 = none */
    /* The loop's own. */
    enum node_stage stage;
    struct loop_child watch;
    struct loop_task tell;  /* what was told before, told again */
    struct loop_timer late; /* until it has to be up */
    struct task *setup;
    struct node_outcome *failure; /* why it is broken */
    struct attempt *attempt;      /* that holds it */
    bool is_removing;             /* as soon as the attempt is over */
    bool is_busy;                 /* an errand of its own is under way */
    int64_t cpu_us, cpu_at_us;    /* when its use was asked for last */
    struct node *next;
};

enum attempt_phase {
    PHASE_WAITING, /* for its nodes, after a restart */
    PHASE_SETUP,
    PHASE_PREPARATION,
    PHASE_TASKS,
    PHASE_ENDING, /* decided: what is alive is told to stop */
    PHASE_CLEANING,
};

/* One task of an attempt with its run folder. */
struct work {
    struct attempt *attempt;
    const struct launch_task *task;
    struct part *part;
    const char *folder;
    bool is_preparation;
    const char **cgroups, **memory; /* made by the set-up */
    enum shim_state found;          /* when the attempt was taken up */
    struct task *live;
    bool has_ended;
    struct task_report report;
};

/* An attempt on one of its nodes. */
struct part {
    struct attempt *attempt;
    size_t index;
    struct node *node;   /* NULL = not there */
    struct arena *arena; /* of its errands */
    struct container container;
    const char **boxed_memory; /* files that count its OOM kills; NULL = none */
    struct str journal;        /* lines for its execution.log that are not written yet */
    bool is_clean;             /* nothing of the attempt is there any more */
};

struct attempt {
    struct local *local;
    struct arena *arena;
    struct engine_attempt told; /* all of it in the arena */
    const char *folder;         /* <home>/attempts/<uuid> */
    const char *mounts;         /* of the job, relative to the root: jobs/.../mounts */
    struct part *parts;         /* told.node_count */
    struct launch_input input;
    struct launch_plan plan;
    struct work *works; /* preparations first */
    size_t work_count;
    enum attempt_phase phase;
    struct loop_task step;
    int errands;    /* under way */
    bool was_begun; /* a task of it was started before this daemon */
    bool is_lost;   /* its machine was restarted, or a node made anew */
    bool has_result;
    struct attempt_result result;
    const struct work *failing; /* whose last lines are the result's; NULL = none */
    bool is_unwanted, is_said_running, is_saved;
    atomic_bool is_cancelled; /* errands: give up */
    int64_t setup_ms;         /* when it was begun */
    int64_t started_ms, ended_ms;
    struct attempt *next;
};

struct local {
    struct engine engine;
    struct loop *loop;
    struct errands *errands;
    struct errands *slow; /* for fetching images: nobody else waits behind them */
    char *home, *shim;
    const char *sshd; /* NULL = none */
    struct engine_events events;
    bool is_rootless;
    bool has_ssh;
    int64_t grace_ms, pull_ms, start_ms;
    int pids;
    struct engine_capacity capacity;
    struct net *net;
    struct gpus *gpus;
    struct cpus *cpus;
    struct cgroups *cgroups;
    struct box *box; /* container runtime */
    struct tasks *tasks;
    pthread_mutex_t cluster_lock; /* files of a cluster are written by one errand at a time */
    struct node *nodes;
    struct attempt *attempts;
};

/* --- local.c --- */
struct node *local_find_node(struct local *local, int64_t id);
struct attempt *local_find_attempt(struct local *local, int64_t id);

/* --- copy.c: what was told, in an arena --- */
const struct engine_cluster *copy_cluster(const struct engine_cluster *from,
                                          struct arena *arena);
void copy_attempt(const struct engine_attempt *from,
                  struct arena *arena,
                  struct engine_attempt *ret);

/* --- node.c: the loop side of a node --- */
void node_add(struct local *local, const struct engine_node *told);
void node_remove(struct local *local, int64_t id);
/* Call each with the ids of all nodes that have a folder. */
void nodes_each_on_disk(struct local *local, void (*each)(struct local *local, int64_t id));
/* The attempt is over: go on with what waited for it. */
void node_let_go(struct node *node);
void node_free(struct node *node);

/* --- node-make.c: the worker side --- */
/* Adopt or make: folders, keeper, cluster's volumes.  -1: *ret_failure tells why. */
int node_make(struct node *node, struct node_outcome *ret_failure);
/* Find the node of an id that nobody has told since the start: its name and what it has. */
int node_recall(struct node *node, struct err *e);
/* End everything in it, and remove it. */
void node_unmake(struct node *node);
/* End everything in it but what keeps it. */
int node_sweep(struct node *node, struct err *e);
struct launch_node node_launch(const struct node *node);
/* Addresses, GPUs and processors of the nodes on disk are in use. */
void nodes_claim(struct local *local);

/* --- attempt.c: the loop side of an attempt --- */
void attempt_start(struct local *local, const struct engine_attempt *told);
void attempt_stop(struct local *local, int64_t id);
/* Let go of its tasks; they go on. */
void attempt_unwatch(struct attempt *attempt);
void attempt_free(struct attempt *attempt);
/* A node came up, failed or was lost; it may be one of the attempt's. */
void attempt_node_changed(struct attempt *attempt, struct node *node);

/* Something happened: its next step is taken when the callbacks of this turn are over. */
void attempt_look_again(struct attempt *attempt);

/* --- works.c: its tasks --- */
/* Start, or take up, the preparations or the tasks that have not ended. */
void works_start(struct attempt *attempt, bool preparations);
/* One has failed, or all that count are done. */
bool works_are_over(const struct attempt *attempt, bool preparations);
bool works_have_failed(const struct attempt *attempt);
bool works_are_alive(const struct attempt *attempt);
/* What a daemon before us left running is watched again, so that it can be stopped. */
void works_adopt(struct attempt *attempt);
void works_stop(struct attempt *attempt);

/* --- attempt-work.c: the worker side --- */
/* A result of before, run folders of before. */
void attempt_look(struct attempt *attempt);
/* The image, on this machine: once for all parts.  -1: *ret_result tells why. */
int attempt_fetch(struct part *part, struct attempt_result *ret_result);
/* One node: folders, mounts, container.  -1: *ret_result tells why. */
int attempt_set_up(struct part *part, struct attempt_result *ret_result);
/* One node: kill, unmount, remove. */
void attempt_clean(struct part *part, const char *journal);
/* The attempt that a node had last is over and recorded: its folder goes, unless it is uuid's.
 * uuid, when given, is now the last. */
void attempt_forget_last(struct local *local, const char *node_folder, const char *uuid);

/* --- forget.c --- */
/* Remove a folder, when there is time. */
void local_discard(struct local *local, const char *folder);
/* Remove the run folders: of one attempt, or of all that are not under way. */
void attempt_forget(struct local *local, const char *uuid);
void attempts_sweep(struct local *local);

/* --- path.c --- */
/* The node's root folder as the host sees it, with O_PATH: jobs plant links in it, so what is
 * in it is opened beneath it. */
int path_open_root(const struct node *node, int *ret_fd, struct err *e);
/* Make a folder that the job sees, in the node's mount namespace where it has one.  Else its
 * volumes are links of ours, and the folder is made where they lead; no other link is followed.
 */
int path_make_folder(const struct attempt *attempt,
                     const struct node *node,
                     const char *path,
                     struct err *e);
/* Open a file that the job sees, in the node's mount namespace where it has one; jobs plant
 * links: none is followed, but for ours.  attempt NULL: none of a job's volumes. */
int path_open(const struct attempt *attempt,
              const struct node *node,
              const char *path,
              int flags,
              int *ret_fd,
              struct err *e);
/* Where a log is to be opened that a task sees at path, in the node's mount namespace where it
 * has one, and the folder beneath which no link may be followed then; NULL when it lies in none
 * of ours.  attempt NULL: a set-up task.  In the arena, or path itself. */
const char *path_of_log(const struct attempt *attempt,
                        const struct node *node,
                        const char *path,
                        struct arena *arena,
                        const char **ret_logs);
/* The folder of the job's logs as the part's node sees it; NULL when there is no plan.  In the
 * arena, or the plan's. */
const char *path_of_logs(const struct part *part, struct arena *arena);
/* The file on this machine behind a path that the job sees; ERR_NOT_FOUND. */
int path_on_host(const struct attempt *attempt,
                 const char *path,
                 struct str *ret_path,
                 struct err *e);

/* --- work.c: from a launch plan to a shim's spec --- */
/* Everything but cgroups; strings in the arena or borrowed from the task.  attempt NULL: a
 * set-up task. */
void work_spec(const struct attempt *attempt,
               const struct node *node,
               const struct launch_task *task,
               const char *cwd,
               struct arena *arena,
               struct shim_spec *ret_spec);
/* The same for a task in the part's container. */
void work_spec_contained(const struct work *work,
                         struct arena *arena,
                         struct shim_spec *ret_spec);
/* Write what work_spec_contained makes the container run. */
int work_write_script(const struct work *work, struct err *e);

/* --- journal.c: execution.log --- */
void journal_add(struct part *part, const char *format, ...) PRINTF_LIKE(2, 3);
void journal_add_all(struct attempt *attempt, const char *format, ...) PRINTF_LIKE(2, 3);
/* Append lines.  For errands. */
void journal_write(const struct part *part, const char *lines);

/* --- result.c --- */
void result_init(struct attempt_result *ret_result, enum attempt_end end);
/* How it ended, from the tasks that have. */
void result_decide(struct attempt *attempt);
/* The last lines a task wrote, in UTF-8 without control characters.  Reads files.  attempt may
 * be NULL: a set-up task. */
void result_tail(const struct attempt *attempt,
                 const struct node *node,
                 const struct launch_task *task,
                 char *ret_text,
                 size_t room);
int result_load(struct attempt *attempt, struct err *e);
int result_save(const struct attempt *attempt, struct err *e);

#endif
