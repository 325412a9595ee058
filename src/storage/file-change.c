/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/files-internal.h"

#include "base/clock.h"
#include "base/fault.h"
#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void set_text(char **text, const char *with)
{
    if (!with)
        return;
    free(*text);
    *text = xstrdup(with);
}

/* --- facts, times, size --- */

struct changing {
    struct files *files;
    const struct file_address *at;
    const struct file_change *change;
    const char *lease_id;
};

static int edit_change(struct file_row *row, void *context, struct err *e)
{
    const struct changing *c = context;
    const struct file_change *change = c->change;
    int64_t now_ns = clock_wall_ms() * 1000000;

    if (file_check_lease(row, c->lease_id, e) < 0)
        return -1;
    if (change->headers)
        file_row_set_headers(row, change->headers);
    if (change->metadata) {
        free(row->metadata);
        row->metadata = json_text(change->metadata);
    }
    set_text(&row->attributes, change->attributes);
    set_text(&row->permission_key, change->permission_key);
    if (change->created.how != FILE_TIME_KEEP)
        row->created_ns = change->created.how == FILE_TIME_SET ? change->created.ns : now_ns;
    return 0;
}

static int resize(const struct changing *c,
                  const struct share_place *place,
                  int fd,
                  const struct file_stat *stat,
                  struct err *e)
{
    int64_t size = c->change->size;

    if (size > FILES_MOST_SIZE)
        return files_fail(e, ERR_INVALID, "OutOfRangeInput", "a file has at most 4 TiB");
    if (share_reserve(c->files, place, size - stat->size_bytes, e) < 0)
        return -1;
    if (ftruncate(fd, size) < 0)
        return files_fail_sys(e, errno, "could not resize a file");
    return 0;
}

/* Change what the file itself carries: its size and the time of its last write. */
static int change_file(const struct changing *c,
                       const struct share_place *place,
                       int fd,
                       struct file_stat *stat,
                       struct err *e)
{
    struct file_time written = c->change->written;
    bool resizes = c->change->size >= 0 && c->change->size != stat->size_bytes;

    if (resizes && resize(c, place, fd, stat, e) < 0)
        return -1;
    if (resizes && written.how == FILE_TIME_KEEP)
        written = (struct file_time){FILE_TIME_SET, stat->mtime_ns};
    if (file_set_written(fd, written, e) < 0)
        return -1;
    if ((resizes || written.how != FILE_TIME_KEEP) && fsync(fd) < 0)
        return files_fail_sys(e, errno, "could not sync a file");
    return file_stat_of(fd, stat, e);
}

/* Under the lock.  Gives the row and what the kernel says then. */
static int change_locked(struct changing *c,
                         const struct share_place *place,
                         const struct file_spot *spot,
                         struct file_row **ret_row,
                         struct file_stat *ret_stat,
                         struct err *e)
{
    struct file_edit edit = {.edit = edit_change, .context = c};
    autoptr(file_row) row = NULL;
    auto_close int fd = -1;
    int flags = c->change->size >= 0 && !spot->stat.is_directory ? O_RDWR : O_RDONLY;

    if (file_spot_open(spot, flags, &fd, ret_stat, e) < 0 ||
        file_row_find(c->files, place, ret_stat, &row, e) < 0 ||
        file_check_lease(row, c->lease_id, e) < 0)
        return -1;
    edit.is_ours = row && file_row_holds(row, ret_stat) && c->change->size < 0;
    if (change_file(c, place, fd, ret_stat, e) < 0)
        return -1;
    return file_row_edit(c->files, c->at, ret_stat, &edit, ret_row, e);
}

int files_change(struct files *files,
                 const struct file_address *at,
                 bool is_directory,
                 const struct file_change *change,
                 const char *lease_id,
                 struct file **ret_file,
                 struct err *e)
{
    struct changing c = {files, at, change, lease_id};
    auto_place place = SHARE_NOWHERE;
    auto_file_spot spot = FILE_NOWHERE;
    auto_file_lock lock = {0};
    autoptr(file_row) row = NULL;
    struct file_stat stat;

