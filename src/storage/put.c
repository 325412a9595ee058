/* New files for names: Put Blob, and what all that replace a blob share.
 *
 * The order is docs/design/storage.md's: the file is on disk and its row (beside the old one,
 * with the name marked unsettled), then the rename, then the folder; then the caller may
 * acknowledge, and the old row goes with the next commit.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "base/fault.h"
#include "base/json.h"
#include "base/str.h"
#include "store/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_TRIES = 1000, /* of a put against others that change the folders above it */
};

/* --- rows --- */

void row_touch(struct blobs *blobs, struct blob_row *row)
{
    int64_t tick = blobs_tick(blobs);

    etag_format(row->etag, tick);
    row->modified_ms = tick_to_ms(tick);
    lease_after_write(&row->lease, row->modified_ms);
}

void row_set_facts(struct blob_row *row, const struct facts *facts)
{
    row->inode = facts->inode;
    row->born_ns = facts->born_ns;
    row->mtime_ns = facts->mtime_ns;
    row->size_bytes = facts->size_bytes;
}

static void set_text(char **text, const char *value)
{
    char *copy = value && *value ? xstrdup(value) : NULL;

    free(*text);
    *text = copy;
}

void row_set_headers(struct blob_row *row, const struct blob_headers *h)
{
    set_text(&row->content_type, h->content_type);
    set_text(&row->content_encoding, h->content_encoding);
    set_text(&row->content_language, h->content_language);
    set_text(&row->content_disposition, h->content_disposition);
    set_text(&row->cache_control, h->cache_control);
    set_text(&row->content_md5, h->content_md5);
}

char *json_text(const json_t *value)
{
    struct str text = {0};

    if (!value || json_object_size(value) + json_array_size(value) == 0)
        return NULL;
    json_write(&text, value);
    return str_take(&text);
}

void row_set_put(struct blob_row *row, const struct blob_put *put)
{
    row_set_headers(row, &put->headers);
    free(row->metadata);
    free(row->tags);
    row->metadata = json_text(put->metadata);
    row->tags = json_text(put->tags);
    set_text(&row->tier, put->tier);
}

static void row_inherit(struct blob_row *row, const struct found *old)
{
    if (!old->row)
        return;
    row->created_ms = old->row->created_ms;
    row->lease = old->row->lease;
    lease_after_write(&row->lease, row->modified_ms);
}

struct row_change {
    struct folder *folder;
    const struct blob_row *row;
    const struct swap *swap; /* NULL = only the row */
};

static int apply_row(void *context, struct db *db, struct err *e)
{
    const struct row_change *c = context;
    const struct blob_row *row = c->row;
    struct blob_key key = {c->folder->id, row->name, row->snapshot, row->inode, row->born_ns};

    if (c->swap && store_mark_unsettled(db, c->folder->id, row->name, row->snapshot, e) < 0)
        return err_reason(e, e->code == ERR_NOT_FOUND ? "ContainerNotFound" : NULL);
    if (c->swap && c->swap->block_list_len > 0 &&
        store_put_block_list(db, &key, c->swap->block_list, c->swap->block_list_len, e) < 0)
        return -1;
    if (!c->swap && store_keep_blob(db, &key, e) < 0)
        return -1;
    return store_put_blob(db, c->folder->id, row, e);
}

int row_write(struct blobs *blobs,
              struct folder *folder,
              const struct blob_row *row,
              struct err *e)
{
    struct row_change change = {folder, row, NULL};

    return blobs_write(blobs, apply_row, &change, e);
}

/* --- the swap --- */

/* Bring file and row to disk.  A row without a file harms nobody, and a file in tmp/ neither:
 * so the two need not wait for each other, only the rename for both. */
static int make_durable(struct blobs *blobs, struct swap *swap, struct err *e)
{
    struct row_change change = {swap->folder, swap->row, swap};
    struct row_wait wait;
    int rc;

    FAULT("storage.before-row");
    blobs_write_begin(blobs, apply_row, &change, &wait);
    rc = swap->upload ? upload_sync(swap->upload, e) : 0;
    return blobs_write_end(&wait, rc < 0 ? NULL : e) < 0 ? -1 : rc;
}

/* 0 done, 1 the spot was taken away meanwhile, -1. */
static int try_swap(struct blobs *blobs, struct swap *swap, struct err *e)
{
    auto_spot spot = {.parent_fd = -1};

    if (tree_prepare(swap->folder, swap->name, &spot, e) < 0)
        return -1;
    swap->row->is_odd = spot.is_odd;
    if (make_durable(blobs, swap, e) < 0) {
        tree_prune(swap->folder, swap->name);
        return -1;
    }
    FAULT("storage.after-row");
    return tree_place(swap->folder, swap->tmp, swap->name, &spot, e);
}

/* After a failure, rows go by what lies under the name now. */
static void settle_by_looking(struct blobs *blobs, struct swap *swap)
{
    struct blob_key keep = {swap->folder->id, swap->name, "", 0, 0};
    auto_found found = FOUND_NONE;
    int there = blob_look(blobs, swap->folder, swap->name, "", O_PATH, &found, NULL);

    if (there < 0)
        return; /* stays unsettled until the next start */
    if (found.row) {
        keep.inode = found.row->inode;
        keep.born_ns = found.row->born_ns;
    }
    settle_later(blobs, &keep, false);
}

