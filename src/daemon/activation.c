/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/activation.h"

#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    FIRST_FD = 3,
};

int activation_take(const char *name)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    const char *names = getenv("LISTEN_FDNAMES");
    size_t len = strlen(name);
    long fds = count ? strtol(count, NULL, 10) : 0;

    if (!pid || strtol(pid, NULL, 10) != (long)getpid() || !names)
        return -1;
    for (int fd = FIRST_FD; fd < FIRST_FD + fds; fd++) {
        size_t item = strcspn(names, ":");

        /* Close-on-exec marks those that were taken, and keeps them from our children. */
        if (item == len && memcmp(names, name, len) == 0 &&
            (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) {
            fcntl(fd, F_SETFD, FD_CLOEXEC);
            return fd;
        }
        names += item + (names[item] == ':');
    }
    return -1;
}
