/* Parts of files, written in place.
 *
 * What may be refused comes first: room for the bytes, then the row where one is to change.  So
 * a full disk changes neither bytes nor ETag.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/files-internal.h"

#include "base/fault.h"
#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum {
    SCARCE_BYTES = 64 << 20, /* less room than this may be gone before it is used */
};

/* An open file with its row, locked. */
struct opened {
    int fd;
    struct file_stat stat;
    struct file_row *row;
    struct file_lock lock;
    bool is_alone; /* locked for writing, not only against it */
};

static void opened_done(struct opened *opened)
{
    mem_close_fd(&opened->fd);
    file_row_free(opened->row);
    file_unlock(&opened->lock);
}
#define auto_opened __attribute__((cleanup(opened_done))) struct opened

static bool is_room_scarce(int fd)
{
    struct statvfs st;

    return fstatvfs(fd, &st) == 0 &&
           (uint64_t)st.f_bavail * (uint64_t)st.f_frsize < SCARCE_BYTES;
}

/* Parallel ranges of one file do not wait for each other, unless the row has an MD5: it holds
 * only as long as row and file are changed in step.  Nor where room may be lacking: what a
 * failed attempt did to the times can be undone only as long as nobody else writes. */
static int open_for_range(struct files *files,
                          const struct share_place *place,
                          const struct file_spot *spot,
                          bool keeps_written,
                          struct opened *opened,
                          struct err *e)
{
    if (file_spot_open(spot, O_RDWR, &opened->fd, &opened->stat, e) < 0 ||
        file_row_find(files, place, &opened->stat, &opened->row, e) < 0)
        return -1;
    opened->is_alone = keeps_written || (opened->row && opened->row->content_md5) ||
                       is_room_scarce(opened->fd);
    file_lock(files, opened->stat.inode, opened->is_alone, &opened->lock);
    file_row_free(opened->row);
    opened->row = NULL;
    if (file_stat_of(opened->fd, &opened->stat, e) < 0)
        return -1;
    return file_row_find(files, place, &opened->stat, &opened->row, e);
}

static int check_span(int64_t size, int64_t offset, int64_t len, struct err *e)
{
    if (offset < 0 || len <= 0 || offset > size || len > size - offset)
        return files_fail(e, ERR_INVALID, "InvalidRange",
                          "the range does not lie within the file");
    return 0;
}

static int write_at(int fd, const char *bytes, int64_t len, int64_t offset, struct err *e)
{
    while (len > 0) {
        ssize_t put = pwrite(fd, bytes, (size_t)len, offset);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return files_fail_sys(e, errno, "could not write a file");
        bytes += put;
        offset += put;
        len -= put;
    }
    return 0;
}

static int clear_at(int fd, int64_t len, int64_t offset, struct err *e)
{
    static const char zeros[64 * 1024];

    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, len) == 0)
        return 0;
    if (errno != EOPNOTSUPP)
        return files_fail_sys(e, errno, "could not clear a part of a file");
    while (len > 0) {
        int64_t some = len < (int64_t)sizeof(zeros) ? len : (int64_t)sizeof(zeros);

        if (write_at(fd, zeros, some, offset, e) < 0)
            return -1;
        offset += some;
        len -= some;
    }
    return 0;
}

static int edit_nothing(struct file_row *row, void *context, struct err *e)
{
    (void)row;
    (void)context;
    (void)e;
    return 0;
}

/* A row with an MD5 keeps it when a client writes, and so must follow the file; a file that
 * keeps its time needs a row that tells its versions apart.  Otherwise the time is the version.
 */
static int renew_row(struct files *files,
                     const struct file_address *at,
                     struct opened *opened,
                     struct file_time written,
                     struct err *e)
{
    bool holds = opened->row && file_row_holds(opened->row, &opened->stat);
    bool keeps_written = written.ns == opened->stat.mtime_ns;
    const struct file_edit edit = {.edit = edit_nothing, .is_ours = holds};
    struct file_stat stat;

