/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/sweep.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "shim/process.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PAUSE_US = 3000, /* a killed process needs about a millisecond to be gone */
};

static uint64_t namespace_of(pid_t pid, const char *which)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, which);
    return stat(path, &st) < 0 ? 0 : st.st_ino;
}

static bool is_spared(const struct sweep *sweep, pid_t pid)
{
    for (size_t i = 0; i < sweep->spare_count; i++) {
        if (sweep->spare[i] == pid)
            return true;
    }
    return pid == getpid() || pid == 1;
}

static void mark_group(struct shim_processes *all, const char *folder, int depth)
{
    DIR *dir = depth < 4 ? opendir(folder) : NULL;
    struct dirent *entry;

    if (!dir)
        return;
    shim_mark_cgroup(all, folder);
    while ((entry = readdir(dir))) {
        auto_free char *path = xasprintf("%s/%s", folder, entry->d_name);

        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            mark_group(all, path, depth + 1);
    }
    closedir(dir);
}

static void mark_all(const struct sweep *sweep, struct shim_processes *all)
{
    if (sweep->mark)
        shim_mark_environment(all, sweep->mark);
    if (sweep->group)
        mark_group(all, sweep->group, 0);
    for (size_t i = 0; i < all->count; i++) {
        struct shim_process *process = &all->list[i];

        if (sweep->net && !process->is_dead && namespace_of(process->pid, "net") == sweep->net)
            process->is_marked = true;
        if (is_spared(sweep, process->pid))
            process->is_marked = false;
    }
}

/* How many were alive. */
static size_t kill_round(const struct sweep *sweep)
{
    auto_processes all = {0};

    if (shim_processes_read(&all, NULL) < 0)
        return 1;
    mark_all(sweep, &all);
    return shim_signal_marked(&all, SIGKILL, NULL);
}

int sweep_kill(const struct sweep *sweep, int64_t timeout_ms, struct err *e)
{
    int64_t due_ms = clock_mono_ms() + timeout_ms;
    size_t alive;

    while ((alive = kill_round(sweep)) > 0) {
        if (clock_mono_ms() > due_ms)
            return err_set(e, ERR_TIMEOUT, "%zu processes do not end", alive);
        usleep(PAUSE_US);
    }
    return 0;
}

/* The last number of the line "NSpid:" is the one in the innermost process namespace. */
static bool is_first_of_namespace(pid_t pid)
{
    auto_free char *path = xasprintf("/proc/%d/status", (int)pid);
    auto_str text = {0};
    const char *line, *end;

    if (fs_read(path, 1 << 16, &text, NULL) < 0)
        return true;
    line = strstr(str_text(&text), "\nNSpid:");
    end = line ? strchr(line + 1, '\n') : NULL;
    return !end || (end[-1] == '1' && (end[-2] == '\t' || end[-2] == ' '));
}

void sweep_signal_contained(const struct sweep *sweep, int signal)
{
    uint64_t ours = namespace_of(getpid(), "pid");
    auto_processes all = {0};

    if (shim_processes_read(&all, NULL) < 0)
        return;
    mark_all(sweep, &all);
    for (size_t i = 0; i < all.count; i++) {
        struct shim_process *process = &all.list[i];

        if (process->is_marked &&
            (namespace_of(process->pid, "pid") == ours || is_first_of_namespace(process->pid)))
            process->is_marked = false;
    }
    shim_signal_marked(&all, signal, NULL);
}
