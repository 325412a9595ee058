/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/node.h"

#include "base/fs.h"
#include "base/str.h"
#include "shim/cpus.h"
#include "shim/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    READY_FD = 3,
    AWAIT_TIMES = 2500, /* of 2 ms */
    RESTART_S = 1,      /* an sshd that cannot live must not fill the log */
};

struct node_keeper {
    struct shim_node_spec spec;
    struct shim_keeper written;
    int folder_fd, log_fd;
    int host_net;    /* netlink socket of the host's namespace */
    bool is_awaited; /* somebody listens at READY_FD */
};

/* --- what goes before the walls --- */

static int take_lock(int folder_fd, struct err *e)
{
    /* Held until the process ends. */
    int fd = openat(folder_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(e, errno, "could not open the lock");
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        close(fd);
        return err_set(e, ERR_BUSY, "the node has a keeper");
    }
    return 0;
}

static int put_text(const char *path, const char *text)
{
    auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

/* Where a cgroup cannot be had, the node has no limits; it lives all the same. */
static void join_cgroups(const struct shim_node_spec *spec)
{
    for (size_t i = 0; i < spec->cgroup_count; i++) {
        auto_free char *path = xasprintf("%s/cgroup.procs", spec->cgroups[i]);

        put_text(path, "0");
    }
    shim_cpus_settle_on(spec->cpus);
    put_text("/proc/self/oom_score_adj", "-900");
}

static int make_bridge(struct node_keeper *keeper, struct err *e)
{
    const struct shim_node_spec *spec = &keeper->spec;

    if (netlink_open(&keeper->host_net, e) < 0 ||
        netlink_make_bridge(keeper->host_net, spec->bridge, e) < 0 ||
        netlink_add_address(keeper->host_net, spec->bridge, spec->gateway, spec->prefix, e) < 0)
        return -1;
    return netlink_up(keeper->host_net, spec->bridge, e);
}

/* --- the walls --- */

static int bind_all(const struct shim_node_spec *spec, struct err *e)
{
    /* What the host mounts later is seen; what the node mounts is not. */
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return err_sys(e, errno, "could not part from the host's mounts");
    for (size_t i = 0; i < spec->bind_count; i++) {
        const struct shim_bind *bind = &spec->binds[i];

        if (mount(bind->from, bind->to, NULL, MS_BIND, NULL) < 0 ||
            mount(NULL, bind->to, NULL, MS_PRIVATE, NULL) < 0)
            return err_sys(e, errno, "could not bind \"%.200s\" at \"%.200s\"", bind->from,
                           bind->to);
    }
    for (size_t i = 0; i < spec->hide_count; i++) {
        if (mount("hidden", spec->hides[i], "tmpfs",
                  MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=0555") < 0)
            return err_sys(e, errno, "could not hide \"%.200s\"", spec->hides[i]);
    }
    return 0;
}

static int connect_node(struct node_keeper *keeper, struct err *e)
{
    const struct shim_node_spec *spec = &keeper->spec;
    auto_close int fd = -1;

    if (netlink_open(&fd, e) < 0 || netlink_up(fd, "lo", e) < 0 ||
        netlink_make_veth(keeper->host_net, spec->veth, spec->bridge, "eth0", getpid(), e) <
            0 ||
        netlink_up(keeper->host_net, spec->veth, e) < 0 ||
        netlink_add_address(fd, "eth0", spec->address, spec->prefix, e) < 0 ||
        netlink_up(fd, "eth0", e) < 0)
        return -1;
    return netlink_add_default_route(fd, spec->gateway, e);
}

static int build_walls(struct node_keeper *keeper, struct err *e)
{
    const char *name = keeper->spec.hostname;
    struct stat st;

    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS) < 0)
        return err_sys(e, errno, "could not make namespaces");
    if (sethostname(name, strlen(name)) < 0)
        return err_sys(e, errno, "could not set the host name");
    if (bind_all(&keeper->spec, e) < 0 || connect_node(keeper, e) < 0)
        return -1;
    if (stat("/proc/self/ns/net", &st) < 0)
        return err_sys(e, errno, "could not see the network namespace");
    keeper->written.net = st.st_ino;
    return 0;
}

/* --- sshd --- */

static void become_sshd(const struct node_keeper *keeper, const char *config)
{
    const char *sshd = keeper->spec.sshd;
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    put_text("/proc/self/oom_score_adj", "0");
    dup2(keeper->log_fd, STDOUT_FILENO);
    dup2(keeper->log_fd, STDERR_FILENO);
    execl(sshd, sshd, "-D", "-e", "-f", config, (char *)NULL);
    _exit(127);
}

static void start_sshd(struct node_keeper *keeper, size_t i)
{
    pid_t pid = fork();

    if (pid == 0)
        become_sshd(keeper, keeper->spec.listeners[i].config);
    keeper->written.listeners[i] = pid > 0 ? pid : 0;
}

static int write_down(struct node_keeper *keeper, struct err *e)
{
    auto_str text = {0};

    shim_keeper_format(&keeper->written, &text);
    return shim_folder_put(keeper->folder_fd, "keeper", text.data, text.len, e);
}

static bool is_listening(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
}

/* A node that is up can be logged in to.  One whose sshd does not come is up all the same: its
 * log says why. */
static void await_sshd(const struct node_keeper *keeper)
{
    const struct timespec pause = {.tv_nsec = 2 * 1000 * 1000};

    for (size_t i = 0; i < keeper->spec.listener_count; i++) {
        for (int n = 0; n < AWAIT_TIMES && !is_listening(keeper->spec.listeners[i].port); n++)
            nanosleep(&pause, NULL);
    }
}

/* Start what is not running; who is running goes on the record. */
static int look_after_sshd(struct node_keeper *keeper, struct err *e)
{
    bool is_changed = false;

    for (size_t i = 0; i < keeper->spec.listener_count; i++) {
        if (keeper->written.listeners[i])
            continue;
        start_sshd(keeper, i);
        is_changed = true;
    }
    return is_changed ? write_down(keeper, e) : 0;
}

static void reap(struct node_keeper *keeper)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        for (size_t i = 0; i < SHIM_NODE_LISTENERS; i++) {
            if (keeper->written.listeners[i] == pid)
                keeper->written.listeners[i] = 0;
        }
    }
}

