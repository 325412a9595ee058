/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/files-internal.h"

#include "base/json.h"
#include "base/str.h"
#include "db/db.h"
#include "db/writer.h"
#include "store/file.h"
#include "store/pool.h"

#include <stdio.h>
#include <string.h>

static char *dup(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static json_t *parse_object(const char *text)
{
    json_t *value = NULL;

    if (text && json_parse(text, strlen(text), &value, NULL) == 0 && json_is_object(value))
        return value;
    json_decref(value);
    return json_object();
}

void file_free(struct file *file)
{
    if (!file)
        return;
    free(file->name);
    free(file->headers.content_type);
    free(file->headers.content_encoding);
    free(file->headers.content_language);
    free(file->headers.content_disposition);
    free(file->headers.cache_control);
    free(file->headers.content_md5);
    json_decref(file->metadata);
    free(file->attributes);
    free(file->permission_key);
    free(file->copy_id);
    free(file->copy_source);
    free(file);
}

/* --- from rows and the kernel to the outside --- */

bool file_row_holds(const struct file_row *row, const struct file_stat *stat)
{
    /* What is made in a directory changes its times, but not the directory. */
    return stat->is_directory ||
           (row->mtime_ns == stat->mtime_ns && row->size_bytes == stat->size_bytes);
}

/* The ETag of what only the kernel knows.  The time of the last write alone would do, if clocks
 * ticked faster than files change.  Not the time of the last change: it cannot be set back, and
 * a write that was refused must not be seen. */
static void etag_of_stat(const struct file_stat *stat, char etag[ETAG_BYTES])
{
    uint64_t mix = (stat->inode * 0x9e3779b97f4a7c15ull) ^
                   ((uint64_t)stat->mtime_ns * 0xff51afd7ed558ccdull) ^
                   ((uint64_t)stat->size_bytes * 0xc4ceb9fe1a85ec53ull);

    etag_format(etag, tick_of_ns(stat->is_directory ? stat->born_ns : stat->mtime_ns));
    snprintf(etag + strlen(etag), ETAG_BYTES - strlen(etag), "%05X",
             (unsigned int)(stat->is_directory ? 0 : mix >> 44));
}

/* The tick that both kinds begin with has 15 digits until the year 3654. */
static int64_t ms_of_etag(const char *etag)
{
    char head[sizeof("0x123456789abcdef")];

    snprintf(head, sizeof(head), "%s", etag);
    return tick_to_ms((int64_t)strtoull(head, NULL, 16));
}

static void
set_version(struct file *file, const struct file_row *row, const struct file_stat *stat)
{
    if (row && file_row_holds(row, stat)) {
        snprintf(file->etag, sizeof(file->etag), "%s", row->etag);
        file->modified_ms = ms_of_etag(row->etag);
        return;
    }
    etag_of_stat(stat, file->etag);
    file->modified_ms = (stat->is_directory ? stat->born_ns : stat->mtime_ns) / 1000000;
}

static void
set_from_row(struct file *file, const struct file_row *row, const struct file_stat *stat)
{
    file->headers.content_type = dup(row->content_type);
    file->headers.content_encoding = dup(row->content_encoding);
    file->headers.content_language = dup(row->content_language);
    file->headers.content_disposition = dup(row->content_disposition);
    file->headers.cache_control = dup(row->cache_control);
    if (file_row_holds(row, stat))
        file->headers.content_md5 = dup(row->content_md5);
    file->attributes = dup(row->attributes);
    file->permission_key = dup(row->permission_key);
    file->lease = lease_from_row(&row->lease);
    file->copy_id = dup(row->copy_id);
    file->copy_source = dup(row->copy_source);
    file->copied_ms = row->copied_ms;
    if (row->created_ns != FILE_WHEN_BORN)
        file->created_ns = row->created_ns;
}

struct file *file_of(const struct file_row *row,
                     const struct file_stat *stat,
                     const char *name,
                     uint64_t parent_inode)
{
    struct file *file = xcalloc(1, sizeof(*file));

    file->name = xstrdup(name);
    file->is_directory = stat->is_directory;
    file->size_bytes = stat->size_bytes;
    file->file_id = stat->inode;
    file->parent_id = parent_inode;
    file->created_ns = stat->born_ns ? stat->born_ns : stat->mtime_ns;
    file->written_ns = stat->mtime_ns;
    file->changed_ns = stat->ctime_ns;
    file->accessed_ns = stat->atime_ns;
    file->metadata = parse_object(row ? row->metadata : NULL);
    if (row)
        set_from_row(file, row, stat);
    if (!file->attributes)
        file->attributes = xstrdup(stat->is_directory ? "Directory" : "Archive");
    if (!file->permission_key)
        file->permission_key = files_default_permission_key();
    set_version(file, row, stat);
    return file;
}

/* --- rows --- */

int file_row_find(struct files *files,
                  const struct share_place *place,
                  const struct file_stat *stat,
                  struct file_row **ret_row,
                  struct err *e)
{
    auto_reader r = {0};

    if (store_pool_take(files->blobs->readers, &r, e) < 0)
        return -1;
    return store_find_file(r.db, place->row->id, stat->inode, stat->born_ns, ret_row, e);
}

static void replace(char **text, const char *with)
{
    free(*text);
    *text = dup(with);
}

void file_row_set_headers(struct file_row *row, const struct blob_headers *headers)
{
    replace(&row->content_type, headers->content_type);
    replace(&row->content_encoding, headers->content_encoding);
    replace(&row->content_language, headers->content_language);
    replace(&row->content_disposition, headers->content_disposition);
    replace(&row->cache_control, headers->cache_control);
    replace(&row->content_md5, headers->content_md5);
}

void file_row_set_stat(struct file_row *row, const struct file_stat *stat)
{
    row->inode = stat->inode;
    row->born_ns = stat->born_ns;
    row->mtime_ns = stat->mtime_ns;
    row->size_bytes = stat->size_bytes;
}

static void touch(struct files *files, struct file_row *row)
{
    etag_format(row->etag, blobs_tick(files->blobs));
}

struct file_row *
file_row_new(struct files *files, const struct file_put *put, const struct file_stat *stat)
{
    struct file_row *row = xcalloc(1, sizeof(*row));

    file_row_set_stat(row, stat);
    file_row_set_headers(row, &put->headers);
    row->metadata = json_text(put->metadata);
    row->attributes = dup(put->attributes);
    row->permission_key = dup(put->permission_key);
    row->created_ns = put->created.how == FILE_TIME_SET ? put->created.ns : FILE_WHEN_BORN;
    touch(files, row);
    return row;
}

/* --- writing rows --- */

struct row_write {
    struct files *files;
    const struct file_address *at;
    const struct file_stat *stat;
    const struct file_edit *edit; /* NULL: write the row as it is */
    struct file_row *row;
};

/* The row of a file as it is now, whatever happened to it since the row was written. */
static int read_current(struct row_write *w, struct db *db, int64_t share_id, struct err *e)
{
    if (store_find_file(db, share_id, w->stat->inode, w->stat->born_ns, &w->row, e) < 0)
        return -1;
    if (!w->row) {
        w->row = file_row_new(w->files, &(const struct file_put){0}, w->stat);
        etag_of_stat(w->stat, w->row->etag);
    } else if (!w->edit->is_ours && !file_row_holds(w->row, w->stat)) {
        replace(&w->row->content_md5, NULL); /* of bytes that are no more */
        etag_of_stat(w->stat, w->row->etag);
    }
    file_row_set_stat(w->row, w->stat);
    return 0;
}

static int apply_edit(void *context, struct db *db, struct err *e)
{
    struct row_write *w = context;
    autoptr(share_row) share = NULL;

    if (share_row_need(db, w->at->account, w->at->share, &share, e) < 0)
        return -1;
    if (w->edit && (read_current(w, db, share->id, e) < 0 ||
                    w->edit->edit(w->row, w->edit->context, e) < 0))
        return -1;
    if (w->edit && !w->edit->is_silent)
        touch(w->files, w->row);
    return store_put_file(db, share->id, w->row, e);
}

int file_row_edit(struct files *files,
                  const struct file_address *at,
                  const struct file_stat *stat,
                  const struct file_edit *edit,
                  struct file_row **ret_row,
                  struct err *e)
{
    struct row_write w = {files, at, stat, edit, NULL};
    int rc = blobs_write(files->blobs, apply_edit, &w, e);

    if (rc == 0 && ret_row)
        *ret_row = take_ptr(&w.row);
    file_row_free(w.row);
    return rc;
}

int file_row_write(struct files *files,
                   const struct file_address *at,
                   const struct file_row *row,
                   struct err *e)
{
    struct row_write w = {files, at, NULL, NULL, (struct file_row *)row};

    return blobs_write(files->blobs, apply_edit, &w, e);
}

struct forget {
    struct db_write write;
    int64_t share_id;
    struct file_stat stat;
};

static int apply_forget(struct db_write *write, struct db *db, struct err *e)
{
    struct forget *f = container_of(write, struct forget, write);

    return store_remove_file(db, f->share_id, f->stat.inode, f->stat.born_ns, e);
}

/* A row that stays is of a file that is not: nobody will ask for it. */
static void forgotten(struct db_write *write, const struct err *why)
{
    (void)why;
    free(container_of(write, struct forget, write));
}

void file_row_forget(struct files *files,
                     const struct share_place *place,
                     const struct file_stat *stat)
{
    struct forget *f = xcalloc(1, sizeof(*f));

    f->write = (struct db_write){.apply = apply_forget, .done = forgotten};
    f->share_id = place->row->id;
    f->stat = *stat;
    db_writer_submit(files->blobs->writer, &f->write);
}

/* --- what stands in the way --- */

int file_check_lease(const struct file_row *row, const char *lease_id, struct err *e)
{
    static const struct lease_words words = {
        .mismatch = "LeaseIdMismatchWithFileOperation",
        .not_present = "LeaseNotPresentWithFileOperation",
    };
    struct lease lease = row ? lease_from_row(&row->lease) : (struct lease){0};

    return lease_check_write(&lease, lease_id, &words, e);
}

int file_check_writable(const struct file_row *row, struct err *e)
{
    if (row && row->attributes && strstr(row->attributes, "ReadOnly"))
        return files_fail(e, ERR_CONFLICT, "ReadOnlyAttribute", "the file is read-only");
    return 0;
}

int file_spot_need(const struct file_spot *spot, int want_directory, struct err *e)
{
    if (!spot->is_there)
        return files_fail(e, ERR_NOT_FOUND, "ResourceNotFound",
                          "the file or directory does not exist");
    if (want_directory >= 0 && spot->stat.is_directory != (want_directory != 0))
        return files_fail(e, ERR_CONFLICT, "ResourceTypeMismatch",
                          want_directory ? "that is a file, not a directory"
                                         : "that is a directory, not a file");
    return 0;
}
