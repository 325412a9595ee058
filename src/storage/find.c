/* A blob as it is now: open its file, then believe the row that is of that inode.
 *
 * In this order: a row is committed before its file appears, so whoever has the file finds the
 * row.  The other way round, the row of a file just replaced may be gone already: then the name
 * is looked at again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/str.h"
#include "db/writer.h"
#include "storage/row-cache.h"
#include "store/blob.h"
#include "store/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
    MOST_LOOKS = 100, /* at a name that is replaced all the time */
};
static const int64_t append_slack_ns = 50000000;   /* files are stamped by a slower clock */
static const int64_t append_most_ns = 60000000000; /* from its mark to its bytes, at worst */

int not_found(struct err *e)
{
    err_set(e, ERR_NOT_FOUND, "the blob does not exist");
    return err_reason(e, "BlobNotFound");
}

void found_done(struct found *found)
{
    mem_close_fd(&found->fd);
    blob_row_free(found->row);
    *found = FOUND_NONE;
}

bool snapshot_is_valid(const char *snapshot)
{
    size_t len = strlen(snapshot);

    return len >= 20 && len < SNAPSHOT_BYTES && snapshot[4] == '-' &&
           snapshot[len - 1] == 'Z' && strspn(snapshot, "0123456789-:.TZ") == len;
}

void snapshot_path(const char *name, const char *snapshot, struct str *out)
{
    char hash[NAME_HASH_BYTES];

    name_hash(name, hash);
    str_addf(out, "snap/%s/%s", hash, snapshot);
}

static int open_snapshot(struct folder *folder,
                         const char *name,
                         const char *snapshot,
                         int flags,
                         struct found *ret,
                         struct err *e)
{
    auto_str path = {0};

    if (!snapshot_is_valid(snapshot))
        return 0;
    snapshot_path(name, snapshot, &path);
    if (fs_open_beneath(folder->fd, path.data, flags, 0, &ret->fd, NULL) < 0)
        return errno == ENOENT ? 0 : err_sys(e, errno, "could not open a snapshot");
    return facts_of(ret->fd, &ret->facts, e) < 0 ? -1 : 1;
}

/* What an append says on its file: see append.c. */
struct append_mark {
    long long from, to, begun_ns;
};

/* 1, 0 there is none, -1 there can be none. */
static int read_mark(int fd, struct append_mark *ret_mark)
{
    char self[32], text[80] = "";

    *ret_mark = (struct append_mark){-1, -1, 0};
    /* By way of /proc, because the descriptor may be of O_PATH. */
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    if (getxattr(self, APPEND_ATTRIBUTE, text, sizeof(text) - 1) < 0)
        return errno == ENOTSUP ? -1 : 0;
    return sscanf(text, "%lld %lld %lld", &ret_mark->from, &ret_mark->to,
                  &ret_mark->begun_ns) >= 2;
}

/* An append that is under way or was cut off: what lies beyond the row's size is then not the
 * blob's, and the time not that of a change. */
static bool has_torn_append(const struct found *found)
{
    const struct blob_row *row = found->row;
    bool is_longer = found->facts.size_bytes > row->size_bytes;
    struct append_mark mark;
    int has_mark = read_mark(found->fd, &mark);

    if (has_mark <= 0)
        return has_mark < 0 && is_longer;
    if (mark.from != row->size_bytes || found->facts.size_bytes > mark.to)
        return false;
    return is_longer || (found->facts.mtime_ns >= mark.begun_ns - append_slack_ns &&
                         found->facts.mtime_ns <= mark.begun_ns + append_most_ns);
}

static void hide_torn_append(struct found *found)
{
    struct blob_row *row = found->row;

    if (row->type != BLOB_APPEND || found->facts.size_bytes < row->size_bytes ||
        (found->facts.size_bytes == row->size_bytes &&
         found->facts.mtime_ns == row->mtime_ns) ||
        !has_torn_append(found))
        return;
    found->facts.size_bytes = row->size_bytes;
    found->facts.mtime_ns = row->mtime_ns;
}

static void compare(struct found *found)
{
    if (!found->row)
        return;
    hide_torn_append(found);
    found->is_changed = found->facts.size_bytes != found->row->size_bytes ||
                        found->facts.mtime_ns != found->row->mtime_ns;
}

