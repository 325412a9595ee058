/* launch-mpi.c - one mpirun on the first node for all ranks.
 *
 * A rank is "bash -c TEXT" on its node.  TEXT sets what differs from node to node (mpirun can
 * hand every rank only the same), then runs the user's command.
 *
 * Where nodes are hosts, a rank finds its node by the addresses of the machine it is on, which
 * it reads from the kernel: no program for that is in every image.  YARD_NODES has a word for
 * each node: address=name=GPUs.  Where all ranks run on this host, the number of the rank says
 * which node it stands for, and GPUs are all visible: ranks then count themselves on one host,
 * and take theirs by that number.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/launch-internal.h"

#include "base/str.h"

#include <string.h>

/* How nodes of an engine call the network between them. */
#define INTERFACE "eth0"
/* Where a container's sshd listens: 22 is the node's own. */
#define CONTAINER_PORT "-p 23"

#define RANK "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}"

static bool is_spread(const struct launch *l)
{
    return l->input->has_ssh && l->input->node_count > 1;
}

/* Is it the user's own? */
static bool sets_gpus(const struct launch *l)
{
    struct env env = {.arena = l->arena};

    env_add_user(&env, l->input->job);
    return env_get(&env, "CUDA_VISIBLE_DEVICES") != NULL;
}

static const char *node_words(const struct launch *l)
{
    auto_str out = {0};

    for (size_t i = 0; i < l->input->node_count; i++) {
        const struct launch_node *node = &l->input->nodes[i];

        str_addf(&out, "%s%s=%s=%s", i ? " " : "", launch_address(l, i), node->name,
                 node->gpu_list ? node->gpu_list : "");
    }
    return arena_strdup(l->arena, str_text(&out));
}

/* By address: sets AZ_BATCH_NODE_ID, AZ_BATCH_IS_CURRENT_NODE_MASTER, CUDA_VISIBLE_DEVICES. */
static void add_node_by_address(const struct launch *l, struct str *out)
{
    bool has_gpus = l->input->nodes[0].gpu_list && !sets_gpus(l);

    str_add(out, "nets=$(</proc/net/fib_trie)\n"
                 "export AZ_BATCH_IS_CURRENT_NODE_MASTER=false\n"
                 "case $nets in *\"|-- $AZ_BATCHAI_JOB_MASTER_NODE_IP\"$'\\n'*)\n"
                 "AZ_BATCH_IS_CURRENT_NODE_MASTER=true ;; esac\n"
                 "for node in $YARD_NODES; do\n"
                 "case $nets in *\"|-- ${node%%=*}\"$'\\n'*)\n"
                 "node=${node#*=}; export AZ_BATCH_NODE_ID=${node%%=*}");
    str_add(out, has_gpus ? " CUDA_VISIBLE_DEVICES=${node#*=}" : "");
    str_add(out, " ;; esac; done; unset nets node YARD_NODES\n");
}

/* By number. */
static void add_node_by_rank(const struct launch *l, struct str *out)
{
    str_addf(out,
             "at=$((" RANK " / %d))\n"
             "set -- $YARD_NODES; shift $at; node=${1#*=}; set --\n"
             "export AZ_BATCH_NODE_ID=${node%%%%=*} AZ_BATCH_IS_CURRENT_NODE_MASTER=false\n"
             "[ $at != 0 ] || AZ_BATCH_IS_CURRENT_NODE_MASTER=true; unset at node YARD_NODES\n",
             l->per_node);
}

static const char *rank_text(const struct launch *l, const char *command)
{
    auto_str out = {0};

    if (is_spread(l))
        add_node_by_address(l, &out);
    else if (l->input->node_count > 1)
        add_node_by_rank(l, &out);
    if (str_equal(l->tool, "pytorch"))
        str_add(&out, "export AZ_BATCHAI_TASK_INDEX=" RANK "\n");
    str_add(&out, shell_with_rc(l->arena, command));
    return arena_strdup(l->arena, str_text(&out));
}

/* Does each node have its own? */
static bool is_of_node(const char *item, size_t len)
{
    static const char *const names[] = {
        "AZ_BATCH_NODE_ID",
        "AZ_BATCH_IS_CURRENT_NODE_MASTER",
        "CUDA_VISIBLE_DEVICES",
        "PATH",
        "HOME",
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strlen(names[i]) == len && strncmp(item, names[i], len) == 0)
            return true;
    }
    return false;
}

