/* Rows that no file agrees with any more go with the next commit, whosever it is: nobody waits
 * for them.  A crash leaves their names in `unsettled`, and the next start looks at those.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "base/str.h"
#include "db/writer.h"
#include "store/blob.h"
#include "store/pool.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct settle {
    struct db_write write;
    struct blobs *blobs;
    struct blob_key keep; /* its texts are ours */
    bool staged;
    struct settle *next;
};

static void settle_free(struct settle *settle)
{
    free((char *)settle->keep.name);
    free((char *)settle->keep.snapshot);
    free(settle);
}

static int apply_settle(struct db_write *write, struct db *db, struct err *e)
{
    struct settle *s = container_of(write, struct settle, write);

    if (store_keep_blob(db, &s->keep, e) < 0)
        return -1;
    if (s->staged && store_remove_staged(db, s->keep.container_id, s->keep.name, e) < 0)
        return -1;
    return store_clear_unsettled(db, s->keep.container_id, s->keep.name, s->keep.snapshot, e);
}

/* A failure leaves the name unsettled, for the next start. */
static void settle_is_done(struct db_write *write, const struct err *why)
{
    struct settle *s = container_of(write, struct settle, write);

    if (why->code != ERR_NONE)
        s->blobs->has_unsettled = true;
    settle_free(s);
}

void settle_later(struct blobs *blobs, const struct blob_key *keep, bool staged)
{
    struct settle *s = xcalloc(1, sizeof(*s));

    s->write = (struct db_write){.apply = apply_settle, .done = settle_is_done};
    s->blobs = blobs;
    s->keep = *keep;
    s->keep.name = xstrdup(keep->name);
    s->keep.snapshot = xstrdup(keep->snapshot);
    s->staged = staged;
    pthread_mutex_lock(&blobs->settle_lock);
    *blobs->settles_tail = s;
    blobs->settles_tail = &s->next;
    pthread_mutex_unlock(&blobs->settle_lock);
}

void settle_submit(struct blobs *blobs)
{
    struct settle *next;

    for (struct settle *s = blobs->settles; s; s = next) {
        next = s->next;
        db_writer_submit(blobs->writer, &s->write);
    }
    blobs->settles = NULL;
    blobs->settles_tail = &blobs->settles;
}

/* --- after a crash --- */

struct unsettled {
    int64_t container_id;
    char *name, *snapshot;
    struct unsettled *next;
};

static void
note_unsettled(int64_t container_id, const char *name, const char *snapshot, void *context)
{
    struct unsettled **list = context, *u = xcalloc(1, sizeof(*u));

    u->container_id = container_id;
    u->name = xstrdup(name);
    u->snapshot = xstrdup(snapshot);
    u->next = *list;
    *list = u;
}

/* Folders that were made for a file that never came. */
static void prune(struct folder *folder, const struct unsettled *u)
{
    auto_str path = {0};

    if (!u->snapshot[0]) {
        tree_prune(folder, u->name);
        return;
    }
    snapshot_path(u->name, u->snapshot, &path);
    *strrchr(path.data, '/') = '\0';
    unlinkat(folder->fd, path.data, AT_REMOVEDIR);
}

static int settle_one(struct blobs *blobs, const struct unsettled *u, struct err *e)
{
    auto_folder f = {blobs, NULL};
    auto_found found = FOUND_NONE;
    struct blob_key keep = {u->container_id, u->name, u->snapshot, 0, 0};
    struct err why = {0};
    int there = 0;

    if (folder_take_by_id(blobs, u->container_id, &f.folder, &why) == 0)
        there = blob_look(blobs, f.folder, u->name, u->snapshot, O_PATH, &found, e);
    else if (why.code != ERR_NOT_FOUND)
        return err_set(e, why.code, "%s", why.msg);
    if (there < 0)
        return -1;
    if (there > 0 && !u->snapshot[0] && !found.is_odd &&
        tree_remove_odd(f.folder, u->name, e) < 0)
        return -1;
    if (there > 0) {
        keep.inode = found.row ? found.row->inode : found.facts.inode;
        keep.born_ns = found.row ? found.row->born_ns : found.facts.born_ns;
    } else if (f.folder) {
        prune(f.folder, u);
    }
    settle_later(blobs, &keep, false);
    return 0;
}

static int apply_nothing(void *context, struct db *db, struct err *e)
{
    (void)context;
    (void)db;
    (void)e;
    return 0;
}

static int find_unsettled(struct blobs *blobs, struct unsettled **ret_list, struct err *e)
{
    auto_reader r = {0};

    if (store_pool_take(blobs->readers, &r, e) < 0)
        return -1;
    return store_each_unsettled(r.db, note_unsettled, ret_list, e);
}

/* On a full disk all stays as it is, for the next start. */
static int commit_settles(struct blobs *blobs, struct unmarked *unmarked, struct err *e)
{
    struct err why = {0};

    if (blobs_write(blobs, apply_nothing, NULL, &why) == 0) {
        if (!blobs->has_unsettled)
            unmarked_clear(unmarked);
        return 0;
    }
    if (why.code == ERR_NO_SPACE)
        return 0;
    if (e)
        *e = why;
    return -1;
}

int settle_all(struct blobs *blobs, struct err *e)
{
    struct unmarked unmarked = {.blobs = blobs};
    struct unsettled *list = NULL, *next;
    int rc = find_unsettled(blobs, &list, e);

    if (rc == 0)
        rc = unmarked_each(&unmarked, note_unsettled, &list, e);
    for (struct unsettled *u = list; u; u = next) {
        if (rc == 0)
            rc = settle_one(blobs, u, e);
        next = u->next;
        free(u->name);
        free(u->snapshot);
        free(u);
    }
    if (rc == 0)
        rc = commit_settles(blobs, &unmarked, e);
    free(unmarked.ids);
    return rc;
}
