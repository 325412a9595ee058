/* blob-shared.c - what the operations on blobs have in common: what they read from a request,
 * what a write answers, how a body becomes an upload.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blob-ops.h"

#include "base/mem.h"
#include "base/text.h"
#include "storage/xml.h"

#include <string.h>
#include <strings.h>

enum {
    MOST_TAGS = 10,
    MOST_TAG_NAME = 128,
    MOST_TAG_VALUE = 256,
};

struct blob_address blob_at(const struct storage_call *call)
{
    return (struct blob_address){
        .account = call->account,
        .container = call->container,
        .name = call->object,
        .snapshot = storage_query(call, "snapshot"),
    };
}

const char *blob_type_name(enum blob_type type)
{
    static const char *const names[] = {
        [BLOB_BLOCK] = "BlockBlob",
        [BLOB_APPEND] = "AppendBlob",
        [BLOB_PAGE] = "PageBlob",
    };

    return names[type];
}

/* --- creating --- */

int blob_create_conditions(struct storage_call *call, struct conditions *ret, struct err *e)
{
    if (storage_conditions(call, "", ret, e) < 0)
        return -1;
    if (call->may_not_replace)
        ret->if_none_match = "*";
    return 0;
}

int blob_create_failed(struct storage_call *call, struct err *e)
{
    const char *asked = storage_header(call, "If-None-Match");
    bool is_own = asked && strcmp(asked, "*") == 0;

    if (call->may_not_replace && !is_own && e->reason &&
        strcmp(e->reason, "BlobAlreadyExists") == 0)
        return storage_refuse(e, ERR_FORBIDDEN, "UnauthorizedBlobOverwrite",
                              "the SAS allows to create blobs and not to replace them");
    return -1;
}

/* --- headers of content --- */

static char *not_empty(const char *text)
{
    return text && *text ? (char *)text : NULL;
}

static char *content_header(struct storage_call *call, const char *own, const char *plain)
{
    const char *value = storage_header(call, own);

    return not_empty(value || !plain ? value : storage_header(call, plain));
}

int blob_read_headers(struct storage_call *call,
                      bool is_plain_ok,
                      struct blob_headers *ret,
                      struct err *e)
{
    const struct {
        const char *own, *plain;
        char **at;
    } rows[] = {
        {"x-ms-blob-content-type", "Content-Type", &ret->content_type},
        {"x-ms-blob-content-encoding", "Content-Encoding", &ret->content_encoding},
        {"x-ms-blob-content-language", "Content-Language", &ret->content_language},
        {"x-ms-blob-content-disposition", NULL, &ret->content_disposition},
        {"x-ms-blob-cache-control", "Cache-Control", &ret->cache_control},
        {"x-ms-blob-content-md5", NULL, &ret->content_md5},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        *rows[i].at = content_header(call, rows[i].own, is_plain_ok ? rows[i].plain : NULL);
        if (*rows[i].at && !text_is_utf8(*rows[i].at, strlen(*rows[i].at))) {
            storage_refuse(e, ERR_INVALID, "InvalidHeaderValue", "%s is not UTF-8",
                           rows[i].own);
            return err_target(e, rows[i].own);
        }
    }
    if (ret->content_md5) {
        auto_str raw = {0};

        if (text_base64_decode(&raw, ret->content_md5, NULL) < 0 || raw.len != 16)
            return storage_refuse(e, ERR_INVALID, "InvalidMd5",
                                  "x-ms-blob-content-md5 is not the base64 of 16 bytes");
    }
    return 0;
}

int blob_read_tier(struct storage_call *call, bool is_needed, const char **ret, struct err *e)
{
    static const char *const tiers[] = {"Hot", "Cool", "Cold", "Archive", "Premium"};
    const char *text = is_needed ? storage_need_header(call, "x-ms-access-tier", e)
                                 : not_empty(storage_header(call, "x-ms-access-tier"));

    if (!text)
        return is_needed ? -1 : 0;
    for (size_t i = 0; i < ARRAY_SIZE(tiers); i++)
        if (strcasecmp(text, tiers[i]) == 0) {
            *ret = tiers[i];
            return 0;
        }
    storage_refuse(e, ERR_INVALID, "InvalidHeaderValue", "\"%.32s\" is no tier for blobs",
                   text);
    return err_target(e, "x-ms-access-tier");
}

/* --- tags --- */

static bool is_tag_text(const char *text, size_t least, size_t most)
{
    size_t len = strlen(text);

    for (const char *p = text; *p; p++)
        if (!strchr(" +-./:=_", *p) && !(*p >= '0' && *p <= '9') && !(*p >= 'a' && *p <= 'z') &&
            !(*p >= 'A' && *p <= 'Z'))
            return false;
    return len >= least && len <= most;
}

