/* reply.c - what a handler says back.
 *
 * A small reply is one write: head and body go out together, straight from the caller's memory;
 * only what the socket does not take is copied.  A piecewise reply is queued and goes out when
 * the turn of the loop ends, or as soon as enough has gathered.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/http-internal.h"

#include "base/mem.h"

#include <assert.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* --- headers --- */

/* The framing is the server's own business.  "Connection: close" is taken as the wish that it
 * is. */
static bool is_framing(struct http_req *req, const char *name, const char *value)
{
    if (!strchr("CcTtDdXx", *name))
        return false;
    if (strcasecmp(name, "Connection") == 0) {
        req->is_close |= http_list_has(value, "close");
        return true;
    }
    return strcasecmp(name, "Content-Length") == 0 ||
           strcasecmp(name, "Transfer-Encoding") == 0 || strcasecmp(name, "Date") == 0 ||
           strcasecmp(name, "x-ms-request-id") == 0;
}

void http_reply_header(struct http_req *req, const char *name, const char *value)
{
    assert(!req->is_started);
    if (strpbrk(name, "\r\n: ") || strpbrk(value, "\r\n") || is_framing(req, name, value))
        return;
    if (!req->headers.data)
        str_reserve(&req->headers, 255);
    str_add(&req->headers, name);
    str_add_len(&req->headers, ": ", 2);
    str_add(&req->headers, value);
    str_add_len(&req->headers, "\r\n", 2);
}

void http_reply_headerf(struct http_req *req, const char *name, const char *format, ...)
{
    auto_str value = {0};
    va_list args;

    va_start(args, format);
    str_vaddf(&value, format, args);
    va_end(args);
    http_reply_header(req, name, str_text(&value));
}

/* --- the head --- */

static void add_number(struct str *out, uint64_t number)
{
    char digits[20], *p = digits + sizeof(digits);

    do
        *--p = (char)('0' + number % 10);
    while (number /= 10);
    str_add_len(out, p, (size_t)(digits + sizeof(digits) - p));
}

/* The connection cannot go on when it is unknown where the next request starts, or too far
 * away. */
static bool is_body_in_the_way(const struct http_req *req)
{
    if (http_body_is_complete(req))
        return false;
    return req->owes_continue || req->head.content_length < 0 ||
           req->body_left > HTTP_DISCARD_BYTES;
}

static void add_connection(struct http_req *req, struct str *out)
{
    if (req->worker->is_draining || is_body_in_the_way(req))
        req->is_close = true;
    if (req->is_close)
        str_add(out, "Connection: close\r\n");
    else if (req->head.minor == 0)
        str_add(out, "Connection: keep-alive\r\n");
}

/* Note the start and make the head in the worker's scratch.  length -1 = unknown. */
static struct str *begin(struct http_req *req, int status, int64_t length)
{
    struct str *out = &req->worker->head;
    bool is_bare = status < 200 || status == 204 || status == 304;

    assert(!req->is_started && status >= 100);
    req->is_started = true;
    req->status = status;
    req->reply_left = length;
    req->has_no_body = is_bare || strcmp(req->head.method, "HEAD") == 0;
    req->is_chunked = length < 0 && req->head.minor == 1 && !is_bare;
    if (length < 0 && req->head.minor == 0 && !is_bare)
        req->is_close = true;

    out->len = 0;
    str_add(out, "HTTP/1.1 ");
    add_number(out, (uint64_t)status);
    str_add_char(out, ' ');
    str_add(out, http_status_text(status));
    str_add(out, "\r\nDate: ");
    str_add(out, http_worker_date(req->worker));
    if (req->is_chunked)
        str_add(out, "\r\nTransfer-Encoding: chunked");
    else if (length >= 0 && !is_bare) {
        str_add(out, "\r\nContent-Length: ");
        add_number(out, (uint64_t)length);
    }
    str_add(out, "\r\nx-ms-request-id: ");
    str_add_len(out, req->id, CRYPT_UUID_BYTES - 1);
    str_add_len(out, "\r\n", 2);
    add_connection(req, out);
    str_add_len(out, str_text(&req->headers), req->headers.len);
    str_add_len(out, "\r\n", 2);
    return out;
}

/* Nobody will see it. */
static void swallow(struct http_req *req, int status)
{
    req->is_started = true;
    req->status = status;
}

/* All has been queued: when it is already out, the request is over here and now. */
static void end(struct http_req *req)
{
    struct http_conn *conn = req->conn;

    req->is_ended = true;
    if (!conn->out_first || req->is_gone)
        http_reply_finish(req);
    else
        http_conn_wake(conn);
}

