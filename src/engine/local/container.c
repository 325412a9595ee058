/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/container.h"

#include "base/fs.h"
#include "base/str.h"
#include "engine/local/container-internal.h"
#include "engine/local/enter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    START_MS = 120 * 1000,
    MOST_FILES = 262144, /* what the original service gave its containers */
    MOST_PROCESSES =
        16384, /* the runtime may have less than we; the node's group is stricter */
};

#define CGROUP2_MAGIC 0x63677270

void args_add(struct args *args, const char *word)
{
    if (args->count < BOX_MOST_ARGS)
        args->list[args->count++] = word;
}

void args_add_pair(struct args *args, const char *option, const char *value)
{
    args_add(args, option);
    args_add(args, value);
}

/* --- which runtime --- */

static bool is_in_path(const char *program)
{
    const char *path = getenv("PATH");
    auto_free char *copy = xstrdup(path ? path : "/usr/local/bin:/usr/bin:/bin");
    char *rest = NULL;

    for (char *folder = strtok_r(copy, ":", &rest); folder;
         folder = strtok_r(NULL, ":", &rest)) {
        auto_free char *file = xasprintf("%s/%s", folder, program);

        if (access(file, X_OK) == 0)
            return true;
    }
    return false;
}

/* crun refuses machines whose cgroups are not of version 2 through and through; without systemd
 * nobody makes groups but the runtime itself. */
static void choose_flags(struct box *box)
{
    struct statfs fs;
    bool is_v2 =
        statfs("/sys/fs/cgroup", &fs) == 0 && (unsigned long)fs.f_type == CGROUP2_MAGIC;

    if (!is_v2 && is_in_path("runc")) {
        box->flags[box->flag_count++] = "--runtime";
        box->flags[box->flag_count++] = "runc";
    }
    if (!is_v2 || access("/run/systemd/system", F_OK) < 0) {
        box->flags[box->flag_count++] = "--cgroup-manager";
        box->flags[box->flag_count++] = "cgroupfs";
    }
}

static bool does_docker_answer(void)
{
    const char *argv[] = {"docker", "version", "--format", "{{.Server.Version}}", NULL};

    return command_must(&(struct command){.argv = argv, .timeout_ms = 10 * 1000}, NULL) == 0;
}

/* Looked for again while there is none: somebody may install one. */
static void find_runtime(struct box *box)
{
    pthread_mutex_lock(&box->lock);
    if (!box->is_known && is_in_path("podman")) {
        box->program = "podman";
        box->is_known = box->is_podman = true;
        choose_flags(box);
    } else if (!box->is_known && is_in_path("docker") && does_docker_answer()) {
        box->program = "docker";
        box->is_known = true;
    }
    pthread_mutex_unlock(&box->lock);
}

struct box *box_new(void)
{
    struct box *box = xcalloc(1, sizeof(*box));

    pthread_mutex_init(&box->lock, NULL);
    return box;
}

void box_free(struct box *box)
{
    if (!box)
        return;
    pthread_mutex_destroy(&box->lock);
    free(box);
}

/* --- running it --- */

void args_begin(const struct box *box, struct args *args, const char *verb)
{
    *args = (struct args){0};
    args_add(args, box->program);
    for (size_t i = 0; i < box->flag_count; i++)
        args_add(args, box->flags[i]);
    args_add(args, verb);
}

/* One call of the runtime, in the node or here. */
struct call {
    struct command command;
    struct command_outcome *outcome;
};

static int run_call(void *arg, struct err *e)
{
    struct call *call = arg;

    return command_run(&call->command, call->outcome, e);
}

int box_run(int keeper_fd,
            const struct args *args,
            int64_t timeout_ms,
            const struct container_wish *wish,
            struct command_outcome *ret_outcome,
            struct err *e)
{
    struct call call = {
        .command = {.argv = args->list,
                    .input = args->input,
                    .timeout_ms = timeout_ms,
                    .errands = wish ? wish->errands : NULL,
                    .is_cancelled = wish ? wish->is_cancelled : NULL},
        .outcome = ret_outcome,
    };

    return enter_run(keeper_fd, run_call, &call, e);
}

int box_fail(struct container_failure *failure,
             const char *code,
             const char *message,
             const char *info)
{
    snprintf(failure->code, sizeof(failure->code), "%s", code);
    snprintf(failure->message, sizeof(failure->message), "%s", message);
    snprintf(failure->info, sizeof(failure->info), "%s", info);
    return -1;
}

/* --- the container --- */

static void add_limits(const struct box *box,
                       const struct container_wish *wish,
                       struct arena *arena,
                       struct args *args)
{
    struct rlimit files, processes;

