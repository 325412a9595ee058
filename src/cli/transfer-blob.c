/* The side that is a container of blobs.
 *
 * A large blob is made of blocks whose ids tell the source, its time and the place in it:
 * blocks that an earlier run has left with the server are found again by their ids, and those
 * of another source never fit.  Each block is sent with its CRC-64, each whole blob with its
 * MD5; the server checks them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-side.h"

#include "base/clock.h"
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
    MOST_SYNC_COPY = 256 * 1024 * 1024, /* larger ones would keep an answer waiting too long */
};

/* --- walking --- */

struct flat {
    const struct side_walk *walk;
    size_t skip; /* bytes of a name that belong to the root */
};

static void facts_of(const struct listing_entry *entry, struct facts *facts)
{
    const char *md5 = listing_get(entry, "Properties/Content-MD5");
    const char *etag = listing_get(entry, "Properties/Etag");
    int64_t ms = listing_modified_ms(entry);

    *facts = (struct facts){
        .size_bytes = listing_size(entry),
        .modified_ns = ms < 0 ? -1 : ms * 1000000,
    };
    remote_etag(facts, etag);
    snprintf(facts->md5, sizeof(facts->md5), "%s", md5 ? md5 : "");
}

/* A folder is a name that ends in a slash: a prefix of others, or an empty blob that stands for
 * one, as some clients leave them. */
static bool is_folder(const struct listing_entry *entry, const char *path)
{
    const char *mark = listing_get(entry, "Metadata/hdi_isfolder");

    if (str_equal(listing_kind(entry), "BlobPrefix"))
        return true;
    return listing_size(entry) == 0 &&
           (str_ends(path, "/") || (mark && str_equal(mark, "true")));
}

static int see_blob(void *context, const struct listing_entry *entry, struct err *e)
{
    const struct flat *flat = context;
    const struct side_walk *walk = flat->walk;
    const char *name = listing_name(entry);
    const char *path = name + flat->skip;
    bool is_prefix = str_equal(listing_kind(entry), "BlobPrefix");
    auto_free char *clean = NULL;
    struct facts facts;

    if (strlen(name) <= flat->skip || !side_fits(walk->pattern, path))
        return 0;
    if (is_prefix && !walk->shows_folders)
        return 0;
    facts_of(entry, &facts);
    facts.is_folder = is_folder(entry, path);
    if (!facts.is_folder)
        return walk->see(walk->context, path, &facts, e);
    clean = xstrndup(path, strlen(path) - str_ends(path, "/"));
    return *clean ? walk->see(walk->context, clean, &facts, e) : 0;
}

static int blob_walk(struct port *port, const struct side_walk *walk, struct err *e)
{
    const struct side *side = port->side;
    struct flat flat = {.walk = walk};
    auto_str prefix = {0}, query = {0};

    str_add(&prefix, side->root);
    if (prefix.len && !str_ends(side->root, "/"))
        str_add_char(&prefix, '/');
    flat.skip = prefix.len;
    if (walk->pattern) /* what stands before the first wildcard narrows the list */
        str_add_len(&prefix, walk->pattern, strcspn(walk->pattern, "*?[\\"));
    str_add(&query, "restype=container&comp=list&include=metadata");
    if (prefix.len) {
        str_add(&query, "&prefix=");
        text_percent(&query, str_text(&prefix));
    }
    if (!walk->is_recursive)
        str_add(&query, "&delimiter=%2F");
    return listing_walk(port->wire, side->container, NULL, str_text(&query), see_blob, &flat,
                        e);
}

static int blob_look(struct port *port,
                     const char *path,
                     struct facts *ret_facts,
                     bool *ret_found,
                     struct err *e)
{
    return remote_look(port, path, NULL, ret_facts, ret_found, e);
}

static int blob_read(struct port *port,
                     const struct item *item,
                     int64_t offset,
                     void *buf,
                     size_t len,
                     struct err *e)
{
    auto_free char *match =
        *item->facts.etag ? xasprintf("If-Match: %s", item->facts.etag) : xstrdup("");

