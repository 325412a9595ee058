/* SPDX-License-Identifier: Apache-2.0 */
#include "http/test/harness.h"

/* Paths: /collect echoes a body of at most 1000 bytes; /count streams and answers the number of
 * bytes; /pause pauses after every piece until the test resumes; /ignore answers without
 * looking at the body; /late asks for the body 50 ms later. */

static atomic_int paused_count, broken_count, done_count, last_status;
static atomic_size_t seen;
static struct http_req *_Atomic paused;

static void on_collected(struct http_req *req)
{
    size_t len;
    const char *body = http_req_body(req, &len);

    assert_int_equal(body[len], '\0');
    http_reply(req, 200, body, len);
}

static void on_data(struct http_req *req, const void *bytes, size_t len)
{
    (void)bytes;
    (void)req;
    atomic_fetch_add(&seen, len);
}

static void on_end(struct http_req *req)
{
    auto_free char *text = xasprintf("%zu", atomic_load(&seen));

    http_reply(req, 200, text, strlen(text));
}

static void on_broken(struct http_req *req)
{
    assert_true(http_req_is_gone(req));
    atomic_fetch_add(&broken_count, 1);
    http_reply(req, 500, NULL, 0);
}

static const struct http_sink counting = {on_data, on_end, on_broken};

static void on_data_pause(struct http_req *req, const void *bytes, size_t len)
{
    on_data(req, bytes, len);
    http_req_pause(req);
    atomic_store(&paused, req);
    atomic_fetch_add(&paused_count, 1);
}

static const struct http_sink pausing = {on_data_pause, on_end, on_broken};

static void resume(struct http_req *req, void *arg)
{
    (void)arg;
    http_req_resume(req);
}

static void claim(struct http_req *req, void *arg)
{
    (void)arg;
    http_req_stream(req, &counting);
}

static void *claim_later(void *arg)
{
    pause_ms(50);
    http_req_post(arg, claim, NULL);
    return NULL;
}

static void on_request(struct http_req *req, void *context)
{
    const char *path = http_req_raw_path(req);
    pthread_t thread;

    (void)context;
    atomic_store(&seen, 0);
    if (str_equal(path, "/collect")) {
        http_req_collect(req, 1000, on_collected);
    } else if (str_equal(path, "/count")) {
        http_req_stream(req, &counting);
    } else if (str_equal(path, "/pause")) {
        http_req_stream(req, &pausing);
    } else if (str_equal(path, "/late")) {
        pthread_create(&thread, NULL, claim_later, req);
        pthread_detach(thread);
    } else {
        http_reply(req, 200, "ignored", 7);
    }
}

static void on_done(struct http_req *req, int status, uint64_t bytes_out, void *context)
{
    (void)req;
    (void)bytes_out;
    (void)context;
    atomic_store(&last_status, status);
    atomic_fetch_add(&done_count, 1);
}

static struct harness start(int64_t body_timeout_ms)
{
    struct harness h;

    atomic_store(&paused_count, 0);
    atomic_store(&broken_count, 0);
    atomic_store(&done_count, 0);
    harness_init(&h, on_request);
    h.config.on_done = on_done;
    if (body_timeout_ms)
        h.config.body_timeout_ms = body_timeout_ms;
    harness_start(&h, NULL);
    return h;
}

#define POST(path, headers) "POST " path " HTTP/1.1\r\nHost: a\r\n" headers "\r\n"
#define CHUNKED             "Transfer-Encoding: chunked\r\n"

static void bodies_arrive_whichever_way_they_are_framed(void **state)
{
    static const struct {
        const char *text, *answer;
    } rows[] = {
        {POST("/collect", "Content-Length: 5\r\n") "hello", "hello"},
        {POST("/collect", "Content-Length: 0\r\n"), ""},
        {POST("/collect", ""), ""},
        {POST("/collect", CHUNKED) "2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nA: b\r\n\r\n", "hello"},
        {POST("/collect", CHUNKED) "0\r\n\r\n", ""},
        {POST("/count", "Content-Length: 5\r\n") "hello", "5"},
        {POST("/count", ""), "0"},
        {POST("/count", CHUNKED) "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "5"},
        {POST("/late", CHUNKED) "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "5"},
        {POST("/late", "Content-Length: 5\r\n") "hello", "5"},
    };
    struct harness h = start(0);
    struct client c = dial(&h);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) { /* all on one connection */
        say(&c, rows[i].text);
        expect(&c, 200, rows[i].answer);
    }
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) { /* and all at once */
        say(&c, rows[i].text);
    }
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        expect(&c, 200, rows[i].answer);
    hang_up(&c);
    harness_done(&h);
}

