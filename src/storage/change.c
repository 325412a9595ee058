/* Changes of facts: the row of the file as it is gets new words; the bytes stay.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blocks.h"

#include "base/clock.h"
#include "base/str.h"
#include "store/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int look_to_change(struct blobs *blobs,
                   struct folder *folder,
                   const char *name,
                   const char *snapshot,
                   int flags,
                   const struct conditions *conditions,
                   enum condition_kind kind,
                   struct found *ret_found,
                   struct blob **ret_blob,
                   struct err *e)
{
    int there = blob_look(blobs, folder, name, snapshot, flags, ret_found, e);

    if (there <= 0)
        return there < 0 ? -1 : not_found(e);
    *ret_blob = blob_of_found(ret_found, name, snapshot);
    return conditions_check_write(conditions, *ret_blob, kind, e);
}

static void replace_json(char **text, const json_t *value)
{
    if (!value)
        return;
    free(*text);
    *text = json_text(value);
}

static int resize(struct found *found, struct blob_row *row, int64_t size, struct err *e)
{
    struct facts facts;

    if (row->type != BLOB_PAGE)
        return wrong_type(e);
    if (size % 512 != 0) {
        err_set(e, ERR_INVALID, "the size of a page blob is a multiple of 512");
        return err_reason(e, "InvalidHeaderValue");
    }
    if (ftruncate(found->fd, size) < 0 || fsync(found->fd) < 0)
        return err_sys(e, errno, "could not resize the blob");
    if (facts_of(found->fd, &facts, e) < 0)
        return -1;
    row_set_facts(row, &facts);
    return 0;
}

static int apply(struct blobs *blobs,
                 struct found *found,
                 struct blob_row *row,
                 const struct blob_change *change,
                 struct err *e)
{
    if (change->size >= 0 && resize(found, row, change->size, e) < 0)
        return -1;
    if (change->headers)
        row_set_headers(row, change->headers);
    replace_json(&row->metadata, change->metadata);
    replace_json(&row->tags, change->tags);
    if (change->tier) {
        free(row->tier);
        row->tier = xstrdup(change->tier);
    }
    if (change->headers || change->metadata || change->size >= 0)
        row_touch(blobs, row);
    return 0;
}

/* What readers will be told of the row just written. */
static struct blob *
blob_after(const struct blob_row *row, const char *name, const char *snapshot)
{
    const struct facts facts = {row->inode, row->born_ns, row->mtime_ns, row->size_bytes};

    return blob_of_row(row, &facts, false, name, snapshot);
}

int blobs_change(struct blobs *blobs,
                 const struct blob_address *at,
                 const struct blob_change *change,
                 const struct conditions *conditions,
                 struct blob **ret_blob,
                 struct err *e)
{
    /* Tags and tier are changed under a lease too. */
    enum condition_kind kind = change->headers || change->metadata || change->size >= 0
                                   ? CONDITION_CHANGE
                                   : CONDITION_FREE;
    auto_folder f = {blobs, NULL};
    auto_found found = FOUND_NONE;
    autoptr(blob) blob = NULL;
    autoptr(blob_row) row = NULL;

    if (folder_take(blobs, at->account, at->container, &f.folder, e) < 0 ||
        name_check(at->name, e) < 0)
        return -1;
    auto_name_lock pthread_mutex_t *lock = name_lock(blobs, f.folder, at->name);
    if (look_to_change(blobs, f.folder, at->name, at->snapshot,
                       change->size >= 0 ? O_RDWR : O_PATH, conditions, kind, &found, &blob,
                       e) < 0)
        return -1;
    row = row_of_found(&found, at->name, at->snapshot);
    if (apply(blobs, &found, row, change, e) < 0 || row_write(blobs, f.folder, row, e) < 0)
        return -1;
    if (ret_blob)
        *ret_blob = blob_after(row, at->name, at->snapshot);
    return 0;
}

int blobs_lease(struct blobs *blobs,
                const struct blob_address *at,
                const struct lease_request *request,
                const struct conditions *conditions,
                struct blob **ret_blob,
                int *ret_left_s,
                struct err *e)
{
    struct conditions without_lease = conditions ? *conditions : (struct conditions){0};
    auto_folder f = {blobs, NULL};
    auto_found found = FOUND_NONE;
    autoptr(blob) blob = NULL;
    autoptr(blob_row) row = NULL;
    int left_s = 0;

    without_lease.lease_id = NULL; /* the request's own id is judged by the action */
    if (folder_take(blobs, at->account, at->container, &f.folder, e) < 0 ||
        name_check(at->name, e) < 0)
        return -1;
    auto_name_lock pthread_mutex_t *lock = name_lock(blobs, f.folder, at->name);
    if (look_to_change(blobs, f.folder, at->name, at->snapshot, O_PATH, &without_lease,
                       CONDITION_FREE, &found, &blob, e) < 0 ||
        lease_apply(&blob->lease, request, clock_wall_ms(), &left_s, e) < 0)
        return -1;
    row = row_of_found(&found, at->name, at->snapshot);
    lease_to_row(&blob->lease, &row->lease);
    if (row_write(blobs, f.folder, row, e) < 0)
        return -1;
    if (ret_left_s)
        *ret_left_s = left_s;
    if (ret_blob)
        *ret_blob = blob_after(row, at->name, at->snapshot);
    return 0;
}
