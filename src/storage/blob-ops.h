/* blob-ops.h - the operations of the Blob service, one file per kind of resource, and what they
 * share.  The table that names them all is in blob-routes.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_BLOB_OPS_H
#define STORAGE_BLOB_OPS_H

#include "storage/storage-proto.h"

/* --- shared --- */

static inline struct blobs *blobs_of(const struct storage_call *call)
{
    return call->service->config.blobs;
}

/* The blob of the call, with the snapshot that it asks for. */
struct blob_address blob_at(const struct storage_call *call);
/* The conditions of a call that may create: "c" alone must not replace. */
int blob_create_conditions(struct storage_call *call, struct conditions *ret, struct err *e);
/* An error of such a call, with the word for what it was not allowed to do. */
int blob_create_failed(struct storage_call *call, struct err *e);
/* Headers of the content.  x-ms-blob-content-type and the like; with is_plain_ok also
 * Content-Type and the like.  Borrowed from the call. */
int blob_read_headers(struct storage_call *call,
                      bool is_plain_ok,
                      struct blob_headers *ret,
                      struct err *e);
/* Metadata, x-ms-tags and tier besides. */
int blob_read_put(struct storage_call *call,
                  bool is_plain_ok,
                  struct blob_put *ret,
                  struct err *e);
int blob_read_tier(struct storage_call *call, bool is_needed, const char **ret, struct err *e);
/* x-ms-tags: name=value&name=value; NULL when absent. */
int blob_read_tags_header(struct storage_call *call, json_t **ret, struct err *e);
/* Are these tags such as the protocol allows? */
int blob_check_tag(json_t *tags, const char *name, const char *value, struct err *e);
/* ETag, Last-Modified and the rest of what every write answers. */
int blob_reply_written(struct storage_call *call, const struct blob *blob, int status);
const char *blob_type_name(enum blob_type type);

/* Begin an upload for a body of at most `most` bytes, whose MD5 the blob will keep or not. */
int blob_begin_upload(struct storage_call *call, int64_t most, bool keeps_md5, struct err *e);
/* The body is complete: check it against Content-MD5 or CRC64. */
int blob_check_upload(struct storage_call *call, struct err *e);
/* Instead of a body: bytes of the copy source, by x-ms-source-range, into call->upload. */
int blob_upload_from_source(struct storage_call *call, int64_t most, struct err *e);
/* Content-MD5 or x-ms-content-crc64 of what came, whichever the client did not ask to check. */
void blob_reply_hashes(struct storage_call *call);

/* Facts of one blob as headers of GET and HEAD. */
void blob_reply_facts(struct storage_call *call, const struct blob *blob);
/* <Blob> and <BlobPrefix> of a listing, <Tags> of both. */
void blob_write_tags(struct str *out, const json_t *tags);

/* --- operations --- */

int blob_op_list_containers(struct storage_call *call, struct err *e);
int blob_op_stats(struct storage_call *call, struct err *e);
int blob_op_batch(struct storage_call *call, struct err *e);

int blob_op_create_container(struct storage_call *call, struct err *e);
int blob_op_get_container(struct storage_call *call, struct err *e);
int blob_op_set_container_metadata(struct storage_call *call, struct err *e);
int blob_op_get_acl(struct storage_call *call, struct err *e);
int blob_op_set_acl(struct storage_call *call, struct err *e);
int blob_op_lease_container(struct storage_call *call, struct err *e);
int blob_op_delete_container(struct storage_call *call, struct err *e);
int blob_op_list(struct storage_call *call, struct err *e);

int blob_begin_put(struct storage_call *call, struct err *e);
int blob_op_put(struct storage_call *call, struct err *e);
int blob_op_put_from_url(struct storage_call *call, struct err *e);
int blob_op_copy(struct storage_call *call, struct err *e);
int blob_op_abort_copy(struct storage_call *call, struct err *e);

int blob_begin_block(struct storage_call *call, struct err *e);
int blob_op_put_block(struct storage_call *call, struct err *e);
int blob_op_put_block_from_url(struct storage_call *call, struct err *e);
int blob_op_put_block_list(struct storage_call *call, struct err *e);
int blob_op_get_block_list(struct storage_call *call, struct err *e);

int blob_begin_append(struct storage_call *call, struct err *e);
int blob_op_append(struct storage_call *call, struct err *e);
int blob_op_append_from_url(struct storage_call *call, struct err *e);
int blob_begin_page(struct storage_call *call, struct err *e);
int blob_op_put_page(struct storage_call *call, struct err *e);
int blob_op_put_page_from_url(struct storage_call *call, struct err *e);
int blob_op_get_pages(struct storage_call *call, struct err *e);

int blob_op_get(struct storage_call *call, struct err *e);
int blob_op_head(struct storage_call *call, struct err *e);
int blob_op_get_metadata(struct storage_call *call, struct err *e);
int blob_op_set_metadata(struct storage_call *call, struct err *e);
int blob_op_set_properties(struct storage_call *call, struct err *e);
int blob_op_get_tags(struct storage_call *call, struct err *e);
int blob_op_set_tags(struct storage_call *call, struct err *e);
int blob_op_set_tier(struct storage_call *call, struct err *e);
int blob_op_snapshot(struct storage_call *call, struct err *e);
int blob_op_lease(struct storage_call *call, struct err *e);
int blob_op_delete(struct storage_call *call, struct err *e);
int blob_op_undelete(struct storage_call *call, struct err *e);

#endif
