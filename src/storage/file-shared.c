/* file-shared.c - what the operations on files and directories have in common: what they read
 * from a request, what they say of a file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/file-ops.h"

#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct file_address file_at(const struct storage_call *call)
{
    return (struct file_address){
        .account = call->account,
        .share = call->container,
        .path = call->object ? call->object : "",
        .trailing_dots = file_header_is_true(call, "x-ms-allow-trailing-dot"),
    };
}

int file_refuse_snapshot(struct storage_call *call, struct err *e)
{
    const char *snapshot = storage_query(call, "sharesnapshot");

    if (!snapshot || !*snapshot)
        return 0;
    return storage_refuse(e, ERR_INVALID, "ShareSnapshotOperationNotSupported",
                          "shares have no snapshots here");
}

bool file_header_is_true(const struct storage_call *call, const char *name)
{
    const char *value = storage_header(call, name);

    return value && strcasecmp(value, "true") == 0;
}

static const char *not_empty(const char *text)
{
    return text && *text ? text : NULL;
}

const char *file_lease_id(const struct storage_call *call)
{
    return not_empty(storage_header(call, "x-ms-lease-id"));
}

static int bad_header(struct err *e, const char *name, const char *value)
{
    storage_refuse(e, ERR_INVALID, "InvalidHeaderValue", "\"%.100s\" makes no sense for %s",
                   value, name);
    return err_target(e, name);
}

/* --- labels of the content --- */

int file_read_headers(struct storage_call *call, struct blob_headers *ret, struct err *e)
{
    const struct {
        const char *name;
        char **at;
    } rows[] = {
        {"x-ms-content-type", &ret->content_type},
        {"x-ms-content-encoding", &ret->content_encoding},
        {"x-ms-content-language", &ret->content_language},
        {"x-ms-content-disposition", &ret->content_disposition},
        {"x-ms-cache-control", &ret->cache_control},
        {"x-ms-content-md5", &ret->content_md5},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *value = not_empty(storage_header(call, rows[i].name));

        if (value && !text_is_utf8(value, strlen(value)))
            return bad_header(e, rows[i].name, value);
        *rows[i].at = (char *)value;
    }
    if (ret->content_md5) {
        auto_str raw = {0};

        if (text_base64_decode(&raw, ret->content_md5, NULL) < 0 || raw.len != 16)
            return storage_refuse(e, ERR_INVALID, "InvalidMd5",
                                  "x-ms-content-md5 is not the base64 of 16 bytes");
    }
    return 0;
}

/* --- attributes --- */

static const char *const attribute_names[] = {
    "ReadOnly",          "Hidden",      "System",    "None",
    "Directory",         "Archive",     "Normal",    "Offline",
    "NotContentIndexed", "NoScrubData", "Temporary",
};

static const char *attribute_of(const char *word, size_t len)
{
    for (size_t i = 0; i < ARRAY_SIZE(attribute_names); i++) {
        if (strlen(attribute_names[i]) == len &&
            strncasecmp(attribute_names[i], word, len) == 0)
            return attribute_names[i];
    }
    return NULL;
}

/* The words of the header in their right spelling; a directory is one, whatever they say. */
static int parse_attributes(const char *text, bool is_directory, struct str *out, struct err *e)
{
    const char *const header = "x-ms-file-attributes";

    if (is_directory)
        str_add(out, "Directory");
    for (const char *p = text; *p;) {
        size_t len = strcspn(p, "|"), next = len + (p[len] == '|');
        const char *word;

        while (len > 0 && *p == ' ')
            p++, len--, next--;
        while (len > 0 && p[len - 1] == ' ')
            len--;
        word = attribute_of(p, len);
        p += next;
        if (!word || (!is_directory && strcmp(word, "Directory") == 0))
            return bad_header(e, header, text);
        if (strcmp(word, "None") == 0 || strcmp(word, "Directory") == 0)
            continue;
        if (out->len)
            str_add_char(out, '|');
        str_add(out, word);
    }
    if (!out->len)
        str_add(out, "None");
    return 0;
}

static bool is_kept(const char *value)
{
    return !value || !*value || strcasecmp(value, "preserve") == 0 ||
           strcasecmp(value, "source") == 0;
}

int file_read_attributes(struct storage_call *call,
                         bool is_directory,
                         const char **ret,
                         struct err *e)
{
    const char *value = storage_header(call, "x-ms-file-attributes");
    auto_str text = {0};

    *ret = NULL;
    if (is_kept(value))
        return 0;
    if (parse_attributes(value, is_directory, &text, e) < 0)
        return -1;
    *ret = arena_strdup(call->arena, str_text(&text));
    return 0;
}

/* --- permissions --- */

