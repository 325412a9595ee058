/* timeout.c - how long a connection waits for its client, and what happens then.
 *
 * One timer per connection is moved lazily: it is set only when the deadline comes nearer; when
 * it fires early it is set again.  So a busy connection hardly ever touches the heap of timers.
 *
 * Deadlines (all on the monotonic clock):
 *   handshake, head    from its first byte, head_timeout_ms
 *   idle               idle_timeout_ms
 *   body               body_timeout_ms without a byte, while somebody wants the bytes
 *   reply              body_timeout_ms without progress, while something is queued
 *   quiet reply        none, while the client has not sent its FIN; after that
 *                      body_timeout_ms: most often it is not there any more
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/http-internal.h"

#include "base/mem.h"

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool is_abandoned_stream(const struct http_conn *conn)
{
    const struct http_req *req = conn->req;

    return conn->is_hung_up && req && req->is_started && !req->is_ended && req->reply_left < 0;
}

static int64_t deadline_of(const struct http_conn *conn)
{
    const struct http_config *config = &conn->worker->server->config;
    int64_t deadline = INT64_MAX;

    if (conn->out_first)
        deadline = conn->out_since_ms + config->body_timeout_ms;
    switch (conn->state) {
    case HTTP_CONN_FIRST_BYTE:
        return conn->since_ms + config->idle_timeout_ms;
    case HTTP_CONN_HANDSHAKE:
        return conn->since_ms + config->head_timeout_ms;
    case HTTP_CONN_HEAD:
        return conn->since_ms +
               (conn->scan.at ? config->head_timeout_ms : config->idle_timeout_ms);
    case HTTP_CONN_REQUEST:
        if (conn->req && http_body_is_wanted(conn->req))
            deadline = earlier(deadline, conn->in_since_ms + config->body_timeout_ms);
        if (is_abandoned_stream(conn))
            deadline = earlier(deadline, conn->eof_since_ms + config->body_timeout_ms);
        return deadline;
    case HTTP_CONN_LINGER:
        deadline = earlier(deadline, conn->in_since_ms + (conn->worker->is_draining
                                                              ? HTTP_LINGER_DRAIN_MS
                                                              : HTTP_LINGER_SILENCE_MS));
        return earlier(deadline, conn->since_ms + HTTP_LINGER_MS);
    case HTTP_CONN_DEAD:
        break;
    }
    return deadline;
}

void http_conn_set_timer(struct http_conn *conn)
{
    int64_t deadline = deadline_of(conn);

    if (deadline == INT64_MAX || (conn->timer.loop && conn->timer.due_ms <= deadline))
        return;
    loop_timer_set(conn->worker->loop, &conn->timer, deadline - clock_mono_ms());
}

static void time_out(struct http_conn *conn)
{
    bool is_reading = conn->state == HTTP_CONN_REQUEST && !conn->out_first && conn->req &&
                      http_body_is_wanted(conn->req);

    if (conn->state == HTTP_CONN_HEAD && conn->scan.at > conn->scan.start)
        http_conn_refuse(conn, 408, "the head took too long");
    else if (is_reading && !conn->req->is_started)
        http_conn_refuse(conn, 408, "the body took too long");
    else
        http_conn_lose(conn);
}

void http_conn_on_timer(struct loop_timer *timer)
{
    struct http_conn *conn = container_of(timer, struct http_conn, timer);

    if (deadline_of(conn) <= clock_mono_ms())
        time_out(conn);
    else
        http_conn_set_timer(conn);
}
