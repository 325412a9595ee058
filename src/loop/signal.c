/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/signal.h"

#include "base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void on_ready(struct loop_watch *watch, uint32_t events)
{
    struct loop_signals *signals = container_of(watch, struct loop_signals, watch);
    struct signalfd_siginfo info;

    (void)events;
    /* One at a time: the callback may unwatch.  Level-triggered epoll calls again for the rest.
     */
    if (read(watch->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        signals->caught(signals, (int)info.ssi_signo);
}

int loop_signals_watch(struct loop *loop,
                       struct loop_signals *signals,
                       const int *list,
                       struct err *e)
{
    sigset_t set;
    auto_close int fd = -1;

    sigemptyset(&set);
    for (; *list; list++)
        sigaddset(&set, *list);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return err_sys(e, errno, "could not watch signals");
    signals->watch = (struct loop_watch){.fd = fd, .ready = on_ready};
    if (loop_watch(loop, &signals->watch, EPOLLIN, e) < 0)
        return -1;
    take_fd(&fd);
    return 0;
}

void loop_signals_unwatch(struct loop_signals *signals)
{
    if (!signals->watch.loop)
        return;
    loop_unwatch(&signals->watch);
    close(signals->watch.fd);
}
