/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/leftover.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "engine/local/errand.h"
#include "shim/folder.h"
#include "shim/process.h"
#include "shim/spec.h"

#include <signal.h>
#include <unistd.h>

enum {
    ROUND_MS = 20,
    /* A table of processes misses one whose parent forked and ended while it was read. */
    EMPTY_ROUNDS = 2,
};

struct leftover {
    struct arena *arena;
    struct shim_spec spec; /* all zero when it cannot be read */
    const char *word;      /* "YARD_TASK=...", NULL = none */
    pid_t session;         /* 0 = none that is surely the task's */
};

static int read_spec(int folder, struct leftover *left, struct err *e)
{
    auto_str bytes = {0};
    const char *kept;

    if (shim_folder_get(folder, "spec", SHIM_MOST_SPEC_BYTES, &bytes, e) < 0)
        return -1;
    kept = arena_strndup(left->arena, str_text(&bytes), bytes.len);
    return shim_spec_parse(kept, bytes.len, left->arena, &left->spec, e);
}

static const char *find_word(const char **env)
{
    for (; env && *env; env++) {
        if (str_starts(*env, TASK_WORD))
            return *env;
    }
    return NULL;
}

/* The session has the number of the command that began it.  While the command lives, or when it
 * was alive a moment ago, that number is nobody else's. */
static int find_session(int folder, bool is_fresh, struct leftover *left, struct err *e)
{
    struct shim_identity command;
    char boot_id[SHIM_BOOT_ID_BYTES];
    int64_t wall_ms;
    bool lives;

    if (shim_folder_get_started(folder, &command, &wall_ms, e) < 0 ||
        shim_boot_id(boot_id, e) < 0)
        return -1;
    if (!str_equal(boot_id, command.boot_id)) /* a cgroup of that name is not the task's */
        return err_set(e, ERR_NOT_FOUND, "the machine was restarted");
    if (shim_identity_check(&command, &lives, e) == 0 && (lives || is_fresh))
        left->session = command.pid;
    return 0;
}

static size_t kill_round(const struct leftover *left)
{
    auto_processes all = {0};

    for (const char **group = left->spec.cgroups; group && *group; group++)
        shim_cgroup_kill(*group, NULL);
    if (shim_processes_read(&all, NULL) < 0)
        return 1;
    for (const char **group = left->spec.cgroups; group && *group; group++)
        shim_mark_cgroup(&all, *group);
    if (left->session)
        shim_mark_session(&all, left->session);
    if (left->word)
        shim_mark_environment(&all, left->word);
    shim_mark_descendants(&all, 0);
    return shim_signal_marked(&all, SIGKILL, NULL);
}

static int kill_all(const struct leftover *left,
                    struct errands *errands,
                    int64_t timeout_ms,
                    struct err *e)
{
    int64_t end_ms = clock_mono_ms() + timeout_ms;
    int empty = 0;

    for (;;) {
        size_t alive = kill_round(left);

        empty = alive ? 0 : empty + 1;
        if (empty == EMPTY_ROUNDS)
            return 0;
        if (clock_mono_ms() >= end_ms)
            return err_set(e, ERR_TIMEOUT, "%zu processes of the task cannot be killed", alive);
        if (errands && errands_are_stopping(errands))
            return err_set(e, ERR_BUSY, "given up: the engine is closing");
        usleep(ROUND_MS * 1000);
    }
}

int leftover_kill(const char *folder,
                  bool is_fresh,
                  struct errands *errands,
                  int64_t timeout_ms,
                  struct err *e)
{
    autoptr(arena) arena = arena_new();
    struct leftover left = {.arena = arena};
    auto_close int fd = -1;
    struct err why;

    if (shim_folder_open(folder, &fd, e) < 0)
        return -1;
    if (find_session(fd, is_fresh, &left, &why) < 0 && why.code == ERR_NOT_FOUND)
        return 0; /* never started, or of another boot: nothing can be alive */
    if (read_spec(fd, &left, &why) == 0)
        left.word = find_word(left.spec.env);
    return kill_all(&left, errands, timeout_ms, e);
}