    if (remote_read(port, item, match, offset, buf, len, NULL, e) == 0)
        return 0;
    if (wire_status(port->wire) == 412)
        return err_set(e, ERR_CONFLICT, "it has changed meanwhile");
    return -1;
}

/* --- writing --- */

static int blob_put(struct port *port,
                    const struct item *item,
                    const void *bytes,
                    size_t len,
                    bool is_new,
                    struct err *e)
{
    auto_free char *path = side_path(port->side, item->target);
    auto_headers headers = {0};
    char md5[DIGEST_MD5_BYTES];
    struct wire_request request = {
        .method = "PUT",
        .container = port->side->container,
        .path = path,
        .headers = headers.rows,
        .body = bytes,
        .body_len = len,
    };

    headers_add(&headers, "x-ms-blob-type: BlockBlob");
    headers_add(&headers, "Content-MD5: %s", digest_md5(bytes, len, md5));
    headers_add(&headers, "x-ms-blob-content-type: %s", remote_type(port, item->target));
    headers_add_all(&headers, port->options->headers);
    if (is_new)
        headers_add(&headers, "If-None-Match: *");
    return wire_call(port->wire, &request, NULL, e);
}

/* Base64 of a text of 28 bytes: all ids of a blob must be of one length. */
static char *block_id(const struct parts *parts, size_t index)
{
    auto_free char *plain = xasprintf("yard%s%08zx", parts->tag, index);
    auto_str id = {0};

    text_base64(&id, plain, strlen(plain));
    return str_take(&id);
}

static int see_block(void *context, const struct listing_entry *entry, struct err *e)
{
    struct parts *parts = context;
    auto_str plain = {0};
    size_t index;

    (void)e;
    if (text_base64_decode(&plain, listing_name(entry), NULL) < 0 || plain.len != 28 ||
        !str_starts(str_text(&plain), "yard") ||
        memcmp(str_text(&plain) + 4, parts->tag, 16) != 0)
        return 0;
    index = (size_t)strtoull(str_text(&plain) + 20, NULL, 16);
    if (index < parts->count && listing_size(entry) == (int64_t)parts_len(parts, index))
        parts->is_done[index] = 1;
    return 0;
}

static int blob_begin(struct port *port, struct parts *parts, struct err *e)
{
    auto_free char *path = side_path(port->side, parts->item->target);
    auto_free char *marker = NULL;
    auto_answer answer = {0};
    struct wire_request request = {
        .method = "GET",
        .container = port->side->container,
        .path = path,
        .query = "comp=blocklist&blocklisttype=uncommitted",
    };
    struct err ignored;

    /* The server's word counts, not what was remembered.  Who may not ask sends them all. */
    memset(parts->is_done, 0, parts->count);
    if (wire_call(port->wire, &request, &answer, &ignored) < 0) {
        int status = wire_status(port->wire);

        if (status == 404 || status == 403)
            return 0;
        if (e)
            *e = ignored;
        return -1;
    }
    return listing_parse(str_text(&answer.body), answer.body.len, see_block, parts, &marker, e);
}

/* With its CRC-64, which both sides reckon faster; with its MD5 where that is not known. */
static int
put_block(struct port *port, struct wire_request *request, bool with_crc, struct err *e)
{
    auto_free char *told = NULL;
    auto_headers headers = {0};
    auto_answer answer = {0};
    char crc[DIGEST_CRC64_BYTES], md5[DIGEST_MD5_BYTES];

    if (with_crc)
        headers_add(&headers, "x-ms-content-crc64: %s",
                    digest_crc64(request->body, request->body_len, crc));
    else
        headers_add(&headers, "Content-MD5: %s",
                    digest_md5(request->body, request->body_len, md5));
    request->headers = headers.rows;
    if (wire_call(port->wire, request, &answer, e) < 0)
        return -1;
    told = with_crc ? http_answer_header(&answer, "x-ms-content-crc64") : NULL;
    if (told && !str_equal(told, crc))
        return err_set(e, ERR_BUSY, "a piece arrived damaged");
    return 0;
}

