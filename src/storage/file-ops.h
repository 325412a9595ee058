/* file-ops.h - the operations of the File service, one file per kind of resource, and what they
 * share.  The table that names them all is in file-routes.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_FILE_OPS_H
#define STORAGE_FILE_OPS_H

#include "storage/files.h"
#include "storage/storage-proto.h"

extern const struct storage_table file_table;

/* --- shared --- */

static inline struct files *files_of(const struct storage_call *call)
{
    return call->service->config.files;
}

/* The file or directory of the call. */
struct file_address file_at(const struct storage_call *call);
/* No request for a snapshot of a share is served: ShareSnapshotOperationNotSupported. */
int file_refuse_snapshot(struct storage_call *call, struct err *e);
bool file_header_is_true(const struct storage_call *call, const char *name);
const char *file_lease_id(const struct storage_call *call);

/* x-ms-content-type and the like; borrowed from the call. */
int file_read_headers(struct storage_call *call, struct blob_headers *ret, struct err *e);
/* x-ms-file-attributes: NULL when absent or to be kept; in the arena. */
int file_read_attributes(struct storage_call *call,
                         bool is_directory,
                         const char **ret,
                         struct err *e);
/* x-ms-file-permission or its key, as a key; NULL when absent or to be kept.  A text is put
 * into the share. */
int file_read_permission(struct storage_call *call, const char **ret_key, struct err *e);
/* x-ms-file-creation-time and -last-write-time; `otherwise` when absent. */
int file_read_times(struct storage_call *call,
                    struct file_time otherwise,
                    struct file_time *ret_created,
                    struct file_time *ret_written,
                    struct err *e);
/* All of them, for something new; metadata too. */
int file_read_put(struct storage_call *call,
                  bool is_directory,
                  struct file_put *ret,
                  struct err *e);
/* "bytes=first-last" in x-ms-range or Range, both given. */
int file_read_span(struct storage_call *call,
                   const char *name,
                   int64_t *ret_first,
                   int64_t *ret_len,
                   struct err *e);

/* ETag, Last-Modified and the x-ms-file headers. */
void file_reply_version(struct storage_call *call, const struct file *file);
int file_reply_written(struct storage_call *call, const struct file *file, int status);

enum {
    FILE_TIME_BYTES = 40,
};
/* 2019-01-01T01:01:01.1234567Z */
const char *file_time_format(int64_t ns, char buf[FILE_TIME_BYTES]);
int file_time_parse(const char *text, int64_t *ret_ns, struct err *e);

/* --- operations --- */

/* file-service.c */
int file_op_list_shares(struct storage_call *call, struct err *e);

/* file-share.c */
int file_op_create_share(struct storage_call *call, struct err *e);
int file_op_get_share(struct storage_call *call, struct err *e);
int file_op_delete_share(struct storage_call *call, struct err *e);
int file_op_set_share_metadata(struct storage_call *call, struct err *e);
int file_op_set_share_properties(struct storage_call *call, struct err *e);
int file_op_get_acl(struct storage_call *call, struct err *e);
int file_op_set_acl(struct storage_call *call, struct err *e);
int file_op_share_stats(struct storage_call *call, struct err *e);
int file_op_lease_share(struct storage_call *call, struct err *e);
int file_op_put_permission(struct storage_call *call, struct err *e);
int file_op_get_permission(struct storage_call *call, struct err *e);
int file_op_snapshot_share(struct storage_call *call, struct err *e);
int file_op_undelete_share(struct storage_call *call, struct err *e);

/* file-directory.c */
int file_op_create_directory(struct storage_call *call, struct err *e);
int file_op_get_directory(struct storage_call *call, struct err *e);
int file_op_delete_directory(struct storage_call *call, struct err *e);
int file_op_set_directory_metadata(struct storage_call *call, struct err *e);
int file_op_set_directory_properties(struct storage_call *call, struct err *e);
int file_op_list(struct storage_call *call, struct err *e);
int file_op_list_handles(struct storage_call *call, struct err *e);
int file_op_close_handles(struct storage_call *call, struct err *e);

/* file-object.c */
int file_op_create(struct storage_call *call, struct err *e);
int file_op_get(struct storage_call *call, struct err *e);
int file_op_head(struct storage_call *call, struct err *e);
int file_op_get_metadata(struct storage_call *call, struct err *e);
int file_op_delete(struct storage_call *call, struct err *e);
int file_op_set_metadata(struct storage_call *call, struct err *e);
int file_op_set_properties(struct storage_call *call, struct err *e);
int file_op_lease(struct storage_call *call, struct err *e);

/* file-range.c */
int file_op_put_range(struct storage_call *call, struct err *e);
int file_op_put_range_from_url(struct storage_call *call, struct err *e);
int file_op_list_ranges(struct storage_call *call, struct err *e);

/* file-move.c */
int file_op_copy(struct storage_call *call, struct err *e);
int file_op_abort_copy(struct storage_call *call, struct err *e);
int file_op_rename(struct storage_call *call, struct err *e);
int file_op_rename_directory(struct storage_call *call, struct err *e);

#endif
