/* SPDX-License-Identifier: Apache-2.0 */
#include "core/launch-internal.h"

#include "base/str.h"
#include "core/batchai.h"

#include <stdint.h>
#include <string.h>

enum {
    FIRST_PORT = 2222, /* on a host of one's own */
    /* Where jobs share a host each takes a hundred ports of its own, below those that the
     * kernel gives to callers (32768 and up). */
    SHARED_PORTS = 20000,
    SHARED_STEP = 100,
    SHARED_STEPS = 120,
};

const char *launch_address(const struct launch *l, size_t node)
{
    return l->input->has_ssh ? l->input->nodes[node].address : "127.0.0.1";
}

size_t launch_node_of(const struct launch *l, int process, int per_node)
{
    size_t node = (size_t)(process / per_node);

    return node < l->input->node_count ? node : l->input->node_count - 1;
}

int launch_spread(const struct launch *l, int count)
{
    int nodes = (int)l->input->node_count;

    return count <= nodes ? 1 : (count + nodes - 1) / nodes;
}

/* FNV-1a of what no other attempt has. */
int launch_first_port(const struct launch *l)
{
    uint32_t hash = 2166136261u;

    if (l->input->has_ssh)
        return FIRST_PORT;
    for (const char *p = l->input->segment; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    hash = (hash ^ (uint32_t)l->input->attempt) * 16777619u;
    return SHARED_PORTS + (int)(hash % SHARED_STEPS) * SHARED_STEP;
}

const char *launch_all_gpus(const struct launch *l)
{
    auto_str out = {0};

    for (size_t i = 0; i < l->input->node_count; i++) {
        const char *list = l->input->nodes[i].gpu_list;

        if (list && *list)
            str_addf(&out, "%s%s", out.len ? "," : "", list);
    }
    return arena_strdup(l->arena, str_text(&out));
}

/* --- tasks --- */

struct launch_task *launch_begin_task(struct launch *l, size_t node, struct env *ret_env)
{
    struct launch_task *task = &l->plan.tasks[l->plan.task_count++];

    task->node = node;
    env_copy(ret_env, &l->envs[node]);
    return task;
}

static void
set_logs(struct launch_task *task, struct arena *arena, const char *folder, const char *suffix)
{
    task->stdout_path = arena_printf(arena, "%s/stdout%s.txt", folder, suffix);
    task->stderr_path = arena_printf(arena, "%s/stderr%s.txt", folder, suffix);
}

void launch_end_task(struct launch *l,
                     struct launch_task *task,
                     struct env *env,
                     const char *suffix,
                     const char *command)
{
    set_logs(task, l->arena, env_get(env, "AZ_BATCHAI_STDOUTERR_DIR"), suffix);
    task->command = command;
    task->env = env->items;
}

static size_t most_tasks(const struct launch *l)
{
    size_t workers = (size_t)json_integer_value(json_object_get(l->settings, "workerCount"));
    size_t servers =
        (size_t)json_integer_value(json_object_get(l->settings, "parameterServerCount"));

    return (size_t)l->processes + workers + servers + 1;
}

static void plan_preparations(struct launch *l)
{
    const json_t *preparation = json_object_get(l->input->job, "jobPreparation");
    const char *command = json_string_value(json_object_get(preparation, "commandLine"));
    size_t count = l->input->node_count;

    if (!command)
        return;
    l->plan.preparations = arena_alloc(l->arena, count * sizeof(struct launch_task));
    l->plan.preparation_count = count;
    for (size_t i = 0; i < count; i++) {
        struct launch_task *task = &l->plan.preparations[i];
        const char *node = l->input->nodes[i].name;
        struct env env;

        env_copy(&env, &l->envs[i]);
        env_add_user(&env, l->input->job);
        task->name = arena_printf(l->arena, "prep-%zu", i);
        task->node = i;
        task->rank = (int)i;
        task->role = i == 0 ? LAUNCH_MASTER : LAUNCH_WORKER;
        launch_end_task(l, task, &env,
                        count == 1 ? "-job_prep" : arena_printf(l->arena, "-job_prep-%s", node),
                        command);
    }
}

/* --- folders and files --- */

static void plan_folders(struct launch *l)
{
    const struct launch_input *in = l->input;
    const char **folders = arena_alloc(l->arena, 8 * sizeof(*folders));

    folders[0] = "jobs";
    folders[1] = arena_printf(l->arena, "jobs/%s", in->workspace);
    folders[2] = arena_printf(l->arena, "jobs/%s/%s", in->workspace, in->experiment);
    folders[3] = l->job_folder;
    folders[4] = arena_printf(l->arena, "%s/config", l->job_folder);
    folders[5] = arena_printf(l->arena, "%s/wd", l->job_folder);
    folders[6] = arena_printf(l->arena, "%s/mounts", l->job_folder);
    l->plan.folders = folders;
    l->plan.work_folder = folders[5];
    l->plan.shared_folder = arena_printf(l->arena, "%s/shared", l->job_folder);
    l->plan.stdouterr_folder = env_get(&l->envs[0], "AZ_BATCHAI_STDOUTERR_DIR");
}

/* The logs' folder, then those of outputDirectories. */
static void plan_outputs(struct launch *l)
{
    const json_t *outputs = json_object_get(l->input->job, "outputDirectories"), *row;
    const char **folders =
        arena_alloc(l->arena, (json_array_size(outputs) + 2) * sizeof(*folders));
    size_t i;

    folders[0] = l->plan.stdouterr_folder;
    json_array_foreach(outputs, i, row)
    {
        const char *id = json_string_value(json_object_get(row, "id"));
        const char *name = arena_printf(l->arena, "AZ_BATCHAI_OUTPUT_%s", id);

        folders[i + 1] = env_get(&l->envs[0], name);
    }
    l->plan.output_folders = folders;
}

/* Slots are the ranks of a node: of the tool, or, where the command brings its own mpirun, one
 * for each GPU; that one may start as many as there are cores. */
static void plan_hostfile(struct launch *l)
{
    bool has_count = json_object_get(l->settings, "processCount") != NULL;
    auto_str text = {0};
    int all = 0, most = 0;

    for (size_t i = 0; i < l->input->node_count; i++) {
        const struct launch_node *node = &l->input->nodes[i];
        int slots = has_count ? l->per_node : node->gpus > 0 ? node->gpus : 1;
        int limit = slots > node->cores ? slots : node->cores;

        if (l->input->has_ssh)
            str_addf(&text, "%s slots=%d max-slots=%d\n", node->address, slots, limit);
        all += slots;
        most += limit;
    }
    if (!l->input->has_ssh)
        str_addf(&text, "localhost slots=%d max-slots=%d\n", all, most);
    l->plan.hostfile = arena_strdup(l->arena, str_text(&text));
    l->plan.hostfile_path = arena_printf(l->arena, "%s/hostfile", l->job_folder);
}

const char *
launch_execution_log(const struct launch_input *input, size_t node, struct arena *arena)
{
    if (input->node_count == 1)
        return "execution.log";
    return arena_printf(arena, "execution-%s.log", input->nodes[node].name);
}

/* --- the whole --- */

/* caffe2 has no count: one on every node. */
static int count_processes(const struct launch *l)
{
    const json_t *count = json_object_get(l->settings, "processCount");

    if (str_equal(l->tool, "caffe2"))
        return (int)l->input->node_count;
    return count ? (int)json_integer_value(count) : 1;
}

int launch_plan(const struct launch_input *input,
                struct arena *arena,
                struct launch_plan *ret_plan,
                struct err *e)
{
    struct launch l = {
        .input = input,
        .arena = arena,
        .tool = batchai_tool(input->job),
        .settings = batchai_tool_settings(input->job),
    };

    if (input->node_count == 0 || !*l.tool)
        return err_set(e, ERR_INVALID, "a job needs a node and a toolkit");
    l.processes = count_processes(&l);
    l.per_node = launch_spread(&l, l.processes);
    l.job_folder =
        arena_printf(arena, "jobs/%s/%s/%s", input->workspace, input->experiment, input->name);
    if (launch_environments(&l, e) < 0)
        return -1;
    l.plan.tasks = arena_alloc(arena, most_tasks(&l) * sizeof(struct launch_task));
    launch_tool(&l);
    plan_preparations(&l);
    plan_folders(&l);
    plan_outputs(&l);
    plan_hostfile(&l);
    *ret_plan = l.plan;
    return 0;
}

/* --- a node's own set-up --- */

int launch_setup_task(const json_t *cluster,
                      const char *cluster_name,
                      const char *suffix,
                      const struct launch_node *node,
                      struct arena *arena,
                      struct launch_task *ret_task,
                      struct err *e)
{
    const json_t *setup = json_object_get(json_object_get(cluster, "nodeSetup"), "setupTask");
    const char *prefix = json_string_value(json_object_get(setup, "stdOutErrPathPrefix"));
    struct launch_task task = {
        .name = "setup",
        .command = json_string_value(json_object_get(setup, "commandLine")),
    };
    struct env env = {.arena = arena};
    const char *folder;
    size_t len;

    if (!task.command || !prefix) {
        *ret_task = (struct launch_task){0};
        return 0;
    }
    env_set(&env, "AZ_BATCHAI_ROOT", node->root);
    env_setf(&env, "AZ_BATCHAI_MOUNT_ROOT", "%s/mounts", node->root);
    folder = launch_expand(prefix, env.items, arena);
    if (folder[0] != '/')
        return err_set(e, ERR_INVALID,
                       "nodeSetup.setupTask.stdOutErrPathPrefix: \"%.200s\" is not absolute; "
                       "take a path that starts with $AZ_BATCHAI_MOUNT_ROOT",
                       prefix);
    for (len = strlen(folder); len > 0 && folder[len - 1] == '/'; len--)
        continue;
    folder = arena_printf(arena, "%.*s/%s", (int)len, folder, suffix);
    env_set(&env, "AZ_BATCHAI_STDOUTERR_DIR", folder);
    env_set(&env, "AZ_BATCHAI_CLUSTER_NAME", cluster_name);
    env_set(&env, "AZ_BATCH_NODE_ID", node->name);
    env_setf(&env, "AZ_BATCHAI_NUM_GPUS", "%d", node->gpus);
    env_setf(&env, "AZ_BATCHAI_NUM_GPUS_PER_NODE", "%d", node->gpus);
    env_add_host(&env, false, NULL);
    if (node->gpu_list)
        env_set(&env, "CUDA_VISIBLE_DEVICES", node->gpu_list);
    env_add_user(&env, setup);
    task.env = env.items;
    set_logs(&task, arena, folder, arena_printf(arena, "-%s", node->name));
    *ret_task = task;
    return 0;
}
