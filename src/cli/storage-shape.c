/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage-shape.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/shape.h"
#include "cli/storage-listing.h"
#include "http/client.h"

#include <string.h>

const char storage_container_table[] =
    "{Name: name, \"Lease Status\": properties.lease.status, \"Last Modified\": "
    "properties.lastModified}";
const char storage_blob_table[] =
    "{Name: name, \"Blob Type\": properties.blobType, \"Blob Tier\": properties.blobTier, "
    "Length: properties.contentLength, \"Content Type\": "
    "properties.contentSettings.contentType, \"Last Modified\": properties.lastModified, "
    "Snapshot: snapshot}";
const char storage_share_table[] = "{Name: name, Quota: properties.quota, \"Last Modified\": "
                                   "properties.lastModified}";
const char storage_file_table[] =
    "{Name: name, \"Content Length\": properties.contentLength, Type: type, \"Last Modified\": "
    "properties.lastModified}";

enum type {
    TEXT,
    NUMBER,
    TIME,
    ISO_TIME,
    BOOL,
    NOTHING, /* az has it; it is always null here */
};

struct field {
    const char *at;      /* where it goes: "properties.lease.state" */
    const char *element; /* in a list, below the entry */
    const char *header;  /* in an answer */
    enum type type;
};

#define CONTENT_FIELDS                                                                         \
    {"properties.contentLength", "Properties/Content-Length", "Content-Length", NUMBER},       \
        {"properties.contentRange", NULL, "Content-Range", TEXT},                              \
        {"properties.contentSettings.cacheControl", "Properties/Cache-Control",                \
         "Cache-Control", TEXT},                                                               \
        {"properties.contentSettings.contentDisposition", "Properties/Content-Disposition",    \
         "Content-Disposition", TEXT},                                                         \
        {"properties.contentSettings.contentEncoding", "Properties/Content-Encoding",          \
         "Content-Encoding", TEXT},                                                            \
        {"properties.contentSettings.contentLanguage", "Properties/Content-Language",          \
         "Content-Language", TEXT},                                                            \
        {"properties.contentSettings.contentMd5", "Properties/Content-MD5", "Content-MD5",     \
         TEXT},                                                                                \
        {"properties.contentSettings.contentType", "Properties/Content-Type", "Content-Type",  \
         TEXT},                                                                                \
        {"properties.copy.completionTime", "Properties/CopyCompletionTime",                    \
         "x-ms-copy-completion-time", TIME},                                                   \
        {"properties.copy.id", "Properties/CopyId", "x-ms-copy-id", TEXT},                     \
        {"properties.copy.progress", "Properties/CopyProgress", "x-ms-copy-progress", TEXT},   \
        {"properties.copy.source", "Properties/CopySource", "x-ms-copy-source", TEXT},         \
        {"properties.copy.status", "Properties/CopyStatus", "x-ms-copy-status", TEXT},         \
        {"properties.copy.statusDescription", "Properties/CopyStatusDescription",              \
         "x-ms-copy-status-description", TEXT},                                                \
    {                                                                                          \
        "properties.serverEncrypted", "Properties/ServerEncrypted", "x-ms-server-encrypted",   \
            BOOL                                                                               \
    }
#define CHANGE_FIELDS                                                                          \
    {"properties.etag", "Properties/Etag", "ETag", TEXT},                                      \
    {                                                                                          \
        "properties.lastModified", "Properties/Last-Modified", "Last-Modified", TIME           \
    }
#define SMB_FIELDS                                                                             \
    {"changeTime", "Properties/ChangeTime", "x-ms-file-change-time", ISO_TIME},                \
        {"creationTime", "Properties/CreationTime", "x-ms-file-creation-time", ISO_TIME},      \
        {"fileAttributes", "Attributes", "x-ms-file-attributes", TEXT},                        \
        {"fileId", "FileId", "x-ms-file-id", TEXT},                                            \
        {"lastAccessTime", "Properties/LastAccessTime", NULL, ISO_TIME},                       \
        {"lastWriteTime", "Properties/LastWriteTime", "x-ms-file-last-write-time", ISO_TIME},  \
        {"parentId", NULL, "x-ms-file-parent-id", TEXT},                                       \
    {                                                                                          \
        "permissionKey", "PermissionKey", "x-ms-file-permission-key", TEXT                     \
    }
#define LEASE_FIELDS                                                                           \
    {"properties.lease.duration", "Properties/LeaseDuration", "x-ms-lease-duration", TEXT},    \
        {"properties.lease.state", "Properties/LeaseState", "x-ms-lease-state", TEXT},         \
    {                                                                                          \
        "properties.lease.status", "Properties/LeaseStatus", "x-ms-lease-status", TEXT         \
    }

