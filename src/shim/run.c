/* run.c - one task from its spec to its exit record.
 *
 *     take the lock; was it started before? then end
 *     write "shim"
 *     fork the child, which gets ready and waits at a gate
 *     write "started" and sync it, open the gate: from here on it was started, for ever
 *     reap; when the command has ended or a stop is asked for: TERM to the tree, KILL after the
 *       grace time, until there is no child, no orphan, no process in the task's cgroups
 *     write the record, however long that takes; end
 *
 * All signals are blocked from the first line on and taken one by one, so that there is no
 * handler and no race.  The log is written by the command itself: no byte of it comes through
 * here, and nothing here grows with it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "shim/run.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/str.h"
#include "shim/child.h"
#include "shim/folder.h"
#include "shim/record.h"
#include "shim/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    /* What a command that has ended leaves behind has nothing to finish. */
    LEFTOVER_GRACE_MS = 5000,
    /* Processes that came into a cgroup from elsewhere end without telling us. */
    LOOK_MS = 100,
    FIRST_ROUND_MS = 5,
    LAST_ROUND_MS = 1000,
    UNKILLABLE_MS = 60 * 1000, /* then it is said, once */
    FIRST_RETRY_MS = 100,
    LAST_RETRY_MS = 5000,
};

struct run {
    int folder, lock;
    struct arena *arena;
    struct shim_spec spec;
    struct shim_child child;
    struct shim_record record;
    int64_t oom_kills; /* counted before */

    bool has_ended;      /* the command itself */
    bool is_alone;       /* no child, no orphan is left */
    bool is_ending;      /* TERM was sent, deadline_ms holds */
    int64_t deadline_ms; /* monotonic: from then on KILL */
    int64_t next_ms;     /* the next round of KILL, and how long until the one after it */
    int64_t round_ms;
    bool is_unkillable;
};

static void say(struct run *run, const char *text)
{
    auto_free char *line = xasprintf("%s\n", text);

    fprintf(stderr, "yard-shim: %s", line);
    shim_folder_put(run->folder, "error", line, strlen(line), NULL);
}

/* --- the process itself --- */

static void protect_from_oom(void)
{
    auto_close int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    /* Not every user may; then the shim is as good a victim as any, and its end is seen. */
    if (fd >= 0 && write(fd, "-900", 4) < 0)
        errno = 0;
}

static int settle(struct err *e)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_DFL); /* ignored, children would be reaped unseen */
    syscall(SYS_close_range, 3U, ~0U, 0U);
    setsid();
    protect_from_oom();
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return err_sys(e, errno, "could not become the parent of orphans");
    return 0;
}

/* --- the folder --- */

