/* SPDX-License-Identifier: Apache-2.0 */
#include "http/test/harness.h"

/* Paths: /hello answers at once; /later from another thread, after the query's "ms"; /follow
 * starts an endless reply; /hold waits for the test. */

static atomic_int held_count, gone_count, done_count;
static struct http_req *_Atomic held;

struct later {
    struct http_req *req;
    int ms;
};

static void answer_later(struct http_req *req, void *arg)
{
    auto_free struct later *later = arg;
    auto_free char *text = xasprintf("%d", later->ms);

    http_reply(req, 200, text, strlen(text));
}

static void *sleep_then_post(void *arg)
{
    struct later *later = arg;

    pause_ms(later->ms);
    http_req_post(later->req, answer_later, later);
    return NULL;
}

static void start_later(struct http_req *req)
{
    struct later *later = xmalloc(sizeof(*later));
    const char *ms = http_req_query(req, "MS");
    pthread_t thread;

    *later = (struct later){req, ms ? atoi(ms) : 0};
    pthread_create(&thread, NULL, sleep_then_post, later);
    pthread_detach(thread);
}

static void end_when_gone(struct http_req *req)
{
    if (!http_req_is_gone(req))
        return;
    atomic_fetch_add(&gone_count, 1);
    http_reply_end(req);
}

static void on_request(struct http_req *req, void *context)
{
    const char *path = http_req_raw_path(req);

    (void)context;
    if (str_equal(path, "/later")) {
        start_later(req);
    } else if (str_equal(path, "/follow")) {
        http_reply_on_drain(req, end_when_gone);
        http_reply_start(req, 200, -1);
        http_reply_write(req, "line\n", 5);
    } else if (str_equal(path, "/hold")) {
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

static void answer_held(struct http_req *req, void *arg)
{
    (void)arg;
    if (http_req_is_gone(req))
        atomic_fetch_add(&gone_count, 1);
    http_reply(req, 200, "held", 4);
}

static struct harness start(void (*change)(struct http_config *config))
{
    struct harness h;

    atomic_store(&held_count, 0);
    atomic_store(&gone_count, 0);
    atomic_store(&done_count, 0);
    harness_init(&h, on_request);
    h.config.on_done = on_done;
    if (change)
        change(&h.config);
    harness_start(&h, NULL);
    return h;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static void a_connection_serves_many_requests(void **state)
{
    struct harness h = start(NULL);
    struct client c = dial(&h);
    struct http_counts counts;

    (void)state;
    for (int i = 0; i < 100; i++) {
        say(&c, GET("/hello"));
        expect(&c, 200, "hello");
    }
    http_server_counts(h.server, &counts);
    assert_int_equal(counts.connections_total, 1);
    assert_int_equal(counts.connections_open, 1);
    assert_int_equal(counts.requests_total, 100);
    hang_up(&c);
    harness_done(&h);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct harness h = start(NULL);
    struct client c = dial(&h);

    (void)state;
    say(&c,
        GET("/later?ms=30") GET("/hello") GET("/later?ms=1") GET("/later?ms=10") GET("/hello"));
    expect(&c, 200, "30");
    expect(&c, 200, "hello");
    expect(&c, 200, "1");
    expect(&c, 200, "10");
    expect(&c, 200, "hello");
    hang_up(&c);
    harness_done(&h);
}

static void a_thousand_pipelined_requests_are_no_trouble(void **state)
{
    struct harness h = start(NULL);
    struct client c = dial(&h);
    auto_str text = {0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        str_add(&text, GET("/hello"));
    say(&c, str_text(&text));
    for (int i = 0; i < 1000; i++)
        expect(&c, 200, "hello");
    hang_up(&c);
    harness_done(&h);
}

static void a_head_may_come_byte_by_byte(void **state)
{
    static const char text[] = GET("/hello");
    struct harness h = start(NULL);
    struct client c = dial(&h);

    (void)state;
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        say_bytes(&c, text + i, 1);
        pause_ms(1);
    }
    expect(&c, 200, "hello");
    hang_up(&c);
    harness_done(&h);
}

static void the_connection_ends_when_the_client_says_so(void **state)
{
    static const char *const texts[] = {
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: a\r\nConnection: close\r\n\r\n",
    };
    struct harness h = start(NULL);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct client c = dial(&h);
        struct reply reply;

        say(&c, texts[i]);
        reply = hear(&c, false);
        assert_string_equal(str_text(&reply.body), "hello");
        assert_non_null(strstr(reply.head.data, "\r\nConnection: close\r\n"));
        expect_closed(&c);
        reply_done(&reply);
        hang_up(&c);
    }
    harness_done(&h);
}

static void old_clients_can_keep_alive_when_they_ask(void **state)
{
    struct harness h = start(NULL);
    struct client c = dial(&h);
    struct reply reply;

    (void)state;
    for (int i = 0; i < 2; i++) {
        say(&c, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        reply = hear(&c, false);
        assert_non_null(strstr(reply.head.data, "\r\nConnection: keep-alive\r\n"));
        reply_done(&reply);
    }
    hang_up(&c);
    harness_done(&h);
}

static void malformed_heads_are_answered_400_and_closed(void **state)
{
    static const char *const texts[] = {
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n",
        "\x16\x03\x01",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\n\r\n" GET("/hello"),
    };
    struct harness h = start(NULL);
    struct http_counts counts;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct client c = dial(&h);

        say(&c, texts[i]);
        expect(&c, 400, NULL);
        expect_closed(&c); /* no answer to what follows */
        hang_up(&c);
    }
    http_server_counts(h.server, &counts);
    assert_int_equal(counts.rejected_total, ARRAY_SIZE(texts));
    assert_int_equal(counts.requests_total, 0);
    harness_done(&h);
}

static void a_head_cut_short_is_answered_400(void **state)
{
    struct harness h = start(NULL);
    struct client c = dial(&h);

    (void)state;
    say(&c, "GET / HTTP/1.1\r\nHost: a\r\n");
    shutdown(c.fd, SHUT_WR);
    expect(&c, 400, NULL);
    expect_closed(&c);
    hang_up(&c);
    harness_done(&h);
}

/* --- time-outs --- */

static void short_times(struct http_config *config)
{
    config->head_timeout_ms = 100;
    config->idle_timeout_ms = 250;
    config->body_timeout_ms = 150;
}

static void a_slow_head_is_answered_408_at_its_limit(void **state)
{
    struct harness h = start(short_times);
    struct client c = dial(&h);
    int64_t start_ms = clock_mono_ms(), took;

    (void)state;
    for (int i = 0; i < 6; i++) {
        say(&c, "G"); /* each byte is in time, the head is not */
        pause_ms(25);
    }
    hear_more(&c);
    took = clock_mono_ms() - start_ms;
    assert_true(took >= 100 && took < 1500);
    expect(&c, 408, NULL);
    expect_closed(&c);
    hang_up(&c);
    harness_done(&h);
}

static void an_idle_connection_is_closed_without_a_word(void **state)
{
    struct harness h = start(short_times);
    struct client fresh = dial(&h), used = dial(&h);
    int64_t start_ms = clock_mono_ms();

    (void)state;
    say(&used, GET("/hello"));
    expect(&used, 200, "hello");
    expect_closed(&used);
    assert_true(clock_mono_ms() - start_ms >= 250);
    expect_closed(&fresh);
    hang_up(&used);
    hang_up(&fresh);
    harness_done(&h);
}

static void a_request_keeps_the_idle_clock_from_running(void **state)
{
    struct harness h = start(short_times);
    struct client c = dial(&h);

    (void)state;
    for (int i = 0; i < 4; i++) {
        pause_ms(100);
        say(&c, GET("/hello"));
        expect(&c, 200, "hello");
    }
    say(&c, GET("/later?ms=500")); /* twice the idle limit, but not idle */
    expect(&c, 200, "500");
    hang_up(&c);
    harness_done(&h);
}

static void a_quiet_reply_never_times_out(void **state)
{
    struct harness h = start(short_times);
    struct client c = dial(&h);

    (void)state;
    say(&c, GET("/follow"));
    pause_ms(600);
    assert_int_equal(atomic_load(&gone_count), 0);
    hang_up(&c);
    harness_done(&h);
}

/* --- clients that go --- */

static void a_follower_that_closes_is_noticed(void **state)
{
    struct harness h = start(short_times);
    struct client c = dial(&h);

    (void)state;
    say(&c, GET("/follow"));
    while (!strstr(str_text(&c.in), "line"))
        assert_true(hear_more(&c));
    hang_up(&c);
    assert_true(becomes(&gone_count, 1));
    assert_true(becomes(&done_count, 1));
    harness_done(&h);
}

static void a_reset_is_noticed_at_once(void **state)
{
    struct harness h = start(NULL);
    struct client c = dial(&h);

    (void)state;
    say(&c, GET("/follow"));
    while (!strstr(str_text(&c.in), "line"))
        assert_true(hear_more(&c));
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
               sizeof(struct linger));
    hang_up(&c);
    assert_true(becomes(&gone_count, 1));
    harness_done(&h);
}

static void a_request_of_a_gone_client_still_waits_for_its_reply(void **state)
{
    struct harness h = start(NULL);
    struct client c = dial(&h);

    (void)state;
    say(&c, GET("/hold"));
    assert_true(becomes(&held_count, 1));
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
               sizeof(struct linger));
    hang_up(&c);
    pause_ms(50);
    assert_int_equal(atomic_load(&done_count), 0);
    http_req_post(atomic_load(&held), answer_held, NULL);
    assert_true(becomes(&done_count, 1));
    assert_int_equal(atomic_load(&gone_count), 1);
    harness_done(&h);
}

