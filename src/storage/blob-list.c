/* blob-list.c - the blobs of a container, a page at a time.
 *
 * A marker is the store's own, in base64: names hold bytes that neither XML nor a query likes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blob-ops.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "storage/xml.h"

#include <string.h>

enum {
    MOST_BLOBS = 5000,
};

struct listing {
    struct storage_call *call;
    struct str *out;
    bool metadata, tags, copy;
    /* Many blobs are of the same second: its text is made once. */
    int64_t second;
    char second_text[CLOCK_HTTP_BYTES];
};

static void write_date(struct listing *listing, const char *name, int64_t ms)
{
    if (listing->second != ms / 1000) {
        listing->second = ms / 1000;
        clock_format_http(ms, listing->second_text);
    }
    xml_element(listing->out, name, listing->second_text);
}

static void write_lease(struct listing *listing, const struct lease *lease)
{
    const char *state = lease_state_name(lease, listing->call->now_ms);

    xml_element(listing->out, "LeaseStatus",
                lease_is_locked(lease, listing->call->now_ms) ? "locked" : "unlocked");
    xml_element(listing->out, "LeaseState", state);
    if (strcmp(state, "leased") == 0)
        xml_element(listing->out, "LeaseDuration",
                    lease->duration_s < 0 ? "infinite" : "fixed");
}

static void write_copy(struct str *out, const struct blob *blob)
{
    xml_element(out, "CopyId", blob->copy_id);
    xml_element(out, "CopyStatus", "success");
    xml_element(out, "CopySource", blob->copy_source);
    str_addf(out, "<CopyProgress>%lld/%lld</CopyProgress>", (long long)blob->size_bytes,
             (long long)blob->size_bytes);
    xml_date(out, "CopyCompletionTime", blob->copied_ms);
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void write_properties(struct listing *listing, const struct blob *blob)
{
    const struct blob_headers *h = &blob->headers;
    struct str *out = listing->out;

    xml_open(out, "Properties");
    write_date(listing, "Creation-Time", blob->created_ms);
    write_date(listing, "Last-Modified", blob->modified_ms);
    xml_element(out, "Etag", blob->etag);
    xml_number(out, "Content-Length", blob->size_bytes);
    xml_element(out, "Content-Type",
                h->content_type ? h->content_type : "application/octet-stream");
    xml_element(out, "Content-Encoding", or_empty(h->content_encoding));
    xml_element(out, "Content-Language", or_empty(h->content_language));
    xml_element(out, "Content-MD5", or_empty(h->content_md5));
    xml_element(out, "Cache-Control", or_empty(h->cache_control));
    xml_element(out, "Content-Disposition", or_empty(h->content_disposition));
    if (blob->type == BLOB_PAGE)
        xml_number(out, "x-ms-blob-sequence-number", blob->sequence);
    xml_element(out, "BlobType", blob_type_name(blob->type));
    if (blob->type == BLOB_BLOCK) {
        xml_element(out, "AccessTier", blob->tier ? blob->tier : "Hot");
        if (!blob->tier)
            xml_bool(out, "AccessTierInferred", true);
    }
    if (!blob->snapshot[0])
        write_lease(listing, &blob->lease);
    if (listing->copy && blob->copy_id)
        write_copy(out, blob);
    xml_bool(out, "ServerEncrypted", true);
    if (json_object_size(blob->tags))
        xml_number(out, "TagCount", (int64_t)json_object_size(blob->tags));
    xml_close(out, "Properties");
}

static void on_blob(const struct blob *blob, void *context)
{
    struct listing *listing = context;
    struct str *out = listing->out;

    xml_open(out, "Blob");
    xml_name(out, "Name", blob->name);
    if (blob->snapshot[0])
        xml_element(out, "Snapshot", blob->snapshot);
    write_properties(listing, blob);
    if (listing->metadata)
        storage_write_metadata(out, blob->metadata);
    if (listing->tags && json_object_size(blob->tags))
        blob_write_tags(out, blob->tags);
    xml_close(out, "Blob");
}

static void on_prefix(const char *prefix, void *context)
{
    struct listing *listing = context;

    xml_open(listing->out, "BlobPrefix");
    xml_name(listing->out, "Name", prefix);
    xml_close(listing->out, "BlobPrefix");
}

static int read_marker(struct storage_call *call, const char **ret_marker, struct err *e)
{
    const char *marker = storage_query(call, "marker");
    auto_str text = {0};

    *ret_marker = "";
    if (!marker || !*marker)
        return 0;
    if (text_base64_decode(&text, marker, NULL) < 0 || !text.len ||
        memchr(str_text(&text), '\0', text.len)) {
        storage_refuse(e, ERR_INVALID, "OutOfRangeInput",
                       "the marker is not one that this service made");
        return err_target(e, "marker");
    }
    *ret_marker = arena_strndup(call->arena, str_text(&text), text.len);
    return 0;
}

static void write_head(struct storage_call *call, const struct blob_listing *l, int64_t most)
{
    const char *marker = storage_query(call, "marker");
    struct str *out = &call->out_body;

    xml_begin(out);
    str_add(out, "<EnumerationResults ServiceEndpoint=\"");
    xml_text(out, storage_endpoint(call));
    str_add(out, "\" ContainerName=\"");
    xml_text(out, call->container);
    str_add(out, "\">");
    xml_name(out, "Prefix", l->prefix);
    xml_element(out, "Marker", marker ? marker : "");
    xml_number(out, "MaxResults", most);
    if (*l->delimiter)
        xml_name(out, "Delimiter", l->delimiter);
    xml_open(out, "Blobs");
}

static void write_tail(struct str *out, const char *next)
{
    xml_close(out, "Blobs");
    if (*next) {
        xml_open(out, "NextMarker");
        text_base64(out, next, strlen(next));
        xml_close(out, "NextMarker");
    } else {
        str_add(out, "<NextMarker/>");
    }
    xml_close(out, "EnumerationResults");
}

int blob_op_list(struct storage_call *call, struct err *e)
{
    struct listing listing = {
        .call = call,
        .out = &call->out_body,
        .metadata = storage_query_has(call, "include", "metadata"),
        .tags = storage_query_has(call, "include", "tags"),
        .copy = storage_query_has(call, "include", "copy"),
        .second = INT64_MIN,
    };
    const char *prefix = storage_query(call, "prefix");
    const char *delimiter = storage_query(call, "delimiter");
    struct blob_listing l = {
        .prefix = prefix ? prefix : "",
        .delimiter = delimiter ? delimiter : "",
        .snapshots = storage_query_has(call, "include", "snapshots"),
        .uncommitted = storage_query_has(call, "include", "uncommittedblobs"),
        .blob = on_blob,
        .prefix_found = on_prefix,
        .context = &listing,
    };
    auto_free char *next = NULL;
    int64_t most = MOST_BLOBS;

    if (storage_query_int(call, "maxresults", 1, INT32_MAX, &most, e) < 0 ||
        read_marker(call, &l.marker, e) < 0)
        return -1;
    if (*l.delimiter && l.snapshots)
        return storage_refuse(e, ERR_INVALID, "InvalidQueryParameterValue",
                              "snapshots cannot be listed with a delimiter");
    if (most > MOST_BLOBS)
        most = MOST_BLOBS;
    l.most = (size_t)most;
    write_head(call, &l, most);
    if (blobs_list(blobs_of(call), call->account, call->container, &l, &next, e) < 0)
        return -1;
    write_tail(&call->out_body, next ? next : "");
    return storage_reply_xml(call, 200);
}