    if (share_place_open(files, at->account, at->share, &place, e) < 0 ||
        file_spot_find(&place, at, &spot, e) < 0 || file_spot_need(&spot, is_directory, e) < 0)
        return -1;
    file_lock(files, spot.stat.inode, true, &lock);
    if (change_locked(&c, &place, &spot, &row, &stat, e) < 0)
        return -1;
    *ret_file = file_of(row, &stat, *spot.asked ? spot.name : "", spot.parent_inode);
    return 0;
}

/* --- removing --- */

static int remove_entry(struct files *files, const struct file_spot *spot, struct err *e)
{
    struct case_change change;
    int rc;

    FAULT("files.before-unlink");
    case_change_begin(files, spot->parent_fd, &change);
    rc = unlinkat(spot->parent_fd, spot->name, spot->stat.is_directory ? AT_REMOVEDIR : 0);
    rc = rc < 0 ? errno : 0;
    case_change_end(&change, NULL);
    if (rc)
        return files_fail_sys(e, rc, "could not remove a file");
    if (fsync(spot->parent_fd) < 0)
        return files_fail_sys(e, errno, "could not sync a folder");
    return 0;
}

int files_delete(struct files *files,
                 const struct file_address *at,
                 bool is_directory,
                 const char *lease_id,
                 struct err *e)
{
    auto_place place = SHARE_NOWHERE;
    auto_file_spot spot = FILE_NOWHERE;
    auto_file_lock lock = {0};
    autoptr(file_row) row = NULL;

    if (share_place_open(files, at->account, at->share, &place, e) < 0 ||
        file_spot_find(&place, at, &spot, e) < 0 || file_spot_need(&spot, is_directory, e) < 0)
        return -1;
    if (!*spot.asked)
        return files_fail(e, ERR_CONFLICT, "CannotDeleteFileOrDirectory",
                          "the root directory goes with its share only");
    file_lock(files, spot.stat.inode, true, &lock);
    if (file_row_find(files, &place, &spot.stat, &row, e) < 0 ||
        file_check_lease(row, lease_id, e) < 0 || file_check_writable(row, e) < 0)
        return -1;
    if (remove_entry(files, &spot, e) < 0)
        return -1;
    if (row)
        file_row_forget(files, &place, &spot.stat);
    return 0;
}

/* --- renaming --- */

struct renaming {
    struct files *files;
    const struct file_address *to_at;
    const struct file_move *move;
    struct share_place place;
    struct file_spot from, to;
    bool is_same; /* only the case of the name changes */
    struct file_lock first, second;
};

static void renaming_done(struct renaming *r)
{
    file_unlock(&r->first);
    file_unlock(&r->second);
    file_spot_done(&r->from);
    file_spot_done(&r->to);
    share_place_done(&r->place);
}

static int check_target(struct renaming *r, struct file_row **ret_row, struct err *e)
{
    if (!r->to.is_there || r->is_same)
        return file_check_lease(NULL, r->move->to_lease, e);
    if (!r->move->replaces || r->to.stat.is_directory || r->move->is_directory)
        return files_fail(e, ERR_CONFLICT, "ResourceAlreadyExists",
                          "there is something of that name already");
    if (file_row_find(r->files, &r->place, &r->to.stat, ret_row, e) < 0 ||
        file_check_lease(*ret_row, r->move->to_lease, e) < 0)
        return -1;
    return r->move->ignores_readonly ? 0 : file_check_writable(*ret_row, e);
}

