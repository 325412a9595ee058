/* blob-put.c - whole blobs: from a body, or empty ones to append or write pages to.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blob-ops.h"

#include "base/mem.h"

#include <string.h>
#include <strings.h>

static const int64_t most_put_bytes = 5000LL * 1024 * 1024;
static const int64_t most_page_blob_bytes = 8LL * 1024 * 1024 * 1024 * 1024;

static int read_type(struct storage_call *call, enum blob_type *ret_type, struct err *e)
{
    const char *text = storage_need_header(call, "x-ms-blob-type", e);

    if (!text)
        return -1;
    for (int type = BLOB_BLOCK; type <= BLOB_PAGE; type++)
        if (strcasecmp(text, blob_type_name((enum blob_type)type)) == 0) {
            *ret_type = (enum blob_type)type;
            return 0;
        }
    storage_refuse(e, ERR_INVALID, "InvalidHeaderValue", "\"%.32s\" is no type of blobs", text);
    return err_target(e, "x-ms-blob-type");
}

/* What is wrong with the request is said before its body is taken. */
int blob_begin_put(struct storage_call *call, struct err *e)
{
    enum blob_type type;
    struct conditions conditions;
    struct blob_put put;

    if (read_type(call, &type, e) < 0 || blob_create_conditions(call, &conditions, e) < 0 ||
        blob_read_put(call, true, &put, e) < 0)
        return -1;
    if (type == BLOB_BLOCK)
        return blob_begin_upload(call, most_put_bytes, true, e);
    if (call->content_length > 0)
        return storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                              "a new %s has no content yet: Content-Length must be 0",
                              blob_type_name(type));
    return 0;
}

static int put_block_blob(struct storage_call *call,
                          struct blob_put *put,
                          const struct conditions *conditions,
                          struct blob **ret_blob,
                          struct err *e)
{
    const struct blob_address at = blob_at(call);
    const char *own_md5 = put->headers.content_md5;

    if (blob_check_upload(call, e) < 0)
        return -1;
    /* The blob's own MD5 stands for the body's when nothing else does. */
    if (own_md5 && !storage_header(call, "Content-MD5") &&
        upload_check(call->upload, own_md5, NULL, e) < 0)
        return -1;
    if (!own_md5)
        put->headers.content_md5 = (char *)upload_md5(call->upload);
    if (blobs_put(blobs_of(call), &at, call->upload, put, conditions, ret_blob, e) < 0)
        return blob_create_failed(call, e);
    storage_reply_header(call, "Content-MD5", (*ret_blob)->headers.content_md5);
    return 0;
}

static int create_empty(struct storage_call *call,
                        enum blob_type type,
                        const struct blob_put *put,
                        const struct conditions *conditions,
                        struct blob **ret_blob,
                        struct err *e)
{
    const struct blob_address at = blob_at(call);
    int64_t size = 0;

    if (type == BLOB_PAGE && (!storage_need_header(call, "x-ms-blob-content-length", e) ||
                              storage_header_int(call, "x-ms-blob-content-length", 0,
                                                 most_page_blob_bytes, &size, e) < 0))
        return -1;
    if (size % 512) {
        storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                       "the size of a page blob is a multiple of 512");
        return err_target(e, "x-ms-blob-content-length");
    }
    if (blobs_create(blobs_of(call), &at, type, size, put, conditions, ret_blob, e) < 0)
        return blob_create_failed(call, e);
    return 0;
}

int blob_op_put(struct storage_call *call, struct err *e)
{
    autoptr(blob) blob = NULL;
    struct conditions conditions;
    struct blob_put put;
    enum blob_type type;
    int rc;

    if (read_type(call, &type, e) < 0 || blob_create_conditions(call, &conditions, e) < 0 ||
        blob_read_put(call, true, &put, e) < 0)
        return -1;
    rc = type == BLOB_BLOCK ? put_block_blob(call, &put, &conditions, &blob, e)
                            : create_empty(call, type, &put, &conditions, &blob, e);
    return rc < 0 ? -1 : blob_reply_written(call, blob, 201);
}
