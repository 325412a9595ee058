/* SPDX-License-Identifier: Apache-2.0 */
#include "http/test/harness.h"

static struct http_req *_Atomic held;
static atomic_int held_count, done_count, gone_count;

static void on_gone(struct http_req *req)
{
    if (http_req_is_gone(req))
        atomic_fetch_add(&gone_count, 1);
}

static void on_request(struct http_req *req, void *context)
{
    (void)context;
    if (str_equal(http_req_raw_path(req), "/hold")) {
        http_reply_on_drain(req, on_gone);
        atomic_store(&held, req);
        atomic_fetch_add(&held_count, 1);
    } else {
        http_reply(req, 200, "hello", 5);
    }
}

static void on_done(struct http_req *req, int status, uint64_t bytes_out, void *context)
{
    (void)req;
    (void)status;
    (void)bytes_out;
    (void)context;
    atomic_fetch_add(&done_count, 1);
}

static void answer(struct http_req *req, void *arg)
{
    (void)arg;
    http_reply(req, 200, "held", 4);
}

static struct harness start(int threads)
{
    struct harness h;

    atomic_store(&held_count, 0);
    atomic_store(&done_count, 0);
    atomic_store(&gone_count, 0);
    harness_init(&h, on_request);
    h.config.threads = threads;
    h.config.on_done = on_done;
    harness_start(&h, NULL);
    return h;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static struct http_server *new_server(void)
{
    struct http_config config;
    struct http_server *server;

    http_config_init(&config);
    config.on_request = on_request;
    assert_int_equal(http_server_new(&config, &server, NULL), 0);
    return server;
}

static void a_taken_port_is_busy(void **state)
{
    struct http_server *first = new_server(), *second = new_server();
    struct err e;
    int port = 0;

    (void)state;
    assert_int_equal(http_server_listen(first, "127.0.0.1", 0, NULL, &port, &e), 0);
    assert_true(port > 0);
    assert_int_equal(http_server_listen(second, "127.0.0.1", port, NULL, NULL, &e), -1);
    assert_int_equal(e.code, ERR_BUSY);
    http_server_free(first);
    assert_int_equal(http_server_listen(second, "127.0.0.1", port, NULL, NULL, &e), 0);
    http_server_free(second);
}

static void addresses_must_be_numbers_and_ports_ports(void **state)
{
    static const struct {
        const char *address;
        int port;
    } rows[] = {
        {"localhost", 0}, {"", 0}, {"300.0.0.1", 0}, {"127.0.0.1", -1}, {"127.0.0.1", 65536}};
    struct http_server *server = new_server();
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(
            http_server_listen(server, rows[i].address, rows[i].port, NULL, NULL, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
    }
    http_server_free(server);
}

static void a_socket_opened_by_others_is_served(void **state)
{
    struct harness h = {.server = new_server()};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM, 0), other = socket(AF_INET, SOCK_STREAM, 0);
    struct client c;

    (void)state;
    assert_return_code(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_return_code(listen(fd, 5), 0);
    getsockname(fd, (struct sockaddr *)&at, &len);
    assert_int_equal(http_server_listen_fd(h.server, other, NULL, NULL), -1);
    close(other);
    assert_int_equal(http_server_listen_fd(h.server, fd, NULL, NULL), 0);
    assert_int_equal(http_server_start(h.server, NULL), 0);
    h.port = ntohs(at.sin_port);
    c = dial(&h);
    say(&c, GET("/"));
    expect(&c, 200, "hello");
    hang_up(&c);
    harness_done(&h);
}

static void several_addresses_are_served_together(void **state)
{
    struct http_server *server = new_server();
    struct harness first = {.server = server}, second = {.server = server};
    struct client c;

    (void)state;
    assert_int_equal(http_server_listen(server, "127.0.0.1", 0, NULL, &first.port, NULL), 0);
    assert_int_equal(http_server_listen(server, "127.0.0.1", 0, NULL, &second.port, NULL), 0);
    assert_int_equal(http_server_start(server, NULL), 0);
    c = dial(&first);
    say(&c, GET("/"));
    expect(&c, 200, "hello");
    hang_up(&c);
    c = dial(&second);
    say(&c, GET("/"));
    expect(&c, 200, "hello");
    hang_up(&c);
    harness_done(&first);
}

static void a_server_that_was_never_started_is_freed(void **state)
{
    struct http_server *server = new_server();

    (void)state;
    assert_int_equal(http_server_listen(server, "127.0.0.1", 0, NULL, NULL, NULL), 0);
    http_server_drain(server, 100);
    http_server_free(server);
    http_server_free(NULL);
}

/* --- drain --- */

static void *drain_thread(void *arg)
{
    http_server_drain(((struct harness *)arg)->server, 5000);
    return NULL;
}

static void draining_closes_the_idle_and_waits_for_the_running(void **state)
{
    struct harness h = start(2);
    struct client idle = dial(&h), running = dial(&h);
    struct reply reply;
    pthread_t thread;
    int64_t start_ms;

    (void)state;
    say(&idle, GET("/"));
    expect(&idle, 200, "hello");
    say(&running, GET("/hold") GET("/next"));
    assert_true(becomes(&held_count, 1));

    start_ms = clock_mono_ms();
    pthread_create(&thread, NULL, drain_thread, &h);
    expect_closed(&idle);
    pause_ms(50);
    http_req_post(atomic_load(&held), answer, NULL);
    reply = hear(&running, false);
    assert_string_equal(str_text(&reply.body), "held");
    assert_non_null(strstr(reply.head.data, "\r\nConnection: close\r\n"));
    expect_closed(&running); /* the next request is not started */
    hang_up(&running);
    pthread_join(thread, NULL);
    assert_true(clock_mono_ms() - start_ms < 3000);
    assert_int_equal(atomic_load(&done_count), 2);
    reply_done(&reply);
    hang_up(&idle);
    harness_done(&h);
}

static void new_connections_are_refused_while_draining(void **state)
{
    struct harness h = start(2);
    struct client running = dial(&h);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    pthread_t thread;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    (void)state;
    say(&running, GET("/hold"));
    assert_true(becomes(&held_count, 1));
    pthread_create(&thread, NULL, drain_thread, &h);
    pause_ms(100);
    to.sin_port = htons((uint16_t)h.port);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), -1);
    close(fd);
    http_req_post(atomic_load(&held), answer, NULL);
    expect(&running, 200, "held");
    hang_up(&running);
    pthread_join(thread, NULL);
    harness_done(&h);
}

