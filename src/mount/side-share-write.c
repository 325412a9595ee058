/* side-share-write.c - writing a file of a share: bytes next to each other are gathered, then
 * put in place with one request.
 *
 * They wait until others follow that do not join them, until there are 4 MiB, until the file is
 * closed, synced or read, or for about a second.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mount/side-share.h"

#include "base/clock.h"
#include "base/str.h"
#include "mount/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    PIECE_BYTES = 4 * 1024 * 1024, /* the service's limit for one request */
};

/* --- requests --- */

/* Set Properties with one header that says what. */
static int set_properties(struct mount *mount,
                          struct node *node,
                          const char *header,
                          struct facts *ret_facts,
                          struct err *e)
{
    auto_free char *path = NULL;
    const char *headers[] = {header,
                             "x-ms-file-attributes: preserve",
                             "x-ms-file-permission: preserve",
                             "x-ms-file-creation-time: preserve",
                             NULL,
                             NULL};
    struct remote_call call = {.method = "PUT", .query = "comp=properties", .headers = headers};
    auto_answer answer = {0};

    if (!str_starts(header, "x-ms-file-last-write-time:"))
        headers[4] = "x-ms-file-last-write-time: now";
    if (mount_path(mount, node, &path, e) < 0)
        return -1;
    call.path = path;
    if (remote_call(mount->remote, &call, &answer, e) < 0)
        return -1;
    facts_read(&answer, ret_facts);
    return 0;
}

static int
resize(struct mount *mount, struct node *node, int64_t size, struct facts *facts, struct err *e)
{
    char header[64];

    snprintf(header, sizeof(header), "x-ms-content-length: %" PRId64, size);
    if (set_properties(mount, node, header, facts, e) < 0)
        return -1;
    node->writing->stored_bytes = size;
    return 0;
}

static int put_range(struct mount *mount,
                     struct node *node,
                     const struct writing *w,
                     struct facts *ret_facts,
                     struct err *e)
{
    auto_free char *path = NULL;
    char range[80];
    const char *headers[] = {range, "x-ms-write: update", NULL};
    struct remote_call call = {
        .method = "PUT",
        .query = "comp=range",
        .headers = headers,
        .body = w->bytes,
        .body_len = w->len,
    };
    auto_answer answer = {0};

    snprintf(range, sizeof(range), "x-ms-range: bytes=%" PRId64 "-%" PRId64, w->offset,
             w->offset + (int64_t)w->len - 1);
    if (mount_path(mount, node, &path, e) < 0)
        return -1;
    call.path = path;
    if (remote_call(mount->remote, &call, &answer, e) < 0)
        return -1;
    facts_read(&answer, ret_facts);
    return 0;
}

/* --- gathering --- */

/* Is the file that was removed still somewhere, for those who have it open? */
static bool is_reachable(struct mount *mount, struct node *node)
{
    bool is_there;

    pthread_mutex_lock(&mount->tree.lock);
    is_there = node->parent != NULL;
    pthread_mutex_unlock(&mount->tree.lock);
    return is_there;
}

/* The file and what there is of it with one request; then nothing waits any more. */
static int make_it(struct mount *mount, struct node *node, struct facts *facts, struct err *e)
{
    struct writing *w = node->writing;
    bool has_start = w->len && w->offset == 0;
    auto_free char *path = NULL;

    if (mount_path(mount, node, &path, e) < 0 ||
        share_make(mount, path, w->bytes, has_start ? w->len : 0, facts, e) < 0)
        return -1;
    w->is_unmade = false;
    w->stored_bytes = has_start ? (int64_t)w->len : 0;
    if (has_start)
        w->len = 0;
    return 0;
}

static int store(struct mount *mount, struct node *node, struct facts *facts, struct err *e)
{
    struct writing *w = node->writing;

    if (w->is_lost)
        return err_set(e, ERR_INTERNAL, "the file could not be made");
    if (w->is_unmade && make_it(mount, node, facts, e) < 0) {
        w->is_lost = true;
        return -1;
    }
    if (!w->len)
        return 0;
    if (w->offset + (int64_t)w->len > w->stored_bytes &&
        resize(mount, node, w->offset + (int64_t)w->len, facts, e) < 0)
        return -1;
    return put_range(mount, node, w, facts, e);
}

