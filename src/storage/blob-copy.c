/* blob-copy.c - blobs made of other blobs of this yard.
 *
 * Every copy is complete when it is answered, so that none is ever pending.  A source is read
 * from the store and never fetched: there is no request that this service makes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blob-ops.h"

#include "base/mem.h"
#include "http/request.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 1024 * 1024,
};

static const int64_t most_put_bytes = 5000LL * 1024 * 1024;

/* --- the source --- */

/* What is wrong with the source is said so that it cannot be taken for the destination. */
static int
source_failed(const struct storage_call *call, const struct storage_call *source, struct err *e)
{
    if (e->code == ERR_PRECONDITION)
        return err_reason(e, "SourceConditionNotMet");
    if (e->code == ERR_NOT_FOUND && strcmp(call->account, source->account) != 0)
        return err_reason(e, "CannotVerifyCopySource");
    return -1;
}

static int find_source(struct storage_call *call,
                       struct storage_call **ret_source,
                       struct conditions *ret_conditions,
                       struct blob **ret_blob,
                       int *ret_fd,
                       struct err *e)
{
    struct storage_call *source;
    struct blob_address at;

    if (storage_copy_source(call, &source, e) < 0 ||
        storage_conditions(call, "x-ms-source-", ret_conditions, e) < 0)
        return -1;
    at = blob_at(source);
    if (blobs_find(blobs_of(call), &at, ret_conditions, ret_blob, ret_fd, NULL, e) < 0)
        return source_failed(call, source, e);
    *ret_source = source;
    return 0;
}

static int read_source_range(struct storage_call *call,
                             int64_t size,
                             int64_t most,
                             int64_t *ret_first,
                             int64_t *ret_len,
                             struct err *e)
{
    const char *text = storage_header(call, "x-ms-source-range");
    uint64_t first = 0, len = (uint64_t)size;

    if (text && *text && http_range_parse(text, (uint64_t)size, &first, &len, e) < 0)
        return err_reason(e, "InvalidRange");
    if (len > (uint64_t)most)
        return storage_refuse(e, ERR_TOO_LARGE, "RequestBodyTooLarge",
                              "the source is larger than %lld bytes", (long long)most);
    *ret_first = (int64_t)first;
    *ret_len = (int64_t)len;
    return 0;
}

