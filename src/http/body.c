/* body.c - the body of a request on its way to the handler.
 *
 * Bytes are read only while somebody wants them, so that a slow handler holds back its client
 * and not our memory.  A body must not trickle either: each body_timeout_ms it must bring
 * LEAST_RATE bytes per second, or the client is taken for one that only wants to hold a
 * connection.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/http-internal.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>

enum {
    LEAST_RATE = 50, /* bytes per second: half of a 1200 baud line */
};

bool http_body_is_complete(const struct http_req *req)
{
    return req->head.content_length < 0 ? http_chunks_is_done(&req->chunks) : !req->body_left;
}

bool http_body_is_wanted(const struct http_req *req)
{
    return req->mode != HTTP_BODY_UNCLAIMED && !req->is_paused && !req->is_gone &&
           !http_body_is_complete(req);
}

/* --- asking for it --- */

static void start_clock(struct http_req *req)
{
    req->conn->in_since_ms = req->rate_since_ms = clock_mono_ms();
    req->rate_seen = req->body_seen;
}

static void claim(struct http_req *req, enum http_body_mode mode)
{
    struct http_conn *conn = req->conn;

    assert(req->mode == HTTP_BODY_UNCLAIMED && !req->is_ended);
    req->mode = mode;
    if (req->owes_continue && !req->is_gone && !req->is_started) {
        static char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

        req->owes_continue = false;
        http_out_send(conn, &(struct iovec){text, sizeof(text) - 1}, 1);
    }
    start_clock(req);
    req->is_gone_told = false; /* the new owner of the body must hear it too */
    http_conn_wake(conn);
}

static void refuse_too_large(struct http_req *req)
{
    char why[64];

    snprintf(why, sizeof(why), "the body is larger than %zu bytes", req->collect_most);
    http_reply_error(req, 413, why);
}

void http_req_collect(struct http_req *req, size_t most, void (*done)(struct http_req *req))
{
    req->collect_most = most;
    req->collected = done;
    if (req->head.content_length > 0 && (uint64_t)req->head.content_length > most) {
        refuse_too_large(req);
        return;
    }
    claim(req, HTTP_BODY_COLLECT);
}

const char *http_req_body(const struct http_req *req, size_t *ret_len)
{
    if (ret_len)
        *ret_len = req->body.len;
    return str_text(&req->body);
}

void http_req_stream(struct http_req *req, const struct http_sink *sink)
{
    req->sink = sink;
    claim(req, HTTP_BODY_STREAM);
}

void http_req_pause(struct http_req *req)
{
    req->is_paused = true;
}

void http_req_resume(struct http_req *req)
{
    req->is_paused = false;
    start_clock(req);
    http_conn_wake(req->conn);
}

void http_body_discard(struct http_req *req)
{
    req->mode = HTTP_BODY_DISCARD;
    http_req_resume(req);
}

/* --- handing it over --- */

static void deliver(struct http_req *req, const char *bytes, size_t len)
{
    req->body_seen += len;
    req->conn->in_since_ms = clock_mono_ms();
    if (!len || req->mode == HTTP_BODY_DISCARD)
        return;
    if (req->mode == HTTP_BODY_STREAM) {
        req->sink->data(req, bytes, len);
    } else if (len > req->collect_most - req->body.len) {
        req->mode = HTTP_BODY_UNCLAIMED;
        refuse_too_large(req);
    } else {
        str_add_len(&req->body, bytes, len);
    }
}

/* One piece of what has been read.  May end the request. */
static void take_piece(struct http_req *req)
{
    struct http_conn *conn = req->conn;
    const char *bytes = req->worker->in + conn->in_start, *data = bytes, *why = NULL;
    size_t avail = conn->in_end - conn->in_start, used, len;
    int status = 0;

    if (req->head.content_length >= 0) {
        used = len = avail < (uint64_t)req->body_left ? avail : (size_t)req->body_left;
        req->body_left -= (int64_t)len;
    } else {
        status = http_chunks_feed(&req->chunks, bytes, avail, &used, &data, &len, &why);
    }
    if (status && req->is_started) {
        http_conn_lose(conn);
    } else if (status) {
        http_conn_refuse(conn, status, why);
    } else {
        conn->in_start += used;
        deliver(req, data, len);
    }
}

static bool is_trickling(struct http_req *req)
{
    int64_t now = clock_mono_ms(), window = req->worker->server->config.body_timeout_ms;
    uint64_t seen = req->body_seen - req->rate_seen;

    if (now - req->rate_since_ms < window)
        return false;
    req->rate_since_ms = now;
    req->rate_seen = req->body_seen;
    return seen < (uint64_t)(window * LEAST_RATE / 1000);
}

static void tell_end(struct http_req *req)
{
    req->is_body_told = true;
    if (req->mode == HTTP_BODY_COLLECT)
        req->collected(req);
    else
        req->sink->end(req);
}

static void fail(struct http_conn *conn, int status, const char *why)
{
    if (conn->req->is_started)
        http_conn_lose(conn);
    else
        http_conn_refuse(conn, status, why);
}

bool http_body_step(struct http_req *req)
{
    struct http_conn *conn = req->conn;

    if (req->mode == HTTP_BODY_UNCLAIMED || req->is_paused || req->is_gone || req->is_body_told)
        return false;
    if (http_body_is_complete(req)) {
        if (req->mode == HTTP_BODY_DISCARD)
            return false; /* the write side goes on from here */
        tell_end(req);
        return true;
    }
    if (conn->in_start < conn->in_end) {
        take_piece(req);
        return true;
    }
    if (conn->is_eof) {
        fail(conn, 400, "the body ended early");
        return true;
    }
    if (!http_fill(conn))
        return false;
    if (conn->req == req && !req->is_gone && is_trickling(req))
        fail(conn, 408, "the body is too slow");
    return true;
}

/* --- the client is gone --- */

void http_body_tell_gone(struct http_req *req)
{
    struct http_conn *conn = req->conn;
    bool is_broken = !req->is_body_told && !req->is_ended;

    req->is_gone_told = true;
    if (req->mode == HTTP_BODY_DISCARD) { /* its reply has been accounted for */
        http_req_free(req);
        conn->req = NULL;
        return;
    }
    if (req->is_ended) {
        http_reply_finish(req);
        return;
    }
    if (is_broken && req->mode == HTTP_BODY_COLLECT) {
        http_reply_error(req, 400, "the body ended early");
        return;
    }
    if (is_broken && req->mode == HTTP_BODY_STREAM) {
        req->is_body_told = true;
        req->sink->broken(req);
        if (conn->req != req)
            return;
    }
    req->owes_drain = false;
    if (req->drained)
        req->drained(req);
}
