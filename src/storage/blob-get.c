/* blob-get.c - reading a blob, or a part of it, or only what is said of it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blob-ops.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    MOST_HASHED_RANGE = 4 * 1024 * 1024,
};

static const char *const type_of_unknown = "application/octet-stream";

/* --- facts --- */

static void reply_copy(struct storage_call *call, const struct blob *blob)
{
    if (!blob->copy_id)
        return;
    storage_reply_header(call, "x-ms-copy-id", blob->copy_id);
    storage_reply_header(call, "x-ms-copy-source", blob->copy_source);
    storage_reply_header(call, "x-ms-copy-status", "success");
    storage_reply_headerf(call, "x-ms-copy-progress", "%lld/%lld", (long long)blob->size_bytes,
                          (long long)blob->size_bytes);
    storage_reply_date(call, "x-ms-copy-completion-time", blob->copied_ms);
}

static void reply_kind(struct storage_call *call, const struct blob *blob)
{
    storage_reply_header(call, "x-ms-blob-type", blob_type_name(blob->type));
    if (blob->type == BLOB_APPEND)
        storage_reply_headerf(call, "x-ms-blob-committed-block-count", "%lld",
                              (long long)blob->block_count);
    if (blob->type == BLOB_PAGE)
        storage_reply_headerf(call, "x-ms-blob-sequence-number", "%lld",
                              (long long)blob->sequence);
    if (blob->type == BLOB_BLOCK) {
        storage_reply_header(call, "x-ms-access-tier", blob->tier ? blob->tier : "Hot");
        if (!blob->tier)
            storage_reply_header(call, "x-ms-access-tier-inferred", "true");
    }
}

/* A SAS of one resource may say how its content is to be labelled. */
void storage_reply_labels(struct storage_call *call, const struct blob_headers *h)
{
    static const struct sas_service nothing;
    bool has_own = call->by == STORAGE_BY_SAS && call->sas.kind != SAS_ACCOUNT;
    const struct sas_service *sas = has_own ? &call->sas.service : &nothing;
    const char *type = h->content_type ? h->content_type : type_of_unknown;

    storage_reply_header(call, "Content-Type", sas->type ? sas->type : type);
    storage_reply_header(call, "Content-Encoding",
                         sas->encoding ? sas->encoding : h->content_encoding);
    storage_reply_header(call, "Content-Language",
                         sas->language ? sas->language : h->content_language);
    storage_reply_header(call, "Content-Disposition",
                         sas->disposition ? sas->disposition : h->content_disposition);
    storage_reply_header(call, "Cache-Control",
                         sas->cache_control ? sas->cache_control : h->cache_control);
}

void blob_reply_facts(struct storage_call *call, const struct blob *blob)
{
    storage_reply_etag(call, blob->etag, blob->modified_ms);
    storage_reply_date(call, "x-ms-creation-time", blob->created_ms);
    storage_reply_header(call, "Accept-Ranges", "bytes");
    storage_reply_labels(call, &blob->headers);
    reply_kind(call, blob);
    if (!blob->snapshot[0])
        storage_reply_lease_state(call, &blob->lease);
    storage_reply_header(call, "x-ms-server-encrypted", "true");
    storage_reply_metadata(call, blob->metadata);
    reply_copy(call, blob);
    if (json_object_size(blob->tags))
        storage_reply_headerf(call, "x-ms-tag-count", "%zu", json_object_size(blob->tags));
}

/* --- content --- */

static bool is_true(const struct storage_call *call, const char *name)
{
    const char *value = storage_header(call, name);

    return value && strcasecmp(value, "true") == 0;
}

/* The MD5 or CRC-64 of the range itself, when the client wants one and the range is small. */
int storage_reply_range_hash(
    struct storage_call *call, int fd, int64_t first, int64_t len, struct err *e)
{
    bool md5 = is_true(call, "x-ms-range-get-content-md5");
    bool crc64 = is_true(call, "x-ms-range-get-content-crc64");
    auto_free char *bytes = NULL;
    auto_str text = {0};
    ssize_t got;

