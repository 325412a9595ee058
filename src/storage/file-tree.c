/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/files-internal.h"

#include "base/fault.h"
#include "base/fs.h"
#include "base/str.h"
#include "storage/syncs.h"
#include "store/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void share_place_done(struct share_place *place)
{
    share_row_free(place->row);
    mem_close_fd(&place->fd);
    mem_close_fd(&place->tree_fd);
}

void file_spot_done(struct file_spot *spot)
{
    mem_close_fd(&spot->parent_fd);
    free(spot->asked);
    free(spot->name);
}

/* --- what the kernel says --- */

enum {
    WANTED = STATX_BASIC_STATS | STATX_BTIME,
};

static int64_t to_ns(struct statx_timestamp t)
{
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool from_statx(const struct statx *stx, struct file_stat *ret_stat)
{
    if (!S_ISREG(stx->stx_mode) && !S_ISDIR(stx->stx_mode))
        return false;
    *ret_stat = (struct file_stat){
        .inode = stx->stx_ino,
        .born_ns = stx->stx_mask & STATX_BTIME ? to_ns(stx->stx_btime) : 0,
        .mtime_ns = to_ns(stx->stx_mtime),
        .ctime_ns = to_ns(stx->stx_ctime),
        .atime_ns = to_ns(stx->stx_atime),
        .size_bytes = S_ISREG(stx->stx_mode) ? (int64_t)stx->stx_size : 0,
        .is_directory = S_ISDIR(stx->stx_mode),
    };
    return true;
}

int file_stat_of(int fd, struct file_stat *ret_stat, struct err *e)
{
    struct statx stx;

    if (statx(fd, "", AT_EMPTY_PATH, WANTED, &stx) < 0)
        return files_fail_sys(e, errno, "could not look at a file");
    if (!from_statx(&stx, ret_stat))
        return files_fail(e, ERR_NOT_FOUND, "ResourceNotFound", "that is not a file");
    return 0;
}

int file_stat_at(int dir_fd, const char *name, struct file_stat *ret_stat, struct err *e)
{
    struct statx stx;

    if (statx(dir_fd, name, AT_SYMLINK_NOFOLLOW, WANTED, &stx) < 0)
        return errno == ENOENT ? 0 : files_fail_sys(e, errno, "could not look at a file");
    return from_statx(&stx, ret_stat) ? 1 : 0;
}

int file_set_written(int fd, struct file_time written, struct err *e)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {0}};

    if (written.how == FILE_TIME_KEEP)
        return 0;
    /* The kernel's own "now" ticks every few milliseconds: two writes could look like one. */
    clock_gettime(CLOCK_REALTIME, &times[1]);
    if (written.how == FILE_TIME_SET) {
        int64_t rest = written.ns % 1000000000;

        times[1].tv_nsec = rest < 0 ? rest + 1000000000 : rest;
        times[1].tv_sec = (written.ns - times[1].tv_nsec) / 1000000000;
    }
    if (futimens(fd, times) < 0)
        return files_fail_sys(e, errno, "could not set the time of a file");
    return 0;
}

/* --- finding --- */

static DIR *open_names(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir)
        mem_close_fd(&fd);
    return dir;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* The name of an entry that is the same but for case; NULL when there is none. */
static char *find_other_case(int dir_fd, const char *name)
{
    DIR *dir = open_names(dir_fd);
    struct dirent *entry;
    char *found = NULL;

    while (dir && !found && (entry = readdir(dir))) {
        if (!is_dots(entry->d_name) && file_names_equal(entry->d_name, name))
            found = xstrdup(entry->d_name);
    }
    if (dir)
        closedir(dir);
    return found;
}

/* 1 and its name on disk, or 0. */
static int look_up(struct files *files,
                   int dir_fd,
                   const char *name,
                   char **ret_name,
                   struct file_stat *ret_stat,
                   struct err *e)
{
    auto_free char *other = NULL;
    int there = file_stat_at(dir_fd, name, ret_stat, e);

    if (there < 0)
        return -1;
    if (there == 0 && !case_filter_excludes(files, dir_fd, name) &&
        (other = find_other_case(dir_fd, name)))
        there = file_stat_at(dir_fd, other, ret_stat, e);
    if (there > 0)
        *ret_name = other ? take_ptr(&other) : xstrdup(name);
    return there;
}

static int parent_not_found(struct err *e)
{
    return files_fail(e, ERR_NOT_FOUND, "ParentNotFound",
                      "the parent directory does not exist");
}

static int open_folder_at(int dir_fd, const char *path, int *ret_fd)
{
    return fs_open_beneath(dir_fd, path, O_RDONLY | O_DIRECTORY, 0, ret_fd, NULL);
}

/* Segment by segment, each but for case. */
static int
descend(const struct share_place *place, const char *path, int *ret_fd, struct err *e)
{
    auto_close int at = -1;

    if (open_folder_at(place->tree_fd, ".", &at) < 0)
        return files_fail_sys(e, errno, "could not open a share");
    while (*path) {
        size_t len = strcspn(path, "/");
        auto_free char *segment = xstrndup(path, len), *name = NULL;
        struct file_stat stat;
        int next, there = look_up(place->files, at, segment, &name, &stat, e);

        if (there < 0)
            return -1;
        if (there == 0 || open_folder_at(at, name, &next) < 0)
            return parent_not_found(e);
        close(at);
        at = next;
        path += len;
        path += *path == '/';
    }
    *ret_fd = take_fd(&at);
    return 0;
}