/* --- whole --- */

void http_reply(struct http_req *req, int status, const void *body, size_t len)
{
    if (req->is_gone) {
        swallow(req, status);
    } else {
        struct str *head = begin(req, status, (int64_t)len);
        struct iovec parts[2] = {{head->data, head->len}, {(void *)body, len}};

        http_out_send(req->conn, parts, len && !req->has_no_body ? 2 : 1);
        if (req->conn->out_first)
            http_out_push(req->conn);
    }
    end(req);
}

void http_reply_error(struct http_req *req, int status, const char *why)
{
    auto_str body = {0};

    str_done(&req->headers);
    http_reply_header(req, "Content-Type", "application/json; charset=utf-8");
    http_error_body(&body, status, why);
    http_reply(req, status, body.data, body.len);
}

void http_reply_file(struct http_req *req, int status, int fd, off_t offset, size_t len)
{
    if (req->is_gone) {
        swallow(req, status);
        close(fd);
    } else {
        struct str *head = begin(req, status, (int64_t)len);

        http_out_add(req->conn, head->data, head->len);
        if (len && !req->has_no_body)
            http_out_add_file(req->conn, fd, offset, len);
        else
            close(fd);
        http_out_push(req->conn);
    }
    end(req);
}

/* --- in pieces --- */

void http_reply_start(struct http_req *req, int status, int64_t length)
{
    struct str *head;

    if (req->is_gone) {
        swallow(req, status);
        return;
    }
    head = begin(req, status, length);
    http_out_add(req->conn, head->data, head->len);
    http_conn_wake(req->conn);
}

/* "1f4\r\n" before and "\r\n" after; the chunk size is the caller's piece, whatever it is. */
static void send_chunk(struct http_req *req, const void *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    char line[2 * sizeof(len) + 2], *p = line + sizeof(line);
    struct iovec parts[3];

    *--p = '\n';
    *--p = '\r';
    for (size_t n = len; n; n >>= 4)
        *--p = digits[n & 15];
    parts[0] = (struct iovec){p, (size_t)(line + sizeof(line) - p)};
    parts[1] = (struct iovec){(void *)bytes, len};
    parts[2] = (struct iovec){(void *)"\r\n", 2};
    if (len >= HTTP_DIRECT_BYTES) {
        http_out_send(req->conn, parts, 3);
        return;
    }
    for (int i = 0; i < 3; i++)
        http_out_add(req->conn, parts[i].iov_base, parts[i].iov_len);
}

static void send_plain(struct http_req *req, const void *bytes, size_t len)
{
    if (len >= HTTP_DIRECT_BYTES)
        http_out_send(req->conn, &(struct iovec){(void *)bytes, len}, 1);
    else
        http_out_add(req->conn, bytes, len);
}

size_t http_reply_write(struct http_req *req, const void *bytes, size_t len)
{
    struct http_conn *conn = req->conn;

    assert(req->is_started && !req->is_ended);
    req->owes_drain = true;
    if (req->reply_left >= 0 && len > (uint64_t)req->reply_left)
        len = (size_t)req->reply_left;
    if (req->reply_left >= 0)
        req->reply_left -= (int64_t)len;
    if (len && !req->is_gone && !req->has_no_body) {
        if (req->is_chunked)
            send_chunk(req, bytes, len);
        else
            send_plain(req, bytes, len);
        if (conn->out_bytes >= HTTP_PUSH_BYTES)
            http_out_push(conn);
    }
    http_conn_wake(conn);
    return conn->out_bytes;
}

void http_reply_end(struct http_req *req)
{
    assert(req->is_started && !req->is_ended);
    if (!req->is_gone && !req->has_no_body) {
        if (req->reply_left > 0) {
            http_reply_abort(req);
            return;
        }
        if (req->is_chunked)
            http_out_add(req->conn, "0\r\n\r\n", 5);
    }
    if (!req->is_gone)
        http_out_push(req->conn);
    end(req);
}

void http_reply_abort(struct http_req *req)
{
    assert(!req->is_ended);
    if (!req->is_started)
        swallow(req, 500);
    http_conn_lose(req->conn);
    end(req);
}

void http_reply_on_drain(struct http_req *req, void (*drained)(struct http_req *req))
{
    req->drained = drained;
}

bool http_reply_is_started(const struct http_req *req)
{
    return req->is_started;
}

int http_reply_status(const struct http_req *req)
{
    return req->status;
}
