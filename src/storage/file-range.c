/* file-range.c - parts of a file: written, cleared, listed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/file-ops.h"

#include "base/mem.h"
#include "storage/xml.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static int bad_length(struct err *e)
{
    storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                   "Content-Length must be the length of the range, and 0 to clear it");
    return err_target(e, "Content-Length");
}

static int put(struct storage_call *call,
               int64_t first,
               const void *bytes,
               int64_t len,
               struct file **ret_file,
               struct err *e)
{
    const struct file_address at = file_at(call);
    const char *time = storage_header(call, "x-ms-file-last-write-time");
    bool keeps_written = time && strcasecmp(time, "preserve") == 0;

    if (files_put_range(files_of(call), &at, first, bytes, len, keeps_written,
                        file_lease_id(call), ret_file, e) == 0)
        return 0;
    return -1;
}

static int clear(struct storage_call *call, int64_t first, int64_t len, struct err *e)
{
    autoptr(file) file = NULL;

    if (call->body_len)
        return bad_length(e);
    if (put(call, first, NULL, len, &file, e) < 0)
        return -1;
    return file_reply_written(call, file, 201);
}

static int update(struct storage_call *call, int64_t first, int64_t len, struct err *e)
{
    autoptr(file) file = NULL;
    const char *md5, *crc64;
    auto_str sum = {0};

    if ((int64_t)call->body_len != len)
        return bad_length(e);
    if (storage_hashes(call, &md5, &crc64, e) < 0 ||
        storage_check_body(call, md5, crc64, e) < 0 ||
        put(call, first, call->body, len, &file, e) < 0)
        return -1;
    if (!md5)
        storage_crc64(call->body, call->body_len, &sum);
    storage_reply_header(call, "Content-MD5", md5);
    if (!md5)
        storage_reply_header(call, "x-ms-content-crc64", str_text(&sum));
    return file_reply_written(call, file, 201);
}

int file_op_put_range(struct storage_call *call, struct err *e)
{
    const char *write = storage_need_header(call, "x-ms-write", e);
    int64_t first, len;

    if (!write || file_read_span(call, "x-ms-range", &first, &len, e) < 0)
        return -1;
    if (strcasecmp(write, "clear") == 0)
        return clear(call, first, len, e);
    if (strcasecmp(write, "update") == 0)
        return update(call, first, len, e);
    storage_refuse(e, ERR_INVALID, "InvalidHeaderValue", "x-ms-write is update or clear");
    return err_target(e, "x-ms-write");
}

/* --- from another file --- */

static int
read_source(struct storage_call *source, int64_t first, int64_t len, char *bytes, struct err *e)
{
    const struct file_address at = file_at(source);
    autoptr(file) file = NULL;
    auto_close int fd = -1;
    ssize_t got;

    if (files_find(files_of(source), &at, 0, &file, &fd, e) < 0)
        return -1;
    if (first > file->size_bytes || len > file->size_bytes - first)
        return storage_refuse(e, ERR_INVALID, "InvalidRange",
                              "the range does not lie within the source");
    got = pread(fd, bytes, (size_t)len, first);
    return got == len ? 0 : err_sys(e, got < 0 ? errno : EIO, "could not read the source");
}

int file_op_put_range_from_url(struct storage_call *call, struct err *e)
{
    struct storage_call *source;
    autoptr(file) file = NULL;
    auto_free char *bytes = NULL;
    auto_str sum = {0};
    int64_t first, len, from, from_len;

    if (file_read_span(call, "x-ms-range", &first, &len, e) < 0 ||
        file_read_span(call, "x-ms-source-range", &from, &from_len, e) < 0)
        return -1;
    if (len != from_len || len > FILES_MOST_RANGE)
        return storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                              "both ranges must have the same length, of at most 4 MiB");
    if (storage_copy_source(call, &source, e) < 0)
        return -1;
    bytes = xmalloc((size_t)len);
    if (read_source(source, from, len, bytes, e) < 0 ||
        put(call, first, bytes, len, &file, e) < 0)
        return -1;
    storage_crc64(bytes, (size_t)len, &sum);
    storage_reply_header(call, "x-ms-content-crc64", str_text(&sum));
    return file_reply_written(call, file, 201);
}

/* --- listing --- */

static void on_range(int64_t first, int64_t last, void *context)
{
    struct str *out = context;

    xml_open(out, "Range");
    xml_number(out, "Start", first);
    xml_number(out, "End", last);
    xml_close(out, "Range");
}

int file_op_list_ranges(struct storage_call *call, struct err *e)
{
    const struct file_address at = file_at(call);
    struct str *out = &call->out_body;
    int64_t first = 0, len = INT64_MAX;
    autoptr(file) file = NULL;

    if (file_refuse_snapshot(call, e) < 0)
        return -1;
    if (storage_query(call, "prevsharesnapshot"))
        return storage_refuse(e, ERR_INVALID, "ShareSnapshotOperationNotSupported",
                              "shares have no snapshots here");
    if (storage_range(call, INT64_MAX, &first, &len, e) < 0)
        return -1;
    xml_begin(out);
    xml_open(out, "Ranges");
    if (files_list_ranges(files_of(call), &at, first, len - 1 + first, on_range, out, &file,
                          e) < 0)
        return -1;
    xml_close(out, "Ranges");
    storage_reply_headerf(call, "x-ms-content-length", "%lld", (long long)file->size_bytes);
    file_reply_version(call, file);
    return storage_reply_xml(call, 200);
}
