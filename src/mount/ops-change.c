/* ops-change.c - making, removing and renaming, and what can be set of a file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mount/ops.h"

#include "base/clock.h"
#include "base/str.h"
#include "mount/remote.h"
#include "mount/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- facts --- */

static bool is_open(struct mount *mount, struct node *node)
{
    bool is;

    pthread_mutex_lock(&mount->tree.lock);
    is = node->opens > 0;
    pthread_mutex_unlock(&mount->tree.lock);
    return is;
}

static int set_size(struct mount *mount, struct node *node, int64_t size, struct err *e)
{
    struct writing *writing;
    int rc = 0;

    if (writing_begin(mount, node, false, size == 0, e) < 0)
        return -1;
    writing = writing_enter(mount, node);
    if (size > 0)
        rc = mount->side->truncate(mount, node, size, e);
    writing_leave(mount, node, writing);
    /* Whoever has it open stores it when he closes it. */
    if (rc == 0 && !is_open(mount, node))
        rc = writing_flush(mount, node, e);
    writing_end(mount, node);
    return rc;
}

static int set_time(
    struct mount *mount, struct node *node, const struct stat *attr, int to_set, struct err *e)
{
    int64_t ns = attr->st_mtim.tv_sec * 1000000000 + attr->st_mtim.tv_nsec;
    struct writing *writing;
    int rc;

    if (node->folder)
        return 0;
    if (to_set & FUSE_SET_ATTR_MTIME_NOW)
        ns = clock_wall_ms() * 1000000;
    writing = writing_enter(mount, node);
    rc = mount->side->set_time(mount, node, ns, e);
    if (writing)
        writing_leave(mount, node, writing);
    return rc;
}

/* Owners and modes are not kept; programs set them all the time, and have to be let. */
void ops_setattr(
    fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
    struct mount *mount = ops_mount(req);
    struct node *node = ops_node(mount, ino);
    struct err e = {0};
    int rc = 0;

    (void)fi;
    if ((to_set & FUSE_SET_ATTR_SIZE) && node->folder) {
        fuse_reply_err(req, EISDIR);
        return;
    }
    if (to_set & FUSE_SET_ATTR_SIZE)
        rc = set_size(mount, node, attr->st_size, &e);
    if (rc == 0 && (to_set & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW)))
        rc = set_time(mount, node, attr, to_set, &e);
    if (rc < 0)
        ops_fail_node(req, &e, "set", node);
    else
        ops_reply_attr(req, mount, node);
}

/* --- making --- */

/* Enter what was made, unless a listing was faster. */
static struct node *enter(struct mount *mount,
                          struct node *folder,
                          const char *name,
                          bool is_folder,
                          const struct facts *facts)
{
    struct node *node;

    pthread_mutex_lock(&mount->tree.lock);
    node = tree_find(&mount->tree, folder, name);
    if (node && ((node->folder != NULL) != is_folder || node->is_gone)) {
        tree_remove(&mount->tree, node);
        node = NULL;
    }
    if (!node)
        node = tree_add(&mount->tree, folder, name, is_folder);
    if (!is_folder)
        node_set_facts(node, facts->etag[0] ? facts->etag : NULL, 0,
                       facts->mtime_ns >= 0 ? facts->mtime_ns : clock_wall_ms() * 1000000);
    node_ref(node);
    pthread_mutex_unlock(&mount->tree.lock);
    return node;
}

struct node *
ops_make_file(struct mount *mount, struct node *folder, const char *name, struct err *e)
{
    auto_free char *path = NULL;
    struct facts facts;

    if (mount_child_path(mount, folder, name, &path, e) < 0 ||
        mount->side->make_file(mount, path, &facts, e) < 0)
        return NULL;
    return enter(mount, folder, name, false, &facts);
}

static void reply_made(fuse_req_t req, struct mount *mount, struct node *node)
{
    struct fuse_entry_param entry;

    pthread_mutex_lock(&mount->tree.lock);
    ops_entry(mount, node, &entry);
    pthread_mutex_unlock(&mount->tree.lock);
    if (fuse_reply_entry(req, &entry) < 0)
        ops_put(mount, node);
    ops_put(mount, node);
}

