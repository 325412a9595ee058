/* side-blob-write.c - writing a blob: into a file without a name here, then all of it there.
 *
 * A blob cannot be changed in its middle.  So whoever opens one for writing gets a copy on the
 * local disk; when it is closed or synced, and was changed, the copy becomes the new blob: with
 * one request when it is small, in blocks otherwise.  Others see the old one or the new one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mount/side-blob.h"

#include "base/crypt.h"
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
    MOST_UPLOADS = 4,    /* against others who store the same blob all the time */
};

#define MARK "x-ms-meta-yardfs" /* metadata of a blob that was stored under a condition */

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

static int
truncate_spool(struct mount *mount, struct node *node, int64_t size_bytes, struct err *e)
{
    struct writing *w = node->writing;

    if (ftruncate(w->fd, size_bytes) < 0)
        return err_sys(e, errno, "could not change the size of a temporary file");
    w->is_dirty = true;
    mount_resized(mount, node, size_bytes);
    return 0;
}

/* What is written from now on is a change of what the node is now. */
static void set_base(struct mount *mount, struct node *node)
{
    struct writing *w = node->writing;

    free(w->based_on);
    pthread_mutex_lock(&mount->tree.lock);
    w->based_on = node->etag ? xstrdup(node->etag) : NULL;
    pthread_mutex_unlock(&mount->tree.lock);
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
        set_base(mount, node);
    }
    w->fd = take_fd(&fd);
    w->is_dirty = is_new || truncates;
    if (truncates)
        mount_resized(mount, node, 0);
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
    mount_resized(mount, node, end > node->size_bytes ? end : node->size_bytes);
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

/* One storing of the copy. */
struct upload {
    struct mount *mount;
    const struct writing *writing;
    const char *path;
    int64_t size, piece;
    /* Of its own each time: blocks of two who write one blob are never mixed, and a blob with a
     * condition tells by it who stored it. */
    char id[17];
    /* "If-...: ...", and the id as metadata; NULL twice: any blob may be replaced. */
    const char *condition, *mark;
    char condition_text[160], mark_text[48];
};

static void upload_begin(struct upload *up)
{
    const struct writing *w = up->writing;
    uint64_t id;

    crypt_random(&id, sizeof(id));
    snprintf(up->id, sizeof(up->id), "%016" PRIx64, id);
    if (!w->must_be_new && !w->based_on)
        return;
    if (w->must_be_new)
        snprintf(up->condition_text, sizeof(up->condition_text), "If-None-Match: *");
    else
        snprintf(up->condition_text, sizeof(up->condition_text), "If-Match: \"%s\"",
                 w->based_on);
    snprintf(up->mark_text, sizeof(up->mark_text), MARK ": %s", up->id);
    up->condition = up->condition_text;
    up->mark = up->mark_text;
}

/* When the first of two requests had its effect and only its answer was lost, the condition
 * refuses the second. */
static int refusal_of(const struct upload *up)
{
    return up->writing->must_be_new ? EEXIST : up->condition ? ESTALE : 0;
}

static int put_whole(const struct upload *up, struct http_answer *answer, struct err *e)
{
    auto_free char *bytes = xmalloc((size_t)up->size + 1);
    const char *headers[] = {"x-ms-blob-type: BlockBlob", up->condition, up->mark, NULL};
    const struct remote_call call = {
        .method = "PUT",
        .path = up->path,
        .headers = headers,
        .body = bytes,
        .body_len = (size_t)up->size,
        .done_errno = refusal_of(up),
    };

    if (read_piece(up->writing->fd, 0, (size_t)up->size, bytes, e) < 0)
        return -1;
    return remote_call(up->mount->remote, &call, answer, e);
}

static void block_id(const struct upload *up, int64_t index, struct str *out)
{
    auto_free char *text = xasprintf("%s%08" PRId64, up->id, index);

    text_base64(out, text, strlen(text));
}

