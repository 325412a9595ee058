/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/task.h"

#include "base/clock.h"
#include "base/str.h"
#include "engine/local/errand.h"
#include "engine/local/folder.h"
#include "engine/local/leftover.h"
#include "loop/child.h"
#include "loop/loop.h"
#include "shim/folder.h"
#include "shim/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RETRY_MS = 20,
    /* For a shim of a former daemon that holds the lock and has not yet said who it is; and for
     * descriptors or memory to come back. */
    MOST_RETRIES_MS = 10 * 1000,
    SWEEP_MS = 60 * 1000, /* what KILL has not ended by then, it will not */

    NO_SHIM = -1,
    SHIM_KILLED = 256, /* or one that was not ours to wait for */
};

#define HELD_FOR_LONG "another shim holds the run folder, and does nothing"

struct tasks {
    struct loop *loop;
    struct errands *errands;
    char *shim;
};

struct task_sweep {
    struct errand errand; /* first */
    struct task *task;    /* NULL = freed meanwhile */
    bool is_fresh;
    char error[512];
    char folder[];
};

struct task {
    struct tasks *tasks;
    char *folder;
    task_ended_fn *ended;
    void *context;
    struct loop_child child; /* the shim */
    struct loop_timer retry, grace;
    struct loop_task later;
    struct task_sweep *sweep;
    int64_t retry_end_ms; /* monotonic; 0 = not trying */
    bool may_start;       /* its spec is there */
    bool was_watched;     /* its shim was seen alive by us */
    bool is_stopping, is_killing;
};

/* --- what they share --- */

/* Beside this program, wherever that is. */
static char *find_shim(void)
{
    const char *named = getenv("YARD_SHIM");
    char path[4096];
    ssize_t len;
    char *slash;

    if (named && *named)
        return xstrdup(named);
    len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[len < 0 ? 0 : len] = '\0';
    slash = strrchr(path, '/');
    return xasprintf("%.*s/yard-shim", slash ? (int)(slash - path) : 0, path);
}

struct tasks *tasks_new(struct loop *loop, struct errands *errands, const char *shim_path)
{
    struct tasks *tasks = xcalloc(1, sizeof(*tasks));

    tasks->loop = loop;
    tasks->errands = errands;
    tasks->shim = shim_path ? xstrdup(shim_path) : find_shim();
    return tasks;
}

void tasks_free(struct tasks *tasks)
{
    if (!tasks)
        return;
    free(tasks->shim);
    free(tasks);
}

/* --- the report --- */

static void report(struct task *task, enum task_end end, struct task_report *said)
{
    struct shim_identity command;
    int fd;

    said->end = end;
    if (end == TASK_ENDED)
        said->started_ms = said->record.started_ms;
    if (shim_folder_open(task->folder, &fd, NULL) == 0) {
        if (end == TASK_LOST)
            shim_folder_get_started(fd, &command, &said->started_ms, NULL);
        if (!said->error[0])
            shim_folder_get_error(fd, said->error, sizeof(said->error));
        close(fd);
    }
    loop_timer_cancel(&task->retry);
    loop_timer_cancel(&task->grace);
    task->ended(task->context, said); /* may free the task */
}

static void report_not_started(struct task *task, const char *why)
{
    struct task_report said = {0};

    if (why)
        snprintf(said.error, sizeof(said.error), "%s", why);
    report(task, TASK_NOT_STARTED, &said);
}

/* --- a lost task --- */

static void sweep_work(struct errand *errand)
{
    struct task_sweep *sweep = container_of(errand, struct task_sweep, errand);
    struct err e = {0};

    if (leftover_kill(sweep->folder, sweep->is_fresh, errand->errands, SWEEP_MS, &e) < 0)
        snprintf(sweep->error, sizeof(sweep->error), "%s", e.msg);
}

static void sweep_done(struct errand *errand)
{
    struct task_sweep *sweep = container_of(errand, struct task_sweep, errand);
    struct task_report said = {0};

    if (sweep->task) {
        sweep->task->sweep = NULL;
        snprintf(said.error, sizeof(said.error), "%s", sweep->error);
        report(sweep->task, TASK_LOST, &said);
    }
    free(sweep);
}

static void sweep_up(struct task *task)
{
    size_t room = strlen(task->folder) + 1;
    struct task_sweep *sweep = xcalloc(1, sizeof(*sweep) + room);

    sweep->errand = (struct errand){.work = sweep_work, .done = sweep_done};
    sweep->task = task;
    sweep->is_fresh = task->was_watched;
    memcpy(sweep->folder, task->folder, room);
    task->sweep = sweep;
    errand_submit(task->tasks->errands, &sweep->errand);
}

/* --- the shim --- */

/* A shim that was stopped could not hear. */
static void tell(struct task *task, int signal)
{
    if (loop_child_signal(&task->child, signal, NULL) == 0)
        loop_child_signal(&task->child, SIGCONT, NULL);
}