static const struct field blob_fields[] = {
    CONTENT_FIELDS,
    CHANGE_FIELDS,
    LEASE_FIELDS,
    {"properties.appendBlobCommittedBlockCount", NULL, "x-ms-blob-committed-block-count",
     NUMBER},
    {"properties.blobTier", "Properties/AccessTier", "x-ms-access-tier", TEXT},
    {"properties.blobTierChangeTime", "Properties/AccessTierChangeTime",
     "x-ms-access-tier-change-time", TIME},
    {"properties.blobTierInferred", "Properties/AccessTierInferred",
     "x-ms-access-tier-inferred", BOOL},
    {"properties.blobType", "Properties/BlobType", "x-ms-blob-type", TEXT},
    {"properties.creationTime", "Properties/Creation-Time", "x-ms-creation-time", TIME},
    {"properties.deletedTime", NULL, NULL, NOTHING},
    {"properties.pageBlobSequenceNumber", "Properties/x-ms-blob-sequence-number",
     "x-ms-blob-sequence-number", NUMBER},
    {"properties.pageRanges", NULL, NULL, NOTHING},
    {"properties.rehydrationStatus", NULL, NULL, NOTHING},
    {"properties.remainingRetentionDays", NULL, NULL, NOTHING},
    {"deleted", NULL, NULL, NOTHING},
    {"encryptedMetadata", NULL, NULL, NOTHING},
    {"encryptionKeySha256", NULL, NULL, NOTHING},
    {"encryptionScope", NULL, NULL, NOTHING},
    {"hasLegalHold", NULL, NULL, NOTHING},
    {"hasVersionsOnly", NULL, NULL, NOTHING},
    {"immutabilityPolicy.expiryTime", NULL, NULL, NOTHING},
    {"immutabilityPolicy.policyMode", NULL, NULL, NOTHING},
    {"isAppendBlobSealed", NULL, NULL, NOTHING},
    {"isCurrentVersion", NULL, NULL, NOTHING},
    {"lastAccessedOn", NULL, NULL, NOTHING},
    {"objectReplicationDestinationPolicy", NULL, NULL, NOTHING},
    {"objectReplicationSourceProperties", NULL, NULL, NOTHING},
    {"rehydratePriority", NULL, NULL, NOTHING},
    {"requestServerEncrypted", NULL, "x-ms-server-encrypted", BOOL},
    {"snapshot", "Snapshot", "x-ms-snapshot", TEXT},
    {"tagCount", "Properties/TagCount", "x-ms-tag-count", NUMBER},
    {"tags", NULL, NULL, NOTHING},
    {"versionId", NULL, "x-ms-version-id", TEXT},
    {0},
};
static const struct field container_fields[] = {
    CHANGE_FIELDS,
    LEASE_FIELDS,
    {"properties.hasImmutabilityPolicy", "Properties/HasImmutabilityPolicy",
     "x-ms-has-immutability-policy", BOOL},
    {"properties.hasLegalHold", "Properties/HasLegalHold", "x-ms-has-legal-hold", BOOL},
    {"properties.publicAccess", "Properties/PublicAccess", "x-ms-blob-public-access", TEXT},
    {"deleted", NULL, NULL, NOTHING},
    {"encryptionScope", NULL, NULL, NOTHING},
    {"version", NULL, NULL, NOTHING},
    {0},
};
static const struct field share_fields[] = {
    CHANGE_FIELDS,
    {"properties.quota", "Properties/Quota", "x-ms-share-quota", NUMBER},
    /* az shows these flat in a list and deep in show: here they are in both places. */
    {"accessTier", "Properties/AccessTier", "x-ms-access-tier", TEXT},
    {"deleted", NULL, NULL, NOTHING},
    {"etag", "Properties/Etag", "ETag", TEXT},
    {"lastModified", "Properties/Last-Modified", "Last-Modified", TIME},
    {"lease.duration", "Properties/LeaseDuration", "x-ms-lease-duration", TEXT},
    {"lease.state", "Properties/LeaseState", "x-ms-lease-state", TEXT},
    {"lease.status", "Properties/LeaseStatus", "x-ms-lease-status", TEXT},
    {"quota", "Properties/Quota", "x-ms-share-quota", NUMBER},
    {"snapshot", "Snapshot", NULL, TEXT},
    {0},
};
static const struct field file_fields[] = {
    CONTENT_FIELDS,
    CHANGE_FIELDS,
    SMB_FIELDS,
    {0},
};
static const struct field folder_fields[] = {
    CHANGE_FIELDS,
    SMB_FIELDS,
    {"properties.serverEncrypted", "Properties/ServerEncrypted", "x-ms-server-encrypted", BOOL},
    {0},
};
static const struct field prefix_fields[] = {
    {0},
};