static int put_block(const struct upload *up, int64_t index, struct err *e)
{
    int64_t offset = index * up->piece, left = up->size - offset;
    size_t len = (size_t)(left < up->piece ? left : up->piece);
    auto_free char *bytes = xmalloc(len);
    auto_str query = {0}, id = {0};
    struct remote_call call = {
        .method = "PUT", .path = up->path, .body = bytes, .body_len = len};

    if (read_piece(up->writing->fd, offset, len, bytes, e) < 0)
        return -1;
    block_id(up, index, &id);
    str_add(&query, "comp=block&blockid=");
    text_percent(&query, str_text(&id));
    call.query = str_text(&query);
    return remote_call(up->mount->remote, &call, NULL, e);
}

static int put_blocks(const struct upload *up, struct http_answer *answer, struct err *e)
{
    const char *headers[] = {up->condition, up->mark, NULL};
    struct remote_call call = {
        .method = "PUT",
        .path = up->path,
        .query = "comp=blocklist",
        .headers = headers,
        .done_errno = refusal_of(up),
    };
    auto_str xml = {0};

    str_add(&xml, "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    for (int64_t i = 0; i * up->piece < up->size; i++) {
        if (put_block(up, i, e) < 0)
            return -1;
        /* Not "Uncommitted": a second try may find them committed by the first. */
        str_add(&xml, "<Latest>");
        block_id(up, i, &xml);
        str_add(&xml, "</Latest>");
    }
    str_add(&xml, "</BlockList>");
    call.body = str_text(&xml);
    call.body_len = xml.len;
    return remote_call(up->mount->remote, &call, answer, e);
}

/* A request that went out twice was refused: because the first stored it, or because somebody
 * else was there?  Equal bytes would not tell: two lock files are equal. */
static int ask_whose(const struct upload *up, struct http_answer *answer, struct err *e)
{
    const struct remote_call call = {.method = "HEAD", .path = up->path};
    auto_free char *mark = NULL;
    int rc = remote_call(up->mount->remote, &call, answer, e);

    if (rc < 0 && e->code != ERR_NOT_FOUND)
        return -1;
    mark = rc == 0 ? http_answer_header(answer, MARK) : NULL;
    if (mark && str_equal(mark, up->id))
        return 0;
    err_set(e, ERR_PRECONDITION, "the blob was stored by somebody else");
    return err_reason(e, up->writing->must_be_new ? "BlobAlreadyExists" : "ConditionNotMet");
}

/* Blocks that wait for their list are dropped when somebody else stores the blob: then all of
 * them are sent again, under the condition if there is one. */
static int try_to_store(struct upload *up, struct http_answer *answer, struct err *e)
{
    for (int tries = 1;; tries++) {
        int rc;

        upload_begin(up);
        rc = up->size <= PIECE_BYTES ? put_whole(up, answer, e) : put_blocks(up, answer, e);
        if (rc == 0 && answer->status / 100 != 2)
            rc = ask_whose(up, answer, e);
        if (rc == 0 || tries == MOST_UPLOADS || !e->reason ||
            !str_equal(e->reason, "InvalidBlockList"))
            return rc;
    }
}

static int
store(struct upload *up, struct node *node, struct http_answer *answer, struct err *e)
{
    struct tree *tree = &up->mount->tree;
    struct facts facts;
    int rc;

    pthread_mutex_lock(&tree->lock);
    tree_begin_change(node);
    pthread_mutex_unlock(&tree->lock);
    rc = try_to_store(up, answer, e);
    if (rc == 0) {
        facts_read(answer, &facts);
        mount_wrote(up->mount, node, &facts, up->size);
    }
    pthread_mutex_lock(&tree->lock);
    tree_end_change(tree, node);
    pthread_mutex_unlock(&tree->lock);
    return rc;
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
    struct upload up = {.mount = mount, .writing = w, .size = node->size_bytes};
    auto_free char *path = NULL;
    auto_answer answer = {0};

    if (!w->is_dirty || !is_wanted(mount, node))
        return 0;
    if (mount_path(mount, node, &path, e) < 0)
        return -1;
    up.path = path;
    up.piece =
        up.size / MOST_BLOCKS + 1 > PIECE_BYTES ? up.size / MOST_BLOCKS + 1 : PIECE_BYTES;
    if (store(&up, node, &answer, e) < 0)
        return -1;
    w->is_dirty = false;
    w->must_be_new = false;
    set_base(mount, node);
    return 0;
}