static void a_body_may_come_byte_by_byte(void **state)
{
    static const char text[] =
        POST("/collect", CHUNKED) "2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nA: b\r\n\r\n";
    struct harness h = start(0);
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

static void a_large_body_streams_through(void **state)
{
    enum { PIECES = 300, PIECE = 100000 };
    struct harness h = start(0);
    struct client c = dial(&h);
    auto_free char *piece = xcalloc(1, PIECE);

    (void)state;
    say(&c, POST("/count", "Content-Length: 30000000\r\n"));
    for (int i = 0; i < PIECES; i++)
        say_bytes(&c, piece, PIECE);
    expect(&c, 200, "30000000");

    say(&c, POST("/count", CHUNKED));
    for (int i = 0; i < PIECES; i++) {
        say(&c, "186A0\r\n");
        say_bytes(&c, piece, PIECE);
        say(&c, "\r\n");
    }
    say(&c, "0\r\n\r\n");
    expect(&c, 200, "30000000");
    hang_up(&c);
    harness_done(&h);
}

/* --- 100-continue --- */

static void continue_is_said_when_the_body_is_wanted(void **state)
{
    struct harness h = start(0);
    struct client c = dial(&h);

    (void)state;
    say(&c, POST("/late", "Content-Length: 5\r\nExpect: 100-continue\r\n"));
    expect(&c, 100, NULL);
    say(&c, "hello");
    expect(&c, 200, "5");
    hang_up(&c);
    harness_done(&h);
}

static void continue_is_not_said_when_the_body_is_refused(void **state)
{
    static const struct {
        const char *text;
        int status;
    } rows[] = {
        {POST("/ignore", "Content-Length: 5\r\nExpect: 100-continue\r\n"), 200},
        {POST("/collect", "Content-Length: 1001\r\nExpect: 100-continue\r\n"), 413},
    };
    struct harness h = start(0);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct client c = dial(&h);

        say(&c, rows[i].text);
        expect(&c, rows[i].status, NULL);
        expect_closed(&c); /* nobody knows whether the body will come */
        hang_up(&c);
    }
    harness_done(&h);
}

/* --- limits --- */

static void a_body_over_the_limit_is_answered_413(void **state)
{
    auto_free char *body = xcalloc(1, 1100);
    auto_free char *chunked = NULL;
    struct harness h = start(0);
    struct client sized = dial(&h), pieces = dial(&h), fits = dial(&h);

    (void)state;
    memset(body, 'x', 1001);
    say(&sized, POST("/collect", "Content-Length: 1001\r\n"));
    expect(&sized, 413, NULL);

    chunked = xasprintf(POST("/collect", CHUNKED) "3e9\r\n%s\r\n0\r\n\r\n", body);
    say(&pieces, chunked);
    expect(&pieces, 413,
           "{\"error\":{\"code\":\"RequestBodyTooLarge\",\"message\":\"the body is larger than "
           "1000 bytes\"}}");
    expect_closed(&pieces);

    body[1000] = '\0';
    say(&fits, POST("/collect", "Content-Length: 1000\r\n"));
    say(&fits, body);
    expect(&fits, 200, body);
    assert_true(becomes(&done_count, 3));
    hang_up(&sized);
    hang_up(&pieces);
    hang_up(&fits);
    harness_done(&h);
}

static void an_unwanted_body_is_thrown_away(void **state)
{
    struct harness h = start(0);
    struct client c = dial(&h);
    auto_free char *body = xcalloc(1, 200000);

    (void)state;
    say(&c, POST("/ignore", "Content-Length: 5\r\n") "hello");
    expect(&c, 200, "ignored");
    say(&c, POST("/ignore", "Content-Length: 200000\r\n"));
    expect(&c, 200, "ignored");
    say_bytes(&c, body, 200000);
    say(&c, POST("/collect", "Content-Length: 2\r\n") "ok");
    expect(&c, 200, "ok");
    hang_up(&c);
    harness_done(&h);
}

static void a_large_unwanted_body_costs_the_connection(void **state)
{
    static const char *const texts[] = {POST("/ignore", "Content-Length: 100000000\r\n"),
                                        POST("/ignore", CHUNKED)};
    struct harness h = start(0);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct client c = dial(&h);

        say(&c, texts[i]);
        expect(&c, 200, "ignored");
        expect_closed(&c);
        hang_up(&c);
    }
    harness_done(&h);
}

/* --- back-pressure --- */

