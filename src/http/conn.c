/* conn.c - a connection: its states and its turns.
 *
 * The socket is watched once, for edges of both directions; can_read and can_write remember
 * what the edges said, so that no request costs an epoll_ctl.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/http-internal.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MOST_STEPS = 32, /* per turn; the rest waits until other connections had theirs */
};

static void set_state(struct http_conn *conn, enum http_conn_state state)
{
    conn->state = state;
    conn->since_ms = conn->in_since_ms = clock_mono_ms();
}

void http_conn_wake(struct http_conn *conn)
{
    if (!conn->is_turning)
        loop_task_add(conn->worker->loop, &conn->task);
}

/* --- the end --- */

/* Where only the end of the connection ends the reply, a tidy end would make half a reply a
 * whole one. */
static bool would_lie(const struct http_conn *conn)
{
    const struct http_req *req = conn->req;

    return conn->state == HTTP_CONN_REQUEST && req && req->is_started && !req->is_chunked &&
           req->reply_left < 0;
}

void http_conn_lose(struct http_conn *conn)
{
    if (conn->state == HTTP_CONN_DEAD)
        return;
    http_out_drop(conn);
    if (conn->state == HTTP_CONN_HEAD)
        http_io_shut(conn);
    if (would_lie(conn))
        setsockopt(conn->watch.fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
                   sizeof(struct linger));
    http_io_close(conn);
    loop_timer_cancel(&conn->timer);
    set_state(conn, HTTP_CONN_DEAD);
    conn->in_start = conn->in_end = 0;
    if (conn->req)
        conn->req->is_gone = true;
    http_conn_wake(conn);
}

void http_conn_free(struct http_conn *conn)
{
    http_out_drop(conn);
    http_io_close(conn);
    loop_timer_cancel(&conn->timer);
    loop_task_cancel(&conn->task);
    http_req_free(conn->req);
    *conn->link = conn->next;
    if (conn->next)
        conn->next->link = conn->link;
    free(conn->saved);
    http_worker_conn_gone(conn->worker);
    free(conn);
}

static void linger(struct http_conn *conn)
{
    set_state(conn, HTTP_CONN_LINGER);
    conn->in_start = conn->in_end = 0;
    http_conn_wake(conn);
}

void http_conn_refuse(struct http_conn *conn, int status, const char *why)
{
    struct http_worker *worker = conn->worker;
    auto_str body = {0};

    atomic_fetch_add_explicit(&worker->rejected, 1, memory_order_relaxed);
    if (conn->req)
        conn->req->is_gone = true;
    http_error_body(&body, status, why);
    worker->head.len = 0;
    str_addf(&worker->head,
             "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: application/json; charset=utf-8\r\n"
             "Content-Length: %zu\r\nConnection: close\r\n%s\r\n",
             status, http_status_text(status), http_worker_date(worker), body.len,
             status == 503 ? "Retry-After: 1\r\n" : "");
    str_add_len(&worker->head, body.data, body.len);
    http_out_send(conn, &(struct iovec){worker->head.data, worker->head.len}, 1);
    if (conn->state != HTTP_CONN_DEAD)
        linger(conn);
}

void http_conn_drain(struct http_conn *conn)
{
    if (conn->state == HTTP_CONN_HEAD || conn->state == HTTP_CONN_HANDSHAKE ||
        conn->state == HTTP_CONN_FIRST_BYTE)
        http_conn_lose(conn);
}

/* --- reading --- */

bool http_fill(struct http_conn *conn)
{
    struct http_worker *worker = conn->worker;
    ssize_t n;

    if (!conn->can_read || conn->is_eof)
        return false;
    if (conn->in_start == conn->in_end) {
        conn->in_start = conn->in_end = 0;
    } else if (conn->in_end == worker->in_room) {
        memmove(worker->in, worker->in + conn->in_start, conn->in_end - conn->in_start);
        conn->in_end -= conn->in_start;
        conn->in_start = 0;
    }
    n = http_io_read(conn, worker->in + conn->in_end, worker->in_room - conn->in_end);
    if (n == HTTP_IO_AGAIN)
        return conn->can_read;
    if (n == HTTP_IO_FAILED) {
        http_conn_lose(conn);
        return true;
    }
    if (n == 0) {
        conn->is_eof = true;
        conn->eof_since_ms = clock_mono_ms();
    }
    conn->in_end += (size_t)n;
    return true;
}

static void begin_request(struct http_conn *conn)
{
    struct http_worker *worker = conn->worker;
    const char *why = NULL;
    int status = 0;
    struct http_req *req =
        http_req_new(conn, worker->in + conn->in_start + conn->scan.start, &status, &why);

    if (!req) {
        http_conn_refuse(conn, status, why);
        return;
    }
    conn->in_start += conn->scan.start + conn->scan.length;
    conn->req = req;
    set_state(conn, HTTP_CONN_REQUEST);
    atomic_fetch_add_explicit(&worker->requests, 1, memory_order_relaxed);
    conn->listener->app.on_request(req, conn->listener->app.context);
}

