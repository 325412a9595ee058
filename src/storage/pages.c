/* Page blobs change in place, in pieces of 512 bytes.  A crash may leave a write that was not
 * acknowledged done in part, as on a disk.
 *
 * What may be refused comes first: room for the bytes, then the row, which says by which time
 * of the last write the file will be known.  So a full disk changes neither bytes nor ETag.
 *
 * What holds data is asked of the file system, which knows it by its own blocks; within those,
 * a page of zeros counts as none.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blocks.h"

#include "base/fault.h"
#include "store/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PAGE = 512,
    SCAN_BYTES = 1 << 20, /* a multiple of PAGE */
};

static int bad_range(struct err *e)
{
    err_set(e, ERR_RANGE, "the pages are not within the blob");
    return err_reason(e, "InvalidPageRange");
}

static int clear(int fd, int64_t offset, int64_t len, struct err *e)
{
    static const char zeros[4096];

    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, len) == 0)
        return 0;
    while (len > 0) {
        size_t want = len < (int64_t)sizeof(zeros) ? (size_t)len : sizeof(zeros);
        ssize_t put = pwrite(fd, zeros, want, offset);

        if (put < 0 && errno != EINTR)
            return err_sys(e, errno, "could not clear pages");
        offset += put > 0 ? put : 0;
        len -= put > 0 ? put : 0;
    }
    return 0;
}

/* Room for the bytes, and a new time for the file, which is what the row must know it by. */
static int prepare(
    int fd, int64_t offset, int64_t len, bool clears, struct facts *ret_facts, struct err *e)
{
    struct timespec now;

    if (!clears && fallocate(fd, FALLOC_FL_KEEP_SIZE, offset, len) < 0 && errno != EOPNOTSUPP)
        return err_sys(e, errno, "could not make room for pages");
    clock_gettime(CLOCK_REALTIME, &now);
    facts_set_mtime(fd, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
    return facts_of(fd, ret_facts, e);
}

static int write_pages(int fd,
                       int64_t offset,
                       int64_t len,
                       struct upload *upload,
                       const struct facts *facts,
                       struct err *e)
{
    int rc = upload ? copy_range(upload_fd(upload), 0, fd, offset, len, e)
                    : clear(fd, offset, len, e);

    if (rc < 0)
        return -1;
    FAULT("storage.after-pages");
    /* The time too: a row whose file has another is not believed. */
    facts_set_mtime(fd, facts->mtime_ns);
    if (fsync(fd) < 0)
        return err_sys(e, errno, "could not write the pages to disk");
    return 0;
}

static int put_locked(struct blobs *blobs,
                      struct folder *folder,
                      const struct found *found,
                      struct blob_row *row,
                      int64_t offset,
                      int64_t len,
                      struct upload *upload,
                      struct err *e)
{
    struct facts facts;

    if (prepare(found->fd, offset, len, !upload, &facts, e) < 0) {
        facts_set_mtime(found->fd, found->facts.mtime_ns);
        return -1;
    }
    row_set_facts(row, &facts);
    row_touch(blobs, row);
    free(take_ptr(&row->content_md5)); /* it was of the bytes before */
    if (row_write(blobs, folder, row, e) < 0) {
        facts_set_mtime(found->fd, found->facts.mtime_ns);
        return -1;
    }
    return write_pages(found->fd, offset, len, upload, &facts, e);
}

int blobs_put_pages(struct blobs *blobs,
                    const struct blob_address *at,
                    int64_t offset,
                    int64_t len,
                    struct upload *upload,
                    const struct conditions *conditions,
                    struct blob **ret_blob,
                    struct err *e)
{
    auto_folder f = {blobs, NULL};
    auto_found found = FOUND_NONE;
    autoptr(blob) blob = NULL;
    autoptr(blob_row) row = NULL;
    struct facts facts;

    if (folder_take(blobs, at->account, at->container, &f.folder, e) < 0 ||
        name_check(at->name, e) < 0)
        return -1;
    if (offset < 0 || len <= 0 || offset % PAGE != 0 || len % PAGE != 0 ||
        (upload && (int64_t)upload_size(upload) != len))
        return bad_range(e);
    auto_name_lock pthread_mutex_t *lock = name_lock(blobs, f.folder, at->name);
    if (look_to_change(blobs, f.folder, at->name, "", O_RDWR, conditions, CONDITION_CHANGE,
                       &found, &blob, e) < 0)
        return -1;
    if (blob->type != BLOB_PAGE)
        return wrong_type(e);
    if (offset > blob->size_bytes || len > blob->size_bytes - offset)
        return bad_range(e);
    row = row_of_found(&found, at->name, "");
    if (put_locked(blobs, f.folder, &found, row, offset, len, upload, e) < 0 ||
        facts_of(found.fd, &facts, e) < 0)
        return -1;
    if (ret_blob)
        *ret_blob = blob_of_row(row, &facts, false, at->name, "");
    return 0;
}

/* --- what holds data --- */

struct scan {
    int64_t first; /* of the span being gathered, -1 = none */
    void (*each)(int64_t first, int64_t last, void *context);
    void *context;
};

static void end_span(struct scan *scan, int64_t end)
{
    if (scan->first >= 0)
        scan->each(scan->first, end - 1, scan->context);
    scan->first = -1;
}

static int scan_data(int fd, int64_t from, int64_t to, struct scan *scan, struct err *e)
{
    static const char zeros[PAGE];
    auto_free char *buf = xmalloc(SCAN_BYTES);

    while (from < to) {
        size_t want = to - from < SCAN_BYTES ? (size_t)(to - from) : SCAN_BYTES;
        ssize_t got = pread(fd, buf, want, from);

        if (got < 0)
            return err_sys(e, errno, "could not read pages");
        if (got == 0)
            break;
        for (ssize_t i = 0; i < got; i += PAGE) {
            size_t len = got - i < PAGE ? (size_t)(got - i) : PAGE;

            if (memcmp(buf + i, zeros, len) == 0)
                end_span(scan, from + i);
            else if (scan->first < 0)
                scan->first = from + i;
        }
        from += got;
    }
    return 0;
}

static int scan_pages(int fd, int64_t size, struct scan *scan, struct err *e)
{
    int64_t hole = 0;

    while (hole < size) {
        int64_t data = lseek(fd, hole, SEEK_DATA);

        if (data < 0 && errno == ENXIO)
            break;
        if (data < 0)
            return err_sys(e, errno, "could not look for pages");
        if (data > hole)
            end_span(scan, hole);
        hole = lseek(fd, data, SEEK_HOLE);
        if (hole < 0 || hole > size)
            hole = size;
        data -= data % PAGE;
        if (scan_data(fd, data, hole, scan, e) < 0)
            return -1;
    }
    end_span(scan, hole < size ? hole : size);
    return 0;
}

int blobs_list_pages(struct blobs *blobs,
                     const struct blob_address *at,
                     void (*each)(int64_t first, int64_t last, void *context),
                     void *context,
                     struct blob **ret_blob,
                     struct err *e)
{
    struct scan scan = {-1, each, context};
    autoptr(blob) blob = NULL;
    auto_close int fd = -1;

    if (blobs_find(blobs, at, NULL, &blob, &fd, NULL, e) < 0)
        return -1;
    if (blob->type != BLOB_PAGE)
        return wrong_type(e);
    if (scan_pages(fd, blob->size_bytes, &scan, e) < 0)
        return -1;
    *ret_blob = take_ptr(&blob);
    return 0;
}
