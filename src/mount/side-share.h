/* side-share.h - the writing half of the share's side; see struct side in mount.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MOUNT_SIDE_SHARE_H
#define MOUNT_SIDE_SHARE_H

#include "mount/mount.h"

/* Make a file of these bytes; only a yard's server takes more than none. */
int share_make(struct mount *mount,
               const char *path,
               const void *bytes,
               size_t len,
               struct facts *ret_facts,
               struct err *e);

int share_open(
    struct mount *mount, struct node *node, bool is_new, bool truncates, struct err *e);
int share_write(struct mount *mount,
                struct node *node,
                const void *bytes,
                size_t len,
                int64_t offset,
                struct err *e);
int share_truncate(struct mount *mount, struct node *node, int64_t size_bytes, struct err *e);
int share_flush(struct mount *mount, struct node *node, struct err *e);
int share_set_time(struct mount *mount, struct node *node, int64_t mtime_ns, struct err *e);
void share_close(struct writing *writing);

#endif
