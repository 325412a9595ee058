/* server.c - listening sockets, and the workers as a whole.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include "base/mem.h"
#include "http/http-internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 4096, /* the kernel's own limit (somaxconn) cuts it where lower */
};

void http_config_init(struct http_config *config)
{
    *config = (struct http_config){
        .max_line_bytes = 8 * 1024,
        .max_head_bytes = 32 * 1024,
        .max_headers = 100,
        .head_timeout_ms = 10 * 1000,
        .idle_timeout_ms = 75 * 1000,
        .body_timeout_ms = 60 * 1000,
        .max_connections = 20000,
    };
}

int http_server_new(const struct http_config *config,
                    struct http_server **ret_server,
                    struct err *e)
{
    struct http_server *server;

    assert(config->on_request);
    if (!config->max_line_bytes || !config->max_head_bytes || !config->max_connections)
        return err_set(e, ERR_INVALID, "the limits of the http server cannot be zero");
    server = xcalloc(1, sizeof(*server));
    server->config = *config;
    server->limits = (struct http_limits){config->max_line_bytes, config->max_head_bytes,
                                          config->max_headers};
    *ret_server = server;
    return 0;
}

static void add_listener(struct http_server *server,
                         int fd,
                         struct http_tls *tls,
                         bool plain_on_loopback,
                         const struct http_app *app)
{
    const struct http_config *config = &server->config;
    const struct http_app own = {config->on_request, config->on_done, config->context};

    server->listeners = xreallocarray(server->listeners, server->listener_count + 1,
                                      sizeof(server->listeners[0]));
    server->listeners[server->listener_count++] =
        (struct http_listener){fd, tls, plain_on_loopback, app ? *app : own};
}

int http_server_listen_fd(struct http_server *server,
                          int fd,
                          struct http_tls *tls,
                          struct err *e)
{
    int is_listening = 0;
    socklen_t len = sizeof(is_listening);

    assert(!server->is_started);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &len) < 0 || !is_listening)
        return err_set(e, ERR_INVALID, "descriptor %d is not a listening socket", fd);
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
        return err_sys(e, errno, "could not prepare listening socket %d", fd);
    add_listener(server, fd, tls, false, NULL);
    return 0;
}

/* Bind and listen; returns the descriptor. */
static int open_listener(const struct addrinfo *ai, struct err *e)
{
    auto_close int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_sys(e, errno, "could not make a socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (ai->ai_family == AF_INET6) /* so that 0.0.0.0 and :: can be had together */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){1}, sizeof(int));
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        if (errno == EADDRINUSE)
            return err_set(e, ERR_BUSY, "the port is taken");
        return err_sys(e, errno, "could not listen");
    }
    return take_fd(&fd);
}

static int port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in4;
        struct sockaddr_in6 in6;
    } address = {.in6 = {0}};
    socklen_t len = sizeof(address);

    if (getsockname(fd, &address.any, &len) < 0)
        return 0;
    return ntohs(address.any.sa_family == AF_INET6 ? address.in6.sin6_port
                                                   : address.in4.sin_port);
}

int http_server_listen(struct http_server *server,
                       const char *address,
                       int port,
                       struct http_tls *tls,
                       int *ret_port,
                       struct err *e)
{
    return http_server_listen_app(server, address, port, tls, false, NULL, ret_port, e);
}

int http_server_listen_app(struct http_server *server,
                           const char *address,
                           int port,
                           struct http_tls *tls,
                           bool plain_on_loopback,
                           const struct http_app *app,
                           int *ret_port,
                           struct err *e)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *ai;
    char service[16];
    int fd;

    assert(!server->is_started);
    snprintf(service, sizeof(service), "%d", port);
    if (port < 0 || port > 65535 || getaddrinfo(address, service, &hints, &ai) != 0)
        return err_set(e, ERR_INVALID, "cannot listen on \"%s\" port %d: not a numeric address",
                       address, port);
    fd = open_listener(ai, e);
    freeaddrinfo(ai);
    if (fd < 0)
        return err_wrap(e, "%s port %d", address, port);
    add_listener(server, fd, tls, plain_on_loopback, app);
    if (ret_port)
        *ret_port = port_of(fd);
    return 0;
}

int http_server_start(struct http_server *server, struct err *e)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = server->config.threads > 0 ? (size_t)server->config.threads
                                              : (size_t)(cores > 0 ? cores : 1);

    assert(!server->is_started);
    server->workers = xcalloc(count, sizeof(server->workers[0]));
    server->worker_count = count;
    atomic_store(&server->accepting, count);
    for (size_t i = 0; i < count; i++)
        if (http_worker_init(&server->workers[i], server, e) < 0)
            return -1;
    for (size_t i = 0; i < count; i++) {
        if (http_worker_start(&server->workers[i], e) < 0) {
            while (i-- > 0) {
                loop_stop(server->workers[i].loop);
                pthread_join(server->workers[i].thread, NULL);
            }
            return -1;
        }
    }
    server->is_started = true;
    return 0;
}

void http_server_drain(struct http_server *server, int64_t deadline_ms)
{
    if (!server->is_started || server->is_drained)
        return;
    server->is_drained = true;
    for (size_t i = 0; i < server->worker_count; i++)
        http_worker_drain(&server->workers[i], deadline_ms);
    for (size_t i = 0; i < server->worker_count; i++)
        pthread_join(server->workers[i].thread, NULL);
}

void http_server_free(struct http_server *server)
{
    if (!server)
        return;
    http_server_drain(server, 0);
    for (size_t i = 0; i < server->worker_count; i++)
        http_worker_done(&server->workers[i]);
    if (!server->is_drained)
        for (size_t i = 0; i < server->listener_count; i++)
            mem_close_fd(&server->listeners[i].fd);
    free(server->workers);
    free(server->listeners);
    free(server);
}

void http_server_counts(struct http_server *server, struct http_counts *ret_counts)
{
    *ret_counts = (struct http_counts){.connections_open = atomic_load(&server->open)};
    for (size_t i = 0; i < server->worker_count; i++) {
        struct http_worker *worker = &server->workers[i];

        ret_counts->connections_total += atomic_load(&worker->connections);
        ret_counts->requests_total += atomic_load(&worker->requests);
        ret_counts->rejected_total += atomic_load(&worker->rejected);
    }
}
