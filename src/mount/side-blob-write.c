/* side-blob-write.c - writing a blob: into a file without a name here, then all of it there.
 *
 * A blob cannot be changed in its middle.  So whoever opens one for writing gets a copy on the
 * local disk; when it is closed or synced, and was changed, the copy becomes the new blob: with
 * one request when it is small, in blocks otherwise.  Others see the old one or the new one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mount/side-blob.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/str.h"
#include "base/text.h"
#include "mount/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 8 * 1024 * 1024,
    MOST_BLOCKS = 50000, /* the service's limit */
};

/* --- the copy --- */

static int open_spool(int *ret_fd, struct err *e)
{
    const char *folder = getenv("TMPDIR");
    auto_free char *path = NULL;
    int fd;

    /* Not /tmp: it may be memory. */
    if (!folder || !*folder)
        folder = "/var/tmp";
    fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        path = xasprintf("%s/yardfs-XXXXXX", folder);
        fd = mkostemp(path, O_CLOEXEC);
        if (fd < 0)
            return err_sys(e, errno, "could not make a temporary file in \"%s\"", folder);
        unlink(path);
    }
    *ret_fd = fd;
    return 0;
}

static int take_bytes(void *context, const void *bytes, size_t len)
{
    return fs_write_all(*(int *)context, bytes, len, NULL);
}

/* What is there already.  A request that broke off is gone on with. */
static int
fill_spool(struct mount *mount, struct node *node, int fd, int64_t size, struct err *e)
{
    int64_t have = 0;

    while (have < size) {
        int rc = mount->side->fetch(mount, node, node->version, have, size - have, take_bytes,
                                    &fd, e);
        int64_t now = lseek(fd, 0, SEEK_CUR);

        if (rc < 0 && (now <= have || (e->code != ERR_BUSY && e->code != ERR_TIMEOUT)))
            return -1;
        if (rc == 0 && now < size)
            return err_set(e, ERR_INTERNAL, "the blob is shorter than it was said to be");
        have = now;
    }
    return 0;
}

static void set_size(struct mount *mount, struct node *node, int64_t size_bytes)
{
    pthread_mutex_lock(&mount->tree.lock);
    node->size_bytes = size_bytes;
    node->mtime_ns = clock_wall_ms() * 1000000;
    node->changed_ms = clock_mono_ms();
    pthread_mutex_unlock(&mount->tree.lock);
}

static int
truncate_spool(struct mount *mount, struct node *node, int64_t size_bytes, struct err *e)
{
    struct writing *w = node->writing;

    if (ftruncate(w->fd, size_bytes) < 0)
        return err_sys(e, errno, "could not change the size of a temporary file");
    w->is_dirty = true;
    set_size(mount, node, size_bytes);
    return 0;
}

int blob_open(
    struct mount *mount, struct node *node, bool is_new, bool truncates, struct err *e)
{
    struct writing *w = node->writing;
    auto_close int fd = -1;

    if (w->fd >= 0)
        return truncates ? truncate_spool(mount, node, 0, e) : 0;
    if (open_spool(&fd, e) < 0)
        return -1;
    if (!is_new && !truncates) {
        if (fill_spool(mount, node, fd, node->size_bytes, e) < 0)
            return -1;
        pthread_mutex_lock(&mount->tree.lock);
        w->based_on = node->etag ? xstrdup(node->etag) : NULL;
        pthread_mutex_unlock(&mount->tree.lock);
    }
    w->fd = take_fd(&fd);
    w->is_dirty = is_new || truncates;
    if (truncates)
        set_size(mount, node, 0);
    return 0;
}

int blob_write(struct mount *mount,
               struct node *node,
               const void *bytes,
               size_t len,
               int64_t offset,
               struct err *e)
{
    struct writing *w = node->writing;
    const char *from = bytes;
    int64_t end = offset + (int64_t)len;

    while (len) {
        ssize_t put = pwrite(w->fd, from, len, offset);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return err_sys(e, errno, "could not write a temporary file");
        from += put;
        offset += put;
        len -= (size_t)put;
    }
    w->is_dirty = true;
    set_size(mount, node, end > node->size_bytes ? end : node->size_bytes);
    return 0;
}

int blob_truncate(struct mount *mount, struct node *node, int64_t size_bytes, struct err *e)
{
    return truncate_spool(mount, node, size_bytes, e);
}

int64_t blob_read(struct writing *w, void *bytes, size_t len, int64_t offset)
{
    return pread(w->fd, bytes, len, offset);
}

/* A blob has no time of its own but that of its last change. */
int blob_set_time(struct mount *mount, struct node *node, int64_t mtime_ns, struct err *e)
{
    (void)e;
    pthread_mutex_lock(&mount->tree.lock);
    node->mtime_ns = mtime_ns;
    pthread_mutex_unlock(&mount->tree.lock);
    return 0;
}

