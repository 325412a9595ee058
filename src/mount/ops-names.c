/* ops-names.c - finding names, telling what they are, listing folders.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mount/ops.h"

#include "base/clock.h"
#include "mount/remote.h"
#include "mount/settings.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

/* --- names --- */

/* A negative answer is worth keeping too: programs look for what is not there all the time. */
static void reply_missing(fuse_req_t req, struct mount *mount, struct node *folder)
{
    struct fuse_entry_param entry = {0};

    pthread_mutex_lock(&mount->tree.lock);
    entry.entry_timeout =
        (double)tree_fresh_for(folder, clock_mono_ms(), mount->missing_ms) / 1000;
    pthread_mutex_unlock(&mount->tree.lock);
    fuse_reply_entry(req, &entry);
}

void ops_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct mount *mount = ops_mount(req);
    struct node *folder = ops_node(mount, parent);
    struct fuse_entry_param entry;
    int errno_value;
    struct node *node = ops_find(mount, folder, name, &errno_value);

    if (!node && errno_value == ENOENT) {
        reply_missing(req, mount, folder);
        return;
    }
    if (!node) {
        fuse_reply_err(req, errno_value);
        return;
    }
    pthread_mutex_lock(&mount->tree.lock);
    ops_entry(mount, node, &entry);
    pthread_mutex_unlock(&mount->tree.lock);
    if (fuse_reply_entry(req, &entry) < 0)
        ops_put(mount, node); /* the kernel did not get its reference */
    ops_put(mount, node);
}

static void forget(struct mount *mount, fuse_ino_t ino, uint64_t count)
{
    if (ino == FUSE_ROOT_ID)
        return;
    pthread_mutex_lock(&mount->tree.lock);
    node_unref(&mount->tree, ops_node(mount, ino), count);
    pthread_mutex_unlock(&mount->tree.lock);
}

void ops_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
    forget(ops_mount(req), ino, count);
    fuse_reply_none(req);
}

void ops_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; i++)
        forget(ops_mount(req), forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(req);
}

/* The folder that the node is in, with a reference; NULL for the root and what was cut off. */
static struct node *parent_of(struct mount *mount, struct node *node)
{
    struct node *parent;

    pthread_mutex_lock(&mount->tree.lock);
    parent = node->parent ? node_ref(node->parent) : NULL;
    pthread_mutex_unlock(&mount->tree.lock);
    return parent;
}

void ops_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct mount *mount = ops_mount(req);
    struct node *node = ops_node(mount, ino), *parent = parent_of(mount, node);
    struct err e = {0};
    bool is_gone;

    if (parent) {
        int rc = mount_refresh(mount, parent, mount->fresh_ms, &e);

        ops_put(mount, parent);
        if (rc < 0) {
            ops_fail_node(req, &e, "getattr", node);
            return;
        }
    }
    pthread_mutex_lock(&mount->tree.lock);
    is_gone = node->is_gone;
    pthread_mutex_unlock(&mount->tree.lock);
    /* Who has it open may know what it was; a path leads to what is there now. */
    if (is_gone && !fi)
        fuse_reply_err(req, ESTALE);
    else
        ops_reply_attr(req, mount, node);
}

/* --- folders --- */

/* A folder as it was when it was opened: so that reading on is not led astray by changes. */
struct snapshot {
    struct node *folder;
    size_t count;
    struct node *children[];
};

static struct snapshot *take_snapshot(struct mount *mount, struct node *node)
{
    struct snapshot *shot;
    const struct folder *folder = node->folder;

    pthread_mutex_lock(&mount->tree.lock);
    shot = xmalloc(sizeof(*shot) + folder->count * sizeof(struct node *));
    shot->folder = node_ref(node);
    shot->count = 0;
    for (size_t i = 0; i < folder->count; i++) {
        if (!folder->children[i]->is_hidden)
            shot->children[shot->count++] = node_ref(folder->children[i]);
    }
    pthread_mutex_unlock(&mount->tree.lock);
    return shot;
}

