/* side-blob.h - the writing half of the container's side; see struct side in mount.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MOUNT_SIDE_BLOB_H
#define MOUNT_SIDE_BLOB_H

#include "mount/mount.h"

int blob_open(
    struct mount *mount, struct node *node, bool is_new, bool truncates, struct err *e);
int blob_write(struct mount *mount,
               struct node *node,
               const void *bytes,
               size_t len,
               int64_t offset,
               struct err *e);
int blob_truncate(struct mount *mount, struct node *node, int64_t size_bytes, struct err *e);
int blob_flush(struct mount *mount, struct node *node, struct err *e);
int blob_set_time(struct mount *mount, struct node *node, int64_t mtime_ns, struct err *e);
void blob_close(struct writing *writing);
int64_t blob_read(struct writing *writing, void *bytes, size_t len, int64_t offset);

#endif