void blob_close(struct writing *w)
{
    (void)w;
}

/* --- storing --- */

static int read_piece(int fd, int64_t offset, size_t len, char *bytes, struct err *e)
{
    for (size_t have = 0; have < len;) {
        ssize_t got = pread(fd, bytes + have, len - have, offset + (int64_t)have);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return err_sys(e, got < 0 ? errno : EIO, "could not read a temporary file");
        have += (size_t)got;
    }
    return 0;
}

/* The condition under which the blob may be replaced, as a header; "" = any. */
static void condition(const struct writing *w, char *buf, size_t room)
{
    buf[0] = '\0';
    if (w->must_be_new)
        snprintf(buf, room, "If-None-Match: *");
    else if (w->based_on)
        snprintf(buf, room, "If-Match: \"%s\"", w->based_on);
}

static int put_whole(struct mount *mount,
                     struct writing *w,
                     const char *path,
                     int64_t size,
                     struct http_answer *answer,
                     struct err *e)
{
    auto_free char *bytes = xmalloc((size_t)size + 1);
    char when[160];
    const char *headers[] = {"x-ms-blob-type: BlockBlob", when, NULL};
    struct remote_call call = {.method = "PUT", .path = path, .headers = headers};

    condition(w, when, sizeof(when));
    if (!when[0])
        headers[1] = NULL;
    if (read_piece(w->fd, 0, (size_t)size, bytes, e) < 0)
        return -1;
    call.body = bytes;
    call.body_len = (size_t)size;
    return remote_call(mount->remote, &call, answer, e);
}

static void block_id(int64_t index, struct str *out)
{
    char text[16];

    snprintf(text, sizeof(text), "yardfs%08" PRId64, index);
    text_base64(out, text, strlen(text));
}

static int put_block(struct mount *mount,
                     struct writing *w,
                     const char *path,
                     int64_t index,
                     int64_t piece,
                     int64_t size,
                     struct err *e)
{
    int64_t offset = index * piece, len = size - offset < piece ? size - offset : piece;
    auto_free char *bytes = xmalloc((size_t)len);
    auto_str query = {0}, id = {0};
    struct remote_call call = {.method = "PUT", .path = path};

    if (read_piece(w->fd, offset, (size_t)len, bytes, e) < 0)
        return -1;
    block_id(index, &id);
    str_add(&query, "comp=block&blockid=");
    text_percent(&query, str_text(&id));
    call.query = str_text(&query);
    call.body = bytes;
    call.body_len = (size_t)len;
    return remote_call(mount->remote, &call, NULL, e);
}

static int put_blocks(struct mount *mount,
                      struct writing *w,
                      const char *path,
                      int64_t size,
                      struct http_answer *answer,
                      struct err *e)
{
    int64_t piece = size / MOST_BLOCKS + 1 > PIECE_BYTES ? size / MOST_BLOCKS + 1 : PIECE_BYTES;
    char when[160];
    const char *headers[] = {when, NULL};
    struct remote_call call = {
        .method = "PUT", .path = path, .query = "comp=blocklist", .headers = headers};
    auto_str xml = {0};

    str_add(&xml, "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    for (int64_t i = 0; i * piece < size; i++) {
        if (put_block(mount, w, path, i, piece, size, e) < 0)
            return -1;
        str_add(&xml, "<Uncommitted>");
        block_id(i, &xml);
        str_add(&xml, "</Uncommitted>");
    }
    str_add(&xml, "</BlockList>");
    condition(w, when, sizeof(when));
    if (!when[0])
        headers[0] = NULL;
    call.body = str_text(&xml);
    call.body_len = xml.len;
    return remote_call(mount->remote, &call, answer, e);
}

static bool is_wanted(struct mount *mount, struct node *node)
{
    bool is_there;

    pthread_mutex_lock(&mount->tree.lock);
    is_there = node->parent != NULL; /* removed files are not stored again */
    pthread_mutex_unlock(&mount->tree.lock);
    return is_there;
}

int blob_flush(struct mount *mount, struct node *node, struct err *e)
{
    struct writing *w = node->writing;
    auto_free char *path = NULL;
    auto_answer answer = {0};
    struct facts facts;
    int64_t size = node->size_bytes;
    int rc;

    if (!w->is_dirty || !is_wanted(mount, node))
        return 0;
    if (mount_path(mount, node, &path, e) < 0)
        return -1;
    rc = size <= PIECE_BYTES ? put_whole(mount, w, path, size, &answer, e)
                             : put_blocks(mount, w, path, size, &answer, e);
    if (rc < 0)
        return -1;
    facts_read(&answer, &facts);
    mount_wrote(mount, node, &facts, size);
    w->is_dirty = false;
    w->must_be_new = false;
    free(w->based_on);
    w->based_on = facts.etag[0] ? xstrdup(facts.etag) : NULL;
    return 0;
}