int share_flush(struct mount *mount, struct node *node, struct err *e)
{
    struct writing *w = node->writing;
    struct facts facts;
    int rc = 0;

    if (!w->len && !w->is_unmade)
        return 0;
    if (is_reachable(mount, node)) {
        rc = store(mount, node, &facts, e);
        if (rc == 0)
            mount_wrote(mount, node, &facts, node->size_bytes);
    }
    /* Also after a failure: it is told to the writer, and trying for ever helps nobody. */
    w->len = 0;
    atomic_store(&w->since_ms, 0);
    return rc;
}

int share_open(
    struct mount *mount, struct node *node, bool is_new, bool truncates, struct err *e)
{
    struct writing *w = node->writing;

    if (!w->is_open)
        w->stored_bytes = node->size_bytes;
    w->is_open = true;
    pthread_mutex_lock(&mount->tree.lock);
    w->is_unmade = w->is_unmade || (is_new && !node->etag);
    pthread_mutex_unlock(&mount->tree.lock);
    if (w->is_unmade && !atomic_load(&w->since_ms))
        atomic_store(&w->since_ms, clock_mono_ms());
    return truncates && node->size_bytes > 0 ? share_truncate(mount, node, 0, e) : 0;
}

void share_close(struct writing *w)
{
    (void)w;
}

/* Do the bytes join those that wait? */
static bool joins(const struct writing *w, int64_t offset, size_t len)
{
    return offset >= w->offset && offset <= w->offset + (int64_t)w->len &&
           offset - w->offset + (int64_t)len <= PIECE_BYTES;
}

static void gather(struct writing *w, const void *bytes, size_t len, int64_t offset)
{
    size_t at, end;

    if (!w->len)
        w->offset = offset;
    if (!atomic_load(&w->since_ms))
        atomic_store(&w->since_ms, clock_mono_ms());
    at = (size_t)(offset - w->offset);
    end = at + len;
    if (!w->bytes)
        w->bytes = xmalloc(PIECE_BYTES);
    memcpy(w->bytes + at, bytes, len);
    if (end > w->len)
        w->len = end;
}

int share_write(struct mount *mount,
                struct node *node,
                const void *bytes,
                size_t len,
                int64_t offset,
                struct err *e)
{
    struct writing *w = node->writing;
    const char *from = bytes;

    while (len) {
        size_t some = len < PIECE_BYTES ? len : PIECE_BYTES;

        if (w->len && !joins(w, offset, some) && share_flush(mount, node, e) < 0)
            return -1;
        gather(w, from, some, offset);
        from += some;
        offset += (int64_t)some;
        len -= some;
    }
    mount_resized(mount, node, offset > node->size_bytes ? offset : node->size_bytes);
    return w->len == PIECE_BYTES ? share_flush(mount, node, e) : 0;
}

int share_truncate(struct mount *mount, struct node *node, int64_t size_bytes, struct err *e)
{
    struct facts facts;

    if (share_flush(mount, node, e) < 0)
        return -1;
    if (is_reachable(mount, node)) {
        if (resize(mount, node, size_bytes, &facts, e) < 0)
            return -1;
        mount_wrote(mount, node, &facts, size_bytes);
    }
    mount_resized(mount, node, size_bytes);
    return 0;
}

int share_set_time(struct mount *mount, struct node *node, int64_t mtime_ns, struct err *e)
{
    time_t seconds = mtime_ns / 1000000000;
    char header[96], date[32];
    struct facts facts;
    struct tm tm;

    if (!gmtime_r(&seconds, &tm) || !strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm))
        return err_set(e, ERR_INVALID, "that time cannot be written");
    snprintf(header, sizeof(header), "x-ms-file-last-write-time: %s.%07" PRId64 "Z", date,
             mtime_ns % 1000000000 / 100);
    if ((node->writing && share_flush(mount, node, e) < 0) ||
        set_properties(mount, node, header, &facts, e) < 0)
        return -1;
    facts.mtime_ns = mtime_ns - mtime_ns % 100;
    mount_wrote(mount, node, &facts, node->size_bytes);
    return 0;
}
