/* fs.h - files and folders, resolved by the kernel beneath a root and written so that they
 * survive.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FS_H
#define BASE_FS_H

#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>

struct str;

/* Open path beneath the folder root_fd, following no symbolic link anywhere: openat2 with
 * RESOLVE_BENEATH, NO_SYMLINKS and NO_MAGICLINKS.  O_CLOEXEC is added. */
int fs_open_beneath(
    int root_fd, const char *path, int flags, mode_t mode, int *ret_fd, struct err *e);

/* Make a folder and its parents, with mode for the ones made, each entered in its parent on
 * disk.  An existing folder is fine. */
int fs_make_folders(const char *path, mode_t mode, struct err *e);

/* Append a whole file of at most `most` bytes to out; nothing on failure. */
int fs_read(const char *path, size_t most, struct str *out, struct err *e);

/* Write a whole file so that after a crash it is the old one or the new one: temporary file in
 * the same folder, fsync, rename, fsync of the folder. */
int fs_write_durably(
    const char *path, const void *bytes, size_t len, mode_t mode, struct err *e);

/* Write all bytes to a descriptor, whatever the interruptions. */
int fs_write_all(int fd, const void *bytes, size_t len, struct err *e);

/* Rename within a folder, on disk when it returns. */
int fs_rename_durably(const char *from, const char *to, struct err *e);

/* Remove a file; a missing one is fine. */
int fs_remove(const char *path, struct err *e);

#endif
