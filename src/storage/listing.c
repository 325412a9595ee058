/* Listing: three sorted sources become one sequence.
 *
 *   tree     names of files, by walk.h
 *   odd      rows of blobs in odd/
 *   staged   names that have uncommitted blocks only (when asked for)
 *
 * Each source offers its next item: a name, or the common prefix of names up to a delimiter.
 * The smallest is taken; what is not beyond the last one taken is a repetition.  The marker of
 * the next page is the last item of this one.
 *
 * Facts come from one walk through the rows beside the names (rows.c), not a query for each.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "base/str.h"
#include "storage/rows.h"
#include "storage/walk.h"
#include "store/blob.h"
#include "store/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a source offers. */
struct offer {
    bool is_there;
    bool is_prefix;
    struct str key; /* the name, or the prefix */
};

struct list {
    struct blobs *blobs;
    struct folder *folder;
    const struct blob_listing *asked;
    struct db *db;
    struct walk walk;
    struct blob_cursor odd;
    bool odd_is_open;
    struct rows rows;
    char **staged;
    size_t staged_count, staged_next, staged_room;
    struct offer tree_offer, odd_offer, staged_offer;
    struct str last; /* taken, or the marker */
    bool has_last;
    size_t count;
};

/* --- offers --- */

/* Turn a name into an item: up to the delimiter after the prefix, or whole. */
static void offer_name(struct list *l, struct offer *offer, const char *name)
{
    size_t prefix_len = strlen(l->asked->prefix);
    const char *delimiter = l->asked->delimiter;
    const char *at = *delimiter ? strstr(name + prefix_len, delimiter) : NULL;

    str_truncate(&offer->key, 0);
    offer->is_there = true;
    offer->is_prefix = at != NULL;
    if (at)
        str_add_len(&offer->key, name, (size_t)(at - name) + strlen(delimiter));
    else
        str_add(&offer->key, name);
}

static bool is_beyond(const struct list *l, const struct offer *offer)
{
    return !l->has_last || strcmp(str_text(&offer->key), str_text(&l->last)) > 0;
}

static bool splits_folders(const struct list *l)
{
    return strcmp(l->asked->delimiter, "/") == 0;
}

/* Names a mount made may be none that a client could say. */
static bool can_be_said(const char *name)
{
    return name_check(name, NULL) == 0;
}

static int next_in_tree(struct list *l, struct err *e)
{
    struct offer *offer = &l->tree_offer;

    offer->is_there = false;
    while (walk_next(&l->walk) > 0) {
        if (l->walk.is_folder && !splits_folders(l)) {
            if (walk_enter(&l->walk, e) < 0)
                return -1;
            continue;
        }
        offer_name(l, offer, str_text(&l->walk.name));
        if (is_beyond(l, offer) && (l->walk.is_folder ? walk_has_file(&l->walk)
                                                      : can_be_said(str_text(&l->walk.name))))
            return 0;
    }
    offer->is_there = false;
    return 0;
}

static int next_odd(struct list *l, struct err *e)
{
    struct offer *offer = &l->odd_offer;
    int rows;

    offer->is_there = false;
    while (l->odd_is_open && (rows = blob_cursor_next(&l->odd, e)) != 0) {
        if (rows < 0)
            return -1;
        if (!str_starts(l->odd.row.name, l->asked->prefix))
            break;
        offer_name(l, offer, l->odd.row.name);
        if (is_beyond(l, offer))
            return 0;
    }
    offer->is_there = false;
    return 0;
}

static void next_staged(struct list *l)
{
    struct offer *offer = &l->staged_offer;

    for (; l->staged_next < l->staged_count; l->staged_next++) {
        offer_name(l, offer, l->staged[l->staged_next]);
        if (is_beyond(l, offer))
            return;
    }
    offer->is_there = false;
}

/* --- items --- */

struct name_facts {
    struct facts facts;
    int64_t ctime_ns;
};

