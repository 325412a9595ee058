/* launch.c - scale_launch(): ranks of this host as children of this process; see scale.h.
 *
 * A child ends with us (PR_SET_PDEATHSIG), and all end with the first that fails: its peers
 * notice by themselves and say so; who does not within a moment is killed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/scale/scale.h"

#include "base/clock.h"
#include "base/mem.h"
#include "train/comm/group.h"
#include "train/comm/local.h"
#include "train/comm/pidfd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    GRACE_MS = 2000, /* for the others to say what they saw */
    NOT_STARTED = 127,
};

struct child {
    pid_t pid; /* 0 = ended */
    int pidfd;
};

struct launch {
    struct child children[GROUP_MOST];
    int ranks, running;
    int first_rank, first_status; /* of the first that failed; first_rank -1 = none */
};

/* Rank r's share of the cores that we may use; nothing when there are more ranks than cores. */
static void pin(int rank, int ranks)
{
    cpu_set_t all, mine;
    int cores, each, place = 0;

    if (sched_getaffinity(0, sizeof all, &all) < 0 || CPU_COUNT(&all) < ranks)
        return;
    cores = CPU_COUNT(&all);
    each = cores / ranks;
    CPU_ZERO(&mine);
    for (size_t core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &all))
            continue;
        if (place / each == rank)
            CPU_SET(core, &mine);
        place++;
    }
    sched_setaffinity(0, sizeof mine, &mine);
}

static bool redirect(int fd, const char *folder, int rank, const char *tail)
{
    char path[4096];
    int file;

    if (folder)
        snprintf(path, sizeof path, "%s/rank-%d.%s", folder, rank, tail);
    else
        snprintf(path, sizeof path, "/dev/null");
    file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return file >= 0 && dup2(file, fd) >= 0;
}

_Noreturn static void
be_child(char *const argv[], const struct local_seat *seat, const char *folder, pid_t parent)
{
    char text[LOCAL_TEXT_BYTES];
    bool is_good = true;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(NOT_STARTED);
    pin(seat->rank, seat->ranks);
    if (folder || seat->rank > 0)
        is_good = redirect(STDOUT_FILENO, folder, seat->rank, "out");
    if (folder)
        is_good = is_good && redirect(STDERR_FILENO, folder, seat->rank, "err");
    if (is_good && setenv(LOCAL_VARIABLE, local_format(seat, text), 1) == 0)
        execvp(argv[0], argv);
    fprintf(stderr, "could not start \"%s\": %s\n", argv[0], strerror(errno));
    _exit(NOT_STARTED);
}

static int start(struct launch *launch,
                 char *const argv[],
                 struct local_seat *seat,
                 const char *folder,
                 struct err *e)
{
    pid_t self = getpid();

    for (seat->rank = 0; seat->rank < seat->ranks; seat->rank++) {
        struct child *child = &launch->children[seat->rank];
        pid_t pid = fork();

        if (pid == 0)
            be_child(argv, seat, folder, self);
        if (pid < 0)
            return err_sys(e, errno, "could not start rank %d", seat->rank);
        child->pid = pid;
        launch->running++;
        if (pidfd_watch(pid, &child->pidfd, e) < 0)
            return -1;
    }
    return 0;
}

static void kill_all(struct launch *launch)
{
    for (int r = 0; r < launch->ranks; r++)
        if (launch->children[r].pid > 0)
            kill(launch->children[r].pid, SIGKILL);
}

static void take_end(struct launch *launch, int rank)
{
    struct child *child = &launch->children[rank];
    int status = 0;

    if (waitpid(child->pid, &status, 0) == child->pid && status != 0 &&
        launch->first_rank < 0) {
        launch->first_rank = rank;
        launch->first_status = status;
    }
    child->pid = 0;
    mem_close_fd(&child->pidfd);
    child->pidfd = -1;
    launch->running--;
}

/* Signalled ones first: of two that ended in the same moment, the other ended because of it. */
static void wait_for_all(struct launch *launch)
{
    struct pollfd polls[GROUP_MOST];
    int64_t deadline = -1;

    while (launch->running > 0) {
        int64_t left = deadline < 0 ? -1 : deadline - clock_mono_ms();

        for (int r = 0; r < launch->ranks; r++)
            polls[r] = (struct pollfd){.fd = launch->children[r].pidfd, .events = POLLIN};
        if (deadline >= 0 && left <= 0)
            kill_all(launch);
        if (poll(polls, (nfds_t)launch->ranks, deadline < 0 || left <= 0 ? -1 : (int)left) < 0)
            continue;
        for (int turn = 0; turn < 2; turn++)
            for (int r = 0; r < launch->ranks; r++) {
                struct child *child = &launch->children[r];
                int status = polls[r].revents && child->pid > 0
                                 ? pidfd_status(child->pidfd, child->pid)
                                 : -1;

                if (polls[r].revents && child->pid > 0 &&
                    (turn == 1 || (status >= 0 && WIFSIGNALED(status))))
                    take_end(launch, r);
            }
        if (launch->first_rank >= 0 && deadline < 0)
            deadline = clock_mono_ms() + GRACE_MS;
    }
}

static int judge(const struct launch *launch, struct err *e)
{
    int status = launch->first_status;
    static const enum err_code codes[] = {ERR_INTERNAL, ERR_INTERNAL, ERR_INVALID,
                                          ERR_NOT_FOUND};
    size_t code;

    if (launch->first_rank < 0)
        return 0;
    if (WIFSIGNALED(status))
        return err_set(e, ERR_BUSY, "rank %d died: signal %d", launch->first_rank,
                       WTERMSIG(status));
    code = (size_t)WEXITSTATUS(status);
    return err_set(e, code < ARRAY_SIZE(codes) ? codes[code] : ERR_INTERNAL,
                   "rank %d ended with status %zu", launch->first_rank, code);
}

int scale_launch(char *const argv[], int ranks, const char *log_folder, struct err *e)
{
    struct launch launch = {.ranks = ranks, .first_rank = -1};
    struct local_seat seat = {.ranks = ranks};
    int rc;

    if (ranks < 1 || ranks > GROUP_MOST)
        return err_set(e, ERR_INVALID, "%d ranks: 1 to %d go", ranks, GROUP_MOST);
    for (int r = 0; r < ranks; r++)
        launch.children[r].pidfd = -1;
    if (local_prepare(seat.name, e) < 0)
        return -1;
    rc = start(&launch, argv, &seat, log_folder, e);
    if (rc < 0)
        kill_all(&launch);
    wait_for_all(&launch);
    local_forget(seat.name);
    return rc < 0 ? -1 : judge(&launch, e);
}