static int take_lock(struct run *run, bool *ret_held, struct err *e)
{
    run->lock = openat(run->folder, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (run->lock < 0)
        return err_sys(e, errno, "could not open \"lock\"");
    *ret_held = flock(run->lock, LOCK_EX | LOCK_NB) < 0;
    if (*ret_held && errno != EWOULDBLOCK)
        return err_sys(e, errno, "could not take the lock");
    return 0;
}

/* Under the lock nobody else writes these. */
static int was_started(struct run *run, bool *ret_was, struct err *e)
{
    bool has_started, has_exit;

    if (shim_folder_has(run->folder, "started", &has_started, e) < 0 ||
        shim_folder_has(run->folder, "exit", &has_exit, e) < 0)
        return -1;
    *ret_was = has_started || has_exit;
    return 0;
}

static int read_spec(struct run *run, struct err *e)
{
    auto_str bytes = {0};
    char *kept;

    if (shim_folder_get(run->folder, "spec", SHIM_MOST_SPEC_BYTES, &bytes, e) < 0)
        return -1;
    kept = arena_strndup(run->arena, str_text(&bytes), bytes.len);
    return shim_spec_parse(kept, bytes.len, run->arena, &run->spec, e);
}

static int write_shim(struct run *run, struct err *e)
{
    struct shim_identity self;

    if (shim_identity_read(getpid(), &self, e) < 0)
        return -1;
    return shim_folder_put_shim(run->folder, &self, e);
}

/* --- memory --- */

/* "oom_kill 3" is a line of memory.events (version 2) and of memory.oom_control (version 1). */
static int64_t count_oom_kills(const struct shim_spec *spec)
{
    int64_t sum = 0;

    for (const char **path = spec->memory; *path; path++) {
        FILE *file = fopen(*path, "re");
        char line[128];

        while (file && fgets(line, sizeof(line), file)) {
            if (str_starts(line, "oom_kill "))
                sum += strtoll(line + strlen("oom_kill "), NULL, 10);
        }
        if (file)
            fclose(file);
    }
    return sum;
}

/* --- start --- */

/* A child that failed on its way has ended already; it is not reaped yet, so it can be looked
 * at all the same, and its reason is told with the record. */
static int write_started(struct run *run, struct err *e)
{
    struct shim_identity command = {.pid = run->child.pid};
    struct shim_process process;

    run->record.started_ms = clock_wall_ms();
    run->record.pid = run->child.pid;
    if (shim_process_read(run->child.pid, &process, e) < 0 ||
        shim_boot_id(command.boot_id, e) < 0)
        return -1;
    command.start = process.start;
    return shim_folder_put_started(run->folder, &command, run->record.started_ms, e);
}

/* The child waits for the gate; shut, it ends. */
static void abandon(struct run *run)
{
    close(run->child.gate);
    waitpid(run->child.pid, NULL, 0);
}

static int start(struct run *run, struct err *e)
{
    if (write_shim(run, e) < 0 || shim_record_reserve(run->folder, e) < 0)
        return -1;
    unlinkat(run->folder, "error", 0); /* of a start that failed */
    run->oom_kills = count_oom_kills(&run->spec);
    if (shim_child_fork(&run->spec, run->lock, &run->child, e) < 0)
        return -1;
    FAULT("shim.forked");
    if (write_started(run, e) < 0) {
        abandon(run);
        return -1;
    }
    FAULT("shim.started");
    shim_child_release(&run->child);
    return 0;
}

/* --- end --- */

static void note_end(struct run *run, const siginfo_t *info)
{
    bool by_itself = info->si_code == CLD_EXITED;
    int64_t now_ms = clock_wall_ms();

    run->has_ended = true;
    run->record.code = by_itself ? info->si_status : -1;
    run->record.signal = by_itself ? 0 : info->si_status;
    /* The wall clock may have been set back. */
    run->record.ended_ms = now_ms > run->record.started_ms ? now_ms : run->record.started_ms;
}

static void reap(struct run *run)
{
    for (;;) {
        siginfo_t info = {0};

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WALL) < 0) {
            run->is_alone = errno == ECHILD;
            return;
        }
        run->is_alone = false;
        if (info.si_pid == 0)
            return;
        if (info.si_pid == run->child.pid)
            note_end(run, &info);
    }
}

static bool is_over(const struct run *run)
{
    if (!run->has_ended || !run->is_alone)
        return false;
    for (const char **group = run->spec.cgroups; *group; group++) {
        if (!shim_cgroup_is_empty(*group))
            return false;
    }
    return true;
}

/* All that is left of the task. */
static int find_tree(const struct run *run, struct shim_processes *ret_tree)
{
    if (shim_processes_read(ret_tree, NULL) < 0)
        return -1;
    for (const char **group = run->spec.cgroups; *group; group++)
        shim_mark_cgroup(ret_tree, *group);
    shim_mark_descendants(ret_tree, getpid());
    return 0;
}

static size_t signal_tree(const struct run *run, int signal, size_t *ret_refused)
{
    auto_processes tree = {0};

    return find_tree(run, &tree) < 0 ? 0 : shim_signal_marked(&tree, signal, ret_refused);
}

/* Ask the tree to end, until deadline_ms.  A stopped process could not hear it. */
static void ask(struct run *run, int64_t grace_ms)
{
    int64_t deadline_ms = clock_mono_ms() + grace_ms;

    if (!run->is_ending || deadline_ms < run->deadline_ms)
        run->deadline_ms = deadline_ms;
    run->is_ending = true;
    signal_tree(run, SIGTERM, NULL);
    signal_tree(run, SIGCONT, NULL);
}

static void say_unkillable(struct run *run, size_t alive, size_t refused)
{
    auto_free char *text =
        xasprintf("%zu processes cannot be killed (%zu refused)", alive, refused);

    run->is_unkillable = true;
    say(run, text);
}

static void kill_round(struct run *run)
{
    size_t refused = 0, alive;

    for (const char **group = run->spec.cgroups; *group; group++)
        shim_cgroup_kill(*group, NULL);
    alive = signal_tree(run, SIGKILL, &refused);
    run->next_ms = clock_mono_ms() + run->round_ms;
    run->round_ms = run->round_ms * 2 < LAST_ROUND_MS ? run->round_ms * 2 : LAST_ROUND_MS;
    if (alive && !run->is_unkillable && run->next_ms > run->deadline_ms + UNKILLABLE_MS)
        say_unkillable(run, alive, refused);
}

/* --- the loop --- */