static void a_paused_sink_holds_back_the_client(void **state)
{
    enum { PIECE = 65536 };
    struct harness h = start(0);
    struct client c = dial(&h);
    auto_free char *piece = xcalloc(1, PIECE);
    size_t sent = 0;
    ssize_t n;

    (void)state;
    say(&c, POST("/pause", "Content-Length: 1000000000\r\n"));
    while (sent < 500000000) {
        n = send(c.fd, piece, PIECE, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            sent += (size_t)n;
            continue;
        }
        pause_ms(50);
        if (send(c.fd, piece, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            break;
        sent++;
    }
    assert_true(sent < 50000000); /* what the kernel's buffers take */
    assert_true(becomes(&paused_count, 1));
    pause_ms(100);
    assert_int_equal(atomic_load(&paused_count), 1);
    assert_true(atomic_load(&seen) <= PIECE);

    http_req_post(atomic_load(&paused), resume, NULL);
    assert_true(becomes(&paused_count, 2));
    assert_true(atomic_load(&seen) <= 2 * PIECE);
    hang_up(&c);
    http_req_post(atomic_load(&paused), resume, NULL);
    harness_done(&h);
}

/* Many chunks in one buffer: the ones after the pause must wait, and none may be lost. */
static void small_chunks_are_paused_one_by_one(void **state)
{
    struct harness h = start(0);
    struct client c = dial(&h);

    (void)state;
    say(&c, POST("/pause", CHUNKED) "1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n");
    for (int i = 1; i <= 3; i++) {
        assert_true(becomes(&paused_count, i));
        pause_ms(10);
        assert_int_equal(atomic_load(&seen), i);
        http_req_post(atomic_load(&paused), resume, NULL);
    }
    expect(&c, 200, "3");
    hang_up(&c);
    harness_done(&h);
}

/* --- what goes wrong --- */

static void broken_bodies_are_told_and_answered(void **state)
{
    static const struct {
        const char *text;
        int status;
        bool is_cut; /* the client shuts its side */
    } rows[] = {
        {POST("/count", "Content-Length: 5\r\n") "hell", 400, true},
        {POST("/count", CHUNKED) "5\r\nhello\r\n", 400, true},
        {POST("/count", CHUNKED) "5\r\nhello!\r\n0\r\n\r\n", 400, false},
        {POST("/count", CHUNKED) "zz\r\n", 400, false},
        {POST("/count", CHUNKED) "1\nx\n0\n\n", 400, false},
        {POST("/count", "Content-Length: 5\r\n") "hell", 408, false},
        {POST("/collect", "Content-Length: 5\r\n") "hell", 408, false},
        {POST("/collect", CHUNKED) "zz\r\n", 400, false},
        {POST("/collect", "Content-Length: 5\r\n") "hell", 400, true},
    };
    int broken = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct harness h = start(100);
        struct client c = dial(&h);

        say(&c, rows[i].text);
        if (rows[i].is_cut)
            shutdown(c.fd, SHUT_WR);
        expect(&c, rows[i].status, NULL);
        expect_closed(&c);
        broken = strstr(rows[i].text, "/count") ? 1 : 0;
        assert_true(becomes(&broken_count, broken));
        assert_true(becomes(&done_count, 1));
        hang_up(&c);
        harness_done(&h);
    }
}

static void a_client_that_vanishes_breaks_its_body(void **state)
{
    struct harness h = start(0);
    struct client c = dial(&h);

    (void)state;
    say(&c, POST("/count", "Content-Length: 5\r\n") "hell");
    pause_ms(20);
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
               sizeof(struct linger));
    hang_up(&c);
    assert_true(becomes(&broken_count, 1));
    assert_true(becomes(&done_count, 1));
    harness_done(&h);
}

static void a_body_that_trickles_is_given_up(void **state)
{
    struct harness h = start(400); /* so 20 bytes are wanted in 400 ms */
    struct client c = dial(&h);

    (void)state;
    say(&c, POST("/count", "Content-Length: 100\r\n"));
    for (int i = 0; i < 12; i++) {
        say(&c, "x");
        pause_ms(50);
    }
    expect(&c, 408, NULL);
    assert_true(becomes(&broken_count, 1));
    hang_up(&c);
    harness_done(&h);
}

static void the_body_clock_stands_still_while_paused(void **state)
{
    struct harness h = start(100);
    struct client c = dial(&h);

    (void)state;
    say(&c, POST("/pause", "Content-Length: 5\r\n") "hello");
    assert_true(becomes(&paused_count, 1));
    pause_ms(300);
    http_req_post(atomic_load(&paused), resume, NULL);
    expect(&c, 200, "5");
    hang_up(&c);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_arrive_whichever_way_they_are_framed),
        cmocka_unit_test(a_body_may_come_byte_by_byte),
        cmocka_unit_test(a_large_body_streams_through),
        cmocka_unit_test(continue_is_said_when_the_body_is_wanted),
        cmocka_unit_test(continue_is_not_said_when_the_body_is_refused),
        cmocka_unit_test(a_body_over_the_limit_is_answered_413),
        cmocka_unit_test(an_unwanted_body_is_thrown_away),
        cmocka_unit_test(a_large_unwanted_body_costs_the_connection),
        cmocka_unit_test(a_paused_sink_holds_back_the_client),
        cmocka_unit_test(small_chunks_are_paused_one_by_one),
        cmocka_unit_test(broken_bodies_are_told_and_answered),
        cmocka_unit_test(a_client_that_vanishes_breaks_its_body),
        cmocka_unit_test(a_body_that_trickles_is_given_up),
        cmocka_unit_test(the_body_clock_stands_still_while_paused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
