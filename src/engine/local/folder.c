/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/folder.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int folder_make(const char *path, mode_t mode, struct err *e)
{
    auto_free char *copy = xstrdup(path);

    if (mkdir(path, mode) == 0 || errno == EEXIST)
        return 0;
    for (char *slash = strchr(copy + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        if (mkdir(copy, mode) < 0 && errno != EEXIST)
            return err_sys(e, errno, "could not make the folder \"%.200s\"", copy);
        if (!slash)
            return 0;
        *slash = '/';
    }
}

/* One level down, made when it is missing. */
static int step(int at, const char *name, mode_t mode, int *ret_fd, struct err *e)
{
    if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
        return err_sys(e, errno, "could not make the folder \"%.200s\"", name);
    return fs_open_beneath(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, ret_fd, e);
}

int folder_make_beneath(int root_fd, const char *path, mode_t mode, int *ret_fd, struct err *e)
{
    auto_free char *copy = xstrdup(path);
    auto_close int at = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
    char *rest = NULL, *name;

    for (name = strtok_r(copy, "/", &rest); name; name = strtok_r(NULL, "/", &rest)) {
        int next;

        if (strcmp(name, ".") == 0)
            continue;
        if (strcmp(name, "..") == 0)
            return err_set(e, ERR_INVALID, "\"%.200s\" leads out of its folder", path);
        if (step(at, name, mode, &next, e) < 0)
            return err_wrap(e, "\"%.200s\"", path);
        close(at);
        at = next;
    }
    if (ret_fd)
        *ret_fd = take_fd(&at);
    return 0;
}

int folder_make_for_job(const char *root, const char *path, struct err *e)
{
    auto_close int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    size_t len = strlen(root);

    if (strncmp(path, root, len) != 0 || (path[len] != '/' && path[len] != '\0'))
        return folder_make(path, 0777, e);
    if (root_fd < 0)
        return err_sys(e, errno, "could not open \"%.200s\"", root);
    return folder_make_beneath(root_fd, path + len, 0777, NULL, e);
}

/* A bind mount of the same disk is seen by nothing but this. */
static int open_same_mount(int at, const char *name)
{
    struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
    };

    return (int)syscall(SYS_openat2, at, name, &how, sizeof(how));
}

static int remove_at(int at, const char *name, int depth);

static int remove_inside(int at, const char *name, int depth)
{
    int fd = open_same_mount(at, name), rc = 0;
    struct dirent *entry;
    DIR *dir;

    if (fd < 0)
        return -1;
    dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return -1;
    }
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            remove_at(fd, entry->d_name, depth) < 0)
            rc = -1;
    }
    closedir(dir);
    return rc;
}

/* The depth of a path is bounded by nothing but this: a descriptor is open for each level. */
static int remove_at(int at, const char *name, int depth)
{
    if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    if (unlinkat(at, name, AT_REMOVEDIR) == 0)
        return 0;
    if (depth > 400) {
        errno = ELOOP;
        return -1;
    }
    if (remove_inside(at, name, depth + 1) < 0)
        return -1;
    return unlinkat(at, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -1 : 0;
}

int folder_remove(const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    auto_free char *parent = xstrndup(path, (size_t)(slash - path) + 1);
    auto_close int at = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (at < 0 && errno == ENOENT)
        return 0;
    if (at < 0 || remove_at(at, slash + 1, 0) < 0)
        return err_sys(e, errno, "could not remove \"%.200s\"", path);
    return 0;
}

/* The folder a path lies in, opened; its last part. */
static const char *last_part(const char *path, char **ret_parent)
{
    const char *slash = strrchr(path, '/');

    *ret_parent = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");
    return slash ? slash + 1 : path;
}

int folder_remove_beneath(int root_fd, const char *path, struct err *e)
{
    auto_free char *parent = NULL;
    const char *name = last_part(path, &parent);
    auto_close int at = -1;
    struct err why = {0};

    if (fs_open_beneath(root_fd, parent, O_RDONLY | O_DIRECTORY, 0, &at, &why) < 0)
        return why.code == ERR_NOT_FOUND ? 0 : err_set(e, why.code, "%s", why.msg);
    if (remove_at(at, name, 0) < 0)
        return err_sys(e, errno, "could not remove \"%.200s\"", path);
    return 0;
}

int folder_write_beneath(
    int root_fd, const char *path, const void *bytes, size_t len, mode_t mode, struct err *e)
{
    auto_free char *parent = NULL;
    const char *name = last_part(path, &parent);
    auto_close int at = -1, fd = -1;

    if (folder_make_beneath(root_fd, parent, 0755, &at, e) < 0)
        return -1;
    if (remove_at(at, name, 0) < 0)
        return err_sys(e, errno, "could not replace \"%.200s\"", path);
    fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return err_sys(e, errno, "could not write \"%.200s\"", path);
    return fs_write_all(fd, bytes, len, e);
}

int folder_write(const char *path, const void *bytes, size_t len, mode_t mode, struct err *e)
{
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);

    if (fd < 0)
        return err_sys(e, errno, "could not write \"%.200s\"", path);
    if (fs_write_all(fd, bytes, len, e) < 0)
        return -1;
    if (ftruncate(fd, (off_t)len) < 0)
        return err_sys(e, errno, "could not write \"%.200s\"", path);
    return 0;
}