static void on_signal(struct run *run, int signal)
{
    if (signal != SIGTERM && signal != SIGUSR1)
        return;
    if (!run->has_ended)
        run->record.was_stopped = true;
    if (signal == SIGTERM && !run->is_ending) {
        ask(run, run->spec.grace_ms);
    } else if (signal == SIGUSR1) {
        run->is_ending = true;
        run->deadline_ms = clock_mono_ms();
    }
}

/* How long to sleep when no signal comes; -1 = for ever. */
static int64_t patience(const struct run *run)
{
    int64_t due_ms = run->next_ms > run->deadline_ms ? run->next_ms : run->deadline_ms;
    int64_t left_ms = due_ms - clock_mono_ms();

    if (!run->is_ending)
        return -1;
    if (left_ms < 0)
        return 0;
    return left_ms < LOOK_MS ? left_ms : LOOK_MS;
}

static int wait_signal(int64_t timeout_ms)
{
    struct timespec limit = {.tv_sec = timeout_ms / 1000,
                             .tv_nsec = timeout_ms % 1000 * 1000000};
    sigset_t wanted;

    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGUSR1);
    return sigtimedwait(&wanted, NULL, timeout_ms < 0 ? NULL : &limit);
}

/* What has ended is reaped before a stop is looked at: a command that ended by itself was not
 * stopped. */
static void turn(struct run *run)
{
    int signal = wait_signal(patience(run));
    bool had_ended = run->has_ended;
    int64_t now_ms;

    reap(run);
    on_signal(run, signal);
    if (is_over(run)) /* mostly: nothing was left behind */
        return;
    if (run->has_ended && !had_ended)
        ask(run,
            run->spec.grace_ms < LEFTOVER_GRACE_MS ? run->spec.grace_ms : LEFTOVER_GRACE_MS);
    now_ms = clock_mono_ms();
    if (run->is_ending && now_ms >= run->deadline_ms && now_ms >= run->next_ms)
        kill_round(run);
}

static void finish_record(struct run *run)
{
    struct shim_failure failure;

    if (shim_child_failed(&run->child, &failure)) {
        if (run->record.signal == 0) /* else it was killed on its way */
            run->record.code = failure.code;
        say(run, failure.text);
    }
    run->record.out_of_memory = count_oom_kills(&run->spec) > run->oom_kills;
}

/* Without a record the end would be unknown: better to wait, for room on the disk, than to go.
 * Only when the folder was removed is there nobody to write for. */
static void write_record(struct run *run)
{
    int64_t retry_ms = FIRST_RETRY_MS;
    struct err e;
    struct stat st;

    while (shim_record_write(run->folder, &run->record, &e) < 0) {
        if (fstat(run->folder, &st) == 0 && st.st_nlink == 0)
            return;
        if (retry_ms == FIRST_RETRY_MS)
            say(run, e.msg);
        usleep((useconds_t)retry_ms * 1000);
        retry_ms = retry_ms * 2 < LAST_RETRY_MS ? retry_ms * 2 : LAST_RETRY_MS;
    }
}

static void supervise(struct run *run)
{
    run->round_ms = FIRST_ROUND_MS;
    while (!is_over(run))
        turn(run);
    finish_record(run);
    FAULT("shim.ended");
    write_record(run);
}

static int run_held(struct run *run, struct err *e)
{
    if (read_spec(run, e) < 0 || start(run, e) < 0)
        return -1;
    malloc_trim(0); /* what the spec was read with */
    supervise(run);
    return 0;
}

static int open_run(struct run *run, const char *folder, bool *ret_held, struct err *e)
{
    if (settle(e) < 0 || shim_folder_open(folder, &run->folder, e) < 0)
        return -1;
    if (chdir("/") < 0) /* a mount that is a working folder could not be undone */
        return err_sys(e, errno, "could not enter /");
    if (take_lock(run, ret_held, e) < 0)
        return -1;
    return *ret_held ? 0 : was_started(run, ret_held, e);
}

int shim_run(const char *folder)
{
    autoptr(arena) arena = arena_new();
    struct run run = {.folder = -1, .lock = -1, .arena = arena};
    bool is_held = false;
    struct err e;

    if (open_run(&run, folder, &is_held, &e) == 0) {
        if (is_held)
            return SHIM_EXIT_HELD;
        if (run_held(&run, &e) == 0)
            return SHIM_EXIT_DONE;
    }
    if (run.folder >= 0)
        say(&run, e.msg);
    else
        fprintf(stderr, "yard-shim: %s\n", e.msg);
    return SHIM_EXIT_NOTHING;
}
