/* http-internal.h - what the files of the server share; for src/http and its tests alone.
 *
 * server   owns workers and listening sockets
 * worker   one thread with its loop; owns its connections (worker.c)
 * conn     one client; lives while its socket or its request does (conn.c, out.c, io.c)
 * req      one request of a conn; at most one at a time (request.c, body.c, reply.c)
 *
 * Re-entrancy: handlers call into replies and bodies from anywhere on their loop thread.  Those
 * calls only queue, write to the socket and mark; everything that calls back into a handler,
 * reads, or frees a connection happens in a turn (conn.c), which runs from the loop alone: on
 * an event, or as the connection's task.
 *
 * Input: bytes are read into the worker's one buffer; what a turn leaves over is saved in the
 * connection and put back at the start of the next.  So an idle connection holds no buffer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_HTTP_INTERNAL_H
#define HTTP_HTTP_INTERNAL_H

#include "base/clock.h"
#include "base/crypt.h"
#include "base/str.h"
#include "http/parser.h"
#include "http/request.h"
#include "http/server.h"
#include "loop/loop.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

struct ssl_st;
struct ssl_ctx_st;

enum {
    HTTP_IN_BYTES = 64 * 1024, /* the input buffer of a worker, at least */
    HTTP_DIRECT_BYTES =
        16 * 1024, /* from here on a write goes to the socket without being copied */
    HTTP_PUSH_BYTES = 64 * 1024, /* queued: time to write without waiting for the turn's end */
    HTTP_DISCARD_BYTES = 256 * 1024, /* of an unwanted body are read to save the connection */
    HTTP_LINGER_MS = 30000, /* as nginx: a closed connection is read on so that the reply */
    HTTP_LINGER_SILENCE_MS = 5000, /* is not destroyed by a reset */
    HTTP_LINGER_DRAIN_MS = 500,    /* the silence while the server goes down */
};

struct http_listener {
    int fd;
    struct http_tls *tls;
    bool plain_on_loopback;
    struct http_app app;
};

struct http_server {
    struct http_config config;
    struct http_limits limits;
    struct http_listener *listeners;
    size_t listener_count;
    struct http_worker *workers;
    size_t worker_count;
    bool is_started, is_drained;
    atomic_size_t open;
    atomic_size_t accepting; /* workers; the last one to drain closes the listening sockets */
};

struct http_acceptor { /* one per worker and listener */
    struct loop_watch watch;
    struct loop_timer retry; /* set while descriptors are short and the watch rests */
    struct http_worker *worker;
    struct http_listener *listener;
};

struct http_arrival { /* a connection that another worker accepted */
    struct http_arrival *next;
    int fd;
    const struct http_listener *listener;
    struct sockaddr_storage peer;
    bool is_refused;
};

struct http_call {
    struct http_req *req;
    void (*fn)(struct http_req *req, void *arg);
    void *arg;
};

struct http_worker {
    struct http_server *server;
    struct loop *loop;
    pthread_t thread;
    struct http_acceptor *acceptors;
    struct http_conn *conns; /* list */
    int spare_fd;            /* given up to accept and shed when descriptors run out */
    bool is_draining;
    struct loop_timer drain_timer;
    int64_t drain_ms;
    struct loop_task stop_task;

    char *in; /* input of the connection whose turn it is */
    size_t in_room;
    struct str head; /* the reply head being made; scratch */
    char *tls_piece; /* scratch for TLS writes, made when needed */
    uint64_t random[4];
    int64_t date_s; /* what date says */
    char date[CLOCK_HTTP_BYTES];

    atomic_size_t open; /* connections, also those on their way from another worker */
    atomic_uint_least64_t connections, requests, rejected; /* totals; this thread writes */

    pthread_mutex_t lock; /* guards calls and arrivals */
    struct http_call *calls;
    size_t call_count, call_room;
    struct http_arrival *arrivals;
};

enum http_conn_state {
    HTTP_CONN_FIRST_BYTE, /* TLS or plain? */
    HTTP_CONN_HANDSHAKE,
    HTTP_CONN_HEAD,    /* waiting for a request, or within its head */
    HTTP_CONN_REQUEST, /* conn->req is being answered */
    HTTP_CONN_LINGER,  /* last reply on its way; input is thrown away */
    HTTP_CONN_DEAD,    /* socket closed; waits for its request's reply, or to be freed */
};

struct http_segment;

struct http_conn {
    struct http_worker *worker;
    const struct http_listener *listener;
    struct http_conn *next, **link;
    struct loop_watch watch;
    struct loop_timer timer;
    struct loop_task task;
    struct ssl_st *ssl; /* NULL = plain */
    struct http_req *req;

    struct http_scan scan;
    char *saved; /* input left over between turns */
    size_t saved_len;
    size_t in_start, in_end; /* input within worker->in, during a turn */

    struct http_segment *out_first, *out_last;
    size_t out_bytes; /* waiting in memory */

    int64_t since_ms;     /* the state began, or the first byte of the head came */
    int64_t in_since_ms;  /* last input, or since when it is wanted */
    int64_t out_since_ms; /* last progress of the output, or since when it waits */
    int64_t eof_since_ms;

    enum http_conn_state state;
    bool can_read, can_write; /* as far as we know: cleared by EAGAIN, set by epoll's edges */
    bool is_hung_up;          /* the peer has sent its FIN: a short read is not the end */
    bool is_eof;              /* nothing more will come */
    bool is_shut;             /* we have sent our FIN */
    bool is_turning;
    char peer[INET6_ADDRSTRLEN];
};