static const struct {
    const char *kind;
    const struct field *fields;
    const char *type; /* az's word for it; NULL = it has none */
} kinds[] = {
    {"Blob", blob_fields, NULL},           {"BlobPrefix", prefix_fields, NULL},
    {"Container", container_fields, NULL}, {"Share", share_fields, NULL},
    {"File", file_fields, "file"},         {"Directory", folder_fields, "dir"},
};

json_t *storage_shape_time(const char *http)
{
    auto_free char *shown = NULL;
    char iso[CLOCK_ISO_BYTES];
    int64_t ms;

    if (clock_parse_http(http, &ms, NULL) < 0)
        return json_null();
    clock_format_iso(ms, iso);
    shown = shape_time(iso);
    return shown ? json_string(shown) : json_null();
}

static json_t *iso_time(const char *text)
{
    auto_free char *shown = shape_time(text);

    return shown ? json_string(shown) : json_null();
}

static json_t *value_of(const char *text, enum type type)
{
    if (!text || !*text || type == NOTHING)
        return json_null();
    switch (type) {
    case NUMBER:
        return json_integer(strtoll(text, NULL, 10));
    case TIME:
        return storage_shape_time(text);
    case ISO_TIME:
        return iso_time(text);
    case BOOL:
        return json_boolean(str_equal(text, "true"));
    case TEXT:
    case NOTHING:
        break;
    }
    return json_string(text);
}

/* Set "a.b.c", making a and b. */
static void set_at(json_t *root, const char *at, json_t *value)
{
    json_t *object = root;
    const char *dot;

    for (; (dot = strchr(at, '.')); at = dot + 1) {
        auto_free char *name = xstrndup(at, (size_t)(dot - at));
        json_t *below = json_object_get(object, name);

        if (!below) {
            below = json_object();
            json_object_set_new(object, name, below);
        }
        object = below;
    }
    json_object_set_new(object, at, value);
}

static const struct field *fields_of(const char *kind, json_t *result)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (!str_equal(kind, kinds[i].kind))
            continue;
        if (kinds[i].type) {
            json_object_set_new(result, "type", json_string(kinds[i].type));
            json_object_set_new(result, "isDirectory",
                                json_boolean(str_equal(kinds[i].type, "dir")));
        }
        return kinds[i].fields;
    }
    return prefix_fields;
}

static json_t *begin(const char *name, const char *container)
{
    json_t *shown = json_string(name);
    json_t *result =
        json_pack("{s:o, s:{}}", "name", shown ? shown : json_string("?"), "metadata");

    if (container)
        json_object_set_new(result, "container", json_string(container));
    return result;
}

json_t *storage_shape_entry(const struct listing_entry *entry, const char *container)
{
    static const char metadata[] = "Metadata/";
    json_t *result = begin(listing_name(entry), container);
    const struct field *fields = fields_of(listing_kind(entry), result);
    const char *path, *text;

    for (; fields->at; fields++)
        set_at(result, fields->at,
               value_of(fields->element ? listing_get(entry, fields->element) : NULL,
                        fields->type));
    for (size_t i = 0; listing_at(entry, i, &path, &text); i++) {
        if (str_starts(path, metadata))
            json_object_set_new(json_object_get(result, "metadata"), path + strlen(metadata),
                                json_string(text));
    }
    return result;
}

static void add_metadata(const struct http_answer *answer, json_t *metadata)
{
    static const char prefix[] = "x-ms-meta-";

    for (const char *p = str_text(&answer->head); *p;) {
        size_t len = strcspn(p, "\r\n");

        if (str_starts_nocase(p, prefix)) {
            const char *name = p + strlen(prefix);
            size_t name_len = strcspn(name, ":\r\n");
            auto_free char *key = xstrndup(name, name_len);
            auto_free char *header = xstrndup(p, strlen(prefix) + name_len);
            auto_free char *value = http_answer_header(answer, header);

            json_object_set_new(metadata, key, json_string(value ? value : ""));
        }
        p += len;
        p += strspn(p, "\r\n");
    }
}

json_t *storage_shape_answer(const struct http_answer *answer,
                             const char *kind,
                             const char *name,
                             const char *container)
{
    json_t *result = begin(name, container);
    const struct field *fields = fields_of(kind, result);

    for (; fields->at; fields++) {
        auto_free char *text =
            fields->header ? http_answer_header(answer, fields->header) : NULL;

        set_at(result, fields->at, value_of(text, fields->type));
    }
    add_metadata(answer, json_object_get(result, "metadata"));
    return result;
}
