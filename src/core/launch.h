/* launch.h - a job on its nodes: which commands run where, with which environment, in which
 * folder, with which log files.  Pure: one function of (job, nodes, folders).
 *
 * Folder names, AZ_BATCHAI_* variables, TF_CONFIG, host files, log names and what ends a job
 * are those of Batch AI:
 *
 *   custom                  one task on the first node
 *   custommpi, horovod, chainer, cntk and caffe of several processes, pytorch over MPI
 *                           one task on the first node: mpirun, which starts the ranks
 *   pytorch, caffe2         a task for each process: "0", "1", ...
 *   tensorflow              "wk-0" (the master), "wk-1", ..., "ps-0", ...
 *
 * Which MPI there is is found out when the task runs: the preparation may have installed it.
 * What mpirun is to hand to ranks elsewhere is named in its arguments and never valued: a
 * secret stays out of them.  The user's texts are handed to bash whole, as one quoted argument.
 *
 * Ranks and the tasks of toolkits start in a shell that has read ~/.bashrc as an interactive
 * one does, because preparations write there and distributions leave the file at once in
 * others. The preparation itself does not, nor does a custom command on the bare host that has
 * none.
 *
 * TF_CONFIG has the form the service gave it: the master is worker 0, its task type "master".
 * Estimators want the first worker apart and called "chief": YARD_TF_CONFIG has that form, so
 * that a script can take the one it was written for.  A job of one task has neither: either
 * would make libraries wait for others.
 *
 * All strings of a plan are in its arena.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LAUNCH_H
#define CORE_LAUNCH_H

#include "base/err.h"
#include "base/mem.h"

#include <jansson.h>
#include <stddef.h>

struct launch_node {
    const char *name;    /* node id: tvm-... */
    const char *address; /* what its neighbours call it: an IP address */
    const char *root;    /* AZ_BATCHAI_ROOT as the node sees it */
    int cores, gpus;
    const char *gpu_list; /* CUDA_VISIBLE_DEVICES as the job is to see it; "" = none of them,
                             NULL = not set */
};

struct launch_input {
    const json_t *job; /* kept form with secrets (core/batchai.h) */
    const char *workspace, *experiment, *name, *cluster;
    const char *segment;             /* jobOutputDirectoryPathSegment */
    const struct launch_node *nodes; /* the first is the master */
    size_t node_count;
    bool is_container; /* runs in containers: ssh is on port 23 */
    bool has_ssh; /* nodes reach each other; else MPI ranks all start on the master's host */
    int attempt;  /* from 1 */
    const char *home; /* HOME of tasks on the host, NULL = not set; containers have their own */
};

enum launch_role {
    LAUNCH_MASTER, /* its end is the job's, when it is the last of the essential ones */
    LAUNCH_WORKER,
    LAUNCH_SERVER, /* parameter server: killed when the others are done */
};

struct launch_task {
    const char *name; /* "main", "wk-0", "ps-0", "3": unique in the job, fit for a file name */
    size_t node;      /* index */
    int rank;         /* for verdicts */
    enum launch_role role;
    const char *command;    /* one text for "bash -c" */
    const char *const *env; /* "NAME=value", NULL-ended: all of it, common part included */
    const char *stdout_path, *stderr_path; /* absolute, as the node sees them */
};

struct launch_plan {
    struct launch_task *tasks;
    size_t task_count;
    struct launch_task *preparations; /* one a node; none when the job has no preparation */
    size_t preparation_count;
    const char *work_folder;    /* of each node: <job>/wd, relative to its root */
    const char *const *folders; /* to make on every node, relative to its root */
    const char *shared_folder;  /* relative to the root: one and the same on all nodes */
    const char *const
        *output_folders;          /* absolute, as nodes see them: made once, on the master */
    const char *stdouterr_folder; /* absolute, as nodes see it */
    const char *hostfile_path, *hostfile; /* relative to the root; its text */
};

/* ERR_INVALID: a path of the job does not lead anywhere absolute. */
int launch_plan(const struct launch_input *input,
                struct arena *arena,
                struct launch_plan *ret_plan,
                struct err *e);

/* "execution.log", or "execution-<node>.log" for jobs of several nodes; in the arena. */
const char *
launch_execution_log(const struct launch_input *input, size_t node, struct arena *arena);

/* The set-up task of a cluster's node: command, environment and log files
 * (stdout-<nodeId>.txt); cluster is the kept form with secrets. ret_task->command is NULL when
 * there is none. */
int launch_setup_task(const json_t *cluster,
                      const char *cluster_name,
                      const char *suffix, /* stdOutErrPathSuffix */
                      const struct launch_node *node,
                      struct arena *arena,
                      struct launch_task *ret_task,
                      struct err *e);

/* "$NAME" and "${NAME}" in text replaced by the values of env ("NAME=value", NULL-ended); an
 * unknown name stays as it is.  In the arena. */
const char *launch_expand(const char *text, const char *const *env, struct arena *arena);

#endif