/* --- life --- */

static void block_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGCHLD);
    sigaddset(ret_set, SIGTERM);
    sigprocmask(SIG_SETMASK, ret_set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
}

/* Ends with the node: by TERM, or by KILL. */
static void live(struct node_keeper *keeper, const sigset_t *signals)
{
    const struct timespec pause = {.tv_sec = RESTART_S};

    for (;;) {
        int signal = sigwaitinfo(signals, NULL);

        if (signal == SIGTERM)
            return;
        if (signal != SIGCHLD)
            continue;
        reap(keeper);
        nanosleep(&pause, NULL);
        look_after_sshd(keeper, NULL);
    }
}

static int
build(struct node_keeper *keeper, const char *folder, struct str *bytes, struct err *e)
{
    if (shim_folder_open(folder, &keeper->folder_fd, e) < 0 ||
        take_lock(keeper->folder_fd, e) < 0 ||
        shim_folder_get(keeper->folder_fd, "node", 1 << 20, bytes, e) < 0 ||
        shim_node_parse(bytes->data, bytes->len, &keeper->spec, e) < 0 ||
        shim_identity_read(getpid(), &keeper->written.identity, e) < 0)
        return -1;
    keeper->log_fd =
        openat(keeper->folder_fd, "sshd.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    join_cgroups(&keeper->spec);
    if (make_bridge(keeper, e) < 0 || build_walls(keeper, e) < 0)
        return -1;
    if (keeper->spec.listener_count == 0)
        return write_down(keeper, e);
    if (look_after_sshd(keeper, e) < 0)
        return -1;
    await_sshd(keeper);
    return 0;
}

static void tell(const struct node_keeper *keeper, const char *text)
{
    /* Who does not wait any more need not know. */
    if (!keeper->is_awaited || write(READY_FD, text, strlen(text)) < 0)
        return;
    close(READY_FD);
}

int shim_node_run(const char *folder)
{
    struct node_keeper keeper = {.folder_fd = -1, .log_fd = -1, .host_net = -1};
    auto_str bytes = {0};
    struct err e = {0};
    sigset_t signals;

    block_signals(&signals);
    prctl(PR_SET_NAME, "yard-node");
    keeper.is_awaited = fcntl(READY_FD, F_SETFD, FD_CLOEXEC) == 0;
    if (build(&keeper, folder, &bytes, &e) < 0 || chdir("/") < 0) {
        tell(&keeper, e.msg);
        return 1;
    }
    tell(&keeper, "ok");
    live(&keeper, &signals);
    for (size_t i = 0; i < SHIM_NODE_LISTENERS; i++) {
        if (keeper.written.listeners[i] > 0)
            kill(keeper.written.listeners[i], SIGKILL);
    }
    return 0;
}