int file_read_permission(struct storage_call *call, const char **ret_key, struct err *e)
{
    const char *text = storage_header(call, "x-ms-file-permission");
    const char *key = not_empty(storage_header(call, "x-ms-file-permission-key"));
    auto_free char *found = NULL;

    *ret_key = NULL;
    if (not_empty(text) && key)
        return storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                              "x-ms-file-permission and its key exclude each other");
    if (key) {
        if (files_find_permission(files_of(call), call->account, call->container, key, &found,
                                  e) < 0)
            return -1;
        *ret_key = key;
        return 0;
    }
    if (is_kept(text) || strcasecmp(text, "inherit") == 0)
        return 0;
    if (!text_is_utf8(text, strlen(text)))
        return bad_header(e, "x-ms-file-permission", "?");
    if (files_put_permission(files_of(call), call->account, call->container, text, &found, e) <
        0)
        return -1;
    *ret_key = arena_strdup(call->arena, found);
    return 0;
}

/* --- times --- */

static int read_time(struct storage_call *call,
                     const char *name,
                     struct file_time otherwise,
                     struct file_time *ret,
                     struct err *e)
{
    const char *value = storage_header(call, name);

    *ret = otherwise;
    if (!value || !*value)
        return 0;
    if (is_kept(value)) {
        ret->how = FILE_TIME_KEEP;
        return 0;
    }
    ret->how = FILE_TIME_NOW;
    if (strcasecmp(value, "now") == 0)
        return 0;
    ret->how = FILE_TIME_SET;
    return file_time_parse(value, &ret->ns, e) < 0 ? bad_header(e, name, value) : 0;
}

int file_read_times(struct storage_call *call,
                    struct file_time otherwise,
                    struct file_time *ret_created,
                    struct file_time *ret_written,
                    struct err *e)
{
    if (read_time(call, "x-ms-file-creation-time", otherwise, ret_created, e) < 0)
        return -1;
    return read_time(call, "x-ms-file-last-write-time", otherwise, ret_written, e);
}

int file_read_put(struct storage_call *call,
                  bool is_directory,
                  struct file_put *ret,
                  struct err *e)
{
    const struct file_time now = {FILE_TIME_NOW, 0};
    json_t *metadata;

    *ret = (struct file_put){0};
    if ((!is_directory && file_read_headers(call, &ret->headers, e) < 0) ||
        storage_metadata(call, false, &metadata, e) < 0 ||
        file_read_attributes(call, is_directory, &ret->attributes, e) < 0 ||
        file_read_permission(call, &ret->permission_key, e) < 0 ||
        file_read_times(call, now, &ret->created, &ret->written, e) < 0)
        return -1;
    if (ret->attributes && strcmp(ret->attributes, "None") == 0)
        ret->attributes = NULL; /* as Azure has it: a new file is one to archive */
    ret->metadata = metadata;
    return 0;
}

/* --- ranges --- */

int file_read_span(struct storage_call *call,
                   const char *name,
                   int64_t *ret_first,
                   int64_t *ret_len,
                   struct err *e)
{
    const char *value = not_empty(storage_header(call, name));
    char *end;
    long long first, last;

    if (!value && strcmp(name, "x-ms-range") == 0)
        value = not_empty(storage_header(call, "Range"));
    if (!value) {
        storage_refuse(e, ERR_INVALID, "MissingRequiredHeader", "the request needs %s", name);
        return err_target(e, name);
    }
    if (strncasecmp(value, "bytes=", 6) != 0 || value[6] < '0' || value[6] > '9')
        return bad_header(e, name, value);
    errno = 0;
    first = strtoll(value + 6, &end, 10);
    if (*end != '-' || end[1] < '0' || end[1] > '9')
        return bad_header(e, name, value);
    last = strtoll(end + 1, &end, 10);
    if (*end || errno || last < first)
        return bad_header(e, name, value);
    *ret_first = first;
    *ret_len = last - first + 1;
    return 0;
}

/* --- replies --- */

static void reply_time(struct storage_call *call, const char *name, int64_t ns)
{
    char text[FILE_TIME_BYTES];

    storage_reply_header(call, name, file_time_format(ns, text));
}

void file_reply_version(struct storage_call *call, const struct file *file)
{
    storage_reply_etag(call, file->etag, file->modified_ms);
    storage_reply_header(call, "x-ms-file-permission-key", file->permission_key);
    storage_reply_header(call, "x-ms-file-attributes", file->attributes);
    reply_time(call, "x-ms-file-creation-time", file->created_ns);
    reply_time(call, "x-ms-file-last-write-time", file->written_ns);
    reply_time(call, "x-ms-file-change-time", file->changed_ns);
    storage_reply_headerf(call, "x-ms-file-id", "%" PRIu64, file->file_id);
    storage_reply_headerf(call, "x-ms-file-parent-id", "%" PRIu64,
                          call->object ? file->parent_id : 0);
}

int file_reply_written(struct storage_call *call, const struct file *file, int status)
{
    file_reply_version(call, file);
    storage_reply_header(call, "x-ms-request-server-encrypted", "true");
    return storage_reply(call, status);
}