static bool head_step(struct http_conn *conn)
{
    struct http_worker *worker = conn->worker;
    size_t len = conn->in_end - conn->in_start;
    bool is_first = conn->scan.at == 0;
    const char *why = NULL;
    int status;

    if (len > conn->scan.at) {
        status = http_scan_head(&conn->scan, &worker->server->limits,
                                worker->in + conn->in_start, len, &why);
        if (status)
            http_conn_refuse(conn, status, why);
        else if (conn->scan.length)
            begin_request(conn);
        else if (is_first)
            conn->since_ms = clock_mono_ms();
        return true;
    }
    if (!conn->is_eof)
        return http_fill(conn);
    if (len > conn->scan.start)
        http_conn_refuse(conn, 400, "the head ended early");
    else
        http_conn_lose(conn);
    return true;
}

static bool linger_step(struct http_conn *conn)
{
    if (!conn->out_first)
        http_io_shut(conn);
    if (conn->is_eof && !conn->out_first) {
        http_conn_lose(conn);
        return true;
    }
    conn->in_start = conn->in_end = 0;
    if (!http_fill(conn))
        return false;
    if (conn->in_end)
        conn->in_since_ms = clock_mono_ms();
    conn->in_start = conn->in_end = 0;
    return true;
}

static bool handshake_step(struct http_conn *conn)
{
    int rc;

    if (!conn->can_read && !conn->can_write)
        return false;
    rc = http_io_handshake(conn);
    if (rc == HTTP_IO_AGAIN)
        return false;
    if (rc < 0) {
        http_conn_lose(conn);
        return true;
    }
    set_state(conn, HTTP_CONN_HEAD);
    conn->can_read =
        true; /* OpenSSL may hold bytes that came along, which no edge will announce */
    return true;
}

/* A TLS hello begins with a record of type 22; no method of HTTP does. */
static bool first_byte_step(struct http_conn *conn)
{
    enum { TLS_HANDSHAKE_RECORD = 22 };
    unsigned char first;
    ssize_t got;

    if (!conn->can_read)
        return false;
    got = recv(conn->watch.fd, &first, 1, MSG_PEEK);
    if (got < 0 && errno == EAGAIN) {
        conn->can_read = false;
        return false;
    }
    if (got <= 0) {
        http_conn_lose(conn);
    } else if (first != TLS_HANDSHAKE_RECORD) {
        set_state(conn, HTTP_CONN_HEAD);
    } else {
        set_state(conn, HTTP_CONN_HANDSHAKE);
        if (http_io_open(conn, conn->listener->tls) < 0)
            http_conn_lose(conn);
    }
    return true;
}

static bool read_step(struct http_conn *conn)
{
    switch (conn->state) {
    case HTTP_CONN_FIRST_BYTE:
        return first_byte_step(conn);
    case HTTP_CONN_HANDSHAKE:
        return handshake_step(conn);
    case HTTP_CONN_HEAD:
        return head_step(conn);
    case HTTP_CONN_REQUEST:
        return conn->req && http_body_step(conn->req);
    case HTTP_CONN_LINGER:
        return linger_step(conn);
    case HTTP_CONN_DEAD:
        break;
    }
    return false;
}

/* --- after a reply --- */

/* The reply is out and the body is in: on to the next request. */
static void end_request(struct http_conn *conn)
{
    bool is_close = conn->req->is_close || conn->worker->is_draining;

    http_req_free(conn->req);
    conn->req = NULL;
    if (is_close) {
        linger(conn);
        return;
    }
    set_state(conn, HTTP_CONN_HEAD);
    conn->scan = (struct http_scan){0};
    http_conn_wake(conn);
}

void http_reply_finish(struct http_req *req)
{
    struct http_conn *conn = req->conn;
    const struct http_app *app = &conn->listener->app;

    if (app->on_done)
        app->on_done(req, req->status, req->bytes_out, app->context);
    if (conn->state != HTTP_CONN_REQUEST) { /* gone, or the server has answered in its stead */
        http_req_free(req);
        conn->req = NULL;
        http_conn_wake(conn);
    } else if (req->is_close || http_body_is_complete(req)) {
        end_request(conn);
    } else {
        http_body_discard(req);
    }
}

/* Write, and call back where that changes something. */
static bool write_step(struct http_conn *conn)
{
    struct http_req *req = conn->req;
    bool had = conn->out_first;

    if (had)
        http_out_push(conn);
    if (conn->out_first || !req || (req->is_gone && !req->is_gone_told))
        return had && conn->can_write;
    if (req->mode == HTTP_BODY_DISCARD) {
        if (!http_body_is_complete(req))
            return false;
        end_request(conn);
        return true;
    }
    if (req->is_ended) {
        http_reply_finish(req);
        return true;
    }
    if (req->owes_drain) {
        req->owes_drain = false;
        if (req->drained)
            req->drained(req);
        return true;
    }
    return false;
}