static int blob_put_piece(struct port *port,
                          const struct parts *parts,
                          size_t index,
                          const void *bytes,
                          size_t len,
                          struct err *e)
{
    auto_free char *path = side_path(port->side, parts->item->target);
    auto_free char *id = block_id(parts, index);
    auto_str query = {0};
    struct wire_request request = {
        .method = "PUT",
        .container = port->side->container,
        .path = path,
        .body = bytes,
        .body_len = len,
    };

    str_add(&query, "comp=block&blockid=");
    text_percent(&query, id);
    request.query = str_text(&query);
    if (!side_lacks_crc64(port->side)) {
        if (put_block(port, &request, true, e) == 0)
            return 0;
        if (!str_equal(wire_code(port->wire), "FeatureNotSupported"))
            return -1;
        side_note_no_crc64(port->side);
    }
    return put_block(port, &request, false, e);
}

static int blob_finish(struct port *port, const struct parts *parts, struct err *e)
{
    auto_free char *path = side_path(port->side, parts->item->target);
    auto_headers headers = {0};
    auto_str list = {0};
    struct wire_request request = {
        .method = "PUT",
        .container = port->side->container,
        .path = path,
        .query = "comp=blocklist",
        .headers = headers.rows,
    };

    str_add(&list, "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    for (size_t i = 0; i < parts->count; i++) {
        auto_free char *id = block_id(parts, i);

        str_addf(&list, "<Latest>%s</Latest>", id);
    }
    str_add(&list, "</BlockList>");
    request.body = str_text(&list);
    request.body_len = list.len;
    headers_add(&headers, "Content-Type: application/xml");
    headers_add(&headers, "x-ms-blob-content-type: %s", remote_type(port, parts->item->target));
    if (*parts->md5)
        headers_add(&headers, "x-ms-blob-content-md5: %s", parts->md5);
    headers_add_all(&headers, port->options->headers);
    if (port->options->overwrite == OVERWRITE_FALSE)
        headers_add(&headers, "If-None-Match: *");
    return wire_call(port->wire, &request, NULL, e);
}

static int blob_make_folder(struct port *port, const char *path, struct err *e)
{
    /* A blob's name has slashes; there are no folders to make. */
    (void)port;
    (void)path;
    (void)e;
    return 0;
}

static int remove_name(struct port *port, const char *name, struct err *e)
{
    static const char *const headers[] = {"x-ms-delete-snapshots: include", NULL};
    struct wire_request request = {
        .method = "DELETE",
        .container = port->side->container,
        .path = name,
        .headers = headers,
    };

    if (wire_call(port->wire, &request, NULL, e) == 0 || wire_is_missing(port->wire))
        return 0;
    return -1;
}

static int blob_remove(struct port *port, const char *path, bool is_folder, struct err *e)
{
    auto_free char *name = side_path(port->side, path);
    auto_free char *with_slash = xasprintf("%s/", name);

    /* What stands for a folder may have the slash at its end, or not. */
    if (is_folder && remove_name(port, with_slash, e) < 0)
        return -1;
    return remove_name(port, name, e);
}

/* Put Blob From URL, which answers when it is done; a large one by Copy Blob, which is waited
 * for. */
static int
blob_fetch(struct port *port, struct port *source, const struct item *item, struct err *e)
{
    bool is_now = item->facts.size_bytes <= MOST_SYNC_COPY;

    return remote_fetch(port, source, item, is_now ? "x-ms-blob-type: BlockBlob" : "", e);
}

const struct side_ops side_blob_ops = {
    .walk = blob_walk,
    .look = blob_look,
    .read = blob_read,
    .put = blob_put,
    .begin = blob_begin,
    .put_piece = blob_put_piece,
    .finish = blob_finish,
    .make_folder = blob_make_folder,
    .remove = blob_remove,
    .fetch = blob_fetch,
    .most_piece_bytes = INT64_C(256) << 20,
};
