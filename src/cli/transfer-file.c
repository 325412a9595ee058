/* The side that is a file share.
 *
 * A share has real folders, which must be there before what is in them, and files that are made
 * with their length and then filled: others see them grow.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-side.h"

#include "base/str.h"
#include "base/text.h"
#include "cli/storage-listing.h"
#include "cli/storage-wire.h"
#include "cli/transfer-digest.h"
#include "cli/transfer-options.h"
#include "cli/transfer-remote.h"

#include <stdio.h>
#include <string.h>

enum {
    RANGE_BYTES = 4 * 1024 * 1024, /* the most that a request may write */
};

/* --- walking: one list for each folder --- */

struct pending {
    char **paths;
    size_t count, room;
};

static void pending_add(struct pending *pending, const char *path)
{
    if (pending->count == pending->room) {
        pending->room = pending->room ? pending->room * 2 : 32;
        pending->paths = xreallocarray(pending->paths, pending->room, sizeof(*pending->paths));
    }
    pending->paths[pending->count++] = xstrdup(path);
}

static void pending_done(struct pending *pending)
{
    for (size_t i = 0; i < pending->count; i++)
        free(pending->paths[i]);
    free(pending->paths);
}

struct level {
    const struct side_walk *walk;
    const char *below;
    struct pending *pending;
};

static int see_entry(void *context, const struct listing_entry *entry, struct err *e)
{
    struct level *level = context;
    const struct side_walk *walk = level->walk;
    const char *name = listing_name(entry);
    const char *etag = listing_get(entry, "Properties/Etag");
    auto_free char *path =
        *level->below ? xasprintf("%s/%s", level->below, name) : xstrdup(name);
    int64_t ms = listing_modified_ms(entry);
    struct facts facts = {
        .size_bytes = listing_size(entry),
        .modified_ns = ms < 0 ? -1 : ms * 1000000,
        .is_folder = str_equal(listing_kind(entry), "Directory"),
    };

    if (!*level->below && !side_fits(walk->pattern, path))
        return 0;
    if (facts.is_folder && !walk->is_recursive && !walk->shows_folders)
        return 0;
    remote_etag(&facts, etag);
    if (facts.is_folder && walk->is_recursive)
        pending_add(level->pending, path);
    return walk->see(walk->context, path, &facts, e);
}

static int file_walk(struct port *port, const struct side_walk *walk, struct err *e)
{
    __attribute__((cleanup(pending_done))) struct pending pending = {0};

    pending_add(&pending, "");
    for (size_t i = 0; i < pending.count; i++) {
        auto_free char *folder = side_path(port->side, pending.paths[i]);
        struct level level = {.walk = walk, .below = pending.paths[i], .pending = &pending};

        if (listing_walk(port->wire, port->side->container, folder,
                         "restype=directory&comp=list&include=Timestamps,ETag", see_entry,
                         &level, e) < 0)
            return -1;
    }
    return 0;
}

static int file_look(struct port *port,
                     const char *path,
                     struct facts *ret_facts,
                     bool *ret_found,
                     struct err *e)
{
    auto_free char *whole = side_path(port->side, path);

    if (!*whole) { /* the share's own folder is there as long as the share is */
        *ret_facts = (struct facts){.is_folder = true, .modified_ns = -1};
        *ret_found = true;
        return 0;
    }
    if (remote_look(port, path, NULL, ret_facts, ret_found, e) < 0)
        return -1;
    if (*ret_found)
        return 0;
    if (remote_look(port, path, "restype=directory", ret_facts, ret_found, e) < 0)
        return -1;
    if (*ret_found)
        ret_facts->is_folder = true;
    return 0;
}

static int file_read(struct port *port,
                     const struct item *item,
                     int64_t offset,
                     void *buf,
                     size_t len,
                     struct err *e)
{
    char etag[FACTS_ETAG_BYTES];

    if (remote_read(port, item, "", offset, buf, len, etag, e) < 0)
        return -1;
    /* This service knows no If-Match. */
    if (*item->facts.etag && *etag && !str_equal(item->facts.etag, etag))
        return err_set(e, ERR_CONFLICT, "it has changed meanwhile");
    return 0;
}

/* --- writing --- */

static int call(struct port *port,
                const char *path,
                const char *query,
                const struct headers *headers,
                const void *body,
                size_t len,
                struct err *e)
{
    struct wire_request request = {
        .method = "PUT",
        .container = port->side->container,
        .path = path,
        .query = query,
        .headers = headers->rows,
        .body = body,
        .body_len = len,
    };

    return wire_call(port->wire, &request, NULL, e);
}

static int create_file(struct port *port,
                       const struct item *item,
                       int64_t size_bytes,
                       const char *md5,
                       struct err *e)
{
    auto_free char *path = side_path(port->side, item->target);
    auto_headers headers = {0};

    headers_add(&headers, "x-ms-type: file");
    headers_add(&headers, "x-ms-content-length: %lld", (long long)size_bytes);
    headers_add(&headers, "x-ms-content-type: %s", remote_type(port, item->target));
    if (md5)
        headers_add(&headers, "x-ms-content-md5: %s", md5);
    headers_add_all(&headers, port->options->headers);
    if (side_need_parent(port, item->target, e) < 0)
        return -1;
    return call(port, path, NULL, &headers, NULL, 0, e);
}