/* What was asked for before there was anybody to tell. */
static void tell_again(struct task *task)
{
    if (task->is_stopping)
        tell(task, SIGTERM);
    if (task->is_killing)
        tell(task, SIGUSR1);
}

static int set_up_spawn(posix_spawnattr_t *attr, posix_spawn_file_actions_t *actions)
{
    sigset_t all, none;
    int failed = 0;

    sigfillset(&all);
    sigemptyset(&none);
    failed |= posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                                 POSIX_SPAWN_SETSIGDEF);
    failed |= posix_spawnattr_setsigmask(attr, &none);
    failed |= posix_spawnattr_setsigdefault(attr, &all);
    for (int fd = 0; fd < 3; fd++)
        failed |= posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_RDWR, 0);
    return failed;
}

/* Its environment is empty: whatever the daemon's holds is not for tasks. */
static int spawn_shim(const struct task *task, pid_t *ret_pid, struct err *e)
{
    char *argv[] = {task->tasks->shim, task->folder, NULL}, *env[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int failed;

    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_init(&actions);
    failed = set_up_spawn(&attr, &actions);
    if (!failed)
        failed = posix_spawn(ret_pid, argv[0], &actions, &attr, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    if (failed)
        return err_sys(e, failed, "could not start \"%.200s\"", argv[0]);
    return 0;
}

static void proceed(struct task *task, int shim_exit);

static void on_shim_ended(struct loop_child *child, int wait_status)
{
    struct task *task = container_of(child, struct task, child);
    bool is_known = wait_status != LOOP_STATUS_UNKNOWN && WIFEXITED(wait_status);

    proceed(task, is_known ? WEXITSTATUS(wait_status) : SHIM_KILLED);
}

/* Try again soon.  False when that was done long enough. */
static bool try_again(struct task *task)
{
    int64_t now_ms = clock_mono_ms();

    if (!task->retry_end_ms)
        task->retry_end_ms = now_ms + MOST_RETRIES_MS;
    if (now_ms >= task->retry_end_ms)
        return false;
    loop_timer_set(task->tasks->loop, &task->retry, RETRY_MS);
    return true;
}

static int start_shim(struct task *task, struct err *e)
{
    pid_t pid;

    if (spawn_shim(task, &pid, e) < 0)
        return -1;
    /* What cannot be watched now is found alive, or ended, in a moment. */
    if (loop_child_watch(task->tasks->loop, &task->child, pid, NULL) < 0)
        loop_timer_set(task->tasks->loop, &task->retry, RETRY_MS);
    task->was_watched = true;
    return 0;
}

/* The number was looked up before the pidfd was opened: only when the folder still says the
 * same is it the shim's. */
static void watch_shim(struct task *task, pid_t pid)
{
    enum shim_state state;
    pid_t again = 0;

    if (loop_child_watch(task->tasks->loop, &task->child, pid, NULL) == 0) {
        if (shim_look(task->folder, &state, NULL, &again, NULL) == 0 && again == pid) {
            task->was_watched = true;
            tell_again(task);
            return;
        }
        loop_child_unwatch(&task->child);
    }
    loop_timer_set(task->tasks->loop, &task->retry, RETRY_MS);
}

/* --- where it is --- */

/* Nothing was started.  A folder that is held belongs to a shim that a former daemon started:
 * it will show itself, or end. */
static void proceed_absent(struct task *task, int shim_exit)
{
    struct err e;

    if (task->is_stopping || task->is_killing)
        report_not_started(task, "stopped before it began");
    else if (shim_exit == NO_SHIM && !task->may_start)
        report_not_started(task, "nothing was started");
    else if (shim_exit == NO_SHIM && start_shim(task, &e) < 0)
        report_not_started(task, e.msg);
    else if (shim_exit == SHIM_EXIT_HELD && !try_again(task))
        report_not_started(task, HELD_FOR_LONG);
    else if (shim_exit == SHIM_EXIT_NOTHING)
        report_not_started(task, NULL); /* the folder says why */
    else if (shim_exit != NO_SHIM && shim_exit != SHIM_EXIT_HELD)
        report_not_started(task, "its shim ended before it began");
}

/* One that a former daemon started, and that has not said yet who it is, will, or end. */
static void proceed_alive(struct task *task, pid_t pid)
{
    if (pid > 0)
        watch_shim(task, pid);
    else if (!try_again(task))
        report_not_started(task, HELD_FOR_LONG);
}

/* shim_exit is the exit status of a shim that has just ended, NO_SHIM when none did. */
static void proceed(struct task *task, int shim_exit)
{
    struct task_report said = {0};
    enum shim_state state;
    struct err e;
    pid_t pid;

    if (shim_look(task->folder, &state, &said.record, &pid, &e) < 0) {
        loop_timer_set(task->tasks->loop, &task->retry, RETRY_MS);
        return;
    }
    switch (state) {
    case SHIM_ABSENT:
        proceed_absent(task, shim_exit);
        break;
    case SHIM_ALIVE:
        proceed_alive(task, pid);
        break;
    case SHIM_ENDED:
        report(task, TASK_ENDED, &said);
        break;
    case SHIM_LOST:
        sweep_up(task);
        break;
    }
}

static void on_later(struct loop_task *later)
{
    proceed(container_of(later, struct task, later), NO_SHIM);
}

static void on_retry(struct loop_timer *timer)
{
    proceed(container_of(timer, struct task, retry), NO_SHIM);
}

static void on_grace(struct loop_timer *timer)
{
    task_kill(container_of(timer, struct task, grace));
}

/* --- calls --- */

static struct task *
task_new(struct tasks *tasks, const char *folder, task_ended_fn *ended, void *context)
{
    struct task *task = xcalloc(1, sizeof(*task));

    task->tasks = tasks;
    task->folder = xstrdup(folder);
    task->ended = ended;
    task->context = context;
    task->child.ended = on_shim_ended;
    task->retry.fired = on_retry;
    task->grace.fired = on_grace;
    task->later.run = on_later;
    return task;
}

void task_free(struct task *task)
{
    if (!task)
        return;
    loop_child_unwatch(&task->child);
    loop_timer_cancel(&task->retry);
    loop_timer_cancel(&task->grace);
    loop_task_cancel(&task->later);
    if (task->sweep)
        task->sweep->task = NULL;
    free(task->folder);
    free(task);
}

/* The environment with the word by which the task's processes are known. */
static const char **with_word(const char **env, const char *folder, struct arena *arena)
{
    size_t count = 0;
    const char **all;

    for (; env && env[count]; count++) {
        if (str_starts(env[count], TASK_WORD))
            return env;
    }
    all = arena_alloc(arena, (count + 2) * sizeof(*all));
    if (count)
        memcpy(all, env, count * sizeof(*all));
    all[count] = arena_printf(arena, TASK_WORD "%s", folder);
    return all;
}

/* Not synced: after a power cut nothing was started, and it is written again, or "started" is
 * there, and it is not needed any more. */
static int write_spec(const char *folder, const struct shim_spec *spec, struct err *e)
{
    autoptr(arena) arena = arena_new();
    struct shim_spec whole = *spec;
    auto_close int fd = -1;
    auto_str bytes = {0};

    whole.env = with_word(spec->env, folder, arena);
    shim_spec_format(&whole, &bytes);
    if (bytes.len > SHIM_MOST_SPEC_BYTES)
        return err_set(e, ERR_TOO_LARGE, "the environment of the task is too large");
    if (folder_make(folder, 0700, e) < 0 || shim_folder_open(folder, &fd, e) < 0)
        return -1;
    return shim_folder_put(fd, "spec", bytes.data, bytes.len, e);
}

int task_start(struct tasks *tasks,
               const char *folder,
               const struct shim_spec *spec,
               task_ended_fn *ended,
               void *context,
               struct task **ret_task,
               struct err *e)
{
    autoptr(task) task = task_new(tasks, folder, ended, context);
    enum shim_state state;
    pid_t pid = 0;

    if (shim_look(folder, &state, NULL, &pid, e) < 0)
        return -1;
    /* A shim that has begun nothing yet may fail to. */
    task->may_start = state == SHIM_ABSENT || (state == SHIM_ALIVE && pid == 0);
    if (task->may_start && write_spec(folder, spec, e) < 0)
        return -1;
    if (state != SHIM_ABSENT)
        loop_task_add(tasks->loop, &task->later);
    else if (start_shim(task, e) < 0)
        return -1;
    *ret_task = take_ptr(&task);
    return 0;
}

int task_adopt(struct tasks *tasks,
               const char *folder,
               task_ended_fn *ended,
               void *context,
               struct task **ret_task,
               struct err *e)
{
    enum shim_state state;
    struct task *task;

    if (shim_look(folder, &state, NULL, NULL, e) < 0)
        return -1;
    if (state == SHIM_ABSENT)
        return err_set(e, ERR_NOT_FOUND, "nothing was started in \"%.200s\"", folder);
    task = task_new(tasks, folder, ended, context);
    loop_task_add(tasks->loop, &task->later);
    *ret_task = task;
    return 0;
}

void task_stop(struct task *task, int64_t grace_ms)
{
    int64_t due_ms = clock_mono_ms() + grace_ms;

    task->is_stopping = true;
    tell(task, SIGTERM);
    if (grace_ms >= 0 && (!task->grace.loop || due_ms < task->grace.due_ms))
        loop_timer_set(task->tasks->loop, &task->grace, grace_ms);
}

void task_kill(struct task *task)
{
    task->is_killing = true;
    tell(task, SIGUSR1);
}