    /* The runtime's own defaults may be above what this machine lets us give. */
    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_NPROC, &processes);
    if (files.rlim_max > MOST_FILES)
        files.rlim_max = MOST_FILES;
    args_add_pair(args, "--ulimit",
                  arena_printf(arena, "nofile=%llu:%llu", (unsigned long long)files.rlim_max,
                               (unsigned long long)files.rlim_max));
    if (processes.rlim_max > MOST_PROCESSES)
        processes.rlim_max = MOST_PROCESSES;
    args_add_pair(args, "--ulimit",
                  arena_printf(arena, "nproc=%llu:%llu", (unsigned long long)processes.rlim_max,
                               (unsigned long long)processes.rlim_max));
    if (wish->shm_size)
        args_add_pair(args, "--shm-size", wish->shm_size);
    if (wish->cgroup_parent)
        args_add_pair(args, "--cgroup-parent", wish->cgroup_parent);
    /* docker's containers do not descend from us; podman's have the node's group, or what the
     * task that enters them has. */
    if (!box->is_podman && *wish->cpus)
        args_add_pair(args, "--cpuset-cpus", wish->cpus);
    args_add_pair(args, "--pids-limit", "-1"); /* the node's group has one */
}

/* Root in a container installs packages, so most of what podman gives by itself stays. */
static void add_rights(struct args *args)
{
    static const char *const dropped[] = {"NET_RAW", "MKNOD", "AUDIT_WRITE", "SETPCAP",
                                          "SETFCAP"};

    args_add_pair(args, "--security-opt", "no-new-privileges");
    for (size_t i = 0; i < ARRAY_SIZE(dropped); i++)
        args_add_pair(args, "--cap-drop", dropped[i]);
    args_add_pair(args, "--cap-add", "SYS_PTRACE"); /* MPI's shared memory between processes */
}

static void add_folders(const struct box *box,
                        const struct container_wish *wish,
                        struct arena *arena,
                        struct args *args)
{
    if (box->is_podman && wish->keeper_fd >= 0) {
        args_add_pair(args, "--volume",
                      arena_printf(arena, "%s:%s:rslave", wish->root, wish->root));
        if (!wish->has_ssh)
            return;
        args_add_pair(args, "--volume", "/etc/ssh/box:/etc/ssh/yard:ro");
        args_add_pair(args, "--volume", "/etc/ssh/box/ssh_config:/etc/ssh/ssh_config:ro");
        return;
    }
    for (size_t i = 0; i < wish->folder_count; i++)
        args_add_pair(args, "--volume",
                      arena_printf(arena, "%s:%s%s", wish->folders[i].from, wish->folders[i].to,
                                   wish->folders[i].is_read_only ? ":ro" : ""));
}

static void add_gpus(const struct container_wish *wish, struct arena *arena, struct args *args)
{
    char *rest = NULL;

    for (char *gpu = strtok_r(arena_strdup(arena, wish->gpus), ",", &rest); gpu;
         gpu = strtok_r(NULL, ",", &rest))
        args_add_pair(args, "--device", arena_printf(arena, "nvidia.com/gpu=%s", gpu));
}

/* Sleeps, reaps, and ends when told to.  Any image that can run a job has a shell. */
#define IDLE "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"

static int start(struct box *box,
                 const struct container_wish *wish,
                 struct arena *arena,
                 struct container_failure *failure)
{
    auto_outcome outcome = {0};
    auto_str line = {0};
    struct args args;
    struct err e = {0};

    args_begin(box, &args, "run");
    args_add(&args, "--detach");
    args_add_pair(&args, "--name", wish->name);
    args_add_pair(&args, "--network", "host");
    args_add_pair(&args, "--uts", "host");
    args_add_pair(&args, "--pull", "never");
    add_limits(box, wish, arena, &args);
    add_rights(&args);
    add_folders(box, wish, arena, &args);
    add_gpus(wish, arena, &args);
    args_add_pair(&args, "--workdir", wish->work_folder);
    args_add_pair(&args, "--entrypoint", "sh");
    args_add(&args, wish->image);
    args_add_pair(&args, "-c", IDLE);
    if (box_run(box->is_podman ? wish->keeper_fd : -1, &args, START_MS, wish, &outcome, &e) < 0)
        return box_fail(failure, "FailedStartingContainer", "unable to start docker container",
                        e.msg);
    if (outcome.code == 0)
        return 0;
    command_last_line(&outcome.errors, &line);
    return box_fail(failure, "FailedStartingContainer", "unable to start docker container",
                    arena_printf(arena, "image %s: %s", wish->image,
                                 outcome.is_late ? "it takes too long" : str_text(&line)));
}

