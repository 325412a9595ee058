/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "base/fault.h"
#include "base/str.h"
#include "store/blob.h"
#include "store/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* --- the snapshots of a name --- */

struct snapshots {
    char **times;
    size_t count;
};

static void snapshots_done(struct snapshots *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->times[i]);
    free(s->times);
}

static void note_snapshot(const char *snapshot, void *context)
{
    struct snapshots *s = context;

    s->times = xreallocarray(s->times, s->count + 1, sizeof(s->times[0]));
    s->times[s->count++] = xstrdup(snapshot);
}

static int read_snapshots(struct blobs *blobs,
                          struct folder *folder,
                          const char *name,
                          struct snapshots *ret,
                          struct err *e)
{
    auto_reader r = {0};

    if (store_pool_take(blobs->readers, &r, e) < 0)
        return -1;
    return store_each_snapshot(r.db, folder->id, name, note_snapshot, ret, e);
}

/* The row of a deleted one may linger. */
static int find_snapshots(struct blobs *blobs,
                          struct folder *folder,
                          const char *name,
                          struct snapshots *ret,
                          struct err *e)
{
    size_t kept = 0;

    if (read_snapshots(blobs, folder, name, ret, e) < 0)
        return -1;
    for (size_t i = 0; i < ret->count; i++) {
        auto_found found = FOUND_NONE;
        int there = blob_look(blobs, folder, name, ret->times[i], O_PATH, &found, e);

        if (there < 0)
            return -1;
        if (there > 0) {
            char *time = ret->times[kept];

            ret->times[kept++] = ret->times[i];
            ret->times[i] = time;
        }
    }
    while (ret->count > kept)
        free(ret->times[--ret->count]);
    return 0;
}

/* --- rows first marked, then the file, then the rows --- */

struct mark {
    struct folder *folder;
    const char *name, *snapshot;
};

static int apply_mark(void *context, struct db *db, struct err *e)
{
    const struct mark *m = context;

    return store_mark_unsettled(db, m->folder->id, m->name, m->snapshot, e);
}

/* 0 marked, 1 there is no room for it, -1. */
static int mark(struct blobs *blobs,
                struct folder *folder,
                const char *name,
                const char *snapshot,
                struct err *e)
{
    struct mark m = {folder, name, snapshot};
    struct err why = {0};

    FAULT("storage.before-mark");
    if (blobs_write(blobs, apply_mark, &m, &why) == 0)
        return 0;
    if (why.code == ERR_NO_SPACE)
        return 1;
    if (e)
        *e = why;
    return -1;
}

static int unlink_snapshot(struct folder *folder, struct str *path, struct err *e)
{
    if (unlinkat(folder->fd, path->data, 0) < 0 && errno != ENOENT)
        return err_sys(e, errno, "could not remove a snapshot");
    *strrchr(path->data, '/') = '\0';
    if (folder_sync(folder, path->data, e) < 0)
        return -1;
    unlinkat(folder->fd, path->data, AT_REMOVEDIR);
    return 0;
}

static int remove_snapshot(struct blobs *blobs,
                           struct folder *folder,
                           const char *name,
                           const char *snapshot,
                           struct err *e)
{
    struct blob_key none = {folder->id, name, snapshot, 0, 0};
    int rc = mark(blobs, folder, name, snapshot, e);
    auto_str path = {0};

    snapshot_path(name, snapshot, &path);
    if (rc > 0)
        rc = unmarked_remove(folder, name, snapshot, false, e);
    if (rc < 0 || unlink_snapshot(folder, &path, e) < 0)
        return -1;
    settle_later(blobs, &none, false);
    return 0;
}

static int remove_snapshots(struct blobs *blobs,
                            struct folder *folder,
                            const char *name,
                            const struct snapshots *snapshots,
                            struct err *e)
{
    for (size_t i = 0; i < snapshots->count; i++) {
        if (remove_snapshot(blobs, folder, name, snapshots->times[i], e) < 0)
            return -1;
    }
    return 0;
}

static int remove_blob(struct blobs *blobs,
                       struct folder *folder,
                       const char *name,
                       const struct found *found,
                       struct err *e)
{
    struct blob_key none = {folder->id, name, "", 0, 0};
    int rc = found->row ? mark(blobs, folder, name, "", e) : 0;
    bool had_staged = false;

    FAULT("storage.before-unlink");
    /* First what is hidden, so that it never shows. */
    if (rc > 0 && !found->is_odd && tree_remove_odd(folder, name, e) < 0)
        return -1;
    if (rc > 0) {
        rc = unmarked_remove(folder, name, "", found->is_odd, e);
        tree_prune(folder, name);
    }
    if (rc < 0 || tree_remove(folder, name, e) < 0)
        return -1;
    staging_drop(blobs, folder, name, &had_staged);
    if (found->row || had_staged)
        settle_later(blobs, &none, had_staged);
    return 0;
}

static int delete_locked(struct blobs *blobs,
                         struct folder *folder,
                         const struct blob_address *at,
                         enum snapshot_choice choice,
                         const struct conditions *conditions,
                         struct snapshots *snapshots,
                         struct err *e)
{
    bool is_snapshot = at->snapshot && at->snapshot[0];
    auto_found found = FOUND_NONE;
    autoptr(blob) blob = NULL;
    int there = blob_look(blobs, folder, at->name, at->snapshot, O_PATH, &found, e);

    if (there <= 0)
        return there < 0 ? -1 : not_found(e);
    blob = blob_of_found(&found, at->name, at->snapshot);
    if (conditions_check_write(conditions, blob, CONDITION_CHANGE, e) < 0)
        return -1;
    if (is_snapshot)
        return remove_snapshot(blobs, folder, at->name, at->snapshot, e);
    if (find_snapshots(blobs, folder, at->name, snapshots, e) < 0)
        return -1;
    if (snapshots->count > 0 && choice == SNAPSHOTS_REFUSE) {
        err_set(e, ERR_CONFLICT, "the blob has snapshots; say what to do with them");
        return err_reason(e, "SnapshotsPresent");
    }
    if (remove_snapshots(blobs, folder, at->name, snapshots, e) < 0)
        return -1;
    if (choice == SNAPSHOTS_ONLY)
        return 0;
    return remove_blob(blobs, folder, at->name, &found, e);
}

int blobs_delete(struct blobs *blobs,
                 const struct blob_address *at,
                 enum snapshot_choice snapshots,
                 const struct conditions *conditions,
                 struct err *e)
{
    auto_folder f = {blobs, NULL};
    struct snapshots list = {0};
    int rc;

    if (folder_take(blobs, at->account, at->container, &f.folder, e) < 0 ||
        name_check(at->name, e) < 0)
        return -1;
    auto_name_lock pthread_mutex_t *lock = name_lock(blobs, f.folder, at->name);
    rc = delete_locked(blobs, f.folder, at, snapshots, conditions, &list, e);
    snapshots_done(&list);
    return rc;
}
