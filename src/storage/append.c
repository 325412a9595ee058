/* Append blobs grow in place: bytes, fdatasync, then the row with the new size.
 *
 * A crash between leaves a file longer than its row says.  So does a job that writes to the
 * file through a mount, whose bytes must not be hidden.  The two are told apart by an attribute
 * on the file, "user.yard.append" = "<from> <to> <ns>", set before the first byte is written: a
 * file longer than its row, whose row still says <from>, and that is not beyond <to>, has a
 * torn append at its end.  It is not shown (find.c), and the next append cuts it off.  Once the
 * row says <to>, the attribute means nothing.  Where a file system has no attributes, the row's
 * size holds.
 *
 * The kernel sets the time of a write before it writes, and dying may come in between: then
 * only the time tells of the append, and <ns>, when it began, tells whose time that is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blocks.h"

#include "base/fault.h"
#include "store/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static int refuse(struct err *e, const char *reason, const char *message)
{
    err_set(e, ERR_PRECONDITION, "%s", message);
    return err_reason(e, reason);
}

static int
check_place(int64_t size, int64_t len, int64_t max_size, int64_t at_offset, struct err *e)
{
    if (at_offset >= 0 && at_offset != size)
        return refuse(e, "AppendPositionConditionNotMet",
                      "the blob does not end where the block was to be added");
    if (max_size >= 0 && size + len > max_size)
        return refuse(e, "MaxBlobSizeConditionNotMet",
                      "the blob would become larger than the request allows");
    return 0;
}

static void mark(int fd, int64_t from, int64_t to)
{
    struct timespec now;
    char text[80];

    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(text, sizeof(text), "%lld %lld %lld", (long long)from, (long long)to,
             (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    fsetxattr(fd, APPEND_ATTRIBUTE, text, strlen(text), 0);
}

/* Back to the blob as its row has it, times too, so that it does not seem changed. */
static void take_back(const struct found *found)
{
    if (ftruncate(found->fd, found->facts.size_bytes) < 0)
        return;
    facts_set_mtime(found->fd, found->facts.mtime_ns);
    fremovexattr(found->fd, APPEND_ATTRIBUTE);
}

/* Add the bytes at the end, on disk. */
static int add_bytes(struct found *found, struct upload *upload, struct err *e)
{
    int64_t from = found->facts.size_bytes, len = (int64_t)upload_size(upload);
    struct stat st;

    if (fstat(found->fd, &st) < 0)
        return err_sys(e, errno, "could not ask for the blob's size");
    mark(found->fd, from, st.st_size > from + len ? st.st_size : from + len);
    if (st.st_size > from && ftruncate(found->fd, from) < 0)
        return err_sys(e, errno, "could not cut off a torn append");
    FAULT("storage.before-append");
    if (copy_range(upload_fd(upload), 0, found->fd, from, len, e) < 0)
        return -1;
    FAULT("storage.after-append");
    if (fdatasync(found->fd) < 0)
        return err_sys(e, errno, "could not write the block to disk");
    return 0;
}

static int append_locked(struct blobs *blobs,
                         struct folder *folder,
                         const struct blob_address *at,
                         struct upload *upload,
                         struct found *found,
                         struct blob **ret_blob,
                         struct err *e)
{
    autoptr(blob_row) row = row_of_found(found, at->name, "");
    struct facts facts;

    if (add_bytes(found, upload, e) < 0 || facts_of(found->fd, &facts, e) < 0) {
        take_back(found);
        return -1;
    }
    row_set_facts(row, &facts);
    row_touch(blobs, row);
    row->block_count++;
    free(take_ptr(&row->content_md5)); /* it was of the bytes before */
    if (row_write(blobs, folder, row, e) < 0) {
        take_back(found);
        return -1;
    }
    if (ret_blob)
        *ret_blob = blob_of_row(row, &facts, false, at->name, "");
    return 0;
}

int blobs_append(struct blobs *blobs,
                 const struct blob_address *at,
                 struct upload *upload,
                 int64_t max_size,
                 int64_t at_offset,
                 const struct conditions *conditions,
                 struct blob **ret_blob,
                 int64_t *ret_offset,
                 struct err *e)
{
    struct folder *folder = upload_folder(upload);
    auto_found found = FOUND_NONE;
    autoptr(blob) blob = NULL;

    if (name_check(at->name, e) < 0)
        return -1;
    auto_name_lock pthread_mutex_t *lock = name_lock(blobs, folder, at->name);
    if (look_to_change(blobs, folder, at->name, "", O_RDWR, conditions, CONDITION_CHANGE,
                       &found, &blob, e) < 0)
        return -1;
    if (blob->type != BLOB_APPEND)
        return wrong_type(e);
    if (blob->block_count >= MOST_BLOCKS) {
        err_set(e, ERR_CONFLICT, "an append blob has at most %d blocks", MOST_BLOCKS);
        return err_reason(e, "BlockCountExceedsLimit");
    }
    if (check_place(blob->size_bytes, (int64_t)upload_size(upload), max_size, at_offset, e) <
            0 ||
        append_locked(blobs, folder, at, upload, &found, ret_blob, e) < 0)
        return -1;
    if (ret_offset)
        *ret_offset = blob->size_bytes;
    return 0;
}
