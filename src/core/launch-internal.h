/* launch-internal.h - what launch-*.c share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LAUNCH_INTERNAL_H
#define CORE_LAUNCH_INTERNAL_H

#include "base/err.h"
#include "base/mem.h"
#include "core/launch.h"

#include <jansson.h>
#include <stddef.h>

struct str;

/* --- environments: NAME=value, each name once, in the order they were first set --- */

struct env {
    struct arena *arena;
    const char **items; /* NULL-ended */
    size_t count, room;
};
void env_set(struct env *env, const char *name, const char *value);
void env_setf(struct env *env, const char *name, const char *format, ...) PRINTF_LIKE(3, 4);
const char *env_get(const struct env *env, const char *name); /* NULL = not set */
void env_copy(struct env *to, const struct env *from);
/* The user's environmentVariables and secrets; AZ_BATCH* variables in them are expanded. */
void env_add_user(struct env *env, const json_t *spec);
/* What everything on a node has; path and home only on the host. */
void env_add_host(struct env *env, bool is_container, const char *home);

/* --- a job that is being planned --- */

struct launch {
    const struct launch_input *input;
    struct arena *arena;
    const char *tool;
    const json_t *settings; /* of the tool */
    int processes;          /* ranks of the whole job; 1 where the tool has none */
    int per_node;           /* the most on one node */
    const char *job_folder; /* relative to the root */
    struct env *envs;       /* of each node, without the user's */
    struct launch_plan plan;
};

/* Fill in l->envs. */
int launch_environments(struct launch *l, struct err *e);

/* One more task on a node, with the node's environment in *ret_env, to which the caller adds;
 * launch_end_task then closes it.  suffix is that of the log files: "" or "-wk-0". */
struct launch_task *launch_begin_task(struct launch *l, size_t node, struct env *ret_env);
void launch_end_task(struct launch *l,
                     struct launch_task *task,
                     struct env *env,
                     const char *suffix,
                     const char *command);

/* The address of a node as its neighbours are to call it. */
const char *launch_address(const struct launch *l, size_t node);
/* The node of a process, when there are so many on each. */
size_t launch_node_of(const struct launch *l, int process, int per_node);
/* The first of the ports that tasks may listen on. */
int launch_first_port(const struct launch *l);
/* How many on a node, when `count` are spread evenly. */
int launch_spread(const struct launch *l, int count);
/* GPUs of all nodes in one list, for ranks that all run on this host. */
const char *launch_all_gpus(const struct launch *l);

/* --- texts for bash --- */

/* In single quotes. */
void shell_quote(struct str *out, const char *text);
/* A command that reads ~/.bashrc first. */
const char *shell_with_rc(struct arena *arena, const char *command);
/* A path in double quotes: variables in it are expanded, spaces are not split. */
void shell_path(struct str *out, const char *path);
/* "python script args" of a toolkit's settings; args is the name of the member. */
const char *shell_python(struct arena *arena, const json_t *settings, const char *args);

/* --- toolkits --- */

void launch_mpi(struct launch *l, const char *command);
void launch_tensorflow(struct launch *l);
void launch_tool(struct launch *l);

#endif
