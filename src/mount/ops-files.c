/* ops-files.c - opening, reading and writing files.
 *
 * A file that was never read here is begun to be read when it is opened: if it was replaced
 * meanwhile, the kernel is told ESTALE, looks the name up again, and opens what is there now.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mount/ops.h"

#include "base/log.h"
#include "mount/remote.h"
#include "mount/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
    MOST_TRIES = 8, /* to read a file that changes all the time */
    FIRST_BYTES = BLOCK_BYTES,
    MOST_NEXT = 16, /* files that are fetched ahead */
};

/* What the kernel's handle number says. */
enum {
    READS = 0,
    WRITES = 1,
};

/* --- reading --- */

/* Read, and once more when the file turned out to be another by now: of a share, or because of
 * what this mount did itself. */
static int read_parts(struct mount *mount,
                      struct node *node,
                      int64_t offset,
                      size_t len,
                      struct reader_parts *parts,
                      int *ret_errno)
{
    struct reader_ask ask = {.node = node, .offset = offset, .len = len};

    for (int tries = 0; tries < MOST_TRIES; tries++) {
        struct node *parent = NULL;

        pthread_mutex_lock(&mount->tree.lock);
        ask.version = node->version;
        ask.size_bytes = node->size_bytes;
        pthread_mutex_unlock(&mount->tree.lock);
        if (reader_read(mount->reader, &ask, parts, ret_errno) == 0)
            return 0;
        pthread_mutex_lock(&mount->tree.lock);
        tree_wait_for_changes(&mount->tree, node);
        if (*ret_errno == ESTALE && !node->is_gone && node->parent)
            parent = node_ref(node->parent);
        pthread_mutex_unlock(&mount->tree.lock);
        if (!parent)
            return -1;
        mount_refresh(mount, parent, mount->fresh_ms, NULL);
        ops_put(mount, parent);
    }
    return -1;
}

static void reply_parts(fuse_req_t req, struct mount *mount, struct reader_parts *parts)
{
    if (parts->count)
        fuse_reply_iov(req, parts->iov, parts->count);
    else
        fuse_reply_buf(req, NULL, 0);
    reader_done(mount->reader, parts);
}

/* From the writer's own copy, when there is one.  Returns whether the request was answered. */
static bool
read_copy(fuse_req_t req, struct mount *mount, struct node *node, size_t size, off_t offset)
{
    auto_free char *bytes = NULL;
    struct writing *writing;
    int64_t got;

    if (!mount->side->read || !(writing = writing_enter(mount, node)))
        return false;
    bytes = xmalloc(size + 1);
    got = mount->side->read(writing, bytes, size, offset);
    writing_leave(mount, node, writing);
    if (got < 0)
        fuse_reply_err(req, EIO);
    else
        fuse_reply_buf(req, bytes, (size_t)got);
    return true;
}

/* Does the kernel hold pages of just this content?  From now on it does. */
static bool kernel_has(struct mount *mount, struct node *node)
{
    bool has;

    pthread_mutex_lock(&mount->tree.lock);
    has = node->kernel_version == node->version;
    node->kernel_version = node->version;
    pthread_mutex_unlock(&mount->tree.lock);
    return has;
}

/* Who reads file after file of a folder waits for none but the first. */
static void fetch_next(struct mount *mount, struct node *node)
{
    struct node *next[MOST_NEXT];
    uint64_t versions[MOST_NEXT];
    int64_t sizes[MOST_NEXT];
    size_t count;

    pthread_mutex_lock(&mount->tree.lock);
    count = tree_guess_next(&mount->tree, node, next, MOST_NEXT);
    for (size_t i = 0; i < count; i++) {
        versions[i] = next[i]->version;
        sizes[i] = next[i]->size_bytes;
    }
    pthread_mutex_unlock(&mount->tree.lock);
    for (size_t i = 0; i < count; i++) {
        reader_prefetch(mount->reader, next[i], versions[i], sizes[i]);
        ops_put(mount, next[i]);
    }
}

