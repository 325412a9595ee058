/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int fs_open_beneath(
    int root_fd, const char *path, int flags, mode_t mode, int *ret_fd, struct err *e)
{
    struct open_how how = {
        .flags = (unsigned long long)flags | O_CLOEXEC,
        /* A mode without a file to make is EINVAL; O_TMPFILE contains O_DIRECTORY's bit. */
        .mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

    if (fd < 0)
        return err_sys(e, errno, "could not open \"%.200s\"", path);
    *ret_fd = (int)fd;
    return 0;
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* fsync the folder that holds path, so that a rename in it is on disk. */
static int sync_folder_of(const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    auto_free char *folder =
        slash ? xstrndup(path, slash == path ? 1 : (size_t)(slash - path)) : xstrdup(".");
    auto_close int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) < 0)
        return err_sys(e, errno, "could not sync the folder \"%.200s\"", folder);
    return 0;
}

int fs_make_folders(const char *path, mode_t mode, struct err *e)
{
    auto_free char *copy = xstrdup(path);

    if (!*path)
        return err_set(e, ERR_INVALID, "cannot make a folder without a name");
    for (char *p = copy + 1;; p++) {
        bool last = *p == '\0';

        if (*p != '/' && !last)
            continue;
        *p = '\0';
        if (mkdir(copy, mode) < 0) {
            if (errno != EEXIST)
                return err_sys(e, errno, "could not make the folder \"%.200s\"", copy);
        } else if (sync_folder_of(copy, e) < 0) {
            return -1;
        }
        if (last && !is_folder(copy))
            return err_sys(e, ENOTDIR, "could not make the folder \"%.200s\"", copy);
        if (last)
            return 0;
        *p = '/';
    }
}

static int read_all(int fd, const char *path, size_t most, struct str *out, struct err *e)
{
    size_t start = out->len;

    for (;;) {
        ssize_t got = read(fd, str_reserve(out, 4096), 4096);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys(e, errno, "could not read \"%.200s\"", path);
        out->len += (size_t)got;
        out->data[out->len] = '\0';
        if (got == 0)
            return 0;
        if (out->len - start > most)
            return err_set(e, ERR_TOO_LARGE, "\"%.200s\" is larger than %zu bytes", path, most);
    }
}

int fs_read(const char *path, size_t most, struct str *out, struct err *e)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t start = out->len;

    if (fd < 0)
        return err_sys(e, errno, "could not open \"%.200s\"", path);
    if (read_all(fd, path, most, out, e) < 0) {
        str_truncate(out, start);
        return -1;
    }
    return 0;
}

int fs_write_all(int fd, const void *bytes, size_t len, struct err *e)
{
    const char *p = bytes;

    while (len > 0) {
        ssize_t put = write(fd, p, len);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return err_sys(e, errno, "could not write");
        p += put;
        len -= (size_t)put;
    }
    return 0;
}

int fs_write_durably(
    const char *path, const void *bytes, size_t len, mode_t mode, struct err *e)
{
    auto_free char *temporary = xasprintf("%s.XXXXXX", path);
    auto_close int fd = mkostemp(temporary, O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, errno, "could not create \"%.200s\"", temporary);
    if (fs_write_all(fd, bytes, len, e) < 0) {
        unlink(temporary);
        return err_wrap(e, "\"%.200s\"", path);
    }
    if (fchmod(fd, mode) < 0 || fsync(fd) < 0 || rename(temporary, path) < 0) {
        err_sys(e, errno, "could not write \"%.200s\"", path);
        unlink(temporary);
        return -1;
    }
    return sync_folder_of(path, e);
}

int fs_rename_durably(const char *from, const char *to, struct err *e)
{
    if (rename(from, to) < 0)
        return err_sys(e, errno, "could not rename \"%.200s\" to \"%.200s\"", from, to);
    return sync_folder_of(to, e);
}

int fs_remove(const char *path, struct err *e)
{
    if (unlink(path) < 0 && errno != ENOENT)
        return err_sys(e, errno, "could not remove \"%.200s\"", path);
    return 0;
}
