/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/child.h"

#include "base/fs.h"
#include "base/str.h"
#include "shim/cpus.h"
#include "shim/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(struct shim_failure) <= PIPE_BUF, "a failure is written at one go");

enum {
    NAMESPACES = 3,
};

/* The mount namespace comes last: after it, paths are those of the node. */
static const struct namespace
{
    char letter;
    const char *file;
    int type;
}
namespaces[NAMESPACES] = {
    {'u', "ns/uts", CLONE_NEWUTS},
    {'n', "ns/net", CLONE_NEWNET},
    {'m', "ns/mnt", CLONE_NEWNS},
};

struct ready {
    const struct shim_spec *spec;
    int namespace_fds[NAMESPACES]; /* -1 = stay */
    int gate, failures;            /* the child's ends */
};

/* --- before the fork --- */

/* A process's folder in /proc is that of one process for good: when its start time is right,
 * so is everything else opened in it. */
static int open_process(const struct shim_spec *spec, int *ret_fd, struct err *e)
{
    char path[64];
    auto_close int fd = -1;
    uint64_t start;

    snprintf(path, sizeof(path), "/proc/%d", (int)spec->enter_pid);
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || shim_process_start(spec->enter_pid, &start, NULL) < 0 ||
        start != spec->enter_start)
        return err_set(e, ERR_NOT_FOUND, "the node is gone: process %d has ended",
                       (int)spec->enter_pid);
    *ret_fd = take_fd(&fd);
    return 0;
}

static int open_namespaces(struct ready *ready, struct err *e)
{
    auto_close int process = -1;

    if (!ready->spec->enter_pid)
        return 0;
    if (open_process(ready->spec, &process, e) < 0)
        return -1;
    for (size_t i = 0; i < NAMESPACES; i++) {
        if (!strchr(ready->spec->namespaces, namespaces[i].letter))
            continue;
        ready->namespace_fds[i] = openat(process, namespaces[i].file, O_RDONLY | O_CLOEXEC);
        if (ready->namespace_fds[i] < 0)
            return err_sys(e, errno, "could not open %s of process %d", namespaces[i].file,
                           (int)ready->spec->enter_pid);
    }
    return 0;
}

static void close_namespaces(struct ready *ready)
{
    for (size_t i = 0; i < NAMESPACES; i++)
        mem_close_fd(&ready->namespace_fds[i]);
}

/* --- steps of the child --- */

static int enter_cgroups(const struct ready *ready, struct err *e)
{
    for (const char **group = ready->spec->cgroups; *group; group++) {
        auto_free char *path = xasprintf("%s/cgroup.procs", *group);
        auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (fd < 0 || write(fd, "0", 1) != 1) /* 0 = the writer */
            return err_sys(e, errno, "could not enter the cgroup \"%.200s\"", *group);
    }
    return 0;
}

/* After the cgroups: entering one of processors undoes what was set before. */
static int settle_on_cpus(const struct ready *ready, struct err *e)
{
    (void)e;
    shim_cpus_settle_on(ready->spec->cpus);
    return 0;
}

static int enter_namespaces(const struct ready *ready, struct err *e)
{
    /* A mount namespace wants a caller whose root folder is shared with nobody: a sanitizer has
     * a thread of its own. */
    if (unshare(CLONE_FS) < 0)
        return err_sys(e, errno, "could not part from other threads");
    for (size_t i = 0; i < NAMESPACES; i++) {
        if (ready->namespace_fds[i] >= 0 &&
            setns(ready->namespace_fds[i], namespaces[i].type) < 0)
            return err_sys(e, errno, "could not enter %s of the node", namespaces[i].file);
    }
    return 0;
}

