/* request.h - one HTTP request and its reply, as a handler sees them.
 *
 * Life: the server calls its on_request when the head is complete.  From then on the request is
 * owed exactly one reply, at once or at any later time; it and everything borrowed from it stay
 * valid until the reply is ended.  When the client goes away in between, http_req_is_gone turns
 * true, replies are swallowed, and the request still waits for its reply: a handler needs no
 * special path.
 *
 * Threads: a request belongs to the loop thread that read it.  Only http_req_post may be called
 * elsewhere.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct arena;
struct http_req; /* opaque */

/* --- what came in: borrowed until the reply is ended --- */

const char *http_req_method(const struct http_req *req); /* "GET" */
/* The target before '?', exactly as sent (still percent-encoded), and what follows ("" if
 * nothing). */
const char *http_req_raw_path(const struct http_req *req);
const char *http_req_raw_query(const struct http_req *req);
/* The first query parameter of that name (case-insensitive), decoded; NULL when absent. */
const char *http_req_query(struct http_req *req, const char *name);
/* The header's value, trimmed; NULL when absent.  Repeated headers are joined by ", ". */
const char *http_req_header(const struct http_req *req, const char *name);
/* Walk all headers in order: index from 0; false at the end. */
bool http_req_header_at(const struct http_req *req,
                        size_t index,
                        const char **ret_name,
                        const char **ret_value);
const char *http_req_host(const struct http_req *req); /* Host as sent, with its port */
const char *http_req_peer(const struct http_req *req); /* numeric address */
bool http_req_is_tls(const struct http_req *req);
/* -1 when the body is chunked, 0 when there is none. */
int64_t http_req_content_length(const struct http_req *req);
/* Everything allocated here dies with the request. */
struct arena *http_req_arena(struct http_req *req);
/* The id of this request: a UUID made by the server, sent back as x-ms-request-id. */
const char *http_req_id(const struct http_req *req);
/* A place for the handler's own context, NULL at first. */
void http_req_set_context(struct http_req *req, void *context);
void *http_req_context(const struct http_req *req);

/* --- the body: one of the two, called from on_request or later; without either, the body is
 * thrown away --- */

/* Collect the body, then call done.  A body over `most` bytes is answered 413 and done is not
 * called; nor is it when the client breaks off.  In both cases the server ends the request:
 * wait for done and do nothing else with it.  What hangs on the request is best kept in its
 * arena. */
void http_req_collect(struct http_req *req, size_t most, void (*done)(struct http_req *req));
/* The collected body, NUL-terminated; borrowed. */
const char *http_req_body(const struct http_req *req, size_t *ret_len);

struct http_sink {
    /* Some bytes came.  Call http_req_pause to have no more until http_req_resume. */
    void (*data)(struct http_req *req, const void *bytes, size_t len);
    /* The body is complete. */
    void (*end)(struct http_req *req);
    /* It will never be: the client went away, was too slow or broke the framing. A reply is
     * still owed, and goes nowhere. */
    void (*broken)(struct http_req *req);
};
void http_req_stream(struct http_req *req, const struct http_sink *sink);
void http_req_pause(struct http_req *req);
void http_req_resume(struct http_req *req);

/* --- the reply --- */

/* Add a header; names and values are copied.  A value with CR or LF is dropped, and so are
 * headers of the server's own: Content-Length, Transfer-Encoding, Date, x-ms-request-id.
 * "Connection: close" is obeyed. */
void http_reply_header(struct http_req *req, const char *name, const char *value);
void http_reply_headerf(struct http_req *req, const char *name, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Whole reply in one call.  Content-Length, Date, Connection and x-ms-request-id are added. For
 * HEAD the body is not sent but its length is told. */
void http_reply(struct http_req *req, int status, const void *body, size_t len);
/* The same with part of a file, by sendfile where there is no TLS.  Takes ownership of fd. */
void http_reply_file(struct http_req *req, int status, int fd, off_t offset, size_t len);

/* Piecewise: start, any number of writes, end.  length -1 = chunked (or close-delimited for
 * HTTP/1.0). */
void http_reply_start(struct http_req *req, int status, int64_t length);
/* Queue some bytes (copied); returns how many bytes now wait for the client. Keep it below
 * HTTP_REPLY_HIGH_WATER by waiting for the drain callback. */
size_t http_reply_write(struct http_req *req, const void *bytes, size_t len);
/* Fewer bytes than promised is an abort. */
void http_reply_end(struct http_req *req);
/* End it so that the client can see that it is not whole: the connection is cut. */
void http_reply_abort(struct http_req *req);
/* Called from the loop each time the queue has become empty after a write, and once when the
 * client is gone.  Never from within a call of the handler's own. */
void http_reply_on_drain(struct http_req *req, void (*drained)(struct http_req *req));

enum {
    HTTP_REPLY_HIGH_WATER = 256 * 1024,
};

bool http_req_is_gone(const struct http_req *req);
bool http_reply_is_started(const struct http_req *req);
int http_reply_status(const struct http_req *req); /* 0 before the start */

/* Run fn(req, arg) on the request's own thread.  From any thread, while a reply is owed. */
void http_req_post(struct http_req *req,
                   void (*fn)(struct http_req *req, void *arg),
                   void *arg);

/* --- helpers on what came in --- */

/* Parse "bytes=a-b" against size.  Returns 1 and the span, 0 when there is no (usable) Range
 * header, -1 with ERR_INVALID when the range lies outside (answer 416).  One range only;
 * several count as none. */
int http_range_parse(
    const char *value, uint64_t size, uint64_t *ret_first, uint64_t *ret_len, struct err *e);

#endif
