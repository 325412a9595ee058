/* blob-facts.c - changing what is said of a blob and not its bytes; snapshots, leases, the end.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blob-ops.h"

#include "base/mem.h"
#include "storage/xml.h"

#include <string.h>
#include <strings.h>

static const int64_t most_page_blob_bytes = 8LL * 1024 * 1024 * 1024 * 1024;

static int change(struct storage_call *call,
                  const struct blob_change *change,
                  const struct conditions *conditions,
                  struct blob **ret_blob,
                  struct err *e)
{
    const struct blob_address at = blob_at(call);

    return blobs_change(blobs_of(call), &at, change, conditions, ret_blob, e);
}

int blob_op_set_metadata(struct storage_call *call, struct err *e)
{
    struct blob_change what = {.size = -1};
    autoptr(blob) blob = NULL;
    struct conditions conditions;
    json_t *metadata;

    if (storage_conditions(call, "", &conditions, e) < 0 ||
        storage_metadata(call, true, &metadata, e) < 0)
        return -1;
    what.metadata = metadata;
    if (change(call, &what, &conditions, &blob, e) < 0)
        return -1;
    return blob_reply_written(call, blob, 200);
}

/* Any of the content's headers replaces all of them; resizing alone keeps them. */
static bool says_headers(const struct storage_call *call)
{
    return storage_header(call, "x-ms-blob-content-type") ||
           storage_header(call, "x-ms-blob-content-encoding") ||
           storage_header(call, "x-ms-blob-content-language") ||
           storage_header(call, "x-ms-blob-content-disposition") ||
           storage_header(call, "x-ms-blob-cache-control") ||
           storage_header(call, "x-ms-blob-content-md5");
}

int blob_op_set_properties(struct storage_call *call, struct err *e)
{
    struct blob_change what = {.size = -1};
    autoptr(blob) blob = NULL;
    struct blob_headers headers;
    struct conditions conditions;

    if (storage_header(call, "x-ms-sequence-number-action"))
        return storage_refuse(e, ERR_INVALID, "NotImplemented",
                              "the sequence number of a page blob cannot be set here");
    if (storage_conditions(call, "", &conditions, e) < 0 ||
        blob_read_headers(call, false, &headers, e) < 0 ||
        storage_header_int(call, "x-ms-blob-content-length", 0, most_page_blob_bytes,
                           &what.size, e) < 0)
        return -1;
    if (what.size < 0 || says_headers(call))
        what.headers = &headers;
    if (change(call, &what, &conditions, &blob, e) < 0)
        return -1;
    if (blob->type == BLOB_PAGE)
        storage_reply_headerf(call, "x-ms-blob-sequence-number", "%lld",
                              (long long)blob->sequence);
    return blob_reply_written(call, blob, 200);
}

/* --- tags and tier: no condition but a lease and other tags, and no new ETag --- */

int blob_op_get_tags(struct storage_call *call, struct err *e)
{
    const struct blob_address at = blob_at(call);
    autoptr(blob) blob = NULL;
    struct conditions conditions;

    if (storage_conditions(call, "", &conditions, e) < 0 ||
        blobs_find(blobs_of(call), &at, &conditions, &blob, NULL, NULL, e) < 0)
        return -1;
    xml_begin(&call->out_body);
    blob_write_tags(&call->out_body, blob->tags);
    return storage_reply_xml(call, 200);
}

static int read_tags(struct storage_call *call, json_t **ret_tags, struct err *e)
{
    const struct xml_node *root, *set;
    json_t *tags = storage_keep_json(call, json_object());

    if (xml_parse(call->body, call->body_len, call->arena, &root, e) < 0)
        return -1;
    set = xml_child(root, "TagSet");
    if (strcmp(root->name, "Tags") != 0 || !set)
        return storage_refuse(e, ERR_INVALID, "InvalidXmlDocument",
                              "expected Tags with a TagSet");
    for (const struct xml_node *node = set->child; node; node = node->next) {
        const char *name = xml_child_text(node, "Key"), *value = xml_child_text(node, "Value");

        if (strcmp(node->name, "Tag") != 0 || !name || !value)
            return storage_refuse(e, ERR_INVALID, "InvalidXmlDocument",
                                  "a Tag has a Key and a Value");
        if (blob_check_tag(tags, name, value, e) < 0)
            return -1;
    }
    *ret_tags = tags;
    return 0;
}