/* Make the folder of path, relative to at, and open it; no link is followed. */
static int open_folder_beneath(int at, const char *path, int *ret_fd, struct err *e)
{
    auto_free char *copy = xstrdup(path);
    char *rest = NULL, *next = NULL, *name = strtok_r(copy, "/", &rest);
    auto_close int fd = fcntl(at, F_DUPFD_CLOEXEC, 0);

    /* The last one is the file. */
    for (; name && (next = strtok_r(NULL, "/", &rest)); name = next) {
        int below;

        if (mkdirat(fd, name, 0777) < 0 && errno != EEXIST)
            return err_sys(e, errno, "could not make the folder \"%.200s\"", name);
        if (fs_open_beneath(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, &below, e) < 0)
            return err_wrap(e, "the log's folder \"%.200s\"", path);
        close(fd);
        fd = below;
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

static int open_folder(const char *path, int *ret_fd, struct err *e)
{
    const char *slash = strrchr(path, '/');
    auto_free char *folder = xstrndup(path, slash == path ? 1 : (size_t)(slash - path));

    if (fs_make_folders(folder, 0777, e) < 0)
        return -1;
    *ret_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd < 0 ? err_sys(e, errno, "could not open \"%.200s\"", folder) : 0;
}

/* What is left of path below the folder of the logs; NULL when it lies elsewhere. */
static const char *below_logs(const struct shim_spec *spec, const char *path)
{
    size_t len = spec->logs ? strlen(spec->logs) : 0;

    return len && strncmp(path, spec->logs, len) == 0 && path[len] == '/' ? path + len : NULL;
}

static int
open_folder_of_log(const struct shim_spec *spec, const char *path, int *ret_fd, struct err *e)
{
    const char *rest = below_logs(spec, path);
    auto_close int root = -1;

    if (!rest)
        return open_folder(path, ret_fd, e);
    root = open(spec->logs, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return err_sys(e, errno, "could not open \"%.200s\"", spec->logs);
    return open_folder_beneath(root, rest, ret_fd, e);
}

/* A log's folder is one that jobs write to: a link, a pipe or a device planted under the log's
 * name, or a link in the place of a folder above it, is not what is written to. */
static int open_log(const struct shim_spec *spec, const char *path, struct err *e)
{
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    auto_close int folder = -1, fd = -1;
    struct stat st;

    if (open_folder_of_log(spec, path, &folder, e) < 0)
        return -1;
    fd = openat(folder, strrchr(path, '/') + 1, flags, 0666);
    if (fd < 0)
        return err_sys(e, errno, "could not open the log \"%.200s\"", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_CONFLICT, "the log \"%.200s\" is not a file", path);
    if (fcntl(fd, F_SETFL, O_WRONLY | O_APPEND) < 0)
        return err_sys(e, errno, "could not open the log \"%.200s\"", path);
    return take_fd(&fd);
}

/* The user's own, so that the command can open it again by its name. */
static int open_log_for(const struct shim_spec *spec, const char *path, struct err *e)
{
    auto_close int fd = open_log(spec, path, e);

    if (fd < 0)
        return -1;
    if (spec->has_user && fchown(fd, spec->uid, spec->gid) < 0)
        return err_sys(e, errno, "could not give the log \"%.200s\" away", path);
    return take_fd(&fd);
}

static int open_logs(const struct ready *ready, struct err *e)
{
    const struct shim_spec *spec = ready->spec;
    bool is_one = str_equal(spec->stdout_path, spec->stderr_path);
    auto_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    auto_close int out = open_log_for(spec, spec->stdout_path, e);
    auto_close int other = -1;

    if (out < 0)
        return -1;
    if (!is_one && (other = open_log_for(spec, spec->stderr_path, e)) < 0)
        return -1;
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(is_one ? out : other, STDERR_FILENO) < 0)
        return err_sys(e, errno, "could not set up standard input and output");
    return 0;
}

static int set_limits(const struct ready *ready, struct err *e)
{
    for (const char **text = ready->spec->limits; *text; text++) {
        struct rlimit limit;
        int resource;

        if (shim_limit_parse(*text, &resource, &limit, e) < 0)
            return -1;
        if (setrlimit((__rlimit_resource_t)resource, &limit) < 0)
            return err_sys(e, errno, "could not set the limit \"%s\"", *text);
    }
    return 0;
}

static int become_user(const struct ready *ready, struct err *e)
{
    const struct shim_spec *spec = ready->spec;

    if (!spec->has_user)
        return 0;
    if (setgroups(1, &spec->gid) < 0 || setresgid(spec->gid, spec->gid, spec->gid) < 0 ||
        setresuid(spec->uid, spec->uid, spec->uid) < 0)
        return err_sys(e, errno, "could not become user %u", (unsigned int)spec->uid);
    return 0;
}

static int enter_folder(const struct ready *ready, struct err *e)
{
    if (chdir(ready->spec->cwd) < 0)
        return err_sys(e, errno, "could not enter the folder \"%.200s\"", ready->spec->cwd);
    return 0;
}

/* What is ignored stays ignored over exec; the daemon ignores SIGPIPE. */
static int reset_signals(const struct ready *ready, struct err *e)
{
    sigset_t none;

    (void)ready;
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL); /* KILL, STOP and the library's own are refused: so be it */
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
        return err_sys(e, errno, "could not unblock signals");
    return 0;
}

static int wait_at_gate(const struct ready *ready, struct err *e)
{
    char byte;
    ssize_t got;

    (void)e;
    do
        got = read(ready->gate, &byte, 1);
    while (got < 0 && errno == EINTR);
    if (got != 1)
        _exit(1); /* the shim is gone, or it does not want this any more */
    return 0;
}

/* In this order: cgroups by paths of the machine, logs and folders by those of the node; the
 * logs are opened with the rights of the shim, the folder is entered with those of the user. */
static int (*const steps[])(const struct ready *ready, struct err *e) = {
    enter_cgroups, settle_on_cpus, enter_namespaces, open_logs,    set_limits,
    become_user,   enter_folder,   reset_signals,    wait_at_gate,
};

/* --- the child --- */

static void raise_oom_score(void)
{
    auto_close int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    /* The shim is protected; what it runs is not.  Raising is always allowed. */
    if (fd >= 0 && write(fd, "0", 1) < 0)
        errno = 0;
}

static void execute(const struct shim_spec *spec, struct shim_failure *failure)
{
    struct err e;

    /* All of ours are closed by exec already; kernels before 5.11 do not know this call. */
    if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        errno = 0;
    /* execvp looks into PATH of this process's environment, so let it be the command's. */
    environ = (char **)(void *)spec->env;
    execvp(spec->argv[0], (char **)(void *)spec->argv);
    failure->code = errno == ENOENT ? 127 : 126; /* as bash has it */
    err_sys(&e, errno, "could not execute \"%.200s\"", spec->argv[0]);
    snprintf(failure->text, sizeof(failure->text), "%s", e.msg);
}

__attribute__((noreturn)) static void be_child(const struct ready *ready)
{
    struct shim_failure failure = {.code = -1};
    struct err e;
    size_t step = 0;

    setsid(); /* a job that signals its own group must not hit the shim */
    raise_oom_score();
    umask(ready->spec->umask);
    while (step < ARRAY_SIZE(steps) && steps[step](ready, &e) == 0)
        step++;
    if (step < ARRAY_SIZE(steps))
        snprintf(failure.text, sizeof(failure.text), "%s", e.msg);
    else
        execute(ready->spec, &failure);
    if (write(ready->failures, &failure, sizeof(failure)) < 0)
        _exit(126);
    _exit(failure.code < 0 ? 126 : failure.code);
}

int shim_child_fork(const struct shim_spec *spec,
                    int lock_fd,
                    struct shim_child *ret_child,
                    struct err *e)
{
    struct ready ready = {.spec = spec, .namespace_fds = {-1, -1, -1}};
    int gate[2] = {-1, -1}, failures[2] = {-1, -1};
    pid_t pid;

    if (open_namespaces(&ready, e) < 0)
        return -1;
    if (pipe2(gate, O_CLOEXEC) < 0 || pipe2(failures, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys(e, errno, "could not make a pipe");
    ready.gate = gate[0];
    ready.failures = failures[1];
    pid = fork();
    if (pid < 0)
        return err_sys(e, errno, "could not fork");
    if (pid == 0) {
        close(lock_fd);
        close(gate[1]); /* or the gate would never be seen shut */
        be_child(&ready);
    }
    close_namespaces(&ready);
    close(gate[0]);
    close(failures[1]);
    *ret_child = (struct shim_child){.pid = pid, .gate = gate[1], .failures = failures[0]};
    return 0;
}

void shim_child_release(struct shim_child *child)
{
    /* A child that failed before has no reader any more: it says why itself. */
    if (write(child->gate, "", 1) < 0)
        errno = 0;
    close(child->gate);
}

bool shim_child_failed(struct shim_child *child, struct shim_failure *ret_failure)
{
    ssize_t got = read(child->failures, ret_failure, sizeof(*ret_failure));

    close(child->failures);
    return got == (ssize_t)sizeof(*ret_failure);
}
