/* Deletes on a full disk.
 *
 * A delete first marks its name in the database, so that a start looks there for rows to drop.
 * On a full disk there is no room for the mark, and a delete is how room is made: it must not
 * be refused.  So the file does not just go: it takes the place of <container>/unmarked and is
 * cut to nothing there, which needs neither a block nor an inode.  As long as that file is
 * there, a start holds all rows of the container against its files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "base/fs.h"
#include "base/str.h"
#include "storage/syncs.h"
#include "store/blob.h"
#include "store/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char sign[] = "unmarked";

/* The folder of a file and its name there; in the tree it is resolved by the kernel. */
static int open_place(struct folder *folder,
                      const char *name,
                      const char *snapshot,
                      bool is_odd,
                      int *ret_fd,
                      struct str *leaf,
                      struct err *e)
{
    bool is_in_tree = !snapshot[0] && !is_odd;
    auto_str path = {0};
    char *slash;

    if (snapshot[0]) {
        snapshot_path(name, snapshot, &path);
    } else if (is_odd) {
        char hash[NAME_HASH_BYTES];

        name_hash(name, hash);
        str_addf(&path, "odd/%s", hash);
    } else {
        str_addf(&path, "./%s", name);
    }
    slash = strrchr(path.data, '/');
    str_add(leaf, slash + 1);
    *slash = '\0';
    return fs_open_beneath(is_in_tree ? folder->tree_fd : folder->fd, path.data,
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, ret_fd, e);
}

int unmarked_remove(
    struct folder *folder, const char *name, const char *snapshot, bool is_odd, struct err *e)
{
    auto_close int at = -1, fd = -1;
    auto_str leaf = {0};

    if (open_place(folder, name, snapshot, is_odd, &at, &leaf, e) < 0)
        return -1;
    if (renameat(at, leaf.data, folder->fd, sign) < 0)
        return errno == ENOENT ? 0 : err_sys(e, errno, "could not remove the file");
    fd = openat(folder->fd, sign, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, 0) < 0)
        return err_sys(e, errno, "could not make room");
    if (syncs_wait(folder->syncs, folder->fd, e) < 0)
        return -1;
    return syncs_wait(folder->syncs, at, e);
}

/* --- at start --- */

struct look {
    struct blobs *blobs;
    struct folder *folder;
    void (*each)(int64_t container_id, const char *name, const char *snapshot, void *context);
    void *context;
};

static int look_at_row(const struct look *l, const struct blob_row *row, struct err *e)
{
    auto_found found = FOUND_NONE;
    int there = blob_look(l->blobs, l->folder, row->name, row->snapshot, O_PATH, &found, e);

    if (there == 0)
        l->each(l->folder->id, row->name, row->snapshot, l->context);
    return there < 0 ? -1 : 0;
}

static int look_at_rows(const struct look *l, struct err *e)
{
    struct blob_cursor cursor;
    auto_reader r = {0};
    int rows;

    if (store_pool_take(l->blobs->readers, &r, e) < 0 ||
        blob_cursor_open(&cursor, r.db, l->folder->id, "", e) < 0)
        return -1;
    while ((rows = blob_cursor_next(&cursor, e)) > 0) {
        if (look_at_row(l, &cursor.row, e) < 0) {
            rows = -1;
            break;
        }
    }
    blob_cursor_done(&cursor);
    return rows;
}

static bool note_signed(const struct container_row *row, void *context)
{
    struct unmarked *unmarked = context;
    auto_free char *path = xasprintf("%s/blob/%s/%s", row->account, row->name, sign);

    if (faccessat(unmarked->blobs->root_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        unmarked->ids =
            xreallocarray(unmarked->ids, unmarked->count + 1, sizeof(unmarked->ids[0]));
        unmarked->ids[unmarked->count++] = row->id;
    }
    return true;
}

static int find_signed(struct unmarked *unmarked, struct err *e)
{
    auto_reader r = {0};

    if (store_pool_take(unmarked->blobs->readers, &r, e) < 0)
        return -1;
    return store_each_container_of_all(r.db, note_signed, unmarked, e);
}

int unmarked_each(
    struct unmarked *unmarked,
    void (*each)(int64_t container_id, const char *name, const char *snapshot, void *context),
    void *context,
    struct err *e)
{
    if (find_signed(unmarked, e) < 0)
        return -1;
    for (size_t i = 0; i < unmarked->count; i++) {
        auto_folder f = {unmarked->blobs, NULL};
        struct look look = {unmarked->blobs, NULL, each, context};

        if (folder_take_by_id(unmarked->blobs, unmarked->ids[i], &f.folder, e) < 0)
            return -1;
        look.folder = f.folder;
        if (look_at_rows(&look, e) < 0)
            return -1;
    }
    return 0;
}

void unmarked_clear(struct unmarked *unmarked)
{
    for (size_t i = 0; i < unmarked->count; i++) {
        auto_folder f = {unmarked->blobs, NULL};

        if (folder_take_by_id(unmarked->blobs, unmarked->ids[i], &f.folder, NULL) == 0)
            unlinkat(f.folder->fd, sign, 0);
    }
}
