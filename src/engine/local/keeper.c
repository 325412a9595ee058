/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/keeper.h"

#include "base/mem.h"
#include "base/str.h"
#include "engine/local/folder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STAND_MS = 20 * 1000, /* takes about ten; a machine under load needs longer */
    END_MS = 5 * 1000,
    READY_FD = 3,
};

static int
spawn(const char *shim, const char *folder, int ready_fd, pid_t *ret_pid, struct err *e)
{
    const char *argv[] = {shim, "--node", folder, NULL};
    const char *env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                         NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int rc;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ready_fd, READY_FD);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                        POSIX_SPAWN_SETSID);
    rc = posix_spawn(ret_pid, shim, &actions, &attr, (char *const *)argv, (char *const *)env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return rc ? err_sys(e, rc, "could not start \"%.200s\"", shim) : 0;
}

/* What the keeper says about itself; "" when it says nothing. */
static void listen_for(int fd, char *ret_text, size_t room)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    ssize_t len = 0;

    if (poll(&poll_fd, 1, STAND_MS) > 0)
        len = read(fd, ret_text, room - 1);
    ret_text[len > 0 ? len : 0] = '\0';
}

int keeper_start(const char *shim,
                 const char *folder,
                 const struct shim_node_spec *spec,
                 struct err *e)
{
    auto_free char *path = xasprintf("%s/node", folder);
    auto_close int ours = -1, theirs = -1;
    auto_str text = {0};
    char answer[400];
    int ends[2];
    pid_t pid;

    shim_node_format(spec, &text);
    if (folder_write(path, text.data, text.len, 0600, e) < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, errno, "could not make a pipe");
    ours = ends[0];
    /* dup2 onto itself would leave it close-on-exec. */
    theirs = fcntl(ends[1], F_DUPFD_CLOEXEC, READY_FD + 1);
    close(ends[1]);
    if (theirs < 0 || spawn(shim, folder, theirs, &pid, e) < 0)
        return -1;
    close(take_fd(&theirs));
    listen_for(ours, answer, sizeof(answer));
    if (strcmp(answer, "ok") == 0)
        return 0;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return err_set(e, ERR_INTERNAL, "%s", *answer ? answer : "the node's keeper said nothing");
}

bool keeper_lives(const struct shim_keeper *keeper)
{
    bool lives = true;

    return shim_identity_check(&keeper->identity, &lives, NULL) < 0 || lives;
}

int keeper_open(const struct shim_keeper *keeper, int *ret_fd)
{
    auto_close int fd = (int)syscall(SYS_pidfd_open, keeper->identity.pid, 0);

    if (fd < 0 || !keeper_lives(keeper))
        return -1;
    *ret_fd = take_fd(&fd);
    return 0;
}

void keeper_end(int keeper_fd)
{
    struct pollfd poll_fd = {.fd = keeper_fd, .events = POLLIN};

    if (keeper_fd < 0)
        return;
    syscall(SYS_pidfd_send_signal, keeper_fd, SIGKILL, NULL, 0);
    poll(&poll_fd, 1, END_MS);
    /* It is our child, unless an earlier daemon started it. */
    waitid(P_PIDFD, (id_t)keeper_fd, &(siginfo_t){0}, WEXITED | WNOHANG);
}

int keeper_address(const char *text, struct in_addr *ret_address, struct err *e)
{
    if (inet_pton(AF_INET, text, ret_address) != 1)
        return err_set(e, ERR_INTERNAL, "\"%s\" is no address", text);
    return 0;
}
