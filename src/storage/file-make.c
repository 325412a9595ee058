/* New files and directories: made under tmp/, described by a row, then given their name.  In
 * the instant of the rename the file and its facts are there together.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/files-internal.h"

#include "base/clock.h"
#include "base/crypt.h"
#include "base/fault.h"
#include "base/fs.h"
#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct making {
    struct files *files;
    const struct file_address *at;
    const struct file_put *put;
    const struct file_copy *copy; /* NULL: zeros, or put->content */
    int64_t size;
    const char *lease_id;
};

/* The temporary file; removed unless it got a name. */
struct scratch {
    int dir_fd; /* borrowed */
    int fd;
    bool is_directory;
    char name[TMP_NAME_BYTES];
};

static void scratch_done(struct scratch *scratch)
{
    if (scratch->name[0])
        unlinkat(scratch->dir_fd, scratch->name, scratch->is_directory ? AT_REMOVEDIR : 0);
    mem_close_fd(&scratch->fd);
}
#define auto_scratch __attribute__((cleanup(scratch_done))) struct scratch

static int scratch_open(struct scratch *scratch, struct err *e)
{
    int flags = O_CLOEXEC | O_NOFOLLOW;
    mode_t mode = scratch->is_directory ? FOLDER_MODE : FILE_MODE;
    char name[TMP_NAME_BYTES];

    tmp_name(name);
    if (scratch->is_directory && mkdirat(scratch->dir_fd, name, 0700) < 0)
        return files_fail_sys(e, errno, "could not make a directory");
    flags |= scratch->is_directory ? O_RDONLY | O_DIRECTORY : O_RDWR | O_CREAT | O_EXCL;
    scratch->fd = openat(scratch->dir_fd, name, flags, 0600);
    if (scratch->fd < 0)
        return files_fail_sys(e, errno, "could not make a temporary file");
    memcpy(scratch->name, name, sizeof(name));
    if (fchmod(scratch->fd, mode) < 0)
        return files_fail_sys(e, errno, "could not make a temporary file");
    return 0;
}

/* --- files --- */

static int fill(const struct making *m, int fd, struct err *e)
{
    if (ftruncate(fd, m->size) < 0)
        return files_fail_sys(e, errno, "could not make a file");
    if (m->copy && copy_range(m->copy->fd, 0, fd, 0, m->size, e) < 0)
        return -1;
    if (m->put->content && fs_write_all(fd, m->put->content, m->put->content_len, e) < 0)
        return -1;
    if (file_set_written(fd, m->put->written, e) < 0)
        return -1;
    FAULT("files.before-fsync");
    if (fsync(fd) < 0)
        return files_fail_sys(e, errno, "could not sync a file");
    return 0;
}

static void set_copied(struct file_row *row, const struct file_copy *copy)
{
    char id[CRYPT_UUID_BYTES];

    row->copy_id = xstrdup(crypt_uuid(id));
    row->copy_source = xstrdup(copy->source_url);
    row->copied_ms = clock_wall_ms();
}

/* May what is at the spot be replaced?  Its lease goes on with the new file. */
static int check_old(const struct making *m,
                     const struct share_place *place,
                     const struct file_spot *spot,
                     struct file_row **ret_old,
                     struct err *e)
{
    const char *lease_id = m->copy ? m->copy->lease_id : m->lease_id;

    if (!spot->is_there)
        return file_check_lease(NULL, lease_id, e);
    if (m->put->must_be_new)
        return files_fail(e, ERR_CONFLICT, "ResourceAlreadyExists", "the file exists already");
    if (file_spot_need(spot, 0, e) < 0 ||
        file_row_find(m->files, place, &spot->stat, ret_old, e) < 0 ||
        file_check_lease(*ret_old, lease_id, e) < 0)
        return -1;
    return m->copy && m->copy->ignores_readonly ? 0 : file_check_writable(*ret_old, e);
}

static int check_size(int64_t size, struct err *e)
{
    if (size < 0 || size > FILES_MOST_SIZE)
        return files_fail(e, ERR_INVALID, "OutOfRangeInput", "a file has at most 4 TiB");
    return 0;
}

static int make_locked(const struct making *m,
                       const struct share_place *place,
                       const struct file_spot *spot,
                       struct file **ret_file,
                       struct err *e)
{
    auto_scratch scratch = {.dir_fd = place->fd, .fd = -1};
    autoptr(file_row) old = NULL;
    autoptr(file_row) row = NULL;
    const char *name = spot->is_there ? spot->name : spot->asked;
    struct file_stat stat;