static void a_client_that_shuts_its_side_still_gets_its_reply(void **state)
{
    struct harness h = start(NULL);
    struct client c = dial(&h);

    (void)state;
    say(&c, GET("/later?ms=50"));
    shutdown(c.fd, SHUT_WR);
    expect(&c, 200, "50");
    expect_closed(&c);
    hang_up(&c);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_serves_many_requests),
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(a_thousand_pipelined_requests_are_no_trouble),
        cmocka_unit_test(a_head_may_come_byte_by_byte),
        cmocka_unit_test(the_connection_ends_when_the_client_says_so),
        cmocka_unit_test(old_clients_can_keep_alive_when_they_ask),
        cmocka_unit_test(malformed_heads_are_answered_400_and_closed),
        cmocka_unit_test(a_head_cut_short_is_answered_400),
        cmocka_unit_test(a_slow_head_is_answered_408_at_its_limit),
        cmocka_unit_test(an_idle_connection_is_closed_without_a_word),
        cmocka_unit_test(a_request_keeps_the_idle_clock_from_running),
        cmocka_unit_test(a_quiet_reply_never_times_out),
        cmocka_unit_test(a_follower_that_closes_is_noticed),
        cmocka_unit_test(a_reset_is_noticed_at_once),
        cmocka_unit_test(a_request_of_a_gone_client_still_waits_for_its_reply),
        cmocka_unit_test(a_client_that_shuts_its_side_still_gets_its_reply),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
