/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/child.h"

#include "base/mem.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* glibc 2.36 has wrappers, older ones have none; the numbers are the same on every
 * architecture. */
static int open_pidfd(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static void on_ready(struct loop_watch *watch, uint32_t events)
{
    struct loop_child *child = container_of(watch, struct loop_child, watch);
    int status;

    (void)events;
    if (waitpid(child->pid, &status, WNOHANG) != child->pid)
        status = LOOP_STATUS_UNKNOWN;
    loop_child_unwatch(child);
    child->ended(child, status);
}

int loop_child_watch(struct loop *loop, struct loop_child *child, pid_t pid, struct err *e)
{
    auto_close int fd = open_pidfd(pid);

    if (fd < 0 && errno == ESRCH)
        return err_set(e, ERR_NOT_FOUND, "there is no process %d", (int)pid);
    if (fd < 0)
        return err_sys(e, errno, "could not watch process %d", (int)pid);
    child->pid = pid;
    child->watch = (struct loop_watch){.fd = fd, .ready = on_ready};
    if (loop_watch(loop, &child->watch, EPOLLIN, e) < 0)
        return -1;
    take_fd(&fd);
    return 0;
}

void loop_child_unwatch(struct loop_child *child)
{
    if (!child->watch.loop)
        return;
    loop_unwatch(&child->watch);
    close(child->watch.fd);
}

int loop_child_signal(struct loop_child *child, int signal, struct err *e)
{
    if (!child->watch.loop ||
        (syscall(SYS_pidfd_send_signal, child->watch.fd, signal, NULL, 0) < 0 &&
         errno == ESRCH))
        return err_set(e, ERR_NOT_FOUND, "process %d has ended", (int)child->pid);
    return 0;
}