int blob_swap(struct blobs *blobs, struct swap *swap, struct err *e)
{
    struct blob_key keep = {swap->folder->id, swap->name, "", swap->row->inode,
                            swap->row->born_ns};
    bool had_staged = false;
    int rc = 1;

    for (int i = 0; i < MOST_TRIES && rc == 1; i++)
        rc = try_swap(blobs, swap, e);
    if (rc == 1)
        err_set(e, ERR_BUSY,
                "could not put the file in its place: folders change all the time");
    if (rc != 0) {
        settle_by_looking(blobs, swap);
        return -1;
    }
    FAULT("storage.after-swap");
    staging_drop(blobs, swap->folder, swap->name, &had_staged);
    settle_later(blobs, &keep, had_staged);
    return 0;
}

/* --- Put Blob --- */

static struct blob_row *new_row(struct blobs *blobs, const char *name, enum blob_type type)
{
    struct blob_row *row = xcalloc(1, sizeof(*row));

    row->name = xstrdup(name);
    row->snapshot = xstrdup("");
    row->type = (int)type;
    row_touch(blobs, row);
    row->created_ms = row->modified_ms;
    return row;
}

struct blob_row *row_new_for(struct blobs *blobs,
                             const char *name,
                             enum blob_type type,
                             const struct blob_put *put,
                             const struct found *old)
{
    struct blob_row *row = new_row(blobs, name, type);

    row_set_put(row, put);
    row_inherit(row, old);
    return row;
}

int look_to_replace(struct blobs *blobs,
                    struct folder *folder,
                    const char *name,
                    const struct conditions *conditions,
                    struct found *ret_found,
                    struct err *e)
{
    autoptr(blob) blob = NULL;
    int there = blob_look(blobs, folder, name, "", O_PATH, ret_found, e);

    if (there < 0)
        return -1;
    if (there > 0)
        blob = blob_of_found(ret_found, name, "");
    return conditions_check_write(conditions, blob, CONDITION_CREATE, e);
}

int blobs_put(struct blobs *blobs,
              const struct blob_address *at,
              struct upload *upload,
              const struct blob_put *put,
              const struct conditions *conditions,
              struct blob **ret_blob,
              struct err *e)
{
    struct folder *folder = upload_folder(upload);
    struct swap swap = {
        .folder = folder, .name = at->name, .tmp = upload_tmp(upload), .upload = upload};
    autoptr(blob_row) row = NULL;
    auto_found old = FOUND_NONE;
    struct facts facts;

    if (name_check(at->name, e) < 0 || facts_of(upload_fd(upload), &facts, e) < 0)
        return -1;
    upload_md5(upload); /* nobody waits for it under the lock */
    auto_name_lock pthread_mutex_t *lock = name_lock(blobs, folder, at->name);
    if (look_to_replace(blobs, folder, at->name, conditions, &old, e) < 0)
        return -1;
    row = row_new_for(blobs, at->name, BLOB_BLOCK, put, &old);
    if (!row->content_md5)
        row->content_md5 = xstrdup(upload_md5(upload));
    row_set_facts(row, &facts);
    swap.row = row;
    if (blob_swap(blobs, &swap, e) < 0)
        return -1;
    upload_keep(upload);
    if (ret_blob)
        *ret_blob = blob_of_row(row, &facts, false, at->name, "");
    return 0;
}

/* --- append and page blobs --- */

static int make_empty(struct folder *folder,
                      int64_t size,
                      char tmp[TMP_NAME_BYTES],
                      struct facts *ret_facts,
                      struct err *e)
{
    auto_close int fd = -1;

    if (tmp_open(folder, tmp, &fd, e) < 0)
        return -1;
    if (ftruncate(fd, size) < 0 || fsync(fd) < 0)
        return err_sys(e, errno, "could not make a file of %lld bytes", (long long)size);
    return facts_of(fd, ret_facts, e);
}

static int create(struct blobs *blobs,
                  struct swap *swap,
                  enum blob_type type,
                  const struct facts *facts,
                  const struct blob_put *put,
                  const struct conditions *conditions,
                  struct blob **ret_blob,
                  struct err *e)
{
    auto_found old = FOUND_NONE;
    autoptr(blob_row) row = NULL;
    auto_name_lock pthread_mutex_t *lock = name_lock(blobs, swap->folder, swap->name);

    if (look_to_replace(blobs, swap->folder, swap->name, conditions, &old, e) < 0)
        return -1;
    row = row_new_for(blobs, swap->name, type, put, &old);
    row_set_facts(row, facts);
    swap->row = row;
    if (blob_swap(blobs, swap, e) < 0)
        return -1;
    if (ret_blob)
        *ret_blob = blob_of_row(row, facts, false, swap->name, "");
    return 0;
}

int blobs_create(struct blobs *blobs,
                 const struct blob_address *at,
                 enum blob_type type,
                 int64_t size_bytes,
                 const struct blob_put *put,
                 const struct conditions *conditions,
                 struct blob **ret_blob,
                 struct err *e)
{
    auto_folder f = {blobs, NULL};
    char tmp[TMP_NAME_BYTES] = "";
    struct swap swap = {.name = at->name, .tmp = tmp};
    struct facts facts;
    int rc = -1;

    if (folder_take(blobs, at->account, at->container, &f.folder, e) < 0 ||
        name_check(at->name, e) < 0)
        return -1;
    if (size_bytes < 0 || size_bytes % 512 != 0) {
        err_set(e, ERR_INVALID, "the size of a page blob is a multiple of 512");
        return err_reason(e, "InvalidHeaderValue");
    }
    swap.folder = f.folder;
    if (make_empty(f.folder, type == BLOB_PAGE ? size_bytes : 0, tmp, &facts, e) == 0)
        rc = create(blobs, &swap, type, &facts, put, conditions, ret_blob, e);
    if (rc < 0 && tmp[0])
        unlinkat(f.folder->fd, tmp, 0);
    return rc;
}
