/* scripted-server.h - a storage service of a few lines: a thread that answers each connection
 * from a script.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TEST_SCRIPTED_SERVER_H
#define CLI_TEST_SCRIPTED_SERVER_H

#include "base/mem.h"
#include "base/str.h"
#include "cli/storage-account.h"
#include "cli/storage-wire.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    MOST_ANSWERS = 4,
};

#define KEY "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

struct server {
    int fd, port;
    pthread_t thread;
    const char *answers[MOST_ANSWERS]; /* one for each connection; "" = closes without a word */
    struct str requests[MOST_ANSWERS];
    int seen;
};

static bool is_whole(const struct str *request)
{
    const char *end = strstr(str_text(request), "\r\n\r\n");
    const char *length = strcasestr(str_text(request), "Content-Length: ");

    if (!end)
        return false;
    return !length || length > end || strlen(end + 4) >= strtoul(length + 16, NULL, 10);
}

static void *serve(void *context)
{
    struct server *s = context;

    for (int i = 0; i < MOST_ANSWERS && s->answers[i]; i++) {
        auto_close int fd = accept(s->fd, NULL, NULL);
        char buf[4096];
        ssize_t got;

        if (fd < 0)
            return NULL;
        while (!is_whole(&s->requests[i]) && (got = read(fd, buf, sizeof(buf))) > 0)
            str_add_len(&s->requests[i], buf, (size_t)got);
        s->seen++;
        if (write(fd, s->answers[i], strlen(s->answers[i])) < 0)
            return NULL;
    }
    return NULL;
}

static void server_start(struct server *s)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&address, &len), 0);
    s->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_stop(struct server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
}

static void server_done(struct server *s)
{
    for (int i = 0; i < MOST_ANSWERS; i++)
        str_done(&s->requests[i]);
}
#define auto_server __attribute__((cleanup(server_done))) struct server

static struct storage_account *account_of(const struct server *s, enum storage_auth auth)
{
    struct storage_account *a = xcalloc(1, sizeof(*a));

    a->name = xstrdup("lab");
    a->endpoints[STORAGE_BLOB] = xasprintf("http://127.0.0.1:%d/lab", s->port);
    a->auth = auth;
    a->secret = xstrdup(auth == STORAGE_AUTH_SAS ? "sv=1&sig=x%2B" : KEY);
    return a;
}

static struct wire *wire_to(const struct storage_account *account, int64_t patience_ms)
{
    struct wire_config config = {.account = account, .patience_ms = patience_ms};
    struct wire *wire = NULL;
    struct err e;

    if (wire_new(&config, &wire, &e) < 0)
        fail_msg("%s", e.msg);
    return wire;
}

#endif