static int find_row(struct blobs *blobs,
                    const struct blob_key *key,
                    const struct facts *facts,
                    struct blob_row **ret_row,
                    struct err *e)
{
    uint64_t generation = db_writer_generation(blobs->writer);
    auto_reader r = {0};

    if (row_cache_find(blobs->rows, key, facts, generation, ret_row))
        return 0;
    if (store_pool_take(blobs->readers, &r, e) < 0 ||
        store_find_blob(r.db, key, ret_row, e) < 0)
        return -1;
    /* Folders that were moved or restored have other inodes. */
    if (!*ret_row &&
        store_find_blob_like(r.db, key, facts->size_bytes, facts->mtime_ns, ret_row, e) < 0)
        return -1;
    row_cache_keep(blobs->rows, key, facts, generation, *ret_row);
    return 0;
}

static int look_once(struct blobs *blobs,
                     struct folder *folder,
                     const char *name,
                     const char *snapshot,
                     int flags,
                     struct found *ret,
                     struct err *e)
{
    struct blob_key key = {folder->id, name, snapshot, 0, 0};
    int there;

    if (snapshot[0])
        there = open_snapshot(folder, name, snapshot, flags, ret, e);
    else
        there = tree_open(folder, name, flags, &ret->fd, &ret->facts, &ret->is_odd, e);
    if (there <= 0)
        return there;
    key.inode = ret->facts.inode;
    key.born_ns = ret->facts.born_ns;
    return find_row(blobs, &key, &ret->facts, &ret->row, e) < 0 ? -1 : 1;
}

/* A file without a row: is it the one the name still stands for? */
static bool is_current(struct folder *folder, const char *name, const struct found *found)
{
    auto_close int fd = -1;
    struct facts facts;
    bool is_odd;

    return tree_open(folder, name, O_PATH, &fd, &facts, &is_odd, NULL) > 0 &&
           facts.inode == found->facts.inode && facts.born_ns == found->facts.born_ns;
}

int blob_look(struct blobs *blobs,
              struct folder *folder,
              const char *name,
              const char *snapshot,
              int flags,
              struct found *ret_found,
              struct err *e)
{
    for (int i = 0; i < MOST_LOOKS; i++) {
        auto_found found = FOUND_NONE;
        int there = look_once(blobs, folder, name, snapshot ? snapshot : "", flags, &found, e);

        if (there <= 0)
            return there;
        if (!found.row && !(snapshot && snapshot[0]) && !is_current(folder, name, &found))
            continue;
        /* Nothing but its row explains a file in odd/ or snap/. */
        if (!found.row && (found.is_odd || (snapshot && snapshot[0])))
            return 0;
        compare(&found);
        *ret_found = found;
        found = FOUND_NONE;
        return 1;
    }
    return err_set(e, ERR_BUSY, "could not read the blob: it changes all the time");
}

/* --- rows and blobs --- */