void ops_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
    struct mount *mount = ops_mount(req);
    struct err e = {0};
    struct node *node;
    int rc;

    (void)device;
    if (!S_ISREG(mode)) {
        fuse_reply_err(req, EPERM);
        return;
    }
    node = ops_make_file(mount, ops_node(mount, parent), name, &e);
    if (!node) {
        ops_fail(req, &e, "create", name);
        return;
    }
    rc = writing_begin(mount, node, true, false, &e);
    if (rc == 0) {
        rc = writing_flush(mount, node, &e);
        writing_end(mount, node);
    }
    if (rc == 0) {
        reply_made(req, mount, node);
        return;
    }
    ops_fail(req, &e, "create", name);
    ops_put(mount, node);
}

void ops_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct mount *mount = ops_mount(req);
    struct node *folder = ops_node(mount, parent), *node;
    auto_free char *path = NULL;
    struct err e = {0};

    (void)mode;
    if (mount_child_path(mount, folder, name, &path, &e) < 0 ||
        mount->side->make_folder(mount, path, &e) < 0) {
        ops_fail(req, &e, "mkdir", name);
        return;
    }
    node = enter(mount, folder, name, true, NULL);
    reply_made(req, mount, node);
}

/* --- removing --- */

/* A folder of a container is there as long as something is in it; but who empties a folder does
 * not expect it to go. */
static void keep_folder(struct mount *mount, struct node *node)
{
    if (node->parent && !mount->settings->is_share)
        node->parent->folder->is_local = true;
}

static void take_out(struct mount *mount, struct node *node)
{
    pthread_mutex_lock(&mount->tree.lock);
    keep_folder(mount, node);
    if (node->parent)
        tree_remove(&mount->tree, node);
    pthread_mutex_unlock(&mount->tree.lock);
}

static void begin_change(struct mount *mount, struct node *node)
{
    pthread_mutex_lock(&mount->tree.lock);
    tree_begin_change(node);
    pthread_mutex_unlock(&mount->tree.lock);
}

/* In a share, who has a file open goes on with it: it gets another name until he closes it. */
static int hide(struct mount *mount, struct node *node, const char *path, struct err *e)
{
    struct node *parent;
    char name[64];
    auto_free char *hidden = NULL;
    struct facts facts;
    bool is_closed;
    int rc;

    snprintf(name, sizeof(name), ".yardfs-%llx-%llx", (unsigned long long)clock_wall_ms(),
             (unsigned long long)node->number);
    pthread_mutex_lock(&mount->tree.lock);
    parent = node->parent ? node_ref(node->parent) : NULL;
    pthread_mutex_unlock(&mount->tree.lock);
    if (!parent)
        return 0;
    rc = mount_child_path(mount, parent, name, &hidden, e);
    begin_change(mount, node);
    if (rc == 0)
        rc = mount->side->move(mount, path, hidden, false, &facts, e);
    pthread_mutex_lock(&mount->tree.lock);
    if (rc == 0 && node->parent) {
        tree_move(&mount->tree, node, parent, name);
        node->is_hidden = true;
        if (facts.etag[0])
            node_set_facts(node, facts.etag, node->size_bytes, node->mtime_ns);
    }
    is_closed = rc == 0 && !node->opens;
    tree_end_change(&mount->tree, node);
    node_unref(&mount->tree, parent, 1);
    pthread_mutex_unlock(&mount->tree.lock);
    if (is_closed) /* meanwhile, and nobody comes to remove it */
        ops_remove_hidden(mount, node);
    return rc;
}

static int remove_file(struct mount *mount, struct node *node, struct err *e)
{
    auto_free char *path = NULL;
    bool is_stored;

    if (mount_path(mount, node, &path, e) < 0)
        return -1;
    pthread_mutex_lock(&mount->tree.lock);
    is_stored = node->etag != NULL; /* what is still being written may not be */
    pthread_mutex_unlock(&mount->tree.lock);
    if (is_stored && mount->settings->is_share && is_open(mount, node))
        return hide(mount, node, path, e);
    if (mount->side->remove(mount, path, false, e) < 0 &&
        (is_stored || remote_errno(e) != ENOENT))
        return -1;
    take_out(mount, node);
    return 0;
}

/* Is there really nothing in it? */
static int remove_folder(struct mount *mount, struct node *node, struct err *e)
{
    auto_free char *path = NULL;
    bool is_empty;

    if (mount_refresh(mount, node, 0, e) < 0 || mount_path(mount, node, &path, e) < 0)
        return -1;
    pthread_mutex_lock(&mount->tree.lock);
    is_empty = node->folder->count == 0;
    pthread_mutex_unlock(&mount->tree.lock);
    if (!is_empty) {
        err_set(e, ERR_CONFLICT, "the folder is not empty");
        return err_reason(e, "DirectoryNotEmpty");
    }
    if (mount->side->remove(mount, path, true, e) < 0)
        return -1;
    take_out(mount, node);
    return 0;
}

