/* ops.h - what the handlers of the kernel's requests share.
 *
 * A request names a node by its address; the kernel's references keep it alive.  Every handler
 * answers exactly once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MOUNT_OPS_H
#define MOUNT_OPS_H

#define FUSE_USE_VERSION 312

#include "mount/mount.h"

#include <fuse3/fuse_lowlevel.h>

struct mount *ops_mount(fuse_req_t req);
struct node *ops_node(struct mount *mount, fuse_ino_t ino);

/* The child of that name, up to date, with a reference of the caller's; NULL with errno in
 * *ret_errno. */
struct node *
ops_find(struct mount *mount, struct node *folder, const char *name, int *ret_errno);
void ops_put(struct mount *mount, struct node *node);

/* Answer with what failed, and log what people should know of. */
void ops_fail(fuse_req_t req, const struct err *e, const char *doing, const char *name);
void ops_fail_node(fuse_req_t req, const struct err *e, const char *doing, struct node *node);

/* Fill in an entry and count the kernel's reference; the tree is locked. */
void ops_entry(struct mount *mount, struct node *node, struct fuse_entry_param *ret_entry);
/* Seconds for which what is known of the node holds; the tree is locked. */
double ops_valid_for(const struct mount *mount, const struct node *node);
void ops_reply_attr(fuse_req_t req, struct mount *mount, struct node *node);

/* ops-names.c */
void ops_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void ops_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count);
void ops_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
void ops_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_readdir(
    fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void ops_readdirplus(
    fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void ops_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_statfs(fuse_req_t req, fuse_ino_t ino);

/* ops-files.c */
void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_create(fuse_req_t req,
                fuse_ino_t parent,
                const char *name,
                mode_t mode,
                struct fuse_file_info *fi);
void ops_read(
    fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void ops_write(fuse_req_t req,
               fuse_ino_t ino,
               const char *bytes,
               size_t size,
               off_t offset,
               struct fuse_file_info *fi);
void ops_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_mountync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void ops_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);

/* ops-change.c */
void ops_setattr(
    fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi);
void ops_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device);
void ops_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void ops_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void ops_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void ops_rename(fuse_req_t req,
                fuse_ino_t parent,
                const char *name,
                fuse_ino_t new_parent,
                const char *new_name,
                unsigned int flags);
/* Make a file and enter it; a reference of the caller's. */
struct node *
ops_make_file(struct mount *mount, struct node *folder, const char *name, struct err *e);
/* A file that was removed while it was open, and has been closed. */
void ops_remove_hidden(struct mount *mount, struct node *node);

#endif
