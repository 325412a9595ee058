/* What is deleted is moved to .trash/ and removed when there is time.
 *
 * A job may still have a mount of what lies there, so nothing here goes by path: every step is
 * relative to an open folder and follows no link.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "loop/work.h"
#include "store/blob.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_DEPTH = 64, /* descriptors held at once; what is deeper is brought to the top */
};

static int open_trash(struct blobs *blobs)
{
    if (mkdirat(blobs->root_fd, ".trash", 0700) < 0 && errno != EEXIST)
        return -1;
    return openat(blobs->root_fd, ".trash", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void
remove_folder(struct blobs *blobs, int trash_fd, int at, const char *name, int depth);

static void remove_entry(struct blobs *blobs, int trash_fd, int at, const char *name, int depth)
{
    char tmp[TMP_NAME_BYTES];

    if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
        return;
    if (errno != EISDIR && errno != EPERM)
        return;
    if (depth < MOST_DEPTH) {
        remove_folder(blobs, trash_fd, at, name, depth + 1);
        return;
    }
    tmp_name(tmp);
    renameat(at, name, trash_fd, strchr(tmp, '/') + 1);
}

static void
remove_folder(struct blobs *blobs, int trash_fd, int at, const char *name, int depth)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir) {
        mem_close_fd(&fd);
        return;
    }
    while (!blobs->is_stopping && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_entry(blobs, trash_fd, dirfd(dir), entry->d_name, depth);
    }
    closedir(dir);
    unlinkat(at, name, AT_REMOVEDIR);
}

static int apply_purge(void *context, struct db *db, struct err *e)
{
    return store_purge_doomed(db, context, e);
}

/* Removing may bring deep folders to the top: go through it until a pass finds nothing more. */
static void empty_trash(void *arg)
{
    struct blobs *blobs = arg;
    auto_close int trash_fd = open_trash(blobs);
    bool more = true;

    for (int pass = 0; pass < 100 && more && trash_fd >= 0 && !blobs->is_stopping; pass++) {
        DIR *dir = fdopendir(openat(trash_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        struct dirent *entry;

        more = false;
        while (dir && (entry = readdir(dir))) {
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                continue;
            remove_entry(blobs, trash_fd, trash_fd, entry->d_name, 0);
            more = true;
        }
        if (dir)
            closedir(dir);
    }
    more = true;
    while (more && !blobs->is_stopping && blobs_write(blobs, apply_purge, &more, NULL) == 0)
        continue;
}

void trash_empty_later(struct blobs *blobs)
{
    work_submit(blobs->cleaner, empty_trash, blobs);
}

struct removal {
    struct blobs *blobs;
    char name[TMP_NAME_BYTES];
};

static void remove_one(void *arg)
{
    struct removal *r = arg;
    auto_close int trash_fd = open_trash(r->blobs);

    if (trash_fd >= 0)
        remove_entry(r->blobs, trash_fd, trash_fd, r->name, 0);
    free(r);
}

int trash_move(struct blobs *blobs, int dir_fd, const char *path, struct err *e)
{
    auto_close int trash_fd = open_trash(blobs);
    struct removal *removal;
    char tmp[TMP_NAME_BYTES];
    const char *name;

    if (trash_fd < 0)
        return err_sys(e, errno, "could not open the trash");
    tmp_name(tmp);
    name = strchr(tmp, '/') + 1;
    if (renameat(dir_fd, path, trash_fd, name) < 0)
        return errno == ENOENT ? 0 : err_sys(e, errno, "could not remove \"%.200s\"", path);
    removal = xcalloc(1, sizeof(*removal));
    removal->blobs = blobs;
    snprintf(removal->name, sizeof(removal->name), "%s", name);
    work_submit(blobs->cleaner, remove_one, removal);
    return 0;
}