enum http_body_mode {
    HTTP_BODY_UNCLAIMED, /* nobody has asked for it: it stays in the kernel */
    HTTP_BODY_COLLECT,
    HTTP_BODY_STREAM,
    HTTP_BODY_DISCARD,
};

struct http_param {
    const char *name, *value;
};

struct http_req {
    struct http_conn *conn;
    struct http_worker *worker;
    struct http_head head;
    struct arena *arena; /* NULL until used */
    void *context;
    struct http_param *params; /* of the query, decoded; NULL until used */
    size_t param_count;

    /* body */
    enum http_body_mode mode;
    struct http_chunks chunks;
    int64_t body_left; /* of a sized body */
    uint64_t body_seen;
    size_t collect_most;
    void (*collected)(struct http_req *req);
    struct str body;
    const struct http_sink *sink;
    bool is_paused;
    bool is_body_told; /* its end, or that it broke, was told */
    bool owes_continue;
    int64_t rate_since_ms; /* a body must not trickle: see body.c */
    uint64_t rate_seen;

    /* reply */
    struct str headers; /* the handler's, as lines */
    int status;
    bool is_started, is_ended;
    bool is_chunked, is_close, has_no_body;
    bool is_gone, is_gone_told;
    bool is_tls;
    bool owes_drain;
    int64_t reply_left; /* promised bytes still to be written; -1 unknown */
    uint64_t bytes_out;
    void (*drained)(struct http_req *req);

    char id[CRYPT_UUID_BYTES];
    struct http_field fields[]; /* as many as the head has lines; behind them its text */
};

/* --- io.c: plain or TLS --- */

enum {
    HTTP_IO_AGAIN = -1,
    HTTP_IO_FAILED = -2,
};

int http_io_open(struct http_conn *conn, struct http_tls *tls); /* -1 when out of memory */
/* 1 when done, else HTTP_IO_*. */
int http_io_handshake(struct http_conn *conn);
/* Bytes moved; 0 from read is the end; or HTTP_IO_*.  AGAIN clears can_read or can_write. */
ssize_t http_io_read(struct http_conn *conn, void *bytes, size_t room);
ssize_t http_io_write(struct http_conn *conn, const struct iovec *iov, int count, bool is_more);
ssize_t http_io_send_file(struct http_conn *conn, int fd, off_t offset, size_t len);
void http_io_shut(struct http_conn *conn);
void http_io_close(struct http_conn *conn);
struct ssl_ctx_st *http_tls_context(struct http_tls *tls); /* tls.c */

/* --- out.c: the queue to the client --- */

void http_out_add(struct http_conn *conn, const void *bytes, size_t len);
void http_out_add_file(struct http_conn *conn, int fd, off_t offset, size_t len); /* takes fd */
/* Write now what can be, queue the rest.  Calls nobody back; may lose the connection. */
void http_out_send(struct http_conn *conn, const struct iovec *iov, int count);
/* Write what is queued, at most a megabyte or so.  Calls nobody back; may lose the connection.
 */
void http_out_push(struct http_conn *conn);
void http_out_drop(struct http_conn *conn);

/* --- conn.c --- */

/* Takes fd.  The connection is its worker's from now on. */
void http_conn_new(struct http_worker *worker,
                   int fd,
                   const struct http_listener *listener,
                   const struct sockaddr_storage *peer,
                   bool is_refused);
/* The socket is of no more use: close it; a request turns gone. */
void http_conn_lose(struct http_conn *conn);
/* Answer with an error of the server's own and close.  A request turns gone. */
void http_conn_refuse(struct http_conn *conn, int status, const char *why);
/* Have a turn soon. */
void http_conn_wake(struct http_conn *conn);
/* Stop keeping alive: close now, or when the running reply has ended. */
void http_conn_drain(struct http_conn *conn);
void http_conn_free(struct http_conn *conn);

/* --- timeout.c --- */

/* Have the timer fire by the present deadline; after every change of it. */
void http_conn_set_timer(struct http_conn *conn);
void http_conn_on_timer(struct loop_timer *timer);

/* --- request.c, body.c, reply.c --- */

/* From the head found by the scan; NULL when it was refused, with *ret_status and *ret_why set.
 */
struct http_req *
http_req_new(struct http_conn *conn, const char *bytes, int *ret_status, const char **ret_why);
void http_req_free(struct http_req *req);
/* One step of reading the body; true if something was done. */
bool http_body_step(struct http_req *req);
bool http_body_is_complete(const struct http_req *req);
bool http_body_is_wanted(const struct http_req *req); /* we wait for the client's bytes */
/* Nobody will want it any more: read and forget. */
void http_body_discard(struct http_req *req);
/* Tell the handler, once, that the client is gone.  May end and free the request. */
void http_body_tell_gone(struct http_req *req);
/* The reply is ended and all of it has been written, or swallowed. */
void http_reply_finish(struct http_req *req);
/* A whole reply by the server itself, with an error body. */
void http_reply_error(struct http_req *req, int status, const char *why);
/* The body of an error the server answers itself. */
void http_error_body(struct str *out, int status, const char *why);
bool http_fill(struct http_conn *conn); /* read more input; true if something happened */

/* --- worker.c --- */

int http_worker_init(struct http_worker *worker, struct http_server *server, struct err *e);
int http_worker_start(struct http_worker *worker, struct err *e);
/* Tell it to drain within deadline_ms from now; from any thread.  Its thread ends when it has.
 */
void http_worker_drain(struct http_worker *worker, int64_t deadline_ms);
void http_worker_done(struct http_worker *worker);
void http_worker_conn_gone(struct http_worker *worker);
const char *http_worker_date(struct http_worker *worker);
void http_worker_uuid(struct http_worker *worker, char buf[CRYPT_UUID_BYTES]);

#endif
