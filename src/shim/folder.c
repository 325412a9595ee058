/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/folder.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_LINE_BYTES = 256,
};

int shim_folder_open(const char *folder, int *ret_fd, struct err *e)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, errno, "could not open the run folder \"%.200s\"", folder);
    *ret_fd = fd;
    return 0;
}

int shim_folder_has(int folder_fd, const char *name, bool *ret_has, struct err *e)
{
    struct stat st;
    bool has = fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;

    if (!has && errno != ENOENT)
        return err_sys(e, errno, "could not look for \"%s\"", name);
    *ret_has = has;
    return 0;
}

int shim_folder_put(
    int folder_fd, const char *name, const void *bytes, size_t len, struct err *e)
{
    char beside[64];
    auto_close int fd = -1;

    snprintf(beside, sizeof(beside), "%s.new", name);
    fd = openat(folder_fd, beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, errno, "could not create \"%s\"", beside);
    if (fs_write_all(fd, bytes, len, e) < 0)
        return err_wrap(e, "\"%s\"", beside);
    if (renameat(folder_fd, beside, folder_fd, name) < 0)
        return err_sys(e, errno, "could not rename \"%s\"", beside);
    return 0;
}

int shim_folder_get(
    int folder_fd, const char *name, size_t most, struct str *out, struct err *e)
{
    auto_close int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    size_t start = out->len;
    ssize_t got;

    if (fd < 0)
        return err_sys(e, errno, "could not open \"%s\"", name);
    do {
        got = read(fd, str_reserve(out, 4096), 4096);
        if (got < 0)
            err_sys(e, errno, "could not read \"%s\"", name);
        else
            str_truncate(out, out->len += (size_t)got);
        if (got >= 0 && out->len - start > most)
            got = err_set(e, ERR_TOO_LARGE, "\"%s\" has more than %zu bytes", name, most);
    } while (got > 0);
    if (got < 0)
        str_truncate(out, start);
    return got < 0 ? -1 : 0;
}

/* --- identities --- */

int shim_identity_read(pid_t pid, struct shim_identity *ret_identity, struct err *e)
{
    struct shim_identity identity = {.pid = pid};

    if (shim_process_start(pid, &identity.start, e) < 0 ||
        shim_boot_id(identity.boot_id, e) < 0)
        return -1;
    *ret_identity = identity;
    return 0;
}

int shim_identity_check(const struct shim_identity *identity, bool *ret_lives, struct err *e)
{
    char boot_id[SHIM_BOOT_ID_BYTES];
    struct err failed;
    uint64_t start = 0;
    bool is_there;

    if (shim_boot_id(boot_id, e) < 0)
        return -1;
    is_there = shim_process_start(identity->pid, &start, &failed) == 0;
    if (!is_there && failed.code != ERR_NOT_FOUND)
        return err_set(e, failed.code, "%s", failed.msg);
    *ret_lives = is_there && start == identity->start && str_equal(boot_id, identity->boot_id);
    return 0;
}

static size_t format_identity(const struct shim_identity *identity, char *buf, size_t room)
{
    return (size_t)snprintf(buf, room, "%d %" PRIu64 " %s\n", (int)identity->pid,
                            identity->start, identity->boot_id);
}

/* A line is what format_identity makes of it, to the byte. */
static bool parse_identity(const char *line, struct shim_identity *ret_identity)
{
    struct shim_identity identity = {0};
    char again[MOST_LINE_BYTES];
    int pid;

    if (sscanf(line, "%d %" SCNu64 " %39s", &pid, &identity.start, identity.boot_id) != 3 ||
        pid <= 0)
        return false;
    identity.pid = pid;
    format_identity(&identity, again, sizeof(again));
    if (!str_equal(line, again))
        return false;
    *ret_identity = identity;
    return true;
}

static int get_line(int folder_fd, const char *name, struct str *line, struct err *e)
{
    return shim_folder_get(folder_fd, name, MOST_LINE_BYTES, line, e);
}

int shim_folder_put_shim(int folder_fd, const struct shim_identity *shim, struct err *e)
{
    char line[MOST_LINE_BYTES];
    size_t len = format_identity(shim, line, sizeof(line));

    return shim_folder_put(folder_fd, "shim", line, len, e);
}

int shim_folder_get_shim(int folder_fd, struct shim_identity *ret_shim, struct err *e)
{
    auto_str line = {0};

    if (get_line(folder_fd, "shim", &line, e) < 0)
        return -1;
    if (!parse_identity(str_text(&line), ret_shim))
        return err_set(e, ERR_INVALID, "\"shim\" does not name a process");
    return 0;
}

/* --- started --- */

/* The folder, and those above it that may have been made for it: a "started" in a folder that
 * is gone after a power cut would not be found. */
static int sync_upwards(int folder_fd, int levels, struct err *e)
{
    auto_close int above = -1;

    if (fsync(folder_fd) < 0)
        return err_sys(e, errno, "could not sync the run folder");
    if (levels == 0)
        return 0;
    above = openat(folder_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above < 0)
        return err_sys(e, errno, "could not open the folder above the run folder");
    return sync_upwards(above, levels - 1, e);
}

static int write_started(int folder_fd, const char *line, size_t len, struct err *e)
{
    auto_close int fd =
        openat(folder_fd, "started", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(e, errno, "could not create \"started\"");
    if (fs_write_all(fd, line, len, e) < 0)
        return err_wrap(e, "\"started\"");
    if (fsync(fd) < 0)
        return err_sys(e, errno, "could not sync \"started\"");
    return sync_upwards(folder_fd, 2, e);
}

int shim_folder_put_started(int folder_fd,
                            const struct shim_identity *command,
                            int64_t wall_ms,
                            struct err *e)
{
    char line[MOST_LINE_BYTES];
    int at = snprintf(line, sizeof(line), "%" PRId64 " ", wall_ms);
    size_t len = (size_t)at + format_identity(command, line + at, sizeof(line) - (size_t)at);

    if (write_started(folder_fd, line, len, e) < 0) {
        unlinkat(folder_fd, "started", 0); /* nothing was started */
        return -1;
    }
    return 0;
}

int shim_folder_get_started(int folder_fd,
                            struct shim_identity *ret_command,
                            int64_t *ret_wall_ms,
                            struct err *e)
{
    auto_str line = {0};
    int64_t wall_ms;
    int at = 0;

    if (get_line(folder_fd, "started", &line, e) < 0)
        return -1;
    if (sscanf(str_text(&line), "%" SCNd64 " %n", &wall_ms, &at) != 1 || at == 0 ||
        !parse_identity(str_text(&line) + at, ret_command))
        return err_set(e, ERR_INVALID, "\"started\" does not name a process");
    *ret_wall_ms = wall_ms;
    return 0;
}

void shim_folder_get_error(int folder_fd, char *ret_text, size_t room)
{
    auto_str text = {0};

    if (shim_folder_get(folder_fd, "error", 4096, &text, NULL) == 0 && text.len &&
        text.data[text.len - 1] == '\n')
        str_truncate(&text, text.len - 1);
    snprintf(ret_text, room, "%s", str_text(&text));
}
