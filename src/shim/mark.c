/* mark.c - which processes of a table belong together, and signals to them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "shim/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    /* The kernel takes an environment and arguments up to a quarter of the stack's limit,
     * mostly 2 MiB in all; what has more is looked at so far. */
    MOST_ENVIRONMENT_BYTES = 4 << 20,
    PIECE_BYTES = 16 * 1024,
};

static void mark(struct shim_process *process)
{
    if (process->pid != 1 && process->pid != getpid())
        process->is_marked = true;
}

static struct shim_process *find(const struct shim_processes *processes, pid_t pid)
{
    size_t low = 0, high = processes->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (processes->list[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < processes->count && processes->list[low].pid == pid ? &processes->list[low]
                                                                     : NULL;
}

void shim_mark_session(struct shim_processes *processes, pid_t session)
{
    for (size_t i = 0; i < processes->count; i++) {
        if (processes->list[i].session == session)
            mark(&processes->list[i]);
    }
}

/* Mostly a child has a higher number than its parent, so one pass is enough; where numbers have
 * gone round, the next pass finds the rest. */
void shim_mark_descendants(struct shim_processes *processes, pid_t root)
{
    bool found = true;

    while (found) {
        found = false;
        for (size_t i = 0; i < processes->count; i++) {
            struct shim_process *process = &processes->list[i];
            const struct shim_process *parent;

            if (process->is_marked)
                continue;
            parent = find(processes, process->parent);
            if ((root && process->parent == root) || (parent && parent->is_marked)) {
                mark(process);
                found |= process->is_marked;
            }
        }
    }
}

/* --- cgroups --- */

static FILE *open_members(const char *folder)
{
    auto_free char *path = xasprintf("%s/cgroup.procs", folder);

    return fopen(path, "re");
}

void shim_mark_cgroup(struct shim_processes *processes, const char *folder)
{
    FILE *members = open_members(folder);
    int pid;

    if (!members)
        return;
    while (fscanf(members, "%d", &pid) == 1) {
        struct shim_process *process = find(processes, pid);

        if (process)
            mark(process);
    }
    fclose(members);
}

bool shim_cgroup_is_empty(const char *folder)
{
    FILE *members = open_members(folder);
    int pid;
    bool is_empty;

    if (!members)
        return true;
    is_empty = fscanf(members, "%d", &pid) != 1;
    fclose(members);
    return is_empty;
}

int shim_cgroup_kill(const char *folder, struct err *e)
{
    auto_free char *path = xasprintf("%s/cgroup.kill", folder);
    auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, "1", 1) != 1)
        return err_sys(e, errno, "could not write \"%.200s\"", path);
    return 0;
}

/* --- environments --- */

/* Compares as the bytes come, so that an environment of any size needs one piece of memory. */
struct search {
    const char *entry;
    size_t len;  /* with its NUL */
    size_t at;   /* of the entry, that the current variable has matched so far */
    bool failed; /* the current variable is another */
};

static bool search_piece(struct search *search, const char *piece, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!search->failed && search->at < search->len &&
            piece[i] == search->entry[search->at]) {
            if (++search->at == search->len)
                return true;
        } else {
            search->failed = true;
        }
        if (piece[i] == '\0') {
            search->failed = false;
            search->at = 0;
        }
    }
    return false;
}

static bool has_variable(pid_t pid, const char *entry)
{
    struct search search = {.entry = entry, .len = strlen(entry) + 1};
    char path[64], piece[PIECE_BYTES];
    auto_close int fd = -1;
    ssize_t got;

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    for (size_t seen = 0; seen < MOST_ENVIRONMENT_BYTES; seen += (size_t)got) {
        got = read(fd, piece, sizeof(piece));
        if (got <= 0)
            return false;
        if (search_piece(&search, piece, (size_t)got))
            return true;
    }
    return false;
}

void shim_mark_environment(struct shim_processes *processes, const char *entry)
{
    for (size_t i = 0; i < processes->count; i++) {
        if (!processes->list[i].is_marked && has_variable(processes->list[i].pid, entry))
            mark(&processes->list[i]);
    }
}

/* --- signals --- */

/* By a pidfd whose process is seen to be the one of the table.  One that looks dead may have
 * threads that are not: it gets the signal, but nobody waits for it. */
static int send(const struct shim_process *process, int signal)
{
    auto_close int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    struct shim_process now;

    if (fd < 0)
        return errno;
    if (shim_process_read(process->pid, &now, NULL) < 0 || now.start != process->start)
        return ESRCH;
    if (syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) < 0)
        return errno;
    return now.is_dead ? ESRCH : 0;
}

size_t
shim_signal_marked(const struct shim_processes *processes, int signal, size_t *ret_refused)
{
    size_t alive = 0, refused = 0;

    for (size_t i = 0; i < processes->count; i++) {
        const struct shim_process *process = &processes->list[i];
        int failed;

        if (!process->is_marked)
            continue;
        failed = send(process, signal);
        alive += failed != ESRCH;
        refused += failed == EPERM;
    }
    if (ret_refused)
        *ret_refused = refused;
    return alive;
}