static int64_t first_process(struct box *box, int keeper_fd, const char *name)
{
    auto_outcome outcome = {0};
    struct args args;

    args_begin(box, &args, "inspect");
    args_add_pair(&args, "--format", "{{.State.Pid}}");
    args_add(&args, name);
    if (box_run(box->is_podman ? keeper_fd : -1, &args, BOX_ASK_MS, NULL, &outcome, NULL) < 0 ||
        outcome.code != 0)
        return 0;
    return strtoll(str_text(&outcome.out), NULL, 10);
}

int container_recall(struct box *box,
                     int keeper_fd,
                     const char *name,
                     struct arena *arena,
                     struct container *ret_container,
                     struct err *e)
{
    const char **exec = arena_alloc(arena, (BOX_MOST_ARGS + 1) * sizeof(*exec));
    struct args args;

    find_runtime(box);
    if (!box->program)
        return err_set(e, ERR_NOT_FOUND, "there is neither podman nor docker on this machine");
    args_begin(box, &args, "exec");
    args_add(&args, name);
    memcpy(exec, args.list, args.count * sizeof(*exec));
    *ret_container = (struct container){
        .name = name, .exec = exec, .pid = first_process(box, keeper_fd, name)};
    return 0;
}

/* The runtime's own words for this are not for people. */
static bool has_cdi(void)
{
    static const char *const folders[] = {"/etc/cdi", "/var/run/cdi"};

    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        if (access(folders[i], F_OK) == 0)
            return true;
    }
    return false;
}

int container_fetch(struct box *box,
                    const struct container_wish *wish,
                    struct arena *arena,
                    struct container_failure *ret_failure)
{
    find_runtime(box);
    if (!box->program)
        return box_fail(
            ret_failure, "FailedStartingContainer", "unable to start docker container",
            "there is neither podman nor docker on this machine: install one, or map the "
            "image to the host");
    if (*wish->gpus && !has_cdi())
        return box_fail(
            ret_failure, "FailedStartingContainer", "unable to start docker container",
            "the GPUs have no description for containers: run \"nvidia-ctk cdi generate "
            "--output=/etc/cdi/nvidia.yaml\"");
    return image_fetch(box, wish, arena, ret_failure);
}

int container_start(struct box *box,
                    const struct container_wish *wish,
                    struct arena *arena,
                    struct container *ret_container,
                    struct container_failure *ret_failure)
{
    struct err e = {0};

    if (container_remove(box, wish->keeper_fd, wish->name, &e) < 0)
        return box_fail(ret_failure, "FailedStartingContainer",
                        "unable to start docker container", e.msg);
    if (start(box, wish, arena, ret_failure) < 0)
        return -1;
    if (container_recall(box, wish->keeper_fd, wish->name, arena, ret_container, &e) < 0)
        return box_fail(ret_failure, "FailedStartingContainer",
                        "unable to start docker container", e.msg);
    return 0;
}

int container_remove(struct box *box, int keeper_fd, const char *name, struct err *e)
{
    auto_outcome outcome = {0};
    auto_str line = {0};
    struct args args;

    find_runtime(box);
    if (!box->program)
        return 0;
    args_begin(box, &args, "rm");
    args_add(&args, "--force");
    if (box->is_podman)
        args_add_pair(&args, "--time", "0");
    args_add(&args, "--volumes");
    args_add(&args, name);
    /* A node that is lost cannot be entered; what it mounted is gone with it. */
    if (box_run(box->is_podman ? keeper_fd : -1, &args, BOX_ASK_MS, NULL, &outcome, e) < 0 &&
        box_run(-1, &args, BOX_ASK_MS, NULL, &outcome, e) < 0)
        return -1;
    if (outcome.code == 0 || strcasestr(str_text(&outcome.errors), "no such container") ||
        strcasestr(str_text(&outcome.errors), "no container with"))
        return 0;
    command_last_line(&outcome.errors, &line);
    return err_set(e, ERR_INTERNAL, "could not remove the container %s: %s", name,
                   str_text(&line));
}

/* sshd has the command in a variable, and has told us whether there is a terminal. */
void container_enter_script(const struct container *container, struct str *out)
{
    str_add(out, "tty=; [ -t 0 ] && tty=-t\nexec");
    for (const char *const *word = container->exec; *word; word++) {
        if (!word[1])
            str_add(out, " -i $tty");
        str_addf(out, " %s", *word);
    }
    str_add(out, " sh -c '\n"
                 "shell=sh; command -v bash >/dev/null 2>&1 && shell=bash\n"
                 "[ \"$1\" ] && exec $shell -c \"$1\"\n"
                 "exec $shell -l' ssh \"$SSH_ORIGINAL_COMMAND\"\n");
}