static int rename_locked(struct renaming *r, struct err *e)
{
    autoptr(file_row) from_row = NULL;
    autoptr(file_row) to_row = NULL;
    bool replaces = r->to.is_there && !r->is_same;
    const char *name = replaces ? r->to.name : r->to.asked;
    char *kept;

    if (r->is_same && strcmp(name, r->from.name) == 0)
        replaces = true; /* itself, which changes nothing */
    if (file_row_find(r->files, &r->place, &r->from.stat, &from_row, e) < 0 ||
        file_check_lease(from_row, r->move->from_lease, e) < 0 ||
        check_target(r, &to_row, e) < 0 ||
        file_spot_place(r->files, r->from.parent_fd, r->from.name, &r->to, name, replaces, e) <
            0)
        return -1;
    if (fsync(r->from.parent_fd) < 0)
        return files_fail_sys(e, errno, "could not sync a folder");
    if (to_row)
        file_row_forget(r->files, &r->place, &r->to.stat);
    kept = xstrdup(name); /* it may be the text that goes */
    free(r->to.name);
    r->to.name = kept;
    r->to.stat = r->from.stat;
    return 0;
}

static int rename_and_change(struct renaming *r, struct file **ret_file, struct err *e)
{
    static const struct file_change none = {
        .created = {FILE_TIME_KEEP, 0}, .written = {FILE_TIME_KEEP, 0}, .size = -1};
    struct changing c = {r->files, r->to_at, r->move->change ? r->move->change : &none,
                         r->move->from_lease};
    autoptr(file_row) row = NULL;
    struct file_stat stat;

    r->is_same = r->to.is_there && r->to.stat.inode == r->from.stat.inode;
    if (rename_locked(r, e) < 0 || change_locked(&c, &r->place, &r->to, &row, &stat, e) < 0)
        return -1;
    *ret_file = file_of(row, &stat, r->to.name, r->to.parent_inode);
    return 0;
}

int files_rename(struct files *files,
                 const struct file_address *from,
                 const struct file_address *to,
                 const struct file_move *move,
                 struct file **ret_file,
                 struct err *e)
{
    __attribute__((cleanup(renaming_done))) struct renaming r = {
        .files = files,
        .to_at = to,
        .move = move,
        .place = SHARE_NOWHERE,
        .from = FILE_NOWHERE,
        .to = FILE_NOWHERE,
    };

    if (share_place_open(files, from->account, from->share, &r.place, e) < 0 ||
        file_spot_find(&r.place, from, &r.from, e) < 0 ||
        file_spot_need(&r.from, move->is_directory, e) < 0 ||
        file_spot_find(&r.place, to, &r.to, e) < 0)
        return -1;
    if (!*r.from.asked || !*r.to.asked)
        return files_fail(e, ERR_INVALID, "InvalidResourceName",
                          "the root directory cannot be renamed");
    file_lock_two(files, r.from.stat.inode, r.to.is_there ? r.to.stat.inode : r.from.stat.inode,
                  &r.first, &r.second);
    return rename_and_change(&r, ret_file, e);
}

/* --- leases --- */

static int edit_lease(struct file_row *row, void *context, struct err *e)
{
    struct lease lease = lease_from_row(&row->lease);
    int left_s;

    if (lease_apply(&lease, context, clock_wall_ms(), &left_s, e) < 0)
        return -1;
    lease_to_row(&lease, &row->lease);
    return 0;
}

int files_lease(struct files *files,
                const struct file_address *at,
                const struct lease_request *request,
                struct file **ret_file,
                struct err *e)
{
    const struct file_edit edit = {
        .edit = edit_lease, .context = (void *)request, .is_silent = true};
    auto_place place = SHARE_NOWHERE;
    auto_file_spot spot = FILE_NOWHERE;
    auto_file_lock lock = {0};
    autoptr(file_row) row = NULL;
    struct file_stat stat;
    auto_close int fd = -1;

    if (share_place_open(files, at->account, at->share, &place, e) < 0 ||
        file_spot_find(&place, at, &spot, e) < 0 || file_spot_need(&spot, 0, e) < 0)
        return -1;
    file_lock(files, spot.stat.inode, true, &lock);
    if (file_spot_open(&spot, O_RDONLY, &fd, &stat, e) < 0 ||
        file_row_edit(files, at, &stat, &edit, &row, e) < 0)
        return -1;
    *ret_file = file_of(row, &stat, spot.name, spot.parent_inode);
    return 0;
}