void ops_read(
    fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    struct mount *mount = ops_mount(req);
    struct node *node = ops_node(mount, ino);
    struct reader_parts parts;
    struct err e = {0};
    int errno_value = EIO;

    (void)fi;
    if (mount->is_writable && read_copy(req, mount, node, size, offset))
        return;
    if (mount->is_writable && writing_flush(mount, node, &e) < 0) {
        ops_fail_node(req, &e, "write", node);
        return;
    }
    /* Where the kernel opens by itself, the first read is what shows that a file is in use. */
    if (mount->settings->is_immutable && offset == 0 && !kernel_has(mount, node))
        fetch_next(mount, node);
    if (read_parts(mount, node, offset, size, &parts, &errno_value) == 0) {
        reply_parts(req, mount, &parts);
        return;
    }
    if (errno_value != ESTALE) { /* that one has been told */
        auto_free char *name = mount_name(mount, node);

        log_warning("event=failed doing=read name=\"%s\" errno=%d", name, errno_value);
    }
    fuse_reply_err(req, errno_value);
}

/* --- opening --- */

static void count_open(struct mount *mount, struct node *node, int by)
{
    pthread_mutex_lock(&mount->tree.lock);
    node->opens += by;
    pthread_mutex_unlock(&mount->tree.lock);
}

/* Begin to read a file that nobody has read here. */
static int begin_reading(struct mount *mount, struct node *node, int *ret_errno)
{
    struct reader_parts parts;
    bool is_known, is_gone;

    pthread_mutex_lock(&mount->tree.lock);
    is_known = node->kernel_version == node->version || !node->size_bytes || node->writing;
    is_gone = node->is_gone;
    pthread_mutex_unlock(&mount->tree.lock);
    if (is_gone) {
        *ret_errno = ESTALE;
        return -1;
    }
    if (is_known)
        return 0;
    fetch_next(mount, node);
    if (read_parts(mount, node, 0, FIRST_BYTES, &parts, ret_errno) < 0)
        return -1;
    for (int i = 0; i < parts.count; i++)
        parts.iov[i].iov_len = 0; /* the kernel has not got it yet */
    reader_done(mount->reader, &parts);
    return 0;
}

static bool is_for_writing(const struct fuse_file_info *fi)
{
    return (fi->flags & O_ACCMODE) != O_RDONLY;
}

static void
reply_open(fuse_req_t req, struct mount *mount, struct node *node, struct fuse_file_info *fi)
{
    fi->fh = is_for_writing(fi) ? WRITES : READS;
    fi->keep_cache = kernel_has(mount, node);
    fi->noflush = fi->fh == READS;
    count_open(mount, node, 1);
    if (fuse_reply_open(req, fi) == 0)
        return;
    count_open(mount, node, -1);
    if (fi->fh == WRITES)
        writing_end(mount, node);
}

/* Reads of 128 KiB, which the kernel makes on its own, cost a quarter more of processor time
 * than those of 1 MiB.  Only root may say so. */
static void set_read_ahead(struct mount *mount)
{
    const char *folder = mount->settings->folder;
    auto_free char *path = NULL;
    struct statfs fs;
    struct stat st;
    FILE *file;

    if (atomic_exchange(&mount->has_read_ahead, true) || geteuid() != 0 ||
        statfs(folder, &fs) < 0 || fs.f_type != FUSE_SUPER_MAGIC || stat(folder, &st) < 0)
        return;
    path = xasprintf("/sys/class/bdi/%u:%u/read_ahead_kb", major(st.st_dev), minor(st.st_dev));
    file = fopen(path, "we");
    if (!file)
        return;
    fprintf(file, "%d\n", READER_MOST_BYTES / 1024);
    fclose(file);
}