    if (check_old(m, place, spot, &old, e) < 0 ||
        share_reserve(m->files, place, m->size - (spot->is_there ? spot->stat.size_bytes : 0),
                      e) < 0 ||
        scratch_open(&scratch, e) < 0 || fill(m, scratch.fd, e) < 0 ||
        file_stat_of(scratch.fd, &stat, e) < 0)
        return -1;
    row = file_row_new(m->files, m->put, &stat);
    if (old)
        row->lease = old->lease;
    if (m->copy)
        set_copied(row, m->copy);
    if (file_row_write(m->files, m->at, row, e) < 0 ||
        file_spot_place(m->files, place->fd, scratch.name, spot, name, !m->put->must_be_new,
                        e) < 0)
        return -1;
    scratch.name[0] = '\0';
    if (old)
        file_row_forget(m->files, place, &spot->stat);
    if (file_stat_of(scratch.fd, &stat, e) < 0)
        return -1;
    *ret_file = file_of(row, &stat, name, spot->parent_inode);
    return 0;
}

static int make_file(const struct making *m, struct file **ret_file, struct err *e)
{
    auto_place place = SHARE_NOWHERE;
    auto_file_spot spot = FILE_NOWHERE;
    auto_file_lock lock = {0};

    if (check_size(m->size, e) < 0 ||
        share_place_open(m->files, m->at->account, m->at->share, &place, e) < 0 ||
        file_spot_find(&place, m->at, &spot, e) < 0)
        return -1;
    if (spot.is_there)
        file_lock(m->files, spot.stat.inode, true, &lock);
    return make_locked(m, &place, &spot, ret_file, e);
}

int files_create(struct files *files,
                 const struct file_address *at,
                 int64_t size_bytes,
                 const struct file_put *put,
                 const char *lease_id,
                 struct file **ret_file,
                 struct err *e)
{
    const struct making m = {files, at, put, NULL, size_bytes, lease_id};

    return make_file(&m, ret_file, e);
}

int files_copy(struct files *files,
               const struct file_copy *copy,
               const struct file_address *to,
               const struct file_put *put,
               struct file **ret_file,
               struct err *e)
{
    struct making m = {files, to, put, copy, 0, NULL};
    struct file_stat stat;

    if (file_stat_of(copy->fd, &stat, e) < 0)
        return -1;
    m.size = stat.size_bytes;
    return make_file(&m, ret_file, e);
}

/* --- directories --- */

static int check_spot_is_free(const struct file_spot *spot, struct err *e)
{
    if (!spot->is_there)
        return 0;
    if (!spot->stat.is_directory)
        return files_fail(e, ERR_CONFLICT, "ResourceTypeMismatch",
                          "a file of that name is there");
    return files_fail(e, ERR_CONFLICT, "ResourceAlreadyExists", "the directory exists already");
}

int files_create_directory(struct files *files,
                           const struct file_address *at,
                           const struct file_put *put,
                           struct file **ret_file,
                           struct err *e)
{
    auto_place place = SHARE_NOWHERE;
    auto_file_spot spot = FILE_NOWHERE;
    auto_scratch scratch = {.fd = -1, .is_directory = true};
    autoptr(file_row) row = NULL;
    struct file_stat stat;

    if (share_place_open(files, at->account, at->share, &place, e) < 0 ||
        file_spot_find(&place, at, &spot, e) < 0 || check_spot_is_free(&spot, e) < 0)
        return -1;
    scratch.dir_fd = place.fd;
    if (scratch_open(&scratch, e) < 0 || file_set_written(scratch.fd, put->written, e) < 0 ||
        file_stat_of(scratch.fd, &stat, e) < 0)
        return -1;
    if (fsync(scratch.fd) < 0)
        return files_fail_sys(e, errno, "could not sync a directory");
    row = file_row_new(files, put, &stat);
    if (file_row_write(files, at, row, e) < 0 ||
        file_spot_place(files, place.fd, scratch.name, &spot, spot.asked, false, e) < 0)
        return -1;
    scratch.name[0] = '\0';
    if (file_stat_of(scratch.fd, &stat, e) < 0)
        return -1;
    *ret_file = file_of(row, &stat, spot.asked, spot.parent_inode);
    return 0;
}