    if (!md5 && !crc64)
        return 0;
    if ((md5 && crc64) || len > MOST_HASHED_RANGE)
        return storage_refuse(e, ERR_INVALID,
                              md5 && crc64 ? "InvalidHeaderValue" : "OutOfRangeInput",
                              "one hash, of a range of at most 4 MiB, can be asked for");
    bytes = xmalloc((size_t)len + 1);
    got = pread(fd, bytes, (size_t)len, first);
    if (got != len)
        return err_sys(e, got < 0 ? errno : EIO, "could not read the content");
    if (md5)
        storage_md5(bytes, (size_t)len, &text);
    else
        storage_crc64(bytes, (size_t)len, &text);
    storage_reply_header(call, md5 ? "Content-MD5" : "x-ms-content-crc64", str_text(&text));
    return 0;
}

static int reply_range(struct storage_call *call,
                       const struct blob *blob,
                       int fd,
                       int64_t first,
                       int64_t len,
                       struct err *e)
{
    storage_reply_headerf(call, "Content-Range", "bytes %lld-%lld/%lld", (long long)first,
                          (long long)(first + len - 1), (long long)blob->size_bytes);
    storage_reply_header(call, "x-ms-blob-content-md5", blob->headers.content_md5);
    return storage_reply_range_hash(call, fd, first, len, e);
}

static int find(struct storage_call *call,
                struct blob **ret_blob,
                int *ret_fd,
                bool *ret_unchanged,
                struct err *e)
{
    const struct blob_address at = blob_at(call);
    struct conditions conditions;

    if (storage_conditions(call, "", &conditions, e) < 0)
        return -1;
    return blobs_find(blobs_of(call), &at, &conditions, ret_blob, ret_fd, ret_unchanged, e);
}

static int reply_unchanged(struct storage_call *call, const struct blob *blob)
{
    storage_reply_etag(call, blob->etag, blob->modified_ms);
    return storage_reply_unchanged(call);
}

int blob_op_get(struct storage_call *call, struct err *e)
{
    autoptr(blob) blob = NULL;
    auto_close int fd = -1;
    bool is_unchanged = false;
    int64_t first = 0, len;
    int is_part;

    if (find(call, &blob, &fd, &is_unchanged, e) < 0)
        return -1;
    if (is_unchanged)
        return reply_unchanged(call, blob);
    len = blob->size_bytes;
    is_part = storage_range(call, blob->size_bytes, &first, &len, e);
    if (is_part < 0 || (is_part && reply_range(call, blob, fd, first, len, e) < 0))
        return -1;
    blob_reply_facts(call, blob);
    if (!is_part)
        storage_reply_header(call, "Content-MD5", blob->headers.content_md5);
    call->out_fd = take_fd(&fd);
    call->out_offset = first;
    call->out_length = len;
    return storage_reply(call, is_part ? 206 : 200);
}

int blob_op_head(struct storage_call *call, struct err *e)
{
    autoptr(blob) blob = NULL;
    bool is_unchanged = false;

    if (find(call, &blob, NULL, &is_unchanged, e) < 0)
        return -1;
    if (is_unchanged)
        return reply_unchanged(call, blob);
    blob_reply_facts(call, blob);
    storage_reply_header(call, "Content-MD5", blob->headers.content_md5);
    call->out_length = blob->size_bytes;
    return storage_reply(call, 200);
}

int blob_op_get_metadata(struct storage_call *call, struct err *e)
{
    autoptr(blob) blob = NULL;
    bool is_unchanged = false;

    if (find(call, &blob, NULL, &is_unchanged, e) < 0)
        return -1;
    if (is_unchanged)
        return reply_unchanged(call, blob);
    storage_reply_etag(call, blob->etag, blob->modified_ms);
    storage_reply_metadata(call, blob->metadata);
    return storage_reply(call, 200);
}