int blob_check_tag(json_t *tags, const char *name, const char *value, struct err *e)
{
    if (!*name)
        return storage_refuse(e, ERR_INVALID, "EmptyTagName", "a tag needs a name");
    if (!is_tag_text(name, 1, MOST_TAG_NAME) || !is_tag_text(value, 0, MOST_TAG_VALUE))
        return storage_refuse(e, ERR_INVALID, "InvalidTag",
                              "tags are of letters, digits, blanks and +-./:=_");
    if (json_object_get(tags, name))
        return storage_refuse(e, ERR_INVALID, "DuplicateTagNames", "the tag \"%s\" is twice",
                              name);
    if (json_object_size(tags) == MOST_TAGS)
        return storage_refuse(e, ERR_INVALID, "TagsTooLarge", "a blob has at most %d tags",
                              MOST_TAGS);
    json_object_set_new(tags, name, json_string(value));
    return 0;
}

int blob_read_tags_header(struct storage_call *call, json_t **ret, struct err *e)
{
    const char *p = not_empty(storage_header(call, "x-ms-tags"));
    json_t *tags;

    *ret = NULL;
    if (!p)
        return 0;
    tags = storage_keep_json(call, json_object());
    while (*p) {
        size_t len = strcspn(p, "&"), name_len = strcspn(p, "=&");
        auto_str name = {0}, value = {0};

        if (name_len == len || text_percent_decode(&name, p, name_len, true, e) < 0 ||
            text_percent_decode(&value, p + name_len + 1, len - name_len - 1, true, e) < 0) {
            storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                           "x-ms-tags must be name=value&name=value");
            return err_target(e, "x-ms-tags");
        }
        if (blob_check_tag(tags, str_text(&name), str_text(&value), e) < 0)
            return -1;
        p += len + (p[len] == '&');
    }
    *ret = tags;
    return 0;
}

void blob_write_tags(struct str *out, const json_t *tags)
{
    const char *name;
    json_t *value;

    xml_open(out, "Tags");
    xml_open(out, "TagSet");
    json_object_foreach((json_t *)tags, name, value)
    {
        xml_open(out, "Tag");
        xml_element(out, "Key", name);
        xml_element(out, "Value", json_string_value(value));
        xml_close(out, "Tag");
    }
    xml_close(out, "TagSet");
    xml_close(out, "Tags");
}

int blob_read_put(struct storage_call *call,
                  bool is_plain_ok,
                  struct blob_put *ret,
                  struct err *e)
{
    json_t *metadata, *tags;

    *ret = (struct blob_put){0};
    if (blob_read_headers(call, is_plain_ok, &ret->headers, e) < 0 ||
        storage_metadata(call, false, &metadata, e) < 0 ||
        blob_read_tags_header(call, &tags, e) < 0 ||
        blob_read_tier(call, false, &ret->tier, e) < 0)
        return -1;
    ret->metadata = metadata;
    ret->tags = tags;
    return 0;
}

int blob_reply_written(struct storage_call *call, const struct blob *blob, int status)
{
    storage_reply_etag(call, blob->etag, blob->modified_ms);
    storage_reply_header(call, "x-ms-request-server-encrypted", "true");
    return storage_reply(call, status);
}

/* --- bodies --- */

int blob_begin_upload(struct storage_call *call, int64_t most, bool keeps_md5, struct err *e)
{
    const char *md5, *crc64;

    if (call->content_length > most)
        return storage_refuse(e, ERR_TOO_LARGE, "RequestBodyTooLarge",
                              "the body is larger than %lld bytes", (long long)most);
    if (storage_hashes(call, &md5, &crc64, e) < 0)
        return -1;
    if (upload_begin(blobs_of(call), call->account, call->container, &call->upload, e) < 0)
        return -1;
    /* A block whose MD5 nobody asked for is answered with its CRC, which costs less. */
    upload_expect(call->upload, keeps_md5 || md5, crc64 || (!keeps_md5 && !md5));
    return 0;
}

int blob_check_upload(struct storage_call *call, struct err *e)
{
    const char *md5, *crc64;

    if (storage_hashes(call, &md5, &crc64, e) < 0)
        return -1;
    return upload_check(call->upload, md5, crc64, e);
}

void blob_reply_hashes(struct storage_call *call)
{
    const char *md5 = storage_header(call, "Content-MD5");

    if (md5 && *md5)
        storage_reply_header(call, "Content-MD5", md5);
    else
        storage_reply_header(call, "x-ms-content-crc64", upload_crc64(call->upload));
}
