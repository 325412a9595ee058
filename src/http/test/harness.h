/* harness.h - for tests of the server: one in this process, and a client that speaks raw bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_TEST_HARNESS_H
#define HTTP_TEST_HARNESS_H

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/parser.h"
#include "http/request.h"
#include "http/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct harness {
    struct http_config config;
    struct http_server *server;
    int port;
};

/* A configuration with one thread and the given handler; change it, then harness_start. */
static inline void harness_init(struct harness *h,
                                void (*on_request)(struct http_req *, void *))
{
    *h = (struct harness){.server = NULL};
    http_config_init(&h->config);
    h->config.threads = 1;
    h->config.on_request = on_request;
    h->config.context = h;
}

static inline void harness_start(struct harness *h, struct http_tls *tls)
{
    struct err e = {0};

    if (http_server_new(&h->config, &h->server, &e) < 0 ||
        http_server_listen(h->server, "127.0.0.1", 0, tls, &h->port, &e) < 0 ||
        http_server_start(h->server, &e) < 0)
        fail_msg("%s", e.msg);
}

static inline void harness_done(struct harness *h)
{
    http_server_drain(h->server, 2000);
    http_server_free(h->server);
}

static inline void pause_ms(int ms)
{
    usleep((useconds_t)ms * 1000);
}

/* Wait until the condition holds, 5 s at most. */
static inline bool becomes(atomic_int *value, int wanted)
{
    for (int i = 0; i < 5000 && atomic_load(value) != wanted; i++)
        pause_ms(1);
    return atomic_load(value) == wanted;
}

struct client {
    int fd;
    struct str in; /* read, not yet taken */
};

static inline struct client dial(const struct harness *h)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)h->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct client c = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};

    setsockopt(c.fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = 5},
               sizeof(struct timeval));
    assert_return_code(connect(c.fd, (struct sockaddr *)&to, sizeof(to)), errno);
    return c;
}

static inline void hang_up(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    str_done(&c->in);
}

static inline void say_bytes(struct client *c, const void *bytes, size_t len)
{
    const char *p = bytes;

    while (len) {
        ssize_t n = send(c->fd, p, len, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        p += n;
        len -= (size_t)n;
    }
}

static inline void say(struct client *c, const char *text)
{
    say_bytes(c, text, strlen(text));
}

/* 0 at the end or after the time-out; the bytes are in c->in. */
static inline size_t hear_more(struct client *c)
{
    char bytes[65536];
    ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);

    if (n <= 0)
        return 0;
    str_add_len(&c->in, bytes, (size_t)n);
    return (size_t)n;
}

/* Everything up to the end, which must come. */
static inline const char *hear_all(struct client *c)
{
    char byte;

    while (hear_more(c))
        continue;
    assert_true(recv(c->fd, &byte, 1, 0) == 0 || errno == ECONNRESET);
    return str_text(&c->in);
}

struct reply {
    int status;
    struct str head, body;
};

static inline void reply_done(struct reply *reply)
{
    str_done(&reply->head);
    str_done(&reply->body);
}

static inline void drop_front(struct str *s, size_t len)
{
    if (!s->data)
        return;
    memmove(s->data, s->data + len, s->len - len + 1);
    s->len -= len;
}

/* The value of a header of the reply, or NULL; caller frees. */
static inline char *reply_header(const struct reply *reply, const char *name)
{
    size_t len = strlen(name);

    for (const char *line = str_text(&reply->head); *line; line += strcspn(line, "\n") + 1)
        if (strncasecmp(line, name, len) == 0 && strncmp(line + len, ": ", 2) == 0)
            return xstrndup(line + len + 2, strcspn(line + len + 2, "\r"));
    return NULL;
}

static inline void hear_chunked(struct client *c, struct reply *reply)
{
    struct http_chunks chunks = {0};

    while (!http_chunks_is_done(&chunks)) {
        size_t used, len;
        const char *data, *why;

        if (!c->in.len && !hear_more(c))
            fail_msg("the reply ended early");
        assert_int_equal(
            http_chunks_feed(&chunks, c->in.data, c->in.len, &used, &data, &len, &why), 0);
        str_add_len(&reply->body, data, len);
        drop_front(&c->in, used);
    }
}

/* One reply.  is_bare: it has no body, whatever its head says (HEAD). */
static inline struct reply hear(struct client *c, bool is_bare)
{
    struct reply reply = {0};
    auto_free char *length = NULL;
    const char *end;
    size_t len;

    while (!(end = strstr(str_text(&c->in), "\r\n\r\n")))
        if (!hear_more(c))
            fail_msg("no reply, but \"%s\"", str_text(&c->in));
    str_add_len(&reply.head, c->in.data, (size_t)(end - c->in.data) + 4);
    drop_front(&c->in, reply.head.len);
    assert_true(str_starts(reply.head.data, "HTTP/1.1 "));
    reply.status = atoi(reply.head.data + 9);
    if (is_bare || reply.status == 100 || reply.status == 204 || reply.status == 304)
        return reply;
    if (strcasestr(reply.head.data, "\r\nTransfer-Encoding: chunked\r\n")) {
        hear_chunked(c, &reply);
        return reply;
    }
    length = reply_header(&reply, "Content-Length");
    len = length ? strtoull(length, NULL, 10) : SIZE_MAX;
    while (c->in.len < len && hear_more(c))
        continue;
    if (length && c->in.len < len)
        fail_msg("the reply ended early");
    len = len < c->in.len ? len : c->in.len;
    str_add_len(&reply.body, str_text(&c->in), len);
    drop_front(&c->in, len);
    return reply;
}

/* Ask and check the answer's status and, unless NULL, its body. */
static inline void expect(struct client *c, int status, const char *body)
{
    struct reply reply = hear(c, false);

    if (reply.status != status || (body && !str_equal(str_text(&reply.body), body)))
        fail_msg("expected %d %s, got %s%s", status, body ? body : "", reply.head.data,
                 str_text(&reply.body));
    reply_done(&reply);
}

static inline void expect_closed(struct client *c)
{
    assert_string_equal(hear_all(c), "");
}

#endif