    if (!keeps_written && !(holds && opened->row->content_md5))
        return 0;
    /* The kernel may not keep the time as exactly as we have it. */
    if (file_set_written(opened->fd, written, e) < 0 || file_stat_of(opened->fd, &stat, e) < 0)
        return -1;
    file_row_free(opened->row);
    opened->row = NULL;
    return file_row_edit(files, at, &stat, &edit, &opened->row, e);
}

/* All that can be refused. */
static int prepare(struct files *files,
                   const struct file_address *at,
                   struct opened *opened,
                   int64_t offset,
                   int64_t len,
                   bool clears,
                   struct file_time written,
                   struct err *e)
{
    if (!clears && fallocate(opened->fd, FALLOC_FL_KEEP_SIZE, offset, len) < 0 &&
        errno != EOPNOTSUPP)
        return files_fail_sys(e, errno, "could not make room for a part of a file");
    return renew_row(files, at, opened, written, e);
}

static int put_span(struct opened *opened,
                    int64_t offset,
                    const void *bytes,
                    int64_t len,
                    struct file_time written,
                    struct err *e)
{
    int rc = bytes ? write_at(opened->fd, bytes, len, offset, e)
                   : clear_at(opened->fd, len, offset, e);

    if (rc < 0 || file_set_written(opened->fd, written, e) < 0)
        return -1;
    FAULT("files.before-datasync");
    /* The times too: they are the ETag. */
    if (fsync(opened->fd) < 0)
        return files_fail_sys(e, errno, "could not sync a file");
    FAULT("files.after-datasync");
    return file_stat_of(opened->fd, &opened->stat, e);
}

static struct file_time time_of_write(const struct opened *opened, bool keeps_written)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (struct file_time){
        FILE_TIME_SET,
        keeps_written ? opened->stat.mtime_ns : (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
    };
}

int files_put_range(struct files *files,
                    const struct file_address *at,
                    int64_t offset,
                    const void *bytes,
                    int64_t len,
                    bool keeps_written,
                    const char *lease_id,
                    struct file **ret_file,
                    struct err *e)
{
    auto_place place = SHARE_NOWHERE;
    auto_file_spot spot = FILE_NOWHERE;
    auto_opened opened = {.fd = -1};
    struct file_time written;

    if (share_place_open(files, at->account, at->share, &place, e) < 0 ||
        file_spot_find(&place, at, &spot, e) < 0 || file_spot_need(&spot, 0, e) < 0 ||
        open_for_range(files, &place, &spot, keeps_written, &opened, e) < 0 ||
        file_check_lease(opened.row, lease_id, e) < 0 ||
        file_check_writable(opened.row, e) < 0 ||
        check_span(opened.stat.size_bytes, offset, len, e) < 0)
        return -1;
    written = time_of_write(&opened, keeps_written);
    if (prepare(files, at, &opened, offset, len, !bytes, written, e) < 0) {
        if (opened.is_alone)
            facts_set_mtime(opened.fd, opened.stat.mtime_ns);
        return -1;
    }
    if (put_span(&opened, offset, bytes, len, written, e) < 0)
        return -1;
    *ret_file = file_of(opened.row, &opened.stat, spot.name, spot.parent_inode);
    return 0;
}

int files_list_ranges(struct files *files,
                      const struct file_address *at,
                      int64_t first,
                      int64_t last,
                      void (*each)(int64_t first, int64_t last, void *context),
                      void *context,
                      struct file **ret_file,
                      struct err *e)
{
    autoptr(file) file = NULL;
    auto_close int fd = -1;
    int64_t end;

    if (files_find(files, at, 0, &file, &fd, e) < 0)
        return -1;
    end = last < file->size_bytes - 1 ? last + 1 : file->size_bytes;
    while (first < end) {
        int64_t data = lseek(fd, first, SEEK_DATA), hole;

        if (data < 0 || data >= end)
            break;
        hole = lseek(fd, data, SEEK_HOLE);
        if (hole < 0 || hole > end)
            hole = end;
        each(data, hole - 1, context);
        first = hole;
    }
    *ret_file = take_ptr(&file);
    return 0;
}
