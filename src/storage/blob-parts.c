/* blob-parts.c - append blobs and page blobs, which change piece by piece.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blob-ops.h"

#include "base/mem.h"
#include "storage/xml.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const int64_t mib = 1024 * 1024;

/* --- append blobs --- */

static int64_t most_append(const struct storage_call *call)
{
    return (storage_is_since(call, "2022-11-02") ? 100 : 4) * mib;
}

int blob_begin_append(struct storage_call *call, struct err *e)
{
    return blob_begin_upload(call, most_append(call), false, e);
}

static int append(struct storage_call *call, struct err *e)
{
    const struct blob_address at = blob_at(call);
    int64_t max_size = -1, at_offset = -1, offset = 0;
    autoptr(blob) blob = NULL;
    struct conditions conditions;

    if (storage_conditions(call, "", &conditions, e) < 0 ||
        storage_header_int(call, "x-ms-blob-condition-maxsize", 0, INT64_MAX, &max_size, e) <
            0 ||
        storage_header_int(call, "x-ms-blob-condition-appendpos", 0, INT64_MAX, &at_offset, e) <
            0)
        return -1;
    if (upload_size(call->upload) == 0) {
        storage_refuse(e, ERR_INVALID, "InvalidHeaderValue", "there is nothing to append");
        return err_target(e, "Content-Length");
    }
    if (blobs_append(blobs_of(call), &at, call->upload, max_size, at_offset, &conditions, &blob,
                     &offset, e) < 0)
        return -1;
    blob_reply_hashes(call);
    storage_reply_headerf(call, "x-ms-blob-append-offset", "%lld", (long long)offset);
    storage_reply_headerf(call, "x-ms-blob-committed-block-count", "%lld",
                          (long long)blob->block_count);
    return blob_reply_written(call, blob, 201);
}

int blob_op_append(struct storage_call *call, struct err *e)
{
    return blob_check_upload(call, e) < 0 ? -1 : append(call, e);
}

int blob_op_append_from_url(struct storage_call *call, struct err *e)
{
    return blob_upload_from_source(call, most_append(call), e) < 0 ? -1 : append(call, e);
}

/* --- page blobs --- */

static bool is_clear(const struct storage_call *call)
{
    const char *write = storage_header(call, "x-ms-page-write");

    return write && strcasecmp(write, "clear") == 0;
}

/* "bytes=a-b": both ends said, whole pages. */
static int
read_pages(struct storage_call *call, int64_t *ret_first, int64_t *ret_len, struct err *e)
{
    const char *text = storage_header(call, "x-ms-range");
    long long first, last;
    int used = 0;

    if (!text || !*text)
        text = storage_need_header(call, "Range", e);
    if (!text)
        return -1;
    if (sscanf(text, "bytes=%lld-%lld%n", &first, &last, &used) != 2 || text[used] ||
        first < 0 || last < first || first % 512 || (last + 1) % 512)
        return storage_refuse(e, ERR_INVALID, "InvalidPageRange",
                              "pages are written as bytes=a-b, in multiples of 512");
    *ret_first = first;
    *ret_len = last - first + 1;
    return 0;
}

int blob_begin_page(struct storage_call *call, struct err *e)
{
    int64_t first, len;

    if (!storage_need_header(call, "x-ms-page-write", e) ||
        read_pages(call, &first, &len, e) < 0)
        return -1;
    if (is_clear(call)) {
        if (call->content_length == 0)
            return 0;
        return storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                              "clearing pages takes no body");
    }
    if (call->content_length != len)
        return storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                              "the body must be as long as the range");
    return blob_begin_upload(call, 4 * mib, false, e);
}

static int check_sequence(struct storage_call *call, struct err *e)
{
    static const char *const names[] = {"x-ms-if-sequence-number-le",
                                        "x-ms-if-sequence-number-lt",
                                        "x-ms-if-sequence-number-eq"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (storage_header(call, names[i])) {
            storage_refuse(e, ERR_INVALID, "NotImplemented",
                           "sequence numbers of page blobs are not supported here");
            return err_target(e, names[i]);
        }
    return 0;
}

static int put_pages(struct storage_call *call, struct err *e)
{
    const struct blob_address at = blob_at(call);
    autoptr(blob) blob = NULL;
    struct conditions conditions;
    int64_t first, len;

    if (read_pages(call, &first, &len, e) < 0 || check_sequence(call, e) < 0 ||
        storage_conditions(call, "", &conditions, e) < 0)
        return -1;
    if (call->upload && (int64_t)upload_size(call->upload) != len)
        return storage_refuse(e, ERR_INVALID, "InvalidPageRange",
                              "the source is not as long as the range");
    if (blobs_put_pages(blobs_of(call), &at, first, len, call->upload, &conditions, &blob, e) <
        0)
        return -1;
    if (call->upload)
        blob_reply_hashes(call);
    storage_reply_headerf(call, "x-ms-blob-sequence-number", "%lld", (long long)blob->sequence);
    return blob_reply_written(call, blob, 201);
}

int blob_op_put_page(struct storage_call *call, struct err *e)
{
    if (call->upload && blob_check_upload(call, e) < 0)
        return -1;
    return put_pages(call, e);
}

int blob_op_put_page_from_url(struct storage_call *call, struct err *e)
{
    return blob_upload_from_source(call, 4 * mib, e) < 0 ? -1 : put_pages(call, e);
}

struct page_list {
    struct str *out;
    int64_t first, last; /* what was asked for */
};

static void on_pages(int64_t first, int64_t last, void *context)
{
    struct page_list *list = context;

    if (first < list->first)
        first = list->first;
    if (last > list->last)
        last = list->last;
    if (first > last)
        return;
    xml_open(list->out, "PageRange");
    xml_number(list->out, "Start", first);
    xml_number(list->out, "End", last);
    xml_close(list->out, "PageRange");
}

int blob_op_get_pages(struct storage_call *call, struct err *e)
{
    const struct blob_address at = blob_at(call);
    struct page_list list = {&call->out_body, 0, INT64_MAX};
    autoptr(blob) known = NULL;
    autoptr(blob) blob = NULL;
    struct conditions conditions;
    int64_t first, len;
    int is_part;

    if (storage_query(call, "prevsnapshot"))
        return storage_refuse(e, ERR_INVALID, "NotImplemented",
                              "differences between snapshots are not supported here");
    if (storage_conditions(call, "", &conditions, e) < 0 ||
        blobs_find(blobs_of(call), &at, &conditions, &known, NULL, NULL, e) < 0)
        return -1;
    is_part = storage_range(call, known->size_bytes, &first, &len, e);
    if (is_part < 0)
        return -1;
    if (is_part) {
        list.first = first;
        list.last = first + len - 1;
    }
    xml_begin(list.out);
    xml_open(list.out, "PageList");
    if (blobs_list_pages(blobs_of(call), &at, on_pages, &list, &blob, e) < 0)
        return -1;
    xml_close(list.out, "PageList");
    storage_reply_etag(call, blob->etag, blob->modified_ms);
    storage_reply_headerf(call, "x-ms-blob-content-length", "%lld",
                          (long long)blob->size_bytes);
    return storage_reply_xml(call, 200);
}