static int
open_parent(const struct share_place *place, const char *path, int *ret_fd, struct err *e)
{
    if (open_folder_at(place->tree_fd, *path ? path : ".", ret_fd) == 0)
        return 0;
    return descend(place, path, ret_fd, e);
}

/* The root directory is its own parent. */
static int find_root(const struct share_place *place, struct file_spot *spot, struct err *e)
{
    if (open_folder_at(place->tree_fd, ".", &spot->parent_fd) < 0)
        return files_fail_sys(e, errno, "could not open a share");
    if (file_stat_of(spot->parent_fd, &spot->stat, e) < 0)
        return -1;
    spot->parent_inode = spot->stat.inode;
    spot->asked = xstrdup("");
    spot->name = xstrdup(".");
    spot->is_there = true;
    return 0;
}

int file_spot_find(const struct share_place *place,
                   const struct file_address *at,
                   struct file_spot *spot,
                   struct err *e)
{
    auto_free char *path = NULL, *parent = NULL;
    struct file_stat stat;
    const char *slash, *leaf;
    int there;

    if (file_path_normalize(at->path, at->trailing_dots, &path, e) < 0)
        return -1;
    if (!*path)
        return find_root(place, spot, e);
    slash = strrchr(path, '/');
    leaf = slash ? slash + 1 : path;
    parent = xstrndup(path, slash ? (size_t)(slash - path) : 0);
    if (open_parent(place, parent, &spot->parent_fd, e) < 0 ||
        file_stat_of(spot->parent_fd, &stat, e) < 0)
        return -1;
    spot->parent_inode = stat.inode;
    there = look_up(place->files, spot->parent_fd, leaf, &spot->name, &spot->stat, e);
    if (there < 0)
        return -1;
    spot->is_there = there > 0;
    spot->asked = xstrdup(leaf);
    if (!spot->is_there && !file_name_is_allowed(leaf))
        return files_fail(e, ERR_INVALID, "InvalidResourceName",
                          "the name has characters that are not allowed");
    return 0;
}

int file_spot_open(const struct file_spot *spot,
                   int flags,
                   int *ret_fd,
                   struct file_stat *ret_stat,
                   struct err *e)
{
    auto_close int fd = -1;

    /* A pipe put there meanwhile must not hold us up. */
    flags |= O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    if (spot->stat.is_directory)
        flags |= O_DIRECTORY;
    if (fs_open_beneath(spot->parent_fd, *spot->name ? spot->name : ".", flags, 0, &fd, NULL) <
        0)
        return files_fail_sys(e, errno, "could not open a file");
    if (file_stat_of(fd, ret_stat, e) < 0)
        return -1;
    if (ret_stat->is_directory != spot->stat.is_directory) /* swapped meanwhile */
        return files_fail(e, ERR_NOT_FOUND, "ResourceNotFound",
                          "the file or directory does not exist");
    *ret_fd = take_fd(&fd);
    return 0;
}

/* --- placing --- */

int file_spot_place(struct files *files,
                    int from_fd,
                    const char *from,
                    const struct file_spot *spot,
                    const char *name,
                    bool replaces,
                    struct err *e)
{
    struct case_change change;
    int rc;

    FAULT("files.before-rename");
    case_change_begin(files, spot->parent_fd, &change);
    rc = renameat2(from_fd, from, spot->parent_fd, name, replaces ? 0 : RENAME_NOREPLACE);
    rc = rc < 0 ? errno : 0;
    case_change_end(&change, rc ? NULL : name);
    if (rc)
        return files_fail_sys(e, rc, "could not name a file");
    FAULT("files.after-rename");
    return syncs_wait(files->blobs->syncs, spot->parent_fd, e);
}

/* --- walking --- */

/* Paths of folders that wait for their visit. */
struct pending {
    char *path;
    struct pending *next;
};

static void
visit(const struct file_walk *walk, int tree_fd, const char *at, struct pending **todo)
{
    auto_close int fd = -1;
    struct dirent *entry;
    DIR *dir;

    if (open_folder_at(tree_fd, *at ? at : ".", &fd) < 0 || !(dir = open_names(fd)))
        return;
    while ((entry = readdir(dir))) {
        auto_free char *path = NULL;
        struct file_stat stat;
        int there;

        if (is_dots(entry->d_name))
            continue;
        path = *at ? xasprintf("%s/%s", at, entry->d_name) : xstrdup(entry->d_name);
        there = file_stat_at(fd, entry->d_name, &stat, NULL);
        if (there >= 0)
            walk->entry(path, there > 0 ? &stat : NULL, walk->context);
        if (there > 0 && stat.is_directory) {
            struct pending *p = xcalloc(1, sizeof(*p));

            *p = (struct pending){take_ptr(&path), *todo};
            *todo = p;
        }
    }
    closedir(dir);
}

void file_walk(int tree_fd, const struct file_walk *walk)
{
    struct pending *todo = NULL;

    visit(walk, tree_fd, "", &todo);
    while (todo) {
        struct pending *p = todo;

        todo = p->next;
        visit(walk, tree_fd, p->path, &todo);
        free(p->path);
        free(p);
    }
}