static void drop_snapshot(struct mount *mount, uint64_t fh)
{
    struct snapshot *shot = (struct snapshot *)(uintptr_t)fh;

    pthread_mutex_lock(&mount->tree.lock);
    for (size_t i = 0; i < shot->count; i++)
        node_unref(&mount->tree, shot->children[i], 1);
    node_unref(&mount->tree, shot->folder, 1);
    pthread_mutex_unlock(&mount->tree.lock);
    free(shot);
}

void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct mount *mount = ops_mount(req);
    struct node *node = ops_node(mount, ino);
    struct err e = {0};

    if (!node->folder) {
        fuse_reply_err(req, ENOTDIR);
        return;
    }
    if (mount_refresh(mount, node, mount->missing_ms, &e) < 0) {
        ops_fail_node(req, &e, "list", node);
        return;
    }
    fi->fh = (uint64_t)(uintptr_t)take_snapshot(mount, node);
    fi->cache_readdir = fi->keep_cache = mount->settings->is_immutable;
    if (fuse_reply_open(req, fi) < 0)
        drop_snapshot(mount, fi->fh);
}

/* What is at a place: ".", "..", then the children; NULL when it went since.  That must not be
 * told, for the kernel would take it for a new one. */
static struct node *entry_at(struct mount *mount, const struct snapshot *shot, size_t at)
{
    struct node *node = at < 2 ? shot->folder : shot->children[at - 2];

    if (at >= 2 && node->is_gone) /* replaced by somebody else */
        node = tree_find(&mount->tree, shot->folder, node->name);
    if (at >= 2 && node && (node->parent != shot->folder || node->is_gone || node->is_hidden))
        return NULL;
    return node;
}

/* Returns its length, which may be more than there is room for. */
static size_t
add_entry(fuse_req_t req, struct node *node, size_t at, char *buf, size_t room, bool is_plus)
{
    struct mount *mount = ops_mount(req);
    const char *name = at == 0 ? "." : at == 1 ? ".." : node->name;
    struct fuse_entry_param entry = {0};
    size_t len;

    if (!is_plus || at < 2) {
        mount_stat(mount, node, &entry.attr);
        return is_plus ? fuse_add_direntry_plus(req, buf, room, name, &entry, (off_t)at + 1)
                       : fuse_add_direntry(req, buf, room, name, &entry.attr, (off_t)at + 1);
    }
    ops_entry(mount, node, &entry);
    len = fuse_add_direntry_plus(req, buf, room, name, &entry, (off_t)at + 1);
    if (len > room)
        node_unref(&mount->tree, node, 1);
    return len;
}

static void read_folder(fuse_req_t req, size_t size, off_t offset, uint64_t fh, bool is_plus)
{
    struct mount *mount = ops_mount(req);
    const struct snapshot *shot = (const struct snapshot *)(uintptr_t)fh;
    auto_free char *buf = xmalloc(size);
    size_t used = 0;

    pthread_mutex_lock(&mount->tree.lock);
    for (size_t at = (size_t)offset; at < shot->count + 2; at++) {
        struct node *node = entry_at(mount, shot, at);
        size_t len = node ? add_entry(req, node, at, buf + used, size - used, is_plus) : 0;

        if (len > size - used)
            break;
        used += len;
    }
    pthread_mutex_unlock(&mount->tree.lock);
    fuse_reply_buf(req, buf, used);
}

void ops_readdir(
    fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    (void)ino;
    read_folder(req, size, offset, fi->fh, false);
}

void ops_readdirplus(
    fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    (void)ino;
    read_folder(req, size, offset, fi->fh, true);
}

void ops_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    drop_snapshot(ops_mount(req), fi->fh);
    fuse_reply_err(req, 0);
}

/* The services do not tell how much room there is; programs that look want to see some. */
void ops_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct statvfs st = {
        .f_bsize = 4096,
        .f_frsize = 4096,
        .f_blocks = (fsblkcnt_t)1 << 38, /* 1 PiB */
        .f_bfree = (fsblkcnt_t)1 << 38,
        .f_bavail = (fsblkcnt_t)1 << 38,
        .f_files = 1000000000,
        .f_ffree = 1000000000,
        .f_namemax = NAME_MAX,
    };

    (void)ino;
    fuse_reply_statfs(req, &st);
}