static void the_deadline_ends_the_wait_and_handlers_hear_of_it(void **state)
{
    struct harness h = start(1);
    struct client c = dial(&h);
    int64_t start_ms, took;

    (void)state;
    say(&c, GET("/hold"));
    assert_true(becomes(&held_count, 1));
    start_ms = clock_mono_ms();
    http_server_drain(h.server, 100);
    took = clock_mono_ms() - start_ms;
    assert_true(took >= 100 && took < 2000);
    assert_int_equal(atomic_load(&gone_count), 1);
    expect_closed(&c);
    http_req_post(atomic_load(&held), answer, NULL); /* too late, and harmless */
    assert_int_equal(atomic_load(&done_count), 0);
    hang_up(&c);
    http_server_free(h.server);
}

/* --- threads --- */

static void *ask_many(void *arg)
{
    for (int i = 0; i < 5; i++) {
        struct client c = dial(arg);

        for (int j = 0; j < 40; j++) {
            say(&c, GET("/"));
            expect(&c, 200, "hello");
        }
        hang_up(&c);
    }
    return NULL;
}

static void many_clients_are_served_by_many_threads(void **state)
{
    enum { CLIENTS = 8 };
    struct harness h = start(4);
    pthread_t threads[CLIENTS];
    struct http_counts counts;

    (void)state;
    for (int i = 0; i < CLIENTS; i++)
        pthread_create(&threads[i], NULL, ask_many, &h);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    http_server_counts(h.server, &counts);
    assert_int_equal(counts.requests_total, CLIENTS * 200);
    assert_int_equal(counts.connections_total, CLIENTS * 5);
    assert_int_equal(counts.rejected_total, 0);
    for (int i = 0; i < 1000 && counts.connections_open; i++) {
        pause_ms(1);
        http_server_counts(h.server, &counts);
    }
    assert_int_equal(counts.connections_open, 0);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_taken_port_is_busy),
        cmocka_unit_test(addresses_must_be_numbers_and_ports_ports),
        cmocka_unit_test(a_socket_opened_by_others_is_served),
        cmocka_unit_test(several_addresses_are_served_together),
        cmocka_unit_test(a_server_that_was_never_started_is_freed),
        cmocka_unit_test(draining_closes_the_idle_and_waits_for_the_running),
        cmocka_unit_test(new_connections_are_refused_while_draining),
        cmocka_unit_test(the_deadline_ends_the_wait_and_handlers_hear_of_it),
        cmocka_unit_test(many_clients_are_served_by_many_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