void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct mount *mount = ops_mount(req);
    struct node *node = ops_node(mount, ino);
    int errno_value = EIO;
    struct err e = {0};

    set_read_ahead(mount);
    if (mount->settings->is_immutable) {
        fuse_reply_err(req, ENOSYS); /* the kernel opens by itself from now on */
        return;
    }
    if (is_for_writing(fi) && !mount->is_writable) {
        fuse_reply_err(req, EROFS);
        return;
    }
    if (is_for_writing(fi)) {
        if (writing_begin(mount, node, false, fi->flags & O_TRUNC, &e) < 0) {
            ops_fail_node(req, &e, "open", node);
            return;
        }
    } else if (begin_reading(mount, node, &errno_value) < 0) {
        fuse_reply_err(req, errno_value);
        return;
    }
    reply_open(req, mount, node, fi);
}

void ops_create(
    fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
    struct mount *mount = ops_mount(req);
    struct fuse_entry_param entry;
    struct err e = {0};
    struct node *node = ops_make_file(mount, ops_node(mount, parent), name, &e);

    (void)mode;
    if (!node || writing_begin(mount, node, true, false, &e) < 0) {
        ops_fail(req, &e, "create", name);
        if (node)
            ops_put(mount, node);
        return;
    }
    pthread_mutex_lock(&mount->tree.lock);
    node->writing->must_be_new = fi->flags & O_EXCL;
    node->opens++;
    node->kernel_version = node->version;
    ops_entry(mount, node, &entry);
    pthread_mutex_unlock(&mount->tree.lock);
    fi->fh = WRITES;
    if (fuse_reply_create(req, &entry, fi) < 0) {
        count_open(mount, node, -1);
        writing_end(mount, node);
        ops_put(mount, node);
    }
    ops_put(mount, node);
}

/* --- writing --- */

void ops_write(fuse_req_t req,
               fuse_ino_t ino,
               const char *bytes,
               size_t size,
               off_t offset,
               struct fuse_file_info *fi)
{
    struct mount *mount = ops_mount(req);
    struct node *node = ops_node(mount, ino);
    struct writing *writing = writing_enter(mount, node);
    struct err e = {0};
    int rc;

    (void)fi;
    if (!writing) {
        fuse_reply_err(req, EBADF);
        return;
    }
    rc = mount->side->write(mount, node, bytes, size, offset, &e);
    writing_leave(mount, node, writing);
    if (rc < 0)
        ops_fail_node(req, &e, "write", node);
    else
        fuse_reply_write(req, size);
}

void ops_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct mount *mount = ops_mount(req);
    struct node *node = ops_node(mount, ino);
    struct err e = {0};

    if (fi->fh == WRITES && writing_flush(mount, node, &e) < 0)
        ops_fail_node(req, &e, "close", node);
    else
        fuse_reply_err(req, 0);
}

void ops_mountync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    (void)datasync;
    ops_flush(req, ino, fi);
}

void ops_remove_hidden(struct mount *mount, struct node *node)
{
    auto_free char *path = NULL;
    struct err e = {0};

    if (mount_path(mount, node, &path, &e) < 0 ||
        mount->side->remove(mount, path, false, &e) < 0)
        log_warning("event=left-behind name=\"%s\" error=\"%s\"", node->name, e.msg);
    pthread_mutex_lock(&mount->tree.lock);
    if (node->parent)
        tree_remove(&mount->tree, node);
    pthread_mutex_unlock(&mount->tree.lock);
}

void ops_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct mount *mount = ops_mount(req);
    struct node *node = ops_node(mount, ino);
    struct err e = {0};
    bool ends_hidden;

    if (fi->fh == WRITES) {
        if (writing_flush(mount, node, &e) < 0) {
            auto_free char *name = mount_name(mount, node);

            log_error("event=write-failed name=\"%s\" error=\"%s\"", name, e.msg);
        }
        writing_end(mount, node);
    }
    pthread_mutex_lock(&mount->tree.lock);
    ends_hidden = --node->opens == 0 && node->is_hidden;
    pthread_mutex_unlock(&mount->tree.lock);
    if (ends_hidden)
        ops_remove_hidden(mount, node);
    fuse_reply_err(req, 0);
}
