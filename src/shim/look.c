/* look.c - what a run folder tells.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "shim/folder.h"
#include "shim/record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

enum {
    MOST_RECORD_BYTES = 512,
};

struct look {
    int folder;
    enum shim_state state;
    struct shim_record record;
    struct shim_identity shim;
};

/* Is there a record?  One that cannot be read as such says that there was an end, not which.
 * What could not be looked at (no descriptor left, the disk fails) is neither. */
static int find_record(struct look *look, bool *ret_found, struct err *e)
{
    auto_str text = {0};
    struct err failed;

    if (shim_folder_get(look->folder, "exit", MOST_RECORD_BYTES, &text, &failed) < 0 &&
        failed.code != ERR_TOO_LARGE) {
        *ret_found = false;
        return failed.code == ERR_NOT_FOUND ? 0 : err_set(e, failed.code, "%s", failed.msg);
    }
    *ret_found = true;
    look->state = strlen(str_text(&text)) == text.len &&
                          shim_record_parse(str_text(&text), &look->record, NULL) == 0
                      ? SHIM_ENDED
                      : SHIM_LOST;
    return 0;
}

/* A "shim" that is torn is of another boot: within one, it is there whole or not at all. */
static int find_shim(struct look *look, bool *ret_lives, struct err *e)
{
    struct err failed;

    if (shim_folder_get_shim(look->folder, &look->shim, &failed) == 0)
        return shim_identity_check(&look->shim, ret_lives, e);
    *ret_lives = false;
    if (failed.code == ERR_NOT_FOUND || failed.code == ERR_INVALID ||
        failed.code == ERR_TOO_LARGE)
        return 0;
    return err_set(e, failed.code, "%s", failed.msg);
}

/* Does a shim hold the folder that has not said yet who it is?  A shim that begins while the
 * lock is tried here ends without doing anything, and is started again by who watches it. */
static int is_held(const struct look *look, bool *ret_held, struct err *e)
{
    auto_close int fd = openat(look->folder, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    *ret_held = false;
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, errno, "could not open \"lock\"");
    *ret_held = flock(fd, LOCK_SH | LOCK_NB) < 0;
    return *ret_held && errno != EWOULDBLOCK ? err_sys(e, errno, "could not look at the lock")
                                             : 0;
}

/* Nothing was started, as far as can be seen: unless a shim is about to. */
static int judge_unstarted(struct look *look, struct err *e)
{
    bool held;

    if (is_held(look, &held, e) < 0)
        return -1;
    look->state = held ? SHIM_ALIVE : SHIM_ABSENT;
    look->shim.pid = 0;
    return 0;
}

/* A shim writes its record and ends: when it is seen to be dead, the record must be looked for
 * once more, or an end that came in between would be called lost. */
static int look_into(struct look *look, struct err *e)
{
    bool found, lives, was_started;

    if (find_record(look, &found, e) < 0)
        return -1;
    if (found)
        return 0;
    if (find_shim(look, &lives, e) < 0)
        return -1;
    look->state = SHIM_ALIVE;
    if (lives)
        return 0;
    if (find_record(look, &found, e) < 0 ||
        shim_folder_has(look->folder, "started", &was_started, e) < 0)
        return -1;
    if (found)
        return 0;
    if (!was_started)
        return judge_unstarted(look, e);
    look->state = SHIM_LOST;
    return 0;
}

int shim_look(const char *folder,
              enum shim_state *ret_state,
              struct shim_record *ret_record,
              pid_t *ret_pid,
              struct err *e)
{
    auto_close int fd = -1;
    struct look look = {0};
    struct err failed;

    if (shim_folder_open(folder, &fd, &failed) < 0) {
        if (failed.code != ERR_NOT_FOUND)
            return err_set(e, failed.code, "%s", failed.msg);
        *ret_state = SHIM_ABSENT;
        return 0;
    }
    look.folder = fd;
    if (look_into(&look, e) < 0)
        return -1;
    *ret_state = look.state;
    if (ret_record && look.state == SHIM_ENDED)
        *ret_record = look.record;
    if (ret_pid && look.state == SHIM_ALIVE)
        *ret_pid = look.shim.pid;
    return 0;
}