static void remove_name(fuse_req_t req, fuse_ino_t parent, const char *name, bool is_folder)
{
    struct mount *mount = ops_mount(req);
    struct err e = {0};
    int errno_value;
    struct node *node = ops_find(mount, ops_node(mount, parent), name, &errno_value);

    if (!node) {
        fuse_reply_err(req, errno_value);
        return;
    }
    if ((node->folder != NULL) != is_folder)
        fuse_reply_err(req, is_folder ? ENOTDIR : EISDIR);
    else if ((is_folder ? remove_folder(mount, node, &e) : remove_file(mount, node, &e)) < 0)
        ops_fail(req, &e, "remove", name);
    else
        fuse_reply_err(req, 0);
    ops_put(mount, node);
}

void ops_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    remove_name(req, parent, name, false);
}

void ops_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    remove_name(req, parent, name, true);
}

/* --- renaming --- */

/* Each blob below a renamed folder is another by now. */
static void forget_below(struct node *node)
{
    tree_expire(node);
    for (size_t i = 0; i < node->folder->count; i++) {
        struct node *child = node->folder->children[i];

        if (child->folder) {
            forget_below(child);
        } else {
            free(child->etag);
            child->etag = NULL;
        }
    }
}

/* Make the place free: the service replaces files, but no folders. */
static int clear_target(struct mount *mount, struct node *target, bool is_folder, struct err *e)
{
    if ((target->folder != NULL) != is_folder) {
        err_set(e, ERR_CONFLICT, "one is a folder, the other a file");
        return err_reason(e, "ResourceTypeMismatch");
    }
    if (is_folder)
        return remove_folder(mount, target, e);
    return mount->settings->is_share && is_open(mount, target) ? remove_file(mount, target, e)
                                                               : 0;
}

/* With the tree locked. */
static void enter_moved(struct mount *mount,
                        struct node *node,
                        struct node *folder,
                        const char *name,
                        const struct facts *facts)
{
    keep_folder(mount, node);
    if (node->parent)
        tree_move(&mount->tree, node, folder, name);
    if (node->folder && !mount->settings->is_share)
        forget_below(node);
    else if (!node->folder && facts->etag[0])
        node_set_facts(node, facts->etag, node->size_bytes,
                       mount->settings->is_share || facts->mtime_ns < 0 ? node->mtime_ns
                                                                        : facts->mtime_ns);
}

static int move_node(struct mount *mount,
                     struct node *node,
                     struct node *folder,
                     const char *name,
                     struct err *e)
{
    auto_free char *from = NULL, *to = NULL;
    struct facts facts;
    int rc;

    if (writing_flush(mount, node, e) < 0 || mount_path(mount, node, &from, e) < 0 ||
        mount_child_path(mount, folder, name, &to, e) < 0)
        return -1;
    begin_change(mount, node);
    rc = mount->side->move(mount, from, to, node->folder != NULL, &facts, e);
    pthread_mutex_lock(&mount->tree.lock);
    if (rc == 0)
        enter_moved(mount, node, folder, name, &facts);
    tree_end_change(&mount->tree, node);
    pthread_mutex_unlock(&mount->tree.lock);
    return rc;
}

void ops_rename(fuse_req_t req,
                fuse_ino_t parent,
                const char *name,
                fuse_ino_t new_parent,
                const char *new_name,
                unsigned int flags)
{
    struct mount *mount = ops_mount(req);
    struct node *folder = ops_node(mount, new_parent), *node, *target;
    struct err e = {0};
    int errno_value = 0, ignored;

    if (flags & ~(unsigned)RENAME_NOREPLACE) {
        fuse_reply_err(req, EINVAL);
        return;
    }
    node = ops_find(mount, ops_node(mount, parent), name, &errno_value);
    if (!node) {
        fuse_reply_err(req, errno_value);
        return;
    }
    target = ops_find(mount, folder, new_name, &ignored);
    if (target && target != node && (flags & RENAME_NOREPLACE))
        fuse_reply_err(req, EEXIST);
    else if ((target && target != node &&
              clear_target(mount, target, node->folder != NULL, &e) < 0) ||
             move_node(mount, node, folder, new_name, &e) < 0)
        ops_fail(req, &e, "rename", name);
    else
        fuse_reply_err(req, 0);
    if (target)
        ops_put(mount, target);
    ops_put(mount, node);
}