/* --- turns --- */

static void load_input(struct http_conn *conn)
{
    conn->in_start = 0;
    conn->in_end = conn->saved_len;
    if (!conn->saved_len)
        return;
    memcpy(conn->worker->in, conn->saved, conn->saved_len);
    free(conn->saved);
    conn->saved = NULL;
    conn->saved_len = 0;
}

static void save_input(struct http_conn *conn)
{
    size_t len = conn->in_end - conn->in_start;

    if (len && conn->state != HTTP_CONN_DEAD) {
        conn->saved = xmalloc(len);
        memcpy(conn->saved, conn->worker->in + conn->in_start, len);
        conn->saved_len = len;
    }
    conn->in_start = conn->in_end = 0;
}

static void turn(struct http_conn *conn)
{
    int steps = 0;
    bool is_busy = true;

    loop_task_cancel(&conn->task);
    conn->is_turning = true;
    load_input(conn);
    for (; is_busy && steps < MOST_STEPS; steps++) {
        is_busy = write_step(conn);
        is_busy |= read_step(conn);
        if (conn->req && conn->req->is_gone && !conn->req->is_gone_told)
            http_body_tell_gone(conn->req), is_busy = true;
    }
    save_input(conn);
    conn->is_turning = false;
    if (conn->state == HTTP_CONN_DEAD && !conn->req) {
        http_conn_free(conn);
        return;
    }
    if (is_busy)
        http_conn_wake(conn);
    http_conn_set_timer(conn);
}

static void on_task(struct loop_task *task)
{
    turn(container_of(task, struct http_conn, task));
}

static void on_ready(struct loop_watch *watch, uint32_t events)
{
    struct http_conn *conn = container_of(watch, struct http_conn, watch);

    /* TLS may have to write in order to read, and the other way round. */
    if (events & (EPOLLIN | EPOLLRDHUP) || (conn->ssl && events & EPOLLOUT))
        conn->can_read = true;
    if (events & EPOLLOUT || (conn->ssl && events & EPOLLIN))
        conn->can_write = true;
    if (events & EPOLLRDHUP && !conn->is_hung_up) {
        conn->is_hung_up = true;
        conn->eof_since_ms = clock_mono_ms();
    }
    if (events & (EPOLLHUP | EPOLLERR)) {
        /* Both ways are closed.  A request that has not been read may still be in the socket,
         * but nobody would see its reply. */
        http_conn_lose(conn);
    }
    turn(conn);
}

static void write_peer(struct http_conn *conn, const struct sockaddr_storage *peer)
{
    const struct sockaddr_in6 *in6 = (const void *)peer;
    const struct sockaddr_in *in4 = (const void *)peer;

    if (peer->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
        inet_ntop(AF_INET, &in6->sin6_addr.s6_addr[12], conn->peer, sizeof(conn->peer));
    else if (peer->ss_family == AF_INET6)
        inet_ntop(AF_INET6, &in6->sin6_addr, conn->peer, sizeof(conn->peer));
    else if (peer->ss_family == AF_INET)
        inet_ntop(AF_INET, &in4->sin_addr, conn->peer, sizeof(conn->peer));
}

static bool is_loopback(const struct sockaddr_storage *peer)
{
    const struct sockaddr_in6 *in6 = (const void *)peer;
    const struct sockaddr_in *in4 = (const void *)peer;

    if (peer->ss_family == AF_INET)
        return ntohl(in4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    if (peer->ss_family != AF_INET6)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) &&
            in6->sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
}

void http_conn_new(struct http_worker *worker,
                   int fd,
                   const struct http_listener *listener,
                   const struct sockaddr_storage *peer,
                   bool is_refused)
{
    struct http_conn *conn = xcalloc(1, sizeof(*conn));
    struct http_tls *tls = listener->tls;

    conn->worker = worker;
    conn->listener = listener;
    conn->watch.fd = fd;
    conn->watch.ready = on_ready;
    conn->timer.fired = http_conn_on_timer;
    conn->task.run = on_task;
    conn->can_write = true; /* what there is to read, the first edge will tell */
    conn->next = worker->conns;
    conn->link = &worker->conns;
    if (conn->next)
        conn->next->link = &conn->next;
    worker->conns = conn;
    write_peer(conn, peer);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (listener->plain_on_loopback && is_loopback(peer))
        set_state(conn, HTTP_CONN_FIRST_BYTE);
    else
        set_state(conn, tls ? HTTP_CONN_HANDSHAKE : HTTP_CONN_HEAD);
    if ((conn->state == HTTP_CONN_HANDSHAKE && http_io_open(conn, tls) < 0) ||
        loop_watch(worker->loop, &conn->watch, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                   NULL) < 0 ||
        worker->is_draining) {
        http_conn_lose(conn);
        return;
    }
    if (is_refused && tls)
        http_conn_lose(conn);
    else if (is_refused)
        http_conn_refuse(conn, 503, "too many connections");
    http_conn_set_timer(conn);
}
