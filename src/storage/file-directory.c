/* file-directory.c - one directory, what is in it, and handles, of which there are none: what
 * a job opened through a mount is the kernel's affair.
 *
 * A marker is the last name of the page, in base64: names hold bytes that a query does not
 * like.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/file-ops.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "storage/xml.h"

#include <inttypes.h>
#include <string.h>

enum {
    MOST_ENTRIES = 5000,
};

int file_op_create_directory(struct storage_call *call, struct err *e)
{
    const struct file_address at = file_at(call);
    autoptr(file) file = NULL;
    struct file_put put;

    if (file_read_put(call, true, &put, e) < 0 ||
        files_create_directory(files_of(call), &at, &put, &file, e) < 0)
        return -1;
    return file_reply_written(call, file, 201);
}

int file_op_get_directory(struct storage_call *call, struct err *e)
{
    const struct file_address at = file_at(call);
    autoptr(file) file = NULL;

    if (file_refuse_snapshot(call, e) < 0 ||
        files_find(files_of(call), &at, 1, &file, NULL, e) < 0)
        return -1;
    storage_reply_metadata(call, file->metadata);
    if (call->op->comp) {
        storage_reply_etag(call, file->etag, file->modified_ms);
    } else {
        file_reply_version(call, file);
        storage_reply_header(call, "x-ms-server-encrypted", "true");
    }
    return storage_reply(call, 200);
}

int file_op_delete_directory(struct storage_call *call, struct err *e)
{
    const struct file_address at = file_at(call);

    if (files_delete(files_of(call), &at, true, NULL, e) < 0)
        return -1;
    return storage_reply(call, 202);
}

int file_op_set_directory_metadata(struct storage_call *call, struct err *e)
{
    const struct file_address at = file_at(call);
    struct file_change change = FILE_CHANGE_NONE;
    autoptr(file) file = NULL;
    json_t *metadata;

    if (storage_metadata(call, true, &metadata, e) < 0)
        return -1;
    change.metadata = metadata;
    if (files_change(files_of(call), &at, true, &change, NULL, &file, e) < 0)
        return -1;
    return file_reply_written(call, file, 200);
}

int file_op_set_directory_properties(struct storage_call *call, struct err *e)
{
    const struct file_address at = file_at(call);
    struct file_change change = FILE_CHANGE_NONE;
    autoptr(file) file = NULL;

    if (file_read_attributes(call, true, &change.attributes, e) < 0 ||
        file_read_permission(call, &change.permission_key, e) < 0 ||
        file_read_times(call, (struct file_time){FILE_TIME_KEEP, 0}, &change.created,
                        &change.written, e) < 0 ||
        files_change(files_of(call), &at, true, &change, NULL, &file, e) < 0)
        return -1;
    return file_reply_written(call, file, 200);
}

/* --- listing --- */

struct listing {
    struct str *entries;
    bool ids, times, etag, attributes, permissions;
};

static void write_time(struct str *out, const char *name, int64_t ns)
{
    char text[FILE_TIME_BYTES];

    xml_element(out, name, file_time_format(ns, text));
}

static void write_properties(struct listing *l, const struct file *file)
{
    struct str *out = l->entries;
    char text[CLOCK_HTTP_BYTES];

    xml_open(out, "Properties");
    if (!file->is_directory)
        xml_number(out, "Content-Length", file->size_bytes);
    if (l->times) {
        write_time(out, "CreationTime", file->created_ns);
        write_time(out, "LastAccessTime", file->accessed_ns);
        write_time(out, "LastWriteTime", file->written_ns);
        write_time(out, "ChangeTime", file->changed_ns);
        xml_element(out, "Last-Modified", clock_format_http(file->modified_ms, text));
    }
    if (l->etag)
        str_addf(out, "<Etag>\"%s\"</Etag>", file->etag);
    xml_close(out, "Properties");
}

