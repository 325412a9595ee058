/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/ops.h"

#include "base/clock.h"
#include "base/log.h"
#include "mount/remote.h"
#include "mount/settings.h"

#include <errno.h>
#include <unistd.h>

enum {
    MOST_BACKGROUND = 64, /* reads ahead of the kernel's own that may wait at once */
};

struct mount *ops_mount(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

struct node *ops_node(struct mount *mount, fuse_ino_t ino)
{
    return ino == FUSE_ROOT_ID ? mount->tree.root : (struct node *)(uintptr_t)ino;
}

void ops_put(struct mount *mount, struct node *node)
{
    pthread_mutex_lock(&mount->tree.lock);
    node_unref(&mount->tree, node, 1);
    pthread_mutex_unlock(&mount->tree.lock);
}

void ops_fail(fuse_req_t req, const struct err *e, const char *doing, const char *name)
{
    int errno_value = remote_errno(e);

    /* What a program asks for in vain every day is not worth a line. */
    if (errno_value == EIO || errno_value == EACCES || errno_value == ENOSPC)
        log_warning("event=failed doing=%s name=\"%s\" error=\"%s\"", doing, name, e->msg);
    else
        log_debug("event=failed doing=%s name=\"%s\" error=\"%s\"", doing, name, e->msg);
    fuse_reply_err(req, errno_value);
}

void ops_fail_node(fuse_req_t req, const struct err *e, const char *doing, struct node *node)
{
    auto_free char *name = mount_name(ops_mount(req), node);

    ops_fail(req, e, doing, name);
}

static struct node *find_now(struct mount *mount, struct node *folder, const char *name)
{
    struct node *node;

    pthread_mutex_lock(&mount->tree.lock);
    node = tree_find(&mount->tree, folder, name);
    if (node && (node->is_hidden || node->is_gone))
        node = NULL;
    if (node)
        node_ref(node);
    pthread_mutex_unlock(&mount->tree.lock);
    return node;
}

struct node *
ops_find(struct mount *mount, struct node *folder, const char *name, int *ret_errno)
{
    struct err e = {0};
    struct node *node = NULL;

    if (!folder->folder) {
        *ret_errno = ENOTDIR;
        return NULL;
    }
    /* That a name is missing is believed for a shorter time than that it is there. */
    if (mount_refresh(mount, folder, mount->fresh_ms, &e) < 0 ||
        (!(node = find_now(mount, folder, name)) &&
         mount_refresh(mount, folder, mount->missing_ms, &e) < 0)) {
        *ret_errno = remote_errno(&e);
        if (*ret_errno == EIO || *ret_errno == EACCES)
            log_warning("event=failed doing=list error=\"%s\"", e.msg);
        return NULL;
    }
    if (!node)
        node = find_now(mount, folder, name);
    *ret_errno = ENOENT;
    return node;
}

double ops_valid_for(const struct mount *mount, const struct node *node)
{
    if (!node->parent)
        return node->is_gone ? 0 : (double)mount->fresh_ms / 1000;
    return (double)tree_fresh_for(node->parent, clock_mono_ms(), mount->fresh_ms) / 1000;
}

void ops_entry(struct mount *mount, struct node *node, struct fuse_entry_param *entry)
{
    *entry = (struct fuse_entry_param){
        .ino = (fuse_ino_t)(uintptr_t)node_ref(node),
        .attr_timeout = ops_valid_for(mount, node),
    };
    entry->entry_timeout = entry->attr_timeout;
    mount_stat(mount, node, &entry->attr);
}

void ops_reply_attr(fuse_req_t req, struct mount *mount, struct node *node)
{
    struct stat st;
    double valid_for;

    pthread_mutex_lock(&mount->tree.lock);
    mount_stat(mount, node, &st);
    valid_for = ops_valid_for(mount, node);
    pthread_mutex_unlock(&mount->tree.lock);
    fuse_reply_attr(req, &st, valid_for);
}

/* --- the table --- */

static void init(void *context, struct fuse_conn_info *conn)
{
    struct mount *mount = context;

    conn->max_read = READER_MOST_BYTES; /* as in the options of the mount */
    conn->max_background = MOST_BACKGROUND;
    conn->congestion_threshold = MOST_BACKGROUND * 3 / 4;
    /* Our bytes are in memory: a copy is less than a detour through a pipe. */
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE);
    mount_start(mount);
    if (mount->ready_fd >= 0) {
        if (write(mount->ready_fd, "", 1) != 1)
            log_debug("event=ready-unheard");
        close(mount->ready_fd);
        mount->ready_fd = -1;
    }
}

static void refuse_symlink(fuse_req_t req, const char *to, fuse_ino_t parent, const char *name)
{
    (void)to;
    (void)parent;
    (void)name;
    fuse_reply_err(req, EPERM);
}

static void refuse_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    (void)ino;
    (void)parent;
    (void)name;
    fuse_reply_err(req, EPERM);
}

void ops_init(struct fuse_lowlevel_ops *ops, const struct mount *mount)
{
    *ops = (struct fuse_lowlevel_ops){
        .init = init,
        .lookup = ops_lookup,
        .forget = ops_forget,
        .forget_multi = ops_forget_multi,
        .getattr = ops_getattr,
        .opendir = ops_opendir,
        .readdir = ops_readdir,
        .readdirplus = ops_readdirplus,
        .releasedir = ops_releasedir,
        .statfs = ops_statfs,
        .open = ops_open,
        .read = ops_read,
        .release = ops_release,
    };
    if (!mount->is_writable)
        return;
    ops->create = ops_create;
    ops->write = ops_write;
    ops->flush = ops_flush;
    ops->fsync = ops_mountync;
    ops->setattr = ops_setattr;
    ops->mknod = ops_mknod;
    ops->mkdir = ops_mkdir;
    ops->unlink = ops_unlink;
    ops->rmdir = ops_rmdir;
    ops->rename = ops_rename;
    ops->symlink = refuse_symlink;
    ops->link = refuse_link;
}
