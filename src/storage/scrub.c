/* The scrubber: rows and files, held against each other.  It changes nothing.
 *
 * Files in tree/ without a row are blobs that were written through a mount, and no finding. Nor
 * is what is unsettled or half-uploaded while it runs: a finding is looked at twice.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blocks.h"

#include "base/str.h"
#include "store/blob.h"
#include "store/pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct scrub {
    struct blobs *blobs;
    struct folder *folder;
    struct db *db;
    void (*finding)(const char *what, const char *where, void *context);
    void *context;
};

static void
find_fault(struct scrub *s, const char *what, const char *name, const char *snapshot)
{
    auto_free char *where = xasprintf("%s/%s/%s%s%s", s->folder->account, s->folder->name, name,
                                      snapshot[0] ? "?snapshot=" : "", snapshot);

    s->finding(what, where, s->context);
}

/* --- rows --- */

/* Under the lock, so that nothing is on its way. */
static int check_row(struct scrub *s, const char *name, const char *snapshot, struct err *e)
{
    auto_name_lock pthread_mutex_t *lock = name_lock(s->blobs, s->folder, name);
    auto_found found = FOUND_NONE;
    int there = blob_look(s->blobs, s->folder, name, snapshot, O_PATH, &found, e);

    if (there < 0)
        return -1;
    if (there == 0) {
        /* A delete leaves its row to the next commit. */
        auto_reader r = {0};
        bool has_rows = false;

        if (store_pool_take(s->blobs->readers, &r, e) < 0 ||
            store_has_settled_rows(r.db, s->folder->id, name, snapshot, &has_rows, e) < 0)
            return -1;
        if (has_rows)
            find_fault(s, "row without a file", name, snapshot);
        return 0;
    }
    if (found.row && found.facts.size_bytes != found.row->size_bytes)
        find_fault(s, "size differs from the row", name, snapshot);
    return 0;
}

static int check_rows(struct scrub *s, struct err *e)
{
    struct blob_cursor cursor;
    auto_str name = {0}, snapshot = {0};
    int rows;

    if (blob_cursor_open(&cursor, s->db, s->folder->id, "", e) < 0)
        return -1;
    while ((rows = blob_cursor_next(&cursor, e)) > 0) {
        if (strcmp(str_text(&name), cursor.row.name) == 0 &&
            strcmp(str_text(&snapshot), cursor.row.snapshot) == 0)
            continue;
        str_truncate(&name, 0);
        str_truncate(&snapshot, 0);
        str_add(&name, cursor.row.name);
        str_add(&snapshot, cursor.row.snapshot);
        if (check_row(s, str_text(&name), str_text(&snapshot), e) < 0) {
            rows = -1;
            break;
        }
    }
    blob_cursor_done(&cursor);
    return rows;
}

/* --- files with names of ours --- */

struct hashes {
    char (*items)[NAME_HASH_BYTES];
    size_t count, room;
};

static void hashes_add(struct hashes *hashes, const char *name)
{
    if (hashes->count == hashes->room) {
        hashes->room = hashes->room ? hashes->room * 2 : 64;
        hashes->items = xreallocarray(hashes->items, hashes->room, sizeof(hashes->items[0]));
    }
    name_hash(name, hashes->items[hashes->count++]);
}

static int compare_hashes(const void *a, const void *b)
{
    return memcmp(a, b, NAME_HASH_BYTES);
}

static bool hashes_have(const struct hashes *hashes, const char *hash)
{
    char key[NAME_HASH_BYTES] = "";

    if (strlen(hash) >= sizeof(key))
        return false;
    memcpy(key, hash, strlen(hash) + 1);
    return hashes->count > 0 &&
           bsearch(key, hashes->items, hashes->count, sizeof(hashes->items[0]), compare_hashes);
}

static bool note_staged(const char *name, int64_t staged_ms, void *context)
{
    (void)staged_ms;
    hashes_add(context, name);
    return true;
}

/* The hashes of names that may have files in odd/, snap/ or staged/. */
static int gather(struct scrub *s, struct hashes *odd, struct hashes *snap, struct err *e)
{
    struct blob_cursor cursor;
    int rows;

    if (blob_cursor_open(&cursor, s->db, s->folder->id, "", e) < 0)
        return -1;
    while ((rows = blob_cursor_next(&cursor, e)) > 0) {
        if (cursor.row.snapshot[0])
            hashes_add(snap, cursor.row.name);
        else if (cursor.row.is_odd)
            hashes_add(odd, cursor.row.name);
    }
    blob_cursor_done(&cursor);
    return rows;
}

static int check_part(struct scrub *s, const char *part, struct hashes *known, struct err *e)
{
    int fd = openat(s->folder->fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir)
        return err_sys(e, errno, "could not read \"%s\"", part);
    if (known->count > 1)
        qsort(known->items, known->count, sizeof(known->items[0]), compare_hashes);
    while ((entry = readdir(dir))) {
        auto_free char *where = NULL;

        if (entry->d_name[0] == '.' || hashes_have(known, entry->d_name))
            continue;
        where =
            xasprintf("%s/%s:%s/%s", s->folder->account, s->folder->name, part, entry->d_name);
        s->finding("file without a row", where, s->context);
    }
    closedir(dir);
    return 0;
}

static int check_parts(struct scrub *s, struct err *e)
{
    struct hashes odd = {0}, snap = {0}, staged = {0};
    int rc = gather(s, &odd, &snap, e);

    if (rc == 0)
        rc = store_each_staged(s->db, s->folder->id, "", note_staged, &staged, e);
    if (rc == 0)
        rc = check_part(s, "odd", &odd, e);
    if (rc == 0)
        rc = check_part(s, "snap", &snap, e);
    if (rc == 0)
        rc = check_part(s, "staged", &staged, e);
    free(odd.items);
    free(snap.items);
    free(staged.items);
    return rc;
}

static int scrub_container(struct scrub *s, int64_t id, struct err *e)
{
    auto_folder f = {s->blobs, NULL};
    auto_reader r = {0};

    if (folder_take_by_id(s->blobs, id, &f.folder, NULL) < 0)
        return 0; /* gone meanwhile */
    if (store_pool_take(s->blobs->readers, &r, e) < 0)
        return -1;
    s->folder = f.folder;
    s->db = r.db;
    return check_rows(s, e) < 0 ? -1 : check_parts(s, e);
}

static int apply_nothing(void *context, struct db *db, struct err *e)
{
    (void)context;
    (void)db;
    (void)e;
    return 0;
}

int blobs_scrub(struct blobs *blobs,
                void (*finding)(const char *what, const char *where, void *context),
                void *context,
                struct err *e)
{
    struct scrub scrub = {.blobs = blobs, .finding = finding, .context = context};
    auto_free int64_t *ids = NULL;
    size_t count;

    /* Bring out what waits for a commit. */
    if (blobs_write(blobs, apply_nothing, NULL, e) < 0 ||
        containers_ids(blobs, &ids, &count, e) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (scrub_container(&scrub, ids[i], e) < 0)
            return -1;
    }
    return 0;
}