static void on_entry(const struct file *file, void *context)
{
    struct listing *l = context;
    const char *kind = file->is_directory ? "Directory" : "File";

    xml_open(l->entries, kind);
    if (l->ids)
        str_addf(l->entries, "<FileId>%" PRIu64 "</FileId>", file->file_id);
    xml_name(l->entries, "Name", file->name);
    write_properties(l, file);
    if (l->attributes)
        xml_element(l->entries, "Attributes", file->attributes);
    if (l->permissions)
        xml_element(l->entries, "PermissionKey", file->permission_key);
    xml_close(l->entries, kind);
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

static void write_listing(struct storage_call *call,
                          const struct listing *l,
                          const struct file *directory,
                          int64_t most,
                          const char *next)
{
    const char *prefix = storage_query(call, "prefix"), *marker = storage_query(call, "marker");
    struct str *out = &call->out_body;

    xml_begin(out);
    str_add(out, "<EnumerationResults ServiceEndpoint=\"");
    xml_text(out, storage_endpoint(call));
    str_add(out, "\" ShareName=\"");
    xml_text(out, call->container);
    str_add(out, "\" DirectoryPath=\"");
    xml_text(out, call->object ? call->object : "");
    str_add(out, "\">");
    /* An empty one is left out: the Python SDK (12.11) sends back what it made of it, a
     * structure, with the next page. */
    if (prefix && *prefix)
        xml_name(out, "Prefix", prefix);
    xml_element(out, "Marker", marker ? marker : "");
    if (storage_query(call, "maxresults"))
        xml_number(out, "MaxResults", most);
    if (l->ids)
        str_addf(out, "<DirectoryId>%" PRIu64 "</DirectoryId>", directory->file_id);
    xml_open(out, "Entries");
    str_add_len(out, str_text(l->entries), l->entries->len);
    xml_close(out, "Entries");
    xml_open(out, "NextMarker");
    text_base64(out, next, strlen(next));
    xml_close(out, "NextMarker");
    xml_close(out, "EnumerationResults");
}

int file_op_list(struct storage_call *call, struct err *e)
{
    const struct file_address at = file_at(call);
    auto_str entries = {0};
    struct listing l = {
        .entries = &entries,
        .times = storage_query_has(call, "include", "timestamps"),
        .etag = storage_query_has(call, "include", "etag"),
        .attributes = storage_query_has(call, "include", "attributes"),
        .permissions = storage_query_has(call, "include", "permissionkey"),
    };
    const char *prefix = storage_query(call, "prefix"), *marker;
    autoptr(file) directory = NULL;
    auto_free char *next = NULL;
    int64_t most = MOST_ENTRIES;

    l.ids = file_header_is_true(call, "x-ms-file-extended-info") || l.times || l.etag ||
            l.attributes || l.permissions;
    if (file_refuse_snapshot(call, e) < 0 ||
        storage_query_int(call, "maxresults", 1, INT32_MAX, &most, e) < 0 ||
        read_marker(call, &marker, e) < 0)
        return -1;
    if (most > MOST_ENTRIES)
        most = MOST_ENTRIES;
    if (files_list(files_of(call), &at, prefix ? prefix : "", marker, (size_t)most, on_entry,
                   &l, &directory, &next, e) < 0)
        return -1;
    write_listing(call, &l, directory, most, next);
    return storage_reply_xml(call, 200);
}

/* --- handles --- */

int file_op_list_handles(struct storage_call *call, struct err *e)
{
    const struct file_address at = file_at(call);
    struct str *out = &call->out_body;
    autoptr(file) file = NULL;

    if (file_refuse_snapshot(call, e) < 0 ||
        files_find(files_of(call), &at, -1, &file, NULL, e) < 0)
        return -1;
    xml_begin(out);
    str_add(out, "<EnumerationResults><Entries/><NextMarker/></EnumerationResults>");
    return storage_reply_xml(call, 200);
}

int file_op_close_handles(struct storage_call *call, struct err *e)
{
    const struct file_address at = file_at(call);
    autoptr(file) file = NULL;

    if (file_refuse_snapshot(call, e) < 0 || !storage_need_header(call, "x-ms-handle-id", e) ||
        files_find(files_of(call), &at, -1, &file, NULL, e) < 0)
        return -1;
    storage_reply_header(call, "x-ms-number-of-handles-closed", "0");
    storage_reply_header(call, "x-ms-number-of-handles-failed", "0");
    return storage_reply(call, 200);
}
