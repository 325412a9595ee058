/* server.h - an HTTP/1.1 server: llhttp, epoll loops, OpenSSL.
 *
 * Several loop threads share the listening sockets.  Keep-alive, pipelining (requests of one
 * connection are answered in order, one at a time), Expect: 100-continue, chunked and sized
 * bodies in both directions with back-pressure, slow-client time-outs, graceful drain.
 *
 * Strictness: what two parsers could read differently is refused with 400 and the connection
 * closed.
 *
 * Invariants:
 *  1. A connection in use takes bounded memory, whatever the size of body or reply.
 *  2. An idle connection holds no buffers.
 *  3. The accept loop never spins: out of descriptors, it sheds.
 *  4. After http_server_drain no new request starts and every running one may finish until the
 * deadline.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct http_req;
struct http_server; /* opaque */

struct http_config {
    int threads;             /* loop threads; 0 = one per core */
    size_t max_line_bytes;   /* request line and each header line; 8 KiB */
    size_t max_head_bytes;   /* all of the head; 32 KiB */
    size_t max_headers;      /* 100 */
    int64_t head_timeout_ms; /* from the first byte of a request to the end of its head; 10 s */
    int64_t idle_timeout_ms; /* keep-alive; 75 s */
    int64_t body_timeout_ms; /* longest silence within a body or a reply; 60 s */
    size_t max_connections;  /* beyond: 503 and close; 20,000 */

    /* The head of a request is complete; see request.h.  Runs on a loop thread. */
    void (*on_request)(struct http_req *req, void *context);
    /* A reply was ended and is out (or its client gone): for logs and metrics.  May be NULL.
     * Runs on the loop thread, perhaps within the call that ended the reply.  Errors that the
     * server answers before there is a request (400, 408, 431, ...) are only counted, as
     * rejected. */
    void (*on_done)(struct http_req *req, int status, uint64_t bytes_out, void *context);
    void *context;
};

/* The defaults stated above, no callbacks. */
void http_config_init(struct http_config *config);

int http_server_new(const struct http_config *config,
                    struct http_server **ret_server,
                    struct err *e);

struct http_tls; /* tls.h */

/* Who answers on a listener: the callbacks of struct http_config, for a server with several
 * services. */
struct http_app {
    void (*on_request)(struct http_req *req, void *context);
    void (*on_done)(struct http_req *req, int status, uint64_t bytes_out, void *context);
    void *context;
};

/* Listen on an address ("127.0.0.1", "::1", "0.0.0.0") and port (0 = any).  tls NULL = plain
 * http, else borrowed until the server is freed.  Before http_server_start.  ERR_BUSY when the
 * port is taken. */
int http_server_listen(struct http_server *server,
                       const char *address,
                       int port,
                       struct http_tls *tls,
                       int *ret_port,
                       struct err *e);
/* The same with a listening socket that somebody else opened (socket activation).  Takes the
 * fd. */
int http_server_listen_fd(struct http_server *server,
                          int fd,
                          struct http_tls *tls,
                          struct err *e);

/* As http_server_listen, for an app of its own (copied).  With plain_on_loopback the first byte
 * of a connection decides: a TLS hello is answered with TLS, anything else as plain http if the
 * peer is on loopback; from elsewhere it is hung up on. */
int http_server_listen_app(struct http_server *server,
                           const char *address,
                           int port,
                           struct http_tls *tls,
                           bool plain_on_loopback,
                           const struct http_app *app,
                           int *ret_port,
                           struct err *e);

int http_server_start(struct http_server *server, struct err *e);
/* Stop accepting, close idle connections, let running requests end; returns when all have or
 * the deadline is over, and the threads are gone.  Requests that are still owed a reply then
 * stay valid until http_server_free, and http_req_post on them does nothing. */
void http_server_drain(struct http_server *server, int64_t deadline_ms);
void http_server_free(struct http_server *server);

struct http_counts {
    uint64_t connections_open, connections_total, requests_total, rejected_total;
};
void http_server_counts(struct http_server *server, struct http_counts *ret_counts);

/* The reason phrase of a status: "OK". */
const char *http_status_text(int status);

#endif
