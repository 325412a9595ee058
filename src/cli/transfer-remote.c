/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-remote.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/storage-wire.h"
#include "cli/transfer-options.h"
#include "cli/transfer-side.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

void remote_etag(struct facts *facts, const char *etag)
{
    facts->etag[0] = '\0';
    if (!etag || !*etag)
        return;
    snprintf(facts->etag, sizeof(facts->etag), *etag == '"' ? "%s" : "\"%s\"", etag);
}

static void read_facts(const struct http_answer *answer, struct facts *facts)
{
    auto_free char *length = http_answer_header(answer, "Content-Length");
    auto_free char *modified = http_answer_header(answer, "Last-Modified");
    auto_free char *md5 = http_answer_header(answer, "Content-MD5");
    auto_free char *etag = http_answer_header(answer, "ETag");
    int64_t ms;

    *facts = (struct facts){.modified_ns = -1};
    facts->size_bytes = length ? strtoll(length, NULL, 10) : 0;
    if (modified && clock_parse_http(modified, &ms, NULL) == 0)
        facts->modified_ns = ms * 1000000;
    snprintf(facts->md5, sizeof(facts->md5), "%s", md5 ? md5 : "");
    remote_etag(facts, etag);
}

int remote_look(struct port *port,
                const char *path,
                const char *query,
                struct facts *ret_facts,
                bool *ret_found,
                struct err *e)
{
    auto_free char *whole = side_path(port->side, path);
    auto_answer answer = {0};
    struct wire_request request = {
        .method = "HEAD",
        .container = port->side->container,
        .path = whole,
        .query = query,
    };

    if (wire_call(port->wire, &request, &answer, e) < 0) {
        if (!wire_is_missing(port->wire))
            return -1;
        *ret_found = false;
        return 0;
    }
    read_facts(&answer, ret_facts);
    *ret_found = true;
    return 0;
}

int remote_read(struct port *port,
                const struct item *item,
                const char *header,
                int64_t offset,
                void *buf,
                size_t len,
                char *etag,
                struct err *e)
{
    auto_free char *path = side_path(port->side, item->path);
    auto_free char *told = NULL;
    auto_headers headers = {0};
    auto_answer answer = {0};
    struct wire_request request = {
        .method = "GET",
        .container = port->side->container,
        .path = path,
        .headers = headers.rows,
        .into = buf,
        .into_len = len,
    };

    headers_add(&headers, "%s", header);
    if ((int64_t)len != item->facts.size_bytes)
        headers_add(&headers, "x-ms-range: bytes=%lld-%lld", (long long)offset,
                    (long long)offset + (long long)len - 1);
    if (wire_call(port->wire, &request, &answer, e) < 0)
        return -1;
    told = http_answer_header(&answer, "ETag");
    if (etag)
        snprintf(etag, FACTS_ETAG_BYTES, "%s", told ? told : "");
    return 0;
}

/* --- copies that the server makes --- */

static int await_copy(struct port *port, const char *path, struct err *e)
{
    for (int64_t wait_ms = 50;; wait_ms = wait_ms < 2000 ? wait_ms * 2 : wait_ms) {
        auto_answer answer = {0};
        auto_free char *status = NULL;
        struct timespec step = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000};
        struct wire_request request = {
            .method = "HEAD",
            .container = port->side->container,
            .path = path,
        };

        nanosleep(&step, NULL);
        if (wire_call(port->wire, &request, &answer, e) < 0)
            return -1;
        status = http_answer_header(&answer, "x-ms-copy-status");
        if (!status || str_equal_nocase(status, "success"))
            return 0;
        if (!str_equal_nocase(status, "pending"))
            return err_set(e, ERR_INTERNAL, "the copy ended as \"%.32s\"", status);
    }
}

int remote_fetch(struct port *port,
                 struct port *source,
                 const struct item *item,
                 const char *header,
                 struct err *e)
{
    auto_free char *path = side_path(port->side, item->target);
    auto_free char *from = side_path(source->side, item->path);
    auto_free char *url = NULL, *status = NULL;
    auto_headers headers = {0};
    auto_answer answer = {0};
    struct wire_request request = {
        .method = "PUT",
        .container = port->side->container,
        .path = path,
        .headers = headers.rows,
        .once = true,
    };

    if (wire_readable_url(source->wire, source->side->container, from, &url, e) < 0)
        return -1;
    headers_add(&headers, "%s", header);
    headers_add(&headers, "x-ms-copy-source: %s", url);
    headers_add_all(&headers, port->options->headers);
    if (wire_call(port->wire, &request, &answer, e) < 0)
        return -1;
    status = http_answer_header(&answer, "x-ms-copy-status");
    if (status && str_equal_nocase(status, "pending"))
        return await_copy(port, path, e);
    return 0;
}

/* --- content types --- */

static const struct {
    const char *ending, *type;
} types[] = {
    {"bmp", "image/bmp"},
    {"bz2", "application/x-bzip2"},
    {"c", "text/x-c"},
    {"css", "text/css"},
    {"csv", "text/csv"},
    {"flac", "audio/flac"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"h5", "application/x-hdf5"},
    {"htm", "text/html"},
    {"html", "text/html"},
    {"ipynb", "application/x-ipynb+json"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript"},
    {"json", "application/json"},
    {"jsonl", "application/jsonl"},
    {"log", "text/plain"},
    {"md", "text/markdown"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"parquet", "application/vnd.apache.parquet"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"py", "text/x-python"},
    {"sh", "application/x-sh"},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"tsv", "text/tab-separated-values"},
    {"txt", "text/plain"},
    {"wav", "audio/wav"},
    {"webp", "image/webp"},
    {"xml", "application/xml"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"zip", "application/zip"},
};

const char *remote_type(const struct port *port, const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');

    if (port->options->content_type)
        return port->options->content_type;
    for (size_t i = 0; dot && (!slash || dot > slash) && i < ARRAY_SIZE(types); i++) {
        if (strcasecmp(dot + 1, types[i].ending) == 0)
            return types[i].type;
    }
    return "application/octet-stream";
}
