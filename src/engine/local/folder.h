/* folder.h - folders that jobs write in: made and removed without following what jobs planted.
 *
 * Nothing here is synced: what is in a node is gone with it, and made again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_FOLDER_H
#define ENGINE_LOCAL_FOLDER_H

#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>

/* Make a folder and its parents, as mkdir -p, links followed.  For paths that are ours. */
int folder_make(const char *path, mode_t mode, struct err *e);
/* Make path (relative) beneath root_fd, following no symbolic link; *ret_fd, when wanted, is
 * the folder opened with O_PATH. */
int folder_make_beneath(int root_fd, const char *path, mode_t mode, int *ret_fd, struct err *e);
/* The same for an absolute path: beneath root as far as it lies there, else as folder_make. */
int folder_make_for_job(const char *root, const char *path, struct err *e);
/* Remove a tree, or a file.  Links are removed, not followed; nothing beyond a mount point is
 * touched.  A missing one is fine. */
int folder_remove(const char *path, struct err *e);
/* The same beneath root_fd, with no link followed on the way to it either. */
int folder_remove_beneath(int root_fd, const char *path, struct err *e);
/* Write a small file beneath root_fd in the place of whatever is there; its folder is made when
 * it is missing, and no link is followed.  No sync. */
int folder_write_beneath(
    int root_fd, const char *path, const void *bytes, size_t len, mode_t mode, struct err *e);
/* Write a small file in place or new; no sync.  For paths that are ours. */
int folder_write(const char *path, const void *bytes, size_t len, mode_t mode, struct err *e);

#endif
