/* The client against a server of a few lines: a thread that answers each request from a script.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/client.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    MOST_ANSWERS = 8,
};

struct server {
    int fd, port;
    pthread_t thread;
    const char *answers[MOST_ANSWERS]; /* one per connection; NULL = close at once */
    size_t count;
    struct str requests[MOST_ANSWERS];
    size_t seen;
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
    struct server *server = context;

    for (size_t i = 0; i < server->count; i++) {
        auto_close int fd = accept(server->fd, NULL, NULL);
        char buf[4096];
        ssize_t got;

        if (fd < 0)
            return NULL;
        while (!is_whole(&server->requests[i]) && (got = read(fd, buf, sizeof(buf))) > 0)
            str_add_len(&server->requests[i], buf, (size_t)got);
        server->seen++;
        if (server->answers[i] && write(fd, server->answers[i], strlen(server->answers[i])) < 0)
            return NULL;
    }
    return NULL;
}

static void server_start(struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    while (server->count < MOST_ANSWERS && server->answers[server->count])
        server->count++;
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(server->fd >= 0);
    assert_int_equal(bind(server->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(server->fd, 8), 0);
    assert_int_equal(getsockname(server->fd, (struct sockaddr *)&address, &len), 0);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

/* Ends the thread if it still waits, and returns how many requests came. */
static size_t server_stop(struct server *server)
{
    shutdown(server->fd, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->fd);
    return server->seen;
}

static void server_done(struct server *server)
{
    for (size_t i = 0; i < MOST_ANSWERS; i++)
        str_done(&server->requests[i]);
}
#define auto_server __attribute__((cleanup(server_done))) struct server

static struct http_client *client_of(const struct http_client_config *config)
{
    struct http_client *client = NULL;
    struct err e;

    if (http_client_new(config, &client, &e) < 0)
        fail_msg("%s", e.msg);
    return client;
}

static struct http_client_config quick(void)
{
    struct http_client_config config;

    http_client_config_init(&config);
    config.first_pause_ms = 1;
    config.longest_pause_ms = 20;
    config.connect_timeout_ms = 2000;
    return config;
}

static void a_request_and_its_answer_arrive_whole(void **state)
{
    static const char *const headers[] = {"X-One: 1", "Content-Type: application/json", NULL};
    auto_server server = {
        .answers = {"HTTP/1.1 201 Created\r\nX-Two:  two \r\nConnection: close\r\n"
                    "Content-Length: 3\r\n\r\nyes"}};
    struct http_client_config config = quick();
    autoptr(http_client) client = client_of(&config);
    auto_free char *url = NULL, *value = NULL, *missing = NULL;
    auto_answer answer = {0};
    struct err e = {0};

    (void)state;
    server_start(&server);
    url = xasprintf("http://127.0.0.1:%d/a?b=c", server.port);
    if (http_client_call(
            client,
            &(struct http_call){
                .method = "PUT", .url = url, .headers = headers, .body = "{}", .body_len = 2},
            &answer, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(server_stop(&server), 1);
    assert_int_equal(answer.status, 201);
    assert_int_equal(answer.sends, 1);
    assert_string_equal(str_text(&answer.body), "yes");
    value = http_answer_header(&answer, "x-two");
    assert_string_equal(value, "two");
    missing = http_answer_header(&answer, "x");
    assert_null(missing);
    assert_true(str_starts(str_text(&server.requests[0]), "PUT /a?b=c HTTP/1.1\r\n"));
    assert_non_null(strstr(str_text(&server.requests[0]), "\r\nX-One: 1\r\n"));
    assert_null(strcasestr(str_text(&server.requests[0]), "Expect:"));
    assert_true(str_ends(str_text(&server.requests[0]), "\r\n\r\n{}"));
}

static void a_put_without_a_body_says_so_and_has_no_type(void **state)
{
    auto_server server = {.answers = {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}};
    struct http_client_config config = quick();
    autoptr(http_client) client = client_of(&config);
    auto_free char *url = NULL;
    auto_answer answer = {0};

    (void)state;
    server_start(&server);
    url = xasprintf("http://127.0.0.1:%d/", server.port);
    assert_int_equal(http_client_call(client, &(struct http_call){.method = "PUT", .url = url},
                                      &answer, NULL),
                     0);
    server_stop(&server);
    assert_non_null(strstr(str_text(&server.requests[0]), "\r\nContent-Length: 0\r\n"));
    assert_null(strcasestr(str_text(&server.requests[0]), "Content-Type"));
    assert_null(strcasestr(str_text(&server.requests[0]), "Expect"));
}

static void a_file_is_sent_again_from_its_start(void **state)
{
    auto_server server = {
        .answers = {"HTTP/1.1 503 No\r\nRetry-After: 0\r\nConnection: close\r\n"
                    "Content-Length: 0\r\n\r\n",
                    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}};
    struct http_client_config config = quick();
    autoptr(http_client) client = client_of(&config);
    auto_free char *url = NULL;
    auto_answer answer = {0};
    FILE *file = tmpfile();

    (void)state;
    assert_non_null(file);
    fputs("contents", file);
    server_start(&server);
    url = xasprintf("http://127.0.0.1:%d/", server.port);
    assert_int_equal(
        http_client_call(client,
                         &(struct http_call){.method = "POST", .url = url, .body_file = file},
                         &answer, NULL),
        0);
    fclose(file);
    assert_int_equal(server_stop(&server), 2);
    assert_true(str_starts(str_text(&server.requests[1]), "POST "));
    assert_true(str_ends(str_text(&server.requests[0]), "\r\n\r\ncontents"));
    assert_true(str_ends(str_text(&server.requests[1]), "\r\n\r\ncontents"));
}

static void only_429_and_503_are_tried_again(void **state)
{
    static const struct row {
        const char *first;
        size_t tries;
    } rows[] = {
        {"HTTP/1.1 429 Slow\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 2},
        {"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 2},
        {"HTTP/1.1 500 Bad\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 1},
        {"HTTP/1.1 404 No\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 1},
        {"HTTP/1.1 307 Go\r\nLocation: /x\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
         1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_server server = {
            .answers = {rows[i].first, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"}};
        struct http_client_config config = quick();
        autoptr(http_client) client = client_of(&config);
        auto_free char *url = NULL;
        auto_answer answer = {0};

        server_start(&server);
        url = xasprintf("http://127.0.0.1:%d/", server.port);
        assert_int_equal(http_client_call(client,
                                          &(struct http_call){.method = "GET", .url = url},
                                          &answer, NULL),
                         0);
        assert_int_equal(server_stop(&server), rows[i].tries);
        assert_int_equal(answer.sends, rows[i].tries);
        assert_string_equal(str_text(&answer.body), rows[i].tries == 2 ? "ok" : "x");
    }
}

static void retry_after_is_waited_for_within_bounds(void **state)
{
    auto_server server = {
        .answers = {"HTTP/1.1 429 Slow\r\nRetry-After: 3600\r\nConnection: close\r\n"
                    "Content-Length: 0\r\n\r\n",
                    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}};
    struct http_client_config config = quick();
    autoptr(http_client) client = NULL;
    auto_free char *url = NULL;
    auto_answer answer = {0};
    int64_t start_ms = clock_mono_ms(), took_ms;

    (void)state;
    config.longest_pause_ms = 120;
    client = client_of(&config);
    server_start(&server);
    url = xasprintf("http://127.0.0.1:%d/", server.port);
    assert_int_equal(http_client_call(client, &(struct http_call){.method = "GET", .url = url},
                                      &answer, NULL),
                     0);
    took_ms = clock_mono_ms() - start_ms;
    server_stop(&server);
    assert_true(took_ms >= 120);
    assert_true(took_ms < 60 * 1000);
}

static void nobody_there_is_said_after_the_retries(void **state)
{
    struct http_client_config config = quick();
    autoptr(http_client) client = client_of(&config);
    auto_server server = {.answers = {NULL}};
    auto_free char *url = NULL;
    auto_answer answer = {0};
    struct err e = {0};

    (void)state;
    server_start(&server); /* for a port that is free afterwards */
    server_stop(&server);
    url = xasprintf("http://127.0.0.1:%d/", server.port);
    assert_int_equal(
        http_client_call(client, &(struct http_call){.method = "GET", .url = url}, &answer, &e),
        -1);
    assert_int_equal(e.code, ERR_BUSY);
    assert_int_equal(answer.sends, 0);
    assert_non_null(strstr(e.msg, url));
}

static void a_connection_that_breaks_is_not_tried_again(void **state)
{
    auto_server server = {.answers = {"", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}};
    struct http_client_config config = quick();
    autoptr(http_client) client = client_of(&config);
    auto_free char *url = NULL;
    auto_answer answer = {0};
    struct err e = {0};

    (void)state;
    server_start(&server);
    url = xasprintf("http://127.0.0.1:%d/", server.port);
    assert_int_equal(
        http_client_call(client, &(struct http_call){.method = "PUT", .url = url}, &answer, &e),
        -1);
    assert_int_equal(server_stop(&server), 1);
    assert_int_equal(e.code, ERR_BUSY);
}

struct watched {
    int64_t sent, received;
    bool stops;
};

static int watch(void *context, int64_t sent, int64_t received)
{
    struct watched *watched = context;

    watched->sent = sent;
    watched->received = received;
    return watched->stops ? -1 : 0;
}

static void bytes_on_their_way_are_watched(void **state)
{
    struct http_client_config config = quick();
    auto_free char *body = xcalloc(200000, 1);

    (void)state;
    for (int stops = 0; stops < 2; stops++) {
        auto_server server = {.answers = {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"}};
        autoptr(http_client) client = client_of(&config);
        struct watched watched = {.stops = stops};
        auto_free char *url = NULL;
        auto_answer answer = {0};
        struct err e = {0};
        int rc;

        memset(body, 'x', 200000);
        server_start(&server);
        url = xasprintf("http://127.0.0.1:%d/", server.port);
        rc = http_client_call(client,
                              &(struct http_call){.method = "PUT",
                                                  .url = url,
                                                  .body = body,
                                                  .body_len = 200000,
                                                  .watch = watch,
                                                  .watch_context = &watched},
                              &answer, &e);
        server_stop(&server);
        assert_int_equal(rc, stops ? -1 : 0);
        if (stops)
            continue;
        assert_int_equal(watched.sent, 200000);
        assert_int_equal(watched.received, 3);
    }
}

static void a_signature_in_a_url_is_not_told(void **state)
{
    struct http_client_config config = quick();
    autoptr(http_client) client = NULL;
    auto_server server = {.answers = {NULL}};
    auto_free char *url = NULL;
    auto_answer answer = {0};
    struct err e = {0};

    (void)state;
    config.most_retries = 0;
    client = client_of(&config);
    server_start(&server); /* for a port that is free afterwards */
    server_stop(&server);
    url = xasprintf("http://127.0.0.1:%d/a?sig=secret", server.port);
    assert_int_equal(
        http_client_call(client, &(struct http_call){.method = "GET", .url = url}, &answer, &e),
        -1);
    assert_non_null(strstr(e.msg, "/a"));
    assert_null(strstr(e.msg, "secret"));
}

static void dots_in_a_path_are_sent_as_given(void **state)
{
    auto_server server = {.answers = {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}};
    struct http_client_config config = quick();
    autoptr(http_client) client = client_of(&config);
    auto_free char *url = NULL;
    auto_answer answer = {0};

    (void)state;
    server_start(&server);
    url = xasprintf("http://127.0.0.1:%d/a/../b/./c", server.port);
    assert_int_equal(http_client_call(client, &(struct http_call){.method = "GET", .url = url},
                                      &answer, NULL),
                     0);
    server_stop(&server);
    assert_true(str_starts(str_text(&server.requests[0]), "GET /a/../b/./c HTTP/1.1\r\n"));
}

static void urls_of_other_kinds_are_refused(void **state)
{
    static const char *const urls[] = {"file:///etc/passwd", "ftp://127.0.0.1/", "http://",
                                       "::"};
    struct http_client_config config = quick();
    autoptr(http_client) client = client_of(&config);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        auto_answer answer = {0};
        struct err e = {0};

        assert_int_equal(http_client_call(client,
                                          &(struct http_call){.method = "GET", .url = urls[i]},
                                          &answer, &e),
                         -1);
        assert_int_equal(e.code, ERR_INVALID);
    }
}

static int keep(void *context, const void *bytes, size_t len)
{
    str_add_len(context, bytes, len);
    return 0;
}

static int refuse(void *context, const void *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return -1;
}

static void a_sink_gets_good_answers_and_no_others(void **state)
{
    static const struct row {
        const char *answer;
        int (*sink)(void *context, const void *bytes, size_t len);
        int rc;
        const char *sunk, *body;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndata", keep, 0, "data", ""},
        {"HTTP/1.1 403 No\r\nContent-Length: 4\r\n\r\nwhy?", keep, 0, "", "why?"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndata", refuse, -1, "", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_server server = {.answers = {rows[i].answer}};
        struct http_client_config config = quick();
        autoptr(http_client) client = client_of(&config);
        auto_free char *url = NULL;
        auto_answer answer = {0};
        auto_str sunk = {0};

        server_start(&server);
        url = xasprintf("http://127.0.0.1:%d/", server.port);
        assert_int_equal(http_client_call(client,
                                          &(struct http_call){.method = "POST",
                                                              .url = url,
                                                              .sink = rows[i].sink,
                                                              .sink_context = &sunk},
                                          &answer, NULL),
                         rows[i].rc);
        server_stop(&server);
        assert_string_equal(str_text(&sunk), rows[i].sunk);
        assert_string_equal(str_text(&answer.body), rows[i].body);
    }
}

static void a_body_over_the_limit_is_refused(void **state)
{
    auto_server server = {.answers = {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndata"}};
    struct http_client_config config = quick();
    autoptr(http_client) client = client_of(&config);
    auto_free char *url = NULL;
    auto_answer answer = {0};
    struct err e = {0};

    (void)state;
    server_start(&server);
    url = xasprintf("http://127.0.0.1:%d/", server.port);
    assert_int_equal(
        http_client_call(client,
                         &(struct http_call){.method = "GET", .url = url, .most_bytes = 3},
                         &answer, &e),
        -1);
    server_stop(&server);
    assert_int_equal(e.code, ERR_TOO_LARGE);
}

static void a_proxy_is_not_asked_for_loopback(void **state)
{
    auto_server server = {.answers = {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}};
    struct http_client_config config = quick();
    autoptr(http_client) client = client_of(&config);
    auto_free char *url = NULL;
    auto_answer answer = {0};

    (void)state;
    setenv("http_proxy", "http://127.0.0.1:9", 1);
    setenv("all_proxy", "http://127.0.0.1:9", 1);
    server_start(&server);
    url = xasprintf("http://127.0.0.1:%d/", server.port);
    assert_int_equal(http_client_call(client, &(struct http_call){.method = "GET", .url = url},
                                      &answer, NULL),
                     0);
    server_stop(&server);
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    assert_int_equal(answer.status, 200);
}

static void note(void *context, char direction, const char *line)
{
    str_addf(context, "%c%s\n", direction, line);
}

static void a_trace_has_both_heads(void **state)
{
    auto_server server = {
        .answers = {"HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 4\r\n\r\nbody"}};
    struct http_client_config config = quick();
    autoptr(http_client) client = NULL;
    auto_free char *url = NULL;
    auto_answer answer = {0};
    auto_str trace = {0};

    (void)state;
    config.trace = note;
    config.context = &trace;
    client = client_of(&config);
    server_start(&server);
    url = xasprintf("http://127.0.0.1:%d/p", server.port);
    assert_int_equal(http_client_call(client, &(struct http_call){.method = "GET", .url = url},
                                      &answer, NULL),
                     0);
    server_stop(&server);
    assert_non_null(strstr(str_text(&trace), ">GET /p HTTP/1.1\n"));
    assert_non_null(strstr(str_text(&trace), "<X-A: b\n"));
    assert_null(strstr(str_text(&trace), "body"));
}

static void loopback_goes_by_address_not_by_looks(void **state)
{
    static const struct row {
        const char *url;
        bool want;
    } rows[] = {
        {"http://127.0.0.1:80/x", true},  {"https://127.1.2.3", true},
        {"http://localhost", true},       {"http://LOCALHOST:1", true},
        {"http://[::1]:7443/", true},     {"http://127.example.com", false},
        {"http://localhost.evil", false}, {"http://10.0.0.1", false},
        {"http://[::2]", false},          {"rubbish", false},
        {"http://user@127.0.0.1/", true}, {"http://127.0.0.1@evil.example/", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (http_url_is_loopback(rows[i].url) != rows[i].want)
            fail_msg("%s", rows[i].url);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_and_its_answer_arrive_whole),
        cmocka_unit_test(a_put_without_a_body_says_so_and_has_no_type),
        cmocka_unit_test(a_file_is_sent_again_from_its_start),
        cmocka_unit_test(only_429_and_503_are_tried_again),
        cmocka_unit_test(retry_after_is_waited_for_within_bounds),
        cmocka_unit_test(nobody_there_is_said_after_the_retries),
        cmocka_unit_test(a_connection_that_breaks_is_not_tried_again),
        cmocka_unit_test(bytes_on_their_way_are_watched),
        cmocka_unit_test(a_signature_in_a_url_is_not_told),
        cmocka_unit_test(dots_in_a_path_are_sent_as_given),
        cmocka_unit_test(urls_of_other_kinds_are_refused),
        cmocka_unit_test(a_sink_gets_good_answers_and_no_others),
        cmocka_unit_test(a_body_over_the_limit_is_refused),
        cmocka_unit_test(a_proxy_is_not_asked_for_loopback),
        cmocka_unit_test(a_trace_has_both_heads),
        cmocka_unit_test(loopback_goes_by_address_not_by_looks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
