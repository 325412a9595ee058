/* pidfd.c - see pidfd.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/pidfd.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/pidfd.h of 6.15; Debian 12's has none of it. */
struct pidfd_facts {
    uint64_t mask, cgroup;
    uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
    int32_t exit_code;
};
#define PIDFD_GET_FACTS _IOWR(0xFF, 11, struct pidfd_facts)
enum {
    PIDFD_FACT_EXIT = 1 << 3,
    STAT_FIELD_EXIT = 52, /* of /proc/<pid>/stat, counted from 1 */
};

int pidfd_watch(pid_t pid, int *ret_fd, struct err *e)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (fd < 0)
        return err_sys(e, errno, "could not watch process %ld", (long)pid);
    *ret_fd = fd;
    return 0;
}

bool pidfd_has_ended(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};

    return poll(&one, 1, 0) > 0 && (one.revents & POLLIN);
}

static int status_of_zombie(pid_t pid)
{
    char path[64];
    auto_str text = {0};
    const char *at;

    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    if (fs_read(path, 4096, &text, NULL) < 0)
        return -1;
    at = strrchr(str_text(&text), ')'); /* the name before it may hold anything */
    if (!at || !str_starts(at, ") Z"))
        return -1;
    for (int field = 2; at && field < STAT_FIELD_EXIT; field++)
        at = strchr(at + 1, ' ');
    return at ? atoi(at) : -1;
}

int pidfd_status(int fd, pid_t pid)
{
    struct pidfd_facts facts = {.mask = PIDFD_FACT_EXIT};

    if (ioctl(fd, PIDFD_GET_FACTS, &facts) == 0 && (facts.mask & PIDFD_FACT_EXIT))
        return facts.exit_code;
    return status_of_zombie(pid);
}
