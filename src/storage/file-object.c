/* file-object.c - one file: its life, its facts, its bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/file-ops.h"

#include "base/mem.h"

#include <string.h>
#include <strings.h>

/* --- making --- */

/* "c" in a SAS makes new files and replaces none. */
static int create_failed(struct storage_call *call, struct err *e)
{
    if (call->may_not_replace && e->reason && strcmp(e->reason, "ResourceAlreadyExists") == 0)
        return storage_refuse(e, ERR_FORBIDDEN, "AuthorizationPermissionMismatch",
                              "the SAS allows to create files and not to replace them");
    return -1;
}

static int check_content(struct storage_call *call, int64_t size, struct err *e)
{
    const char *md5, *crc64;

    if (storage_hashes(call, &md5, &crc64, e) < 0 ||
        storage_check_body(call, md5, crc64, e) < 0)
        return -1;
    if ((int64_t)call->body_len > size)
        return storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                              "the body is longer than x-ms-content-length says");
    return 0;
}

int file_op_create(struct storage_call *call, struct err *e)
{
    const struct file_address at = file_at(call);
    const char *type = storage_header(call, "x-ms-type");
    autoptr(file) file = NULL;
    struct file_put put;
    int64_t size = -1;

    if (type && *type && strcasecmp(type, "file") != 0) {
        storage_refuse(e, ERR_INVALID, "InvalidHeaderValue", "x-ms-type must be file");
        return err_target(e, "x-ms-type");
    }
    if (!storage_need_header(call, "x-ms-content-length", e) ||
        storage_header_int(call, "x-ms-content-length", 0, FILES_MOST_SIZE, &size, e) < 0 ||
        check_content(call, size, e) < 0 || file_read_put(call, false, &put, e) < 0)
        return -1;
    put.must_be_new = call->may_not_replace;
    put.content = call->body_len ? call->body : NULL;
    put.content_len = call->body_len;
    if (files_create(files_of(call), &at, size, &put, file_lease_id(call), &file, e) < 0)
        return create_failed(call, e);
    return file_reply_written(call, file, 201);
}

/* --- reading --- */

static void reply_copy(struct storage_call *call, const struct file *file)
{
    if (!file->copy_id)
        return;
    storage_reply_header(call, "x-ms-copy-id", file->copy_id);
    storage_reply_header(call, "x-ms-copy-source", file->copy_source);
    storage_reply_header(call, "x-ms-copy-status", "success");
    storage_reply_headerf(call, "x-ms-copy-progress", "%lld/%lld", (long long)file->size_bytes,
                          (long long)file->size_bytes);
    storage_reply_date(call, "x-ms-copy-completion-time", file->copied_ms);
}

static void reply_facts(struct storage_call *call, const struct file *file)
{
    file_reply_version(call, file);
    storage_reply_header(call, "Accept-Ranges", "bytes");
    storage_reply_header(call, "x-ms-type", "File");
    storage_reply_labels(call, &file->headers);
    storage_reply_lease_state(call, &file->lease);
    storage_reply_header(call, "x-ms-server-encrypted", "true");
    storage_reply_metadata(call, file->metadata);
    reply_copy(call, file);
}

/* A read takes a lease only if it is the one that holds. */
static int find(struct storage_call *call, struct file **ret_file, int *ret_fd, struct err *e)
{
    const struct file_address at = file_at(call);
    const char *id = file_lease_id(call);
    autoptr(file) file = NULL;
    auto_close int fd = -1;

    if (file_refuse_snapshot(call, e) < 0 ||
        files_find(files_of(call), &at, 0, &file, ret_fd ? &fd : NULL, e) < 0)
        return -1;
    if (id && !lease_is_locked(&file->lease, call->now_ms))
        return storage_refuse(e, ERR_PRECONDITION, "LeaseNotPresentWithFileOperation",
                              "there is no lease on the file");
    if (id && !str_equal_nocase(file->lease.id, id))
        return storage_refuse(e, ERR_PRECONDITION, "LeaseIdMismatchWithFileOperation",
                              "the file is leased to another");
    *ret_file = take_ptr(&file);
    if (ret_fd)
        *ret_fd = take_fd(&fd);
    return 0;
}

static int reply_range(struct storage_call *call,
                       const struct file *file,
                       int fd,
                       int64_t first,
                       int64_t len,
                       struct err *e)
{
    storage_reply_headerf(call, "Content-Range", "bytes %lld-%lld/%lld", (long long)first,
                          (long long)(first + len - 1), (long long)file->size_bytes);
    storage_reply_header(call, "x-ms-content-md5", file->headers.content_md5);
    return storage_reply_range_hash(call, fd, first, len, e);
}