static int
fill_upload(struct upload *upload, int fd, int64_t offset, int64_t left, struct err *e)
{
    auto_free char *piece = xmalloc(PIECE_BYTES);

    while (left > 0) {
        size_t want = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        ssize_t got = pread(fd, piece, want, offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return err_sys(e, got < 0 ? errno : EIO, "could not read the source");
        if (upload_write(upload, piece, (size_t)got, e) < 0)
            return -1;
        offset += got;
        left -= got;
    }
    return 0;
}

static const char *not_empty(const char *text)
{
    return text && *text ? text : NULL;
}

int blob_upload_from_source(struct storage_call *call, int64_t most, struct err *e)
{
    const char *md5 = not_empty(storage_header(call, "x-ms-source-content-md5"));
    const char *crc64 = not_empty(storage_header(call, "x-ms-source-content-crc64"));
    autoptr(blob) blob = NULL;
    auto_close int fd = -1;
    struct storage_call *source;
    struct conditions conditions;
    int64_t first, len;

    if (find_source(call, &source, &conditions, &blob, &fd, e) < 0 ||
        read_source_range(call, blob->size_bytes, most, &first, &len, e) < 0 ||
        upload_begin(blobs_of(call), call->account, call->container, &call->upload, e) < 0 ||
        fill_upload(call->upload, fd, first, len, e) < 0)
        return -1;
    return upload_check(call->upload, md5, crc64, e);
}

/* --- whole blobs --- */

/* The address of the source, without the SAS that opens it. */
static const char *source_url(struct storage_call *call)
{
    const char *url = storage_header(call, "x-ms-copy-source");

    return arena_strndup(call->arena, url, strcspn(url, "?"));
}

static int read_tag_option(struct storage_call *call,
                           const struct blob *source,
                           struct blob_put *put,
                           struct err *e)
{
    const char *option = storage_header(call, "x-ms-copy-source-tag-option");

    if (!option || strcasecmp(option, "copy") != 0)
        return 0;
    if (put->tags)
        return storage_refuse(e, ERR_INVALID, "BothUserTagsAndSourceTagsCopyPresentException",
                              "x-ms-tags and the tags of the source exclude each other");
    put->tags = storage_keep_json(call, json_incref(source->tags));
    return 0;
}

static int copy(struct storage_call *call,
                const char *url,
                struct blob_put *put,
                struct blob **ret_blob,
                struct err *e)
{
    const struct blob_address to = blob_at(call);
    autoptr(blob) known = NULL;
    struct conditions conditions, from_conditions;
    struct storage_call *source;
    struct blob_address from;

    if (blob_create_conditions(call, &conditions, e) < 0 ||
        find_source(call, &source, &from_conditions, &known, NULL, e) < 0 ||
        read_tag_option(call, known, put, e) < 0)
        return -1;
    from = blob_at(source);
    if (blobs_copy(blobs_of(call), &from, &from_conditions, url, &to, put, &conditions,
                   ret_blob, e) < 0)
        return blob_create_failed(call, e);
    return 0;
}

static int copy_blob(struct storage_call *call, struct err *e)
{
    autoptr(blob) blob = NULL;
    struct blob_put put = {0};
    json_t *metadata, *tags;

    if (storage_metadata(call, false, &metadata, e) < 0 ||
        blob_read_tags_header(call, &tags, e) < 0 ||
        blob_read_tier(call, false, &put.tier, e) < 0)
        return -1;
    put.metadata = metadata;
    put.tags = tags;
    if (copy(call, source_url(call), &put, &blob, e) < 0)
        return -1;
    storage_reply_header(call, "x-ms-copy-id", blob->copy_id);
    storage_reply_header(call, "x-ms-copy-status", "success");
    storage_reply_header(call, "Content-MD5", blob->headers.content_md5);
    storage_reply_etag(call, blob->etag, blob->modified_ms);
    return storage_reply(call, 202);
}

static int put_through(struct storage_call *call,
                       struct blob_put *put,
                       struct blob **ret_blob,
                       struct err *e)
{
    const struct blob_address at = blob_at(call);
    struct conditions conditions;

    if (blob_create_conditions(call, &conditions, e) < 0 ||
        blob_upload_from_source(call, most_put_bytes, e) < 0)
        return -1;
    if (!put->headers.content_md5)
        put->headers.content_md5 = (char *)upload_md5(call->upload);
    if (blobs_put(blobs_of(call), &at, call->upload, put, &conditions, ret_blob, e) < 0)
        return blob_create_failed(call, e);
    return 0;
}

/* Labels of its own, a hash to check, or a source of another type: then the bytes must pass
 * through our hands. */
static int must_pass(struct storage_call *call, bool *ret_must, struct err *e)
{
    const char *keeps = storage_header(call, "x-ms-copy-source-blob-properties");
    autoptr(blob) blob = NULL;
    struct storage_call *source;
    struct conditions conditions;

    if (find_source(call, &source, &conditions, &blob, NULL, e) < 0)
        return -1;
    *ret_must = blob->type != BLOB_BLOCK || (keeps && strcasecmp(keeps, "false") == 0) ||
                not_empty(storage_header(call, "x-ms-source-content-md5")) ||
                not_empty(storage_header(call, "x-ms-source-content-crc64"));
    return 0;
}

static int put_from_url(struct storage_call *call, struct err *e)
{
    autoptr(blob) blob = NULL;
    struct blob_put put;
    bool must;
    int rc;

    if (strcasecmp(storage_header(call, "x-ms-blob-type"), "BlockBlob") != 0) {
        storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                       "only a block blob can be put from a source");
        return err_target(e, "x-ms-blob-type");
    }
    if (blob_read_put(call, false, &put, e) < 0 || must_pass(call, &must, e) < 0)
        return -1;
    if (!put.metadata) /* that of the source stays there */
        put.metadata = storage_keep_json(call, json_object());
    rc = must ? put_through(call, &put, &blob, e) : copy(call, NULL, &put, &blob, e);
    if (rc < 0)
        return -1;
    storage_reply_header(call, "Content-MD5", blob->headers.content_md5);
    return blob_reply_written(call, blob, 201);
}

int blob_op_copy(struct storage_call *call, struct err *e)
{
    return storage_header(call, "x-ms-blob-type") ? put_from_url(call, e) : copy_blob(call, e);
}

int blob_op_abort_copy(struct storage_call *call, struct err *e)
{
    const struct blob_address at = blob_at(call);
    autoptr(blob) blob = NULL;

    if (blobs_find(blobs_of(call), &at, NULL, &blob, NULL, NULL, e) < 0)
        return -1;
    return storage_refuse(e, ERR_CONFLICT, "NoPendingCopyOperation",
                          "no copy is pending: copies are complete when they are answered");
}