static int put_range(struct port *port,
                     const char *path,
                     int64_t offset,
                     const void *bytes,
                     size_t len,
                     struct err *e)
{
    auto_headers headers = {0};
    char md5[DIGEST_MD5_BYTES];

    headers_add(&headers, "x-ms-write: update");
    headers_add(&headers, "x-ms-range: bytes=%lld-%lld", (long long)offset,
                (long long)offset + (long long)len - 1);
    headers_add(&headers, "Content-MD5: %s", digest_md5(bytes, len, md5));
    return call(port, path, "comp=range", &headers, bytes, len, e);
}

static int put_ranges(struct port *port,
                      const char *path,
                      int64_t offset,
                      const char *bytes,
                      size_t len,
                      struct err *e)
{
    for (size_t at = 0; at < len; at += RANGE_BYTES) {
        size_t part = len - at < RANGE_BYTES ? len - at : RANGE_BYTES;

        if (put_range(port, path, offset + (int64_t)at, bytes + at, part, e) < 0)
            return -1;
    }
    return 0;
}

static int file_put(struct port *port,
                    const struct item *item,
                    const void *bytes,
                    size_t len,
                    bool is_new,
                    struct err *e)
{
    auto_free char *path = side_path(port->side, item->target);
    char md5[DIGEST_MD5_BYTES];

    (void)is_new; /* who wants to know has looked: this service has no condition for it */
    if (create_file(port, item, (int64_t)len,
                    port->options->put_md5 ? digest_md5(bytes, len, md5) : NULL, e) < 0)
        return -1;
    return put_ranges(port, path, 0, bytes, len, e);
}

static int file_begin(struct port *port, struct parts *parts, struct err *e)
{
    struct facts facts;
    bool is_there, is_begun = memchr(parts->is_done, 1, parts->count) != NULL;

    /* What an earlier run wrote is still in it, unless somebody has replaced the file. */
    if (is_begun) {
        if (file_look(port, parts->item->target, &facts, &is_there, e) < 0)
            return -1;
        if (is_there && !facts.is_folder && facts.size_bytes == parts->item->facts.size_bytes)
            return 0;
        memset(parts->is_done, 0, parts->count);
    }
    return create_file(port, parts->item, parts->item->facts.size_bytes, NULL, e);
}

static int file_put_piece(struct port *port,
                          const struct parts *parts,
                          size_t index,
                          const void *bytes,
                          size_t len,
                          struct err *e)
{
    auto_free char *path = side_path(port->side, parts->item->target);

    return put_ranges(port, path, (int64_t)index * parts->piece_bytes, bytes, len, e);
}

static int file_finish(struct port *port, const struct parts *parts, struct err *e)
{
    auto_free char *path = side_path(port->side, parts->item->target);
    auto_headers headers = {0};

    if (!*parts->md5)
        return 0;
    headers_add(&headers, "x-ms-content-md5: %s", parts->md5);
    headers_add(&headers, "x-ms-content-type: %s", remote_type(port, parts->item->target));
    headers_add(&headers, "x-ms-file-permission: preserve");
    headers_add(&headers, "x-ms-file-attributes: preserve");
    headers_add(&headers, "x-ms-file-creation-time: preserve");
    headers_add(&headers, "x-ms-file-last-write-time: preserve");
    return call(port, path, "comp=properties", &headers, NULL, 0, e);
}

static int file_make_folder(struct port *port, const char *path, struct err *e)
{
    auto_free char *whole = side_path(port->side, path);
    auto_headers headers = {0};

    /* The root of the side may itself lie deeper: its parts come one by one. */
    for (char *p = whole; !*path && (p = strchr(p, '/')); p++) {
        *p = '\0';
        if (call(port, whole, "restype=directory", &headers, NULL, 0, e) < 0 &&
            wire_status(port->wire) != 409)
            return -1;
        *p = '/';
    }
    if (!*whole)
        return 0;
    if (call(port, whole, "restype=directory", &headers, NULL, 0, e) == 0 ||
        wire_status(port->wire) == 409)
        return 0;
    return -1;
}

static int file_remove(struct port *port, const char *path, bool is_folder, struct err *e)
{
    auto_free char *whole = side_path(port->side, path);
    struct wire_request request = {
        .method = "DELETE",
        .container = port->side->container,
        .path = whole,
        .query = is_folder ? "restype=directory" : NULL,
    };

    if (wire_call(port->wire, &request, NULL, e) == 0 || wire_is_missing(port->wire))
        return 0;
    return -1;
}

static int
file_fetch(struct port *port, struct port *source, const struct item *item, struct err *e)
{
    if (side_need_parent(port, item->target, e) < 0)
        return -1;
    return remote_fetch(port, source, item, "", e);
}

const struct side_ops side_file_ops = {
    .walk = file_walk,
    .look = file_look,
    .read = file_read,
    .put = file_put,
    .begin = file_begin,
    .put_piece = file_put_piece,
    .finish = file_finish,
    .make_folder = file_make_folder,
    .remove = file_remove,
    .fetch = file_fetch,
    .most_piece_bytes = RANGE_BYTES,
};