static bool stat_at(int fd, const char *path, struct name_facts *ret)
{
    struct statx stx;

    if (statx(fd, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_BTIME,
              &stx) < 0 ||
        !facts_from_statx(&stx, &ret->facts))
        return false;
    ret->ctime_ns = (int64_t)stx.stx_ctime.tv_sec * 1000000000 + stx.stx_ctime.tv_nsec;
    return true;
}

static void tell(struct list *l, const struct blob *blob)
{
    l->asked->blob(blob, l->asked->context);
    l->count++;
}

/* Snapshots of the name, oldest first, before the blob itself. */
static int tell_snapshots(struct list *l, const char *name, struct err *e)
{
    int rc;

    while ((rc = rows_next_snapshot(&l->rows, name, e)) > 0) {
        const struct blob_row *row = &l->rows.cursor.row;
        struct name_facts f;
        auto_str path = {0};
        autoptr(blob) blob = NULL;

        snapshot_path(name, row->snapshot, &path);
        if (!stat_at(l->folder->fd, path.data, &f) || f.facts.inode != row->inode ||
            f.facts.born_ns != row->born_ns)
            continue;
        blob = blob_of_row(row, &f.facts, false, name, row->snapshot);
        tell(l, blob);
    }
    return rc;
}

/* The blob by a look of its own: for those changed while the listing runs. */
static int look_again(struct list *l, const char *name, struct blob **ret_blob, struct err *e)
{
    auto_found found = FOUND_NONE;
    int there = blob_look(l->blobs, l->folder, name, "", O_PATH, &found, e);

    if (there > 0)
        *ret_blob = blob_of_found(&found, name, "");
    return there < 0 ? -1 : 0;
}

static int
tell_name(struct list *l, const char *name, const struct name_facts *f, struct err *e)
{
    autoptr(blob) blob = NULL;
    int rc = rows_find(&l->rows, name, &f->facts, f->ctime_ns, &blob, e);

    if (rc < 0 || (rc == 0 && look_again(l, name, &blob, e) < 0))
        return -1;
    if (l->asked->snapshots && tell_snapshots(l, name, e) < 0)
        return -1;
    if (blob)
        tell(l, blob);
    return 0;
}

static int take_tree(struct list *l, const char *name, struct err *e)
{
    struct name_facts f;

    if (!stat_at(walk_folder_fd(&l->walk), walk_leaf(&l->walk), &f))
        return 0;
    return tell_name(l, name, &f, e);
}

static int take_odd(struct list *l, const char *name, struct err *e)
{
    char hash[NAME_HASH_BYTES];
    auto_str path = {0};
    struct name_facts f;

    name_hash(name, hash);
    str_addf(&path, "odd/%s", hash);
    if (!stat_at(l->folder->fd, path.data, &f))
        return 0;
    return tell_name(l, name, &f, e);
}

static void take_staged(struct list *l, const char *name)
{
    const struct facts none = {0};
    autoptr(blob) blob = blob_of_row(NULL, &none, false, name, "");

    blob->etag[0] = '\0';
    tell(l, blob);
}

/* Does the odd row have its file?  For a prefix: one file is reason enough. */
static bool odd_is_real(struct list *l)
{
    char hash[NAME_HASH_BYTES];
    auto_str path = {0};
    struct name_facts f;

    name_hash(l->odd.row.name, hash);
    str_addf(&path, "odd/%s", hash);
    return stat_at(l->folder->fd, path.data, &f);
}

/* --- the merge --- */

static struct offer *smallest(struct list *l)
{
    struct offer *offers[] = {&l->tree_offer, &l->odd_offer, &l->staged_offer};
    struct offer *best = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(offers); i++) {
        if (offers[i]->is_there &&
            (!best || strcmp(str_text(&offers[i]->key), str_text(&best->key)) < 0))
            best = offers[i];
    }
    return best;
}

