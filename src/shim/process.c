/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/process.h"

#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One read: what /proc gives at one read is of one moment. */
static int read_once(const char *path, char *buf, size_t room, struct err *e)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, buf, room - 1);

    /* A process that ends between the two is ESRCH. */
    if (got < 0 && (errno == ENOENT || errno == ESRCH))
        return err_set(e, ERR_NOT_FOUND, "there is no \"%s\"", path);
    if (got < 0)
        return err_sys(e, errno, "could not read \"%s\"", path);
    buf[got] = '\0';
    return 0;
}

/* "12 (a name (with) anything) S 1 12 12 ...": the fields begin after the last parenthesis. */
static bool parse_stat(const char *text, struct shim_process *process)
{
    const char *fields = strrchr(text, ')');
    int parent, session;
    char state;
    /* Fields 3 to 22; those in between are pgrp, tty, ..., itrealvalue. */
    int got = fields ? sscanf(fields + 1,
                              " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
                              "%*d %*d %*d %" SCNu64,
                              &state, &parent, &session, &process->start)
                     : 0;

    if (got != 4)
        return false;
    process->parent = parent;
    process->session = session;
    process->is_dead = state == 'Z' || state == 'X';
    return true;
}

int shim_process_read(pid_t pid, struct shim_process *ret_process, struct err *e)
{
    struct shim_process process = {.pid = pid};
    char path[64], text[1024];

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (read_once(path, text, sizeof(text), e) < 0)
        return -1;
    if (!parse_stat(text, &process))
        return err_set(e, ERR_INTERNAL, "\"%s\" has an unknown form", path);
    *ret_process = process;
    return 0;
}

int shim_process_start(pid_t pid, uint64_t *ret_start, struct err *e)
{
    struct shim_process process;

    if (shim_process_read(pid, &process, e) < 0)
        return -1;
    if (process.is_dead)
        return err_set(e, ERR_NOT_FOUND, "process %d has ended", (int)pid);
    *ret_start = process.start;
    return 0;
}

int shim_boot_id(char ret_id[SHIM_BOOT_ID_BYTES], struct err *e)
{
    char text[64];

    if (read_once("/proc/sys/kernel/random/boot_id", text, sizeof(text), e) < 0)
        return -1;
    text[strcspn(text, "\n")] = '\0';
    if (strlen(text) != 36)
        return err_set(e, ERR_INTERNAL, "the boot id has an unknown form");
    memcpy(ret_id, text, 37);
    return 0;
}

/* --- all of them --- */

void shim_processes_done(struct shim_processes *processes)
{
    free(processes->list);
    *processes = (struct shim_processes){0};
}

static int by_pid(const void *a, const void *b)
{
    const struct shim_process *one = a, *other = b;

    return (one->pid > other->pid) - (one->pid < other->pid);
}

static void add(struct shim_processes *processes, const struct shim_process *process)
{
    size_t n = processes->count;

    if ((n & (n - 1)) == 0) /* full at each power of two */
        processes->list =
            xreallocarray(processes->list, n ? 2 * n : 1, sizeof(*processes->list));
    processes->list[processes->count++] = *process;
}

int shim_processes_read(struct shim_processes *ret_processes, struct err *e)
{
    struct shim_processes processes = {0};
    DIR *dir = opendir("/proc");
    struct dirent *entry;

    if (!dir)
        return err_sys(e, errno, "could not open /proc");
    while ((entry = readdir(dir))) {
        struct shim_process process;
        char *end;
        long pid = strtol(entry->d_name, &end, 10);

        if (pid > 0 && !*end && shim_process_read((pid_t)pid, &process, NULL) == 0)
            add(&processes, &process);
    }
    closedir(dir);
    if (processes.count)
        qsort(processes.list, processes.count, sizeof(*processes.list), by_pid);
    *ret_processes = processes;
    return 0;
}
