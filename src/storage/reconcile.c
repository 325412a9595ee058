/* At start: folders and rows of containers are brought together, and what a crash left in the
 * tmp folders goes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "store/blob.h"
#include "store/pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The names in a folder; a missing folder is an empty one. */
static int each_name(int at,
                     const char *path,
                     int (*each)(const char *name, void *context, struct err *e),
                     void *context,
                     struct err *e)
{
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    int rc = 0;

    if (!dir) {
        int why = errno;

        mem_close_fd(&fd);
        return why == ENOENT || why == ENOTDIR ? 0
                                               : err_sys(e, why, "could not read \"%s\"", path);
    }
    while (rc == 0 && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = each(entry->d_name, context, e);
    }
    closedir(dir);
    return rc;
}

struct pass {
    struct blobs *blobs;
    const char *account, *container;
};

static int clear_tmp(const char *name, void *context, struct err *e)
{
    struct pass *pass = context;
    auto_free char *path = xasprintf("%s/blob/%s/tmp/%s", pass->account, pass->container, name);

    if (unlinkat(pass->blobs->root_fd, path, 0) < 0 && errno == EISDIR)
        return trash_move(pass->blobs, pass->blobs->root_fd, path, e);
    return 0;
}

/* Parts that a container always has; a backup may have left out empty folders. */
static int complete(struct blobs *blobs, const char *path, struct err *e)
{
    static const char *const parts[] = {"tree", "odd", "staged", "snap", "tmp"};
    auto_close int fd = -1;

    if (fs_open_beneath(blobs->root_fd, path, O_RDONLY | O_DIRECTORY, 0, &fd, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (mkdirat(fd, parts[i], 0777) < 0 && errno != EEXIST)
            return err_sys(e, errno, "could not make \"%s/%s\"", path, parts[i]);
    }
    return 0;
}

static int apply_put(void *context, struct db *db, struct err *e)
{
    return store_put_container(db, context, e);
}

static int adopt(struct pass *pass, const char *name, struct err *e)
{
    autoptr(container_row) row = NULL;
    int64_t tick = blobs_tick(pass->blobs);
    auto_reader r = {0};

    if (store_pool_take(pass->blobs->readers, &r, e) < 0 ||
        store_find_container(r.db, pass->account, name, &row, e) < 0)
        return -1;
    if (row)
        return 0;
    row = xcalloc(1, sizeof(*row));
    row->account = xstrdup(pass->account);
    row->name = xstrdup(name);
    etag_format(row->etag, tick);
    row->created_ms = row->modified_ms = tick_to_ms(tick);
    return blobs_write(pass->blobs, apply_put, row, e);
}

static int look_at_container(const char *name, void *context, struct err *e)
{
    struct pass *pass = context;
    auto_free char *path = xasprintf("%s/blob/%s", pass->account, name);
    auto_free char *tmp = xasprintf("%s/tmp", path);

    if (str_starts(name, "tmp."))
        return trash_move(pass->blobs, pass->blobs->root_fd, path, e);
    if (!container_is_valid(name))
        return 0;
    pass->container = name;
    if (complete(pass->blobs, path, e) < 0 ||
        each_name(pass->blobs->root_fd, tmp, clear_tmp, pass, e) < 0)
        return -1;
    return adopt(pass, name, e);
}

static int look_at_account(const char *name, void *context, struct err *e)
{
    struct pass pass = {context, name, NULL};
    auto_free char *path = xasprintf("%s/blob", name);

    if (!account_is_valid(name))
        return 0;
    return each_name(pass.blobs->root_fd, path, look_at_container, &pass, e);
}

struct missing {
    struct blobs *blobs;
    int64_t *ids;
    size_t count;
};

static bool note_missing(const struct container_row *row, void *context)
{
    struct missing *m = context;
    auto_free char *path = xasprintf("%s/blob/%s/tree", row->account, row->name);
    auto_close int fd = -1;

    if (fs_open_beneath(m->blobs->root_fd, path, O_PATH | O_DIRECTORY, 0, &fd, NULL) < 0 &&
        errno == ENOENT) {
        m->ids = xreallocarray(m->ids, m->count + 1, sizeof(m->ids[0]));
        m->ids[m->count++] = row->id;
    }
    return true;
}

static int apply_doom_missing(void *context, struct db *db, struct err *e)
{
    struct missing *m = context;

    for (size_t i = 0; i < m->count; i++) {
        if (store_doom_container(db, m->ids[i], e) < 0)
            return -1;
    }
    return 0;
}

static int find_missing(struct blobs *blobs, struct missing *m, struct err *e)
{
    auto_reader r = {0};

    if (store_pool_take(blobs->readers, &r, e) < 0)
        return -1;
    return store_each_container_of_all(r.db, note_missing, m, e);
}

int containers_reconcile(struct blobs *blobs, struct err *e)
{
    struct missing missing = {.blobs = blobs};
    int rc;

    if (each_name(blobs->root_fd, ".", look_at_account, blobs, e) < 0)
        return -1;
    rc = find_missing(blobs, &missing, e);
    if (rc == 0 && missing.count > 0)
        rc = blobs_write(blobs, apply_doom_missing, &missing, e);
    free(missing.ids);
    return rc;
}
