/* A snapshot is a copy, shared with the blob where the file system can: its own file in snap/,
 * its own row.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/str.h"
#include "store/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

int copy_whole(struct folder *folder,
               int from,
               int64_t size,
               char tmp[TMP_NAME_BYTES],
               struct facts *ret_facts,
               struct err *e)
{
    auto_close int fd = -1;

    if (tmp_open(folder, tmp, &fd, e) < 0)
        return -1;
    /* A clone has the source's size, which may be more than is visible of it. */
    if (ioctl(fd, FICLONE, from) == 0) {
        if (ftruncate(fd, size) < 0)
            return err_sys(e, errno, "could not copy");
    } else if (copy_range(from, 0, fd, 0, size, e) < 0) {
        return -1;
    }
    if (fsync(fd) < 0)
        return err_sys(e, errno, "could not write the copy to disk");
    return facts_of(fd, ret_facts, e);
}

/* 2018-06-06T18:39:26.1234567Z, and never twice. */
static void snapshot_time(struct blobs *blobs, char time[SNAPSHOT_BYTES])
{
    int64_t tick = blobs_tick(blobs);
    char iso[CLOCK_ISO_BYTES];

    clock_format_iso(tick_to_ms(tick) / 1000 * 1000, iso);
    snprintf(time, SNAPSHOT_BYTES, "%.19s.%07" PRId64 "Z", iso, tick % 10000000);
}

struct snapshot_change {
    struct folder *folder;
    const struct blob_row *row;
};

static int apply_snapshot(void *context, struct db *db, struct err *e)
{
    const struct snapshot_change *c = context;

    if (store_mark_unsettled(db, c->folder->id, c->row->name, c->row->snapshot, e) < 0)
        return err_reason(e, e->code == ERR_NOT_FOUND ? "ContainerNotFound" : NULL);
    return store_put_blob(db, c->folder->id, c->row, e);
}

/* Let the copy appear as the snapshot, on disk. */
static int
place(struct folder *folder, const char *tmp, const struct blob_row *row, struct err *e)
{
    auto_str path = {0};
    char *slash;

    snapshot_path(row->name, row->snapshot, &path);
    slash = strrchr(path.data, '/');
    *slash = '\0';
    if (mkdirat(folder->fd, path.data, 0777) == 0) {
        if (folder_sync(folder, "snap", e) < 0)
            return -1;
    } else if (errno != EEXIST) {
        return err_sys(e, errno, "could not make a folder for snapshots");
    }
    *slash = '/';
    if (renameat(folder->fd, tmp, folder->fd, path.data) < 0)
        return err_sys(e, errno, "could not put the snapshot in its place");
    *slash = '\0';
    return folder_sync(folder, path.data, e);
}

static int write_snapshot(struct blobs *blobs,
                          struct folder *folder,
                          const char *tmp,
                          const struct blob_row *row,
                          struct err *e)
{
    struct snapshot_change change = {folder, row};
    struct blob_key keep = {folder->id, row->name, row->snapshot, row->inode, row->born_ns};

    if (blobs_write(blobs, apply_snapshot, &change, e) < 0)
        return -1;
    FAULT("storage.before-snapshot");
    if (place(folder, tmp, row, e) < 0)
        return -1; /* stays unsettled until the next start */
    settle_later(blobs, &keep, false);
    return 0;
}

/* A copy of what was found, and the row it is to have. */
static int copy_found(struct blobs *blobs,
                      struct folder *folder,
                      const struct found *found,
                      const char *name,
                      const json_t *metadata,
                      char tmp[TMP_NAME_BYTES],
                      struct blob_row **ret_row,
                      struct err *e)
{
    autoptr(blob_row) row = row_of_found(found, name, "");
    char time[SNAPSHOT_BYTES];
    struct facts facts;

    if (copy_whole(folder, found->fd, found->facts.size_bytes, tmp, &facts, e) < 0)
        return -1;
    snapshot_time(blobs, time);
    free(row->snapshot);
    row->snapshot = xstrdup(time);
    row->is_odd = false;
    row->lease = (struct lease_row){0};
    row_set_facts(row, &facts);
    if (metadata) {
        free(row->metadata);
        row->metadata = json_text(metadata);
    }
    *ret_row = take_ptr(&row);
    return 0;
}

int blobs_snapshot(struct blobs *blobs,
                   const struct blob_address *at,
                   const json_t *metadata,
                   const struct conditions *conditions,
                   struct blob **ret_snapshot,
                   struct err *e)
{
    auto_folder f = {blobs, NULL};
    auto_found found = FOUND_NONE;
    autoptr(blob) blob = NULL;
    autoptr(blob_row) row = NULL;
    char tmp[TMP_NAME_BYTES] = "";
    int rc;

    if (folder_take(blobs, at->account, at->container, &f.folder, e) < 0 ||
        name_check(at->name, e) < 0)
        return -1;
    auto_name_lock pthread_mutex_t *lock = name_lock(blobs, f.folder, at->name);
    if (look_to_change(blobs, f.folder, at->name, "", O_RDONLY, conditions, CONDITION_FREE,
                       &found, &blob, e) < 0)
        return -1;
    rc = copy_found(blobs, f.folder, &found, at->name, metadata, tmp, &row, e);
    if (rc == 0)
        rc = write_snapshot(blobs, f.folder, tmp, row, e);
    if (rc < 0) {
        if (tmp[0])
            unlinkat(f.folder->fd, tmp, 0);
        return -1;
    }
    if (ret_snapshot) {
        const struct facts facts = {row->inode, row->born_ns, row->mtime_ns, row->size_bytes};

        *ret_snapshot = blob_of_row(row, &facts, false, at->name, row->snapshot);
    }
    return 0;
}
