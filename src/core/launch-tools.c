/* SPDX-License-Identifier: Apache-2.0 */
#include "core/launch-internal.h"

#include "base/str.h"

#include <string.h>

static const char *setting(const struct launch *l, const char *name)
{
    return json_string_value(json_object_get(l->settings, name));
}

/* One task on the first node, with the logs that have no suffix. */
static void single(struct launch *l, const char *command, bool has_rc)
{
    struct env env;
    struct launch_task *task = launch_begin_task(l, 0, &env);

    task->name = "main";
    task->role = LAUNCH_MASTER;
    env_add_user(&env, l->input->job);
    launch_end_task(l, task, &env, "", has_rc ? shell_with_rc(l->arena, command) : command);
}

static void single_or_mpi(struct launch *l, const char *command)
{
    if (l->processes > 1)
        launch_mpi(l, command);
    else
        single(l, command, true);
}

/* "cntk configFile=PATH args", "caffe train --solver=PATH args" */
static const char *with_config(const struct launch *l, const char *program)
{
    const char *args = setting(l, "commandLineArgs");
    auto_str out = {0};

    str_add(&out, program);
    shell_path(&out, setting(l, "configFilePath"));
    if (args && *args)
        str_addf(&out, " %s", args);
    return arena_strdup(l->arena, str_text(&out));
}

static const char *python(const struct launch *l)
{
    return shell_python(l->arena, l->settings, "commandLineArgs");
}

static void launch_custom(struct launch *l)
{
    const char *command = setting(l, "commandLine");
    bool may_have_rc =
        l->input->is_container || json_object_get(l->input->job, "jobPreparation") != NULL;

    single(l, command ? command : "", may_have_rc);
}

static void launch_custom_mpi(struct launch *l)
{
    launch_mpi(l, setting(l, "commandLine"));
}

static void launch_python_mpi(struct launch *l)
{
    launch_mpi(l, python(l));
}

static void launch_cntk(struct launch *l)
{
    single_or_mpi(l, setting(l, "configFilePath") ? with_config(l, "cntk configFile=")
                                                  : python(l));
}

static void launch_caffe(struct launch *l)
{
    single_or_mpi(l, setting(l, "configFilePath") ? with_config(l, "caffe train --solver=")
                                                  : python(l));
}

/* --- a task for each process --- */

static struct launch_task *begin_process(struct launch *l, int process, struct env *ret_env)
{
    size_t node = launch_node_of(l, process, l->per_node);
    struct launch_task *task = launch_begin_task(l, node, ret_env);

    task->name = arena_printf(l->arena, "%d", process);
    task->rank = process;
    task->role = process == 0 ? LAUNCH_MASTER : LAUNCH_WORKER;
    env_set(ret_env, "AZ_BATCHAI_TASK_INDEX", task->name);
    return task;
}

static void end_process(struct launch *l, struct launch_task *task, struct env *env)
{
    const char *suffix = arena_printf(l->arena, "-%s", task->name);

    env_add_user(env, l->input->job);
    launch_end_task(l, task, env, suffix, shell_with_rc(l->arena, python(l)));
}

static void launch_caffe2(struct launch *l)
{
    for (int i = 0; i < l->processes; i++) {
        struct env env;
        struct launch_task *task = begin_process(l, i, &env);

        end_process(l, task, &env);
    }
}

/* The file of the rendezvous must not be there yet: each attempt has its own.  Scripts of today
 * read env://, so that they get that too. */
static void
add_rendezvous(const struct launch *l, int process, const char *backend, struct env *env)
{
    auto_free char *lower = str_lower(backend);

    env_setf(env, "AZ_BATCHAI_PYTORCH_INIT_METHOD", "file://%s/pytorch-init-%d",
             env_get(env, "AZ_BATCHAI_SHARED_JOB_TEMP"), l->input->attempt);
    env_set(env, "AZ_BATCHAI_PYTORCH_BACKEND", lower);
    env_set(env, "MASTER_ADDR", launch_address(l, 0));
    env_setf(env, "MASTER_PORT", "%d", launch_first_port(l));
    env_setf(env, "WORLD_SIZE", "%d", l->processes);
    env_setf(env, "RANK", "%d", process);
    env_setf(env, "LOCAL_RANK", "%d", process % l->per_node);
}

static void launch_pytorch(struct launch *l)
{
    const char *backend = setting(l, "communicationBackend");

    if (str_equal_nocase(backend ? backend : "", "MPI")) {
        launch_mpi(l, python(l));
        return;
    }
    for (int i = 0; i < l->processes; i++) {
        struct env env;
        struct launch_task *task = begin_process(l, i, &env);

        add_rendezvous(l, i, backend ? backend : "Gloo", &env);
        end_process(l, task, &env);
    }
}

void launch_tool(struct launch *l)
{
    static const struct {
        const char *tool;
        void (*launch)(struct launch *l);
    } tools[] = {
        {"custom", launch_custom},
        {"custommpi", launch_custom_mpi},
        {"horovod", launch_python_mpi},
        {"chainer", launch_python_mpi},
        {"cntk", launch_cntk},
        {"caffe", launch_caffe},
        {"caffe2", launch_caffe2},
        {"pytorch", launch_pytorch},
        {"tensorflow", launch_tensorflow},
    };

    for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
        if (str_equal(l->tool, tools[i].tool))
            tools[i].launch(l);
    }
}