int blob_op_set_tags(struct storage_call *call, struct err *e)
{
    struct blob_change what = {.size = -1};
    autoptr(blob) blob = NULL;
    struct conditions conditions;
    const char *md5, *crc64;
    json_t *tags;

    if (storage_hashes(call, &md5, &crc64, e) < 0 ||
        storage_check_body(call, md5, crc64, e) < 0 ||
        storage_conditions(call, "", &conditions, e) < 0 || read_tags(call, &tags, e) < 0)
        return -1;
    what.tags = tags;
    if (change(call, &what, &conditions, &blob, e) < 0)
        return -1;
    return storage_reply(call, 204);
}

int blob_op_set_tier(struct storage_call *call, struct err *e)
{
    struct blob_change what = {.size = -1};
    autoptr(blob) blob = NULL;
    struct conditions conditions;

    if (storage_conditions(call, "", &conditions, e) < 0 ||
        blob_read_tier(call, true, &what.tier, e) < 0)
        return -1;
    if (change(call, &what, &conditions, &blob, e) < 0)
        return -1;
    return storage_reply(call, 200);
}

/* --- snapshots, leases --- */

int blob_op_snapshot(struct storage_call *call, struct err *e)
{
    const struct blob_address at = blob_at(call);
    autoptr(blob) snapshot = NULL;
    struct conditions conditions;
    json_t *metadata;

    if (storage_conditions(call, "", &conditions, e) < 0 ||
        storage_metadata(call, false, &metadata, e) < 0 ||
        blobs_snapshot(blobs_of(call), &at, metadata, &conditions, &snapshot, e) < 0)
        return -1;
    storage_reply_header(call, "x-ms-snapshot", snapshot->snapshot);
    return blob_reply_written(call, snapshot, 201);
}

int blob_op_lease(struct storage_call *call, struct err *e)
{
    const struct blob_address at = blob_at(call);
    autoptr(blob) blob = NULL;
    struct lease_request request;
    struct conditions conditions;
    int left_s = 0;

    if (storage_lease_request(call, &request, e) < 0 ||
        storage_conditions(call, "", &conditions, e) < 0)
        return -1;
    conditions.lease_id = NULL; /* it is what the request is about */
    if (blobs_lease(blobs_of(call), &at, &request, &conditions, &blob, &left_s, e) < 0)
        return -1;
    storage_reply_etag(call, blob->etag, blob->modified_ms);
    return storage_reply_lease(call, &request, &blob->lease, left_s);
}

/* --- the end --- */

static int read_choice(struct storage_call *call, enum snapshot_choice *ret, struct err *e)
{
    const char *text = storage_header(call, "x-ms-delete-snapshots");
    const char *snapshot = storage_query(call, "snapshot");

    *ret = SNAPSHOTS_REFUSE;
    if (!text || !*text)
        return 0;
    if (snapshot && *snapshot) {
        storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                       "x-ms-delete-snapshots makes no sense for a snapshot");
    } else if (strcasecmp(text, "include") == 0) {
        *ret = SNAPSHOTS_INCLUDE;
        return 0;
    } else if (strcasecmp(text, "only") == 0) {
        *ret = SNAPSHOTS_ONLY;
        return 0;
    } else {
        storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                       "x-ms-delete-snapshots is include or only");
    }
    return err_target(e, "x-ms-delete-snapshots");
}

int blob_op_delete(struct storage_call *call, struct err *e)
{
    const struct blob_address at = blob_at(call);
    enum snapshot_choice choice;
    struct conditions conditions;

    if (storage_query(call, "deletetype"))
        return storage_refuse(e, ERR_INVALID, "NotImplemented",
                              "what is deleted is gone at once here: deletetype means nothing");
    if (read_choice(call, &choice, e) < 0 || storage_conditions(call, "", &conditions, e) < 0 ||
        blobs_delete(blobs_of(call), &at, choice, &conditions, e) < 0)
        return -1;
    storage_reply_header(call, "x-ms-delete-type-permanent", "true");
    return storage_reply(call, 202);
}

/* Nothing deleted is kept, so there is nothing to bring back; a blob that is there is fine. */
int blob_op_undelete(struct storage_call *call, struct err *e)
{
    const struct blob_address at = blob_at(call);
    autoptr(blob) blob = NULL;

    if (blobs_find(blobs_of(call), &at, NULL, &blob, NULL, NULL, e) < 0)
        return -1;
    return storage_reply(call, 200);
}