static char *dup_or_null(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static json_t *object_of(const char *text)
{
    json_t *value = NULL;

    if (text)
        json_parse(text, strlen(text), &value, NULL);
    return value;
}

static void copy_row(struct blob *blob, const struct blob_row *row)
{
    struct blob_headers *h = &blob->headers;

    blob->type = (enum blob_type)row->type;
    h->content_type = dup_or_null(row->content_type);
    h->content_encoding = dup_or_null(row->content_encoding);
    h->content_language = dup_or_null(row->content_language);
    h->content_disposition = dup_or_null(row->content_disposition);
    h->cache_control = dup_or_null(row->cache_control);
    h->content_md5 = dup_or_null(row->content_md5);
    blob->metadata = object_of(row->metadata);
    blob->tags = object_of(row->tags);
    blob->tier = dup_or_null(row->tier);
    memcpy(blob->etag, row->etag, sizeof(blob->etag));
    blob->created_ms = row->created_ms;
    blob->modified_ms = row->modified_ms;
    blob->sequence = row->sequence;
    blob->block_count = row->block_count;
    blob->lease = lease_from_row(&row->lease);
    blob->copy_id = dup_or_null(row->copy_id);
    blob->copy_source = dup_or_null(row->copy_source);
    blob->copied_ms = row->copied_ms;
}

struct blob *blob_of_row(const struct blob_row *row,
                         const struct facts *facts,
                         bool is_changed,
                         const char *name,
                         const char *snapshot)
{
    struct blob *blob = xcalloc(1, sizeof(*blob));

    blob->name = xstrdup(name);
    blob->snapshot = xstrdup(snapshot ? snapshot : "");
    blob->size_bytes = facts->size_bytes;
    if (row)
        copy_row(blob, row);
    else
        blob->created_ms = (facts->born_ns ? facts->born_ns : facts->mtime_ns) / 1000000;
    if (!row || is_changed) {
        free(take_ptr(&blob->headers.content_md5));
        facts_etag(facts, blob->etag);
        blob->modified_ms = facts->mtime_ns / 1000000;
    }
    return blob;
}

struct blob *blob_of_found(const struct found *found, const char *name, const char *snapshot)
{
    return blob_of_row(found->row, &found->facts, found->is_changed, name, snapshot);
}

struct blob_row *row_dup(const struct blob_row *from)
{
    struct blob_row *row = xmalloc(sizeof(*row));

    *row = *from;
    row->name = dup_or_null(from->name);
    row->snapshot = dup_or_null(from->snapshot);
    row->content_type = dup_or_null(from->content_type);
    row->content_encoding = dup_or_null(from->content_encoding);
    row->content_language = dup_or_null(from->content_language);
    row->content_disposition = dup_or_null(from->content_disposition);
    row->cache_control = dup_or_null(from->cache_control);
    row->content_md5 = dup_or_null(from->content_md5);
    row->metadata = dup_or_null(from->metadata);
    row->tags = dup_or_null(from->tags);
    row->tier = dup_or_null(from->tier);
    row->copy_id = dup_or_null(from->copy_id);
    row->copy_source = dup_or_null(from->copy_source);
    return row;
}

struct blob_row *row_of_found(const struct found *found, const char *name, const char *snapshot)
{
    struct blob_row *row;

    if (found->row) {
        row = row_dup(found->row);
    } else {
        row = xcalloc(1, sizeof(*row));
        row->name = xstrdup(name);
        row->snapshot = xstrdup(snapshot ? snapshot : "");
        row->created_ms =
            (found->facts.born_ns ? found->facts.born_ns : found->facts.mtime_ns) / 1000000;
    }
    if (!found->row || found->is_changed) {
        free(take_ptr(&row->content_md5));
        facts_etag(&found->facts, row->etag);
        row->modified_ms = found->facts.mtime_ns / 1000000;
    }
    row->is_odd = found->is_odd;
    row_set_facts(row, &found->facts);
    return row;
}

void blob_free(struct blob *blob)
{
    struct blob_headers *h;

    if (!blob)
        return;
    h = &blob->headers;
    free(h->content_type);
    free(h->content_encoding);
    free(h->content_language);
    free(h->content_disposition);
    free(h->cache_control);
    free(h->content_md5);
    free(blob->name);
    free(blob->snapshot);
    json_decref(blob->metadata);
    json_decref(blob->tags);
    free(blob->tier);
    free(blob->copy_id);
    free(blob->copy_source);
    free(blob);
}

int blobs_find(struct blobs *blobs,
               const struct blob_address *at,
               const struct conditions *conditions,
               struct blob **ret_blob,
               int *ret_fd,
               bool *ret_unchanged,
               struct err *e)
{
    auto_folder f = {blobs, NULL};
    auto_found found = FOUND_NONE;
    autoptr(blob) blob = NULL;
    int there;

    if (folder_take(blobs, at->account, at->container, &f.folder, e) < 0 ||
        name_check(at->name, e) < 0)
        return -1;
    there = blob_look(blobs, f.folder, at->name, at->snapshot, ret_fd ? O_RDONLY : O_PATH,
                      &found, e);
    if (there <= 0)
        return there < 0 ? -1 : not_found(e);
    blob = blob_of_found(&found, at->name, at->snapshot);
    if (conditions_check_read(conditions, blob, ret_unchanged, e) < 0)
        return -1;
    if (ret_fd)
        *ret_fd = take_fd(&found.fd);
    *ret_blob = take_ptr(&blob);
    return 0;
}