/* Names of what ranks elsewhere are to get, with `before` each: the service's and the user's.
 * Open MPI hands on what is its own by itself. */
static void
add_names(const struct launch *l, const struct env *env, const char *before, struct str *out)
{
    struct env user = {.arena = l->arena};

    env_add_user(&user, l->input->job);
    for (size_t i = 0; i < env->count; i++) {
        size_t len = strcspn(env->items[i], "=");
        const char *name = arena_strndup(l->arena, env->items[i], len);

        if (str_starts(name, "OMPI_"))
            continue;
        if (!is_of_node(name, len) || env_get(&user, name))
            str_addf(out, "%s%s", before, name);
    }
}

/* Threads of a rank may use all the cores of its node: nothing is bound to one. */
static void add_open_mpi(const struct launch *l, const struct env *env, struct str *out)
{
    str_addf(out, "exec \"$mpirun\" --allow-run-as-root -np %d", l->processes);
    if (is_spread(l))
        str_add(out,
                " --hostfile \"$AZ_BATCHAI_MPI_HOST_FILE\""
                " --mca btl_tcp_if_include " INTERFACE " --mca oob_tcp_if_include " INTERFACE);
    else
        str_addf(out, " --host localhost:%d", l->processes);
    if (is_spread(l) && l->input->is_container)
        str_add(out, " --mca plm_rsh_args '" CONTAINER_PORT "'");
    str_addf(out, " --map-by ppr:%d:node:oversubscribe --bind-to none",
             is_spread(l) ? l->per_node : l->processes);
    add_names(l, env, " -x ", out);
    str_add(out, " bash -c \"$rank\" ;;\n");
}

/* Intel MPI and MPICH: both are Hydra. */
static void add_hydra(const struct launch *l, const struct env *env, struct str *out)
{
    if (is_spread(l) && l->input->is_container)
        str_add(out, "export HYDRA_LAUNCHER_EXTRA_ARGS='" CONTAINER_PORT
                     "' I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS='" CONTAINER_PORT "'\n");
    str_addf(out, "exec \"$mpirun\" -n %d -ppn %d -hosts ", l->processes,
             is_spread(l) ? l->per_node : l->processes);
    if (is_spread(l)) {
        auto_str names = {0};

        add_names(l, env, ",", &names);
        str_addf(out, "\"$AZ_BATCH_HOST_LIST\" -iface " INTERFACE " -genvlist %s",
                 str_text(&names) + 1);
    } else {
        str_add(out, "localhost"); /* ranks get all of this environment */
    }
    str_add(out, " bash -c \"$rank\" ;;\n");
}

static const char *mpi_text(const struct launch *l, const struct env *env, const char *command)
{
    auto_str out = {0};

    str_add(&out, "rank=");
    shell_quote(&out, rank_text(l, command));
    str_add(&out,
            "\nmpirun=$(command -v mpirun) || { echo 'mpirun was not found: bring Open MPI, "
            "Intel MPI or MPICH with the image, the node or the job preparation' >&2; exit "
            "127; }\n"
            "case $(\"$mpirun\" --version 2>&1) in\n"
            "*'Open MPI'* | *OpenRTE* | *open-mpi.org*)\n");
    add_open_mpi(l, env, &out);
    str_add(&out, "*)\n");
    add_hydra(l, env, &out);
    str_add(&out, "esac");
    return arena_strdup(l->arena, str_text(&out));
}

void launch_mpi(struct launch *l, const char *command)
{
    struct env env;
    struct launch_task *task = launch_begin_task(l, 0, &env);

    task->name = "main";
    task->role = LAUNCH_MASTER;
    if (l->input->node_count > 1)
        env_set(&env, "YARD_NODES", node_words(l));
    if (!l->input->has_ssh && l->input->nodes[0].gpu_list)
        env_set(&env, "CUDA_VISIBLE_DEVICES", launch_all_gpus(l));
    env_add_user(&env, l->input->job);
    launch_end_task(l, task, &env, "", shell_with_rc(l->arena, mpi_text(l, &env, command)));
}