int file_op_get(struct storage_call *call, struct err *e)
{
    autoptr(file) file = NULL;
    auto_close int fd = -1;
    int64_t first = 0, len;
    int is_part;

    if (find(call, &file, &fd, e) < 0)
        return -1;
    len = file->size_bytes;
    is_part = storage_range(call, file->size_bytes, &first, &len, e);
    if (is_part < 0 || (is_part && reply_range(call, file, fd, first, len, e) < 0))
        return -1;
    reply_facts(call, file);
    if (!is_part)
        storage_reply_header(call, "Content-MD5", file->headers.content_md5);
    call->out_fd = take_fd(&fd);
    call->out_offset = first;
    call->out_length = len;
    return storage_reply(call, is_part ? 206 : 200);
}

int file_op_head(struct storage_call *call, struct err *e)
{
    autoptr(file) file = NULL;

    if (find(call, &file, NULL, e) < 0)
        return -1;
    reply_facts(call, file);
    storage_reply_header(call, "Content-MD5", file->headers.content_md5);
    call->out_length = file->size_bytes;
    return storage_reply(call, 200);
}

int file_op_get_metadata(struct storage_call *call, struct err *e)
{
    autoptr(file) file = NULL;

    if (find(call, &file, NULL, e) < 0)
        return -1;
    storage_reply_etag(call, file->etag, file->modified_ms);
    storage_reply_metadata(call, file->metadata);
    return storage_reply(call, 200);
}

/* --- changing --- */

int file_op_delete(struct storage_call *call, struct err *e)
{
    const struct file_address at = file_at(call);

    if (files_delete(files_of(call), &at, false, file_lease_id(call), e) < 0)
        return -1;
    return storage_reply(call, 202);
}

static int
change_file(struct storage_call *call, const struct file_change *change, struct err *e)
{
    const struct file_address at = file_at(call);
    autoptr(file) file = NULL;

    if (files_change(files_of(call), &at, false, change, file_lease_id(call), &file, e) < 0)
        return -1;
    return file_reply_written(call, file, 200);
}

int file_op_set_metadata(struct storage_call *call, struct err *e)
{
    struct file_change change = FILE_CHANGE_NONE;
    json_t *metadata;

    if (storage_metadata(call, true, &metadata, e) < 0)
        return -1;
    change.metadata = metadata;
    return change_file(call, &change, e);
}

/* The labels of the content are set all together, and cleared when none is given; but a request
 * that only resizes leaves them, as Azure does. */
static bool has_label(struct storage_call *call)
{
    static const char *const names[] = {"x-ms-content-type",     "x-ms-content-encoding",
                                        "x-ms-content-language", "x-ms-content-disposition",
                                        "x-ms-cache-control",    "x-ms-content-md5"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (storage_header(call, names[i]))
            return true;
    }
    return !storage_header(call, "x-ms-content-length");
}

int file_op_set_properties(struct storage_call *call, struct err *e)
{
    struct file_change change = FILE_CHANGE_NONE;
    struct blob_headers headers = {0};

    if (file_read_headers(call, &headers, e) < 0 ||
        storage_header_int(call, "x-ms-content-length", 0, FILES_MOST_SIZE, &change.size, e) <
            0 ||
        file_read_attributes(call, false, &change.attributes, e) < 0 ||
        file_read_permission(call, &change.permission_key, e) < 0 ||
        file_read_times(call, (struct file_time){FILE_TIME_KEEP, 0}, &change.created,
                        &change.written, e) < 0)
        return -1;
    if (has_label(call))
        change.headers = &headers;
    return change_file(call, &change, e);
}

/* --- leases --- */

/* A lease of a file has no end, and so nothing to renew. */
static int check_lease_request(const struct lease_request *request, struct err *e)
{
    if (request->action == LEASE_RENEW ||
        (request->action == LEASE_ACQUIRE && request->duration_s != -1))
        return storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                              "leases of files are infinite: x-ms-lease-duration is -1");
    return 0;
}

int file_op_lease(struct storage_call *call, struct err *e)
{
    const struct file_address at = file_at(call);
    struct lease_request request;
    autoptr(file) file = NULL;

    if (storage_lease_request(call, &request, e) < 0 || check_lease_request(&request, e) < 0 ||
        files_lease(files_of(call), &at, &request, &file, e) < 0)
        return -1;
    storage_reply_etag(call, file->etag, file->modified_ms);
    return storage_reply_lease(call, &request, &file->lease, 0);
}