static int take(struct list *l, struct offer *offer, struct err *e)
{
    const char *key = str_text(&offer->key);

    if (offer == &l->odd_offer && offer->is_prefix && !odd_is_real(l))
        return 0;
    str_truncate(&l->last, 0);
    str_add(&l->last, key);
    l->has_last = true;
    if (offer->is_prefix) {
        l->asked->prefix_found(key, l->asked->context);
        l->count++;
        return 0;
    }
    if (offer == &l->tree_offer)
        return take_tree(l, key, e);
    if (offer == &l->odd_offer)
        return take_odd(l, key, e);
    take_staged(l, key);
    return 0;
}

static int advance(struct list *l, struct offer *offer, struct err *e)
{
    if (offer == &l->tree_offer)
        return next_in_tree(l, e);
    if (offer == &l->odd_offer)
        return next_odd(l, e);
    l->staged_next++;
    next_staged(l);
    return 0;
}

static int merge(struct list *l, char **ret_next, struct err *e)
{
    struct offer *offer;

    if (next_in_tree(l, e) < 0 || next_odd(l, e) < 0)
        return -1;
    next_staged(l);
    while ((offer = smallest(l))) {
        if (l->count >= l->asked->most) {
            *ret_next = xstrdup(str_text(&l->last));
            return 0;
        }
        if (is_beyond(l, offer) && take(l, offer, e) < 0)
            return -1;
        if (advance(l, offer, e) < 0)
            return -1;
    }
    *ret_next = xstrdup("");
    return 0;
}

/* --- begin and end --- */

static bool note_staged(const char *name, int64_t staged_ms, void *context)
{
    struct list *l = context;

    (void)staged_ms;
    if (!str_starts(name, l->asked->prefix) || l->staged_count > l->asked->most)
        return false;
    if (l->staged_count == l->staged_room) {
        l->staged_room = l->staged_room ? l->staged_room * 2 : 64;
        l->staged = xreallocarray(l->staged, l->staged_room, sizeof(l->staged[0]));
    }
    l->staged[l->staged_count++] = xstrdup(name);
    return true;
}

static int begin(struct list *l, struct err *e)
{
    const struct blob_listing *asked = l->asked;
    const char *from = strcmp(asked->marker, asked->prefix) > 0 ? asked->marker : asked->prefix;

    str_add(&l->last, asked->marker);
    l->has_last = *asked->marker != '\0';
    if (walk_begin(&l->walk, l->blobs->entries, l->folder->tree_fd, asked->prefix,
                   asked->marker, e) < 0)
        return -1;
    if (blob_cursor_open_odd(&l->odd, l->db, l->folder->id, from, e) < 0)
        return -1;
    l->odd_is_open = true;
    rows_begin(&l->rows, l->db, l->folder->id);
    if (asked->uncommitted &&
        store_each_staged(l->db, l->folder->id, from, note_staged, l, e) < 0)
        return -1;
    return 0;
}

static void list_done(struct list *l)
{
    walk_done(&l->walk);
    if (l->odd_is_open)
        blob_cursor_done(&l->odd);
    rows_done(&l->rows);
    for (size_t i = 0; i < l->staged_count; i++)
        free(l->staged[i]);
    free(l->staged);
    str_done(&l->tree_offer.key);
    str_done(&l->odd_offer.key);
    str_done(&l->staged_offer.key);
    str_done(&l->last);
}

int blobs_list(struct blobs *blobs,
               const char *account,
               const char *container,
               const struct blob_listing *listing,
               char **ret_next,
               struct err *e)
{
    auto_folder f = {blobs, NULL};
    auto_reader r = {0};
    struct list l = {.blobs = blobs, .asked = listing};
    int rc;

    if (folder_take(blobs, account, container, &f.folder, e) < 0 ||
        store_pool_take(blobs->readers, &r, e) < 0)
        return -1;
    l.folder = f.folder;
    l.db = r.db;
    rc = begin(&l, e);
    if (rc == 0)
        rc = merge(&l, ret_next, e);
    list_done(&l);
    return rc;
}
