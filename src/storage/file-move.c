/* file-move.c - copies and renames within the yard.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/file-ops.h"

#include "base/mem.h"

#include <string.h>
#include <strings.h>

static bool says(const struct storage_call *call, const char *name, const char *word)
{
    const char *value = storage_header(call, name);

    return value && strcasecmp(value, word) == 0;
}

/* --- copying --- */

/* What the request leaves out comes from the source. */
static void fill_from(struct storage_call *call, const struct file *from, struct file_put *put)
{
    put->headers = from->headers;
    if (!put->metadata)
        put->metadata = from->metadata;
    if (!put->attributes && (!storage_header(call, "x-ms-file-attributes") ||
                             says(call, "x-ms-file-attributes", "source")))
        put->attributes = from->attributes;
    if (says(call, "x-ms-file-permission-copy-mode", "source"))
        put->permission_key = from->permission_key;
    if (put->created.how == FILE_TIME_KEEP)
        put->created = (struct file_time){FILE_TIME_SET, from->created_ns};
    if (put->written.how == FILE_TIME_KEEP)
        put->written = (struct file_time){FILE_TIME_SET, from->written_ns};
}

static int read_copy_put(struct storage_call *call,
                         const struct file *from,
                         struct file_put *put,
                         struct err *e)
{
    json_t *metadata;

    *put = (struct file_put){0};
    if (storage_metadata(call, false, &metadata, e) < 0 ||
        file_read_attributes(call, false, &put->attributes, e) < 0 ||
        file_read_permission(call, &put->permission_key, e) < 0 ||
        file_read_times(call, (struct file_time){FILE_TIME_KEEP, 0}, &put->created,
                        &put->written, e) < 0)
        return -1;
    put->metadata = metadata;
    put->must_be_new = call->may_not_replace;
    fill_from(call, from, put);
    return 0;
}

int file_op_copy(struct storage_call *call, struct err *e)
{
    const struct file_address to = file_at(call);
    struct file_copy copy = {
        .fd = -1,
        .source_url = storage_header(call, "x-ms-copy-source"),
        .ignores_readonly = file_header_is_true(call, "x-ms-file-copy-ignore-readonly"),
        .lease_id = file_lease_id(call),
    };
    autoptr(file) from = NULL;
    autoptr(file) file = NULL;
    struct storage_call *source;
    struct file_address from_at;
    auto_close int fd = -1;
    struct file_put put;

    if (storage_copy_source(call, &source, e) < 0)
        return -1;
    from_at = file_at(source);
    from_at.trailing_dots = file_header_is_true(call, "x-ms-source-allow-trailing-dot");
    if (file_refuse_snapshot(source, e) < 0 ||
        files_find(files_of(call), &from_at, 0, &from, &fd, e) < 0 ||
        read_copy_put(call, from, &put, e) < 0)
        return -1;
    copy.fd = fd;
    if (files_copy(files_of(call), &copy, &to, &put, &file, e) < 0)
        return -1;
    storage_reply_header(call, "x-ms-copy-id", file->copy_id);
    storage_reply_header(call, "x-ms-copy-status", "success");
    return file_reply_written(call, file, 202);
}

/* Every copy is over before it is answered. */
int file_op_abort_copy(struct storage_call *call, struct err *e)
{
    (void)call;
    return storage_refuse(e, ERR_CONFLICT, "NoPendingCopyOperation",
                          "there is no copy under way");
}

/* --- renaming --- */

/* x-ms-file-rename-source: an address within the same share, under the same signature. */
static int
read_rename_source(struct storage_call *call, struct file_address *ret, struct err *e)
{
    const char *url = storage_need_header(call, "x-ms-file-rename-source", e);
    struct storage_call *source;
    const char *p, *query;

    if (!url)
        return -1;
    p = strstr(url, "://");
    p = p ? strchr(p + 3, '/') : url;
    if (!p)
        return storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                              "x-ms-file-rename-source is not an address");
    query = strchr(p, '?');
    source = storage_call_part(call, "GET", arena_strndup(call->arena, p, strcspn(p, "?")),
                               query ? query + 1 : "", NULL, 0);
    source->host = call->host;
    if (storage_resolve(source, e) < 0)
        return -1;
    if (source->level != STORAGE_OBJECT || strcmp(source->account, call->account) != 0 ||
        strcmp(source->container, call->container) != 0)
        return storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                              "a rename stays within its share");
    *ret = file_at(source);
    ret->trailing_dots = file_header_is_true(call, "x-ms-source-allow-trailing-dot");
    return 0;
}

static const char *not_empty(const char *text)
{
    return text && *text ? text : NULL;
}

static int read_change(struct storage_call *call,
                       bool is_directory,
                       struct file_change *ret,
                       struct err *e)
{
    json_t *metadata;

    *ret = FILE_CHANGE_NONE;
    if (storage_metadata(call, false, &metadata, e) < 0 ||
        file_read_attributes(call, is_directory, &ret->attributes, e) < 0 ||
        file_read_permission(call, &ret->permission_key, e) < 0 ||
        file_read_times(call, (struct file_time){FILE_TIME_KEEP, 0}, &ret->created,
                        &ret->written, e) < 0)
        return -1;
    ret->metadata = metadata;
    return 0;
}

static int rename_it(struct storage_call *call, bool is_directory, struct err *e)
{
    const struct file_address to = file_at(call);
    struct file_change change;
    struct file_move move = {
        .is_directory = is_directory,
        .replaces = file_header_is_true(call, "x-ms-file-rename-replace-if-exists"),
        .ignores_readonly = file_header_is_true(call, "x-ms-file-rename-ignore-readonly"),
        .from_lease = not_empty(storage_header(call, "x-ms-source-lease-id")),
        .to_lease = not_empty(storage_header(call, "x-ms-destination-lease-id")),
        .change = &change,
    };
    struct file_address from;
    autoptr(file) file = NULL;

    if (read_rename_source(call, &from, e) < 0 ||
        read_change(call, is_directory, &change, e) < 0 ||
        files_rename(files_of(call), &from, &to, &move, &file, e) < 0)
        return -1;
    return file_reply_written(call, file, 200);
}

int file_op_rename(struct storage_call *call, struct err *e)
{
    return rename_it(call, false, e);
}

int file_op_rename_directory(struct storage_call *call, struct err *e)
{
    return rename_it(call, true, e);
}
