/* SPDX-License-Identifier: Apache-2.0 */
#include "http/test/harness.h"

#include <fcntl.h>
#include <sys/mman.h>

enum { FILE_BYTES = 10 * 1000 * 1000, BIG_BYTES = 20 * 1000 * 1000, PIECE_BYTES = 50000 };

static char *file_content;
static atomic_size_t most_waiting;
static atomic_int done_count, drain_count;
static atomic_uint_least64_t bytes_out;

static int open_file(void)
{
    int fd = memfd_create("reply", MFD_CLOEXEC);

    assert_int_equal(write(fd, file_content, FILE_BYTES), FILE_BYTES);
    return fd;
}

/* A producer that writes one piece after another whenever the queue is empty. */
static void write_piece(struct http_req *req)
{
    size_t *left = http_req_context(req), piece = *left < PIECE_BYTES ? *left : PIECE_BYTES;

    atomic_fetch_add(&drain_count, 1);
    while (piece) {
        size_t waiting = http_reply_write(req, file_content, piece);

        if (waiting > atomic_load(&most_waiting))
            atomic_store(&most_waiting, waiting);
        *left -= piece;
        piece = *left < PIECE_BYTES ? *left : PIECE_BYTES;
        if (waiting >= HTTP_REPLY_HIGH_WATER)
            return;
    }
    http_reply_end(req);
}

static void start_big(struct http_req *req, int64_t length)
{
    size_t *left = arena_alloc(http_req_arena(req), sizeof(*left));

    *left = BIG_BYTES;
    http_req_set_context(req, left);
    http_reply_on_drain(req, write_piece);
    http_reply_start(req, 200, length);
    write_piece(req);
}

static void reply_in_pieces(struct http_req *req, int64_t length)
{
    http_reply_start(req, 200, length);
    http_reply_write(req, "one ", 4);
    http_reply_write(req, "", 0);
    http_reply_write(req, "two", 3);
    http_reply_end(req);
}

static void reply_with_headers(struct http_req *req)
{
    http_reply_header(req, "X-Plain", "value");
    http_reply_headerf(req, "X-Number", "%d", 7);
    http_reply_header(req, "X-Split", "a\r\nX-Evil: b");
    http_reply_header(req, "X-Name\r\nX-Evil", "b");
    http_reply_header(req, "Content-Length", "1000");
    http_reply_header(req, "Transfer-Encoding", "chunked");
    http_reply(req, 200, "ok", 2);
}

static void on_request(struct http_req *req, void *context)
{
    const char *path = http_req_raw_path(req);

    (void)context;
    if (str_equal(path, "/file")) {
        http_reply_file(req, 200, open_file(), 0, FILE_BYTES);
    } else if (str_equal(path, "/part")) {
        http_reply_file(req, 206, open_file(), 1000, 500);
    } else if (str_equal(path, "/short")) {
        http_reply_file(req, 200, open_file(), 0, FILE_BYTES + 1000);
    } else if (str_equal(path, "/nothing")) {
        http_reply(req, 204, NULL, 0);
    } else if (str_equal(path, "/unchanged")) {
        http_reply(req, 304, NULL, 0);
    } else if (str_equal(path, "/pieces")) {
        reply_in_pieces(req, -1);
    } else if (str_equal(path, "/sized")) {
        reply_in_pieces(req, 7);
    } else if (str_equal(path, "/toolong")) {
        reply_in_pieces(req, 5);
    } else if (str_equal(path, "/tooshort")) {
        reply_in_pieces(req, 70);
    } else if (str_equal(path, "/abort")) {
        http_reply_start(req, 200, -1);
        http_reply_write(req, "some", 4);
        http_reply_abort(req);
    } else if (str_equal(path, "/big")) {
        start_big(req, -1);
    } else if (str_equal(path, "/bigsized")) {
        start_big(req, BIG_BYTES);
    } else if (str_equal(path, "/whole")) {
        http_reply(req, 200, file_content, FILE_BYTES);
    } else if (str_equal(path, "/headers")) {
        reply_with_headers(req);
    } else if (str_equal(path, "/close")) {
        http_reply_header(req, "Connection", "close");
        http_reply(req, 200, "bye", 3);
    } else {
        http_reply(req, 404, "hello", 5);
    }
}

static void on_done(struct http_req *req, int status, uint64_t bytes, void *context)
{
    (void)req;
    (void)status;
    (void)context;
    atomic_store(&bytes_out, bytes);
    atomic_fetch_add(&done_count, 1);
}

static struct harness start(void)
{
    struct harness h;

    atomic_store(&most_waiting, 0);
    atomic_store(&done_count, 0);
    atomic_store(&drain_count, 0);
    harness_init(&h, on_request);
    h.config.on_done = on_done;
    h.config.body_timeout_ms = 1000;
    harness_start(&h, NULL);
    return h;
}

static struct reply ask(struct client *c, const char *method, const char *path)
{
    auto_free char *text = xasprintf("%s %s HTTP/1.1\r\nHost: a\r\n\r\n", method, path);

    say(c, text);
    return hear(c, str_equal(method, "HEAD"));
}

static void heads_say_what_follows(void **state)
{
    static const struct {
        const char *method, *path;
        int status;
        const char *length, *body; /* NULL: must not be there */
    } rows[] = {
        {"GET", "/x", 404, "5", "hello"},       {"HEAD", "/x", 404, "5", ""},
        {"GET", "/nothing", 204, NULL, ""},     {"GET", "/unchanged", 304, NULL, ""},
        {"HEAD", "/nothing", 204, NULL, ""},    {"GET", "/pieces", 200, NULL, "one two"},
        {"HEAD", "/pieces", 200, NULL, ""},     {"GET", "/sized", 200, "7", "one two"},
        {"HEAD", "/sized", 200, "7", ""},       {"GET", "/toolong", 200, "5", "one t"},
        {"HEAD", "/file", 200, "10000000", ""}, {"HEAD", "/tooshort", 200, "70", ""},
        {"GET", "/headers", 200, "2", "ok"},
    };
    struct harness h = start();
    struct client c = dial(&h);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows);
         i++) { /* one connection: framing errors would show */
        struct reply reply = ask(&c, rows[i].method, rows[i].path);
        auto_free char *length = reply_header(&reply, "Content-Length");
        auto_free char *date = reply_header(&reply, "Date");
        auto_free char *id = reply_header(&reply, "x-ms-request-id");

        assert_int_equal(reply.status, rows[i].status);
        assert_string_equal(str_text(&reply.body), rows[i].body);
        assert_true(str_equal(length, rows[i].length));
        assert_non_null(date);
        assert_int_equal(strlen(id), 36);
        reply_done(&reply);
    }
    hang_up(&c);
    harness_done(&h);
}

static void headers_cannot_be_split_and_framing_is_the_servers(void **state)
{
    struct harness h = start();
    struct client c = dial(&h);
    struct reply reply = ask(&c, "GET", "/headers");
    auto_free char *plain = reply_header(&reply, "X-Plain");
    auto_free char *number = reply_header(&reply, "X-Number");

    (void)state;
    assert_string_equal(plain, "value");
    assert_string_equal(number, "7");
    assert_null(strstr(reply.head.data, "Evil"));
    assert_null(strstr(reply.head.data, "1000"));
    assert_null(strstr(reply.head.data, "chunked"));
    reply_done(&reply);
    reply = ask(&c, "GET", "/close");
    assert_non_null(strstr(reply.head.data, "\r\nConnection: close\r\n"));
    expect_closed(&c);
    reply_done(&reply);
    hang_up(&c);
    harness_done(&h);
}

static void files_and_large_replies_arrive_whole(void **state)
{
    static const struct {
        const char *path;
        size_t len, offset;
    } rows[] = {{"/file", FILE_BYTES, 0}, {"/part", 500, 1000}, {"/whole", FILE_BYTES, 0}};
    struct harness h = start();
    struct client c = dial(&h);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct reply reply = ask(&c, "GET", rows[i].path);

        assert_int_equal(reply.body.len, rows[i].len);
        assert_memory_equal(reply.body.data, file_content + rows[i].offset, rows[i].len);
        assert_true(becomes(&done_count, (int)i + 1));
        assert_int_equal(atomic_load(&bytes_out), reply.head.len + reply.body.len);
        reply_done(&reply);
    }
    hang_up(&c);
    harness_done(&h);
}

static void a_slow_reader_costs_bounded_memory(void **state)
{
    static const char *const paths[] = {"/big", "/bigsized"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        struct harness h = start();
        struct client c = dial(&h);
        struct reply reply;
        auto_free char *text = xasprintf("GET %s HTTP/1.1\r\nHost: a\r\n\r\n", paths[i]);

        say(&c, text);
        pause_ms(300); /* the queue fills up, and stays so */
        assert_true(atomic_load(&most_waiting) >= HTTP_REPLY_HIGH_WATER);
        assert_true(atomic_load(&most_waiting) < HTTP_REPLY_HIGH_WATER + 2 * PIECE_BYTES);
        assert_int_equal(atomic_load(&done_count), 0);
        reply = hear(&c, false);
        assert_int_equal(reply.body.len, BIG_BYTES);
        assert_true(becomes(&done_count, 1));
        assert_true(atomic_load(&drain_count) > 1);
        reply_done(&reply);
        hang_up(&c);
        harness_done(&h);
    }
}

static void a_reader_that_stops_is_dropped(void **state)
{
    struct harness h = start();
    struct client c = dial(&h);
    int64_t start_ms = clock_mono_ms();

    (void)state;
    say(&c, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(becomes(&done_count, 1)); /* by the body time-out of a second */
    assert_true(clock_mono_ms() - start_ms >= 1000);
    hang_up(&c);
    harness_done(&h);
}

static void an_incomplete_reply_cannot_be_taken_for_a_whole_one(void **state)
{
    static const char *const paths[] = {"/tooshort", "/abort", "/short"};
    struct harness h = start();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        struct client c = dial(&h);
        auto_free char *text = xasprintf("GET %s HTTP/1.1\r\nHost: a\r\n\r\n", paths[i]);
        const char *all, *length;

        say(&c, text);
        all = hear_all(&c);
        assert_null(strstr(all, "\r\n0\r\n\r\n"));
        length = strstr(all, "Content-Length: ");
        if (length)
            assert_true(strlen(strstr(all, "\r\n\r\n")) - 4 < strtoull(length + 16, NULL, 10));
        assert_true(becomes(&done_count, (int)i + 1));
        hang_up(&c);
    }
    harness_done(&h);
}

/* Its only end is the end of the connection: that must be a bad one. */
static void an_aborted_reply_without_framing_is_reset(void **state)
{
    struct harness h = start();
    struct client c = dial(&h);
    char byte;
    ssize_t n;

    (void)state;
    say(&c, "GET /abort HTTP/1.0\r\n\r\n");
    do
        n = recv(c.fd, &byte, 1, 0);
    while (n > 0);
    assert_int_equal(n, -1);
    assert_int_equal(errno, ECONNRESET);
    hang_up(&c);
    harness_done(&h);
}

static void old_clients_get_no_chunks(void **state)
{
    struct harness h = start();
    struct client c = dial(&h);
    const char *all;

    (void)state;
    say(&c, "GET /pieces HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    all = hear_all(&c);
    assert_null(strstr(all, "chunked"));
    assert_non_null(strstr(all, "\r\nConnection: close\r\n"));
    assert_true(str_ends(all, "\r\n\r\none two"));
    hang_up(&c);
    harness_done(&h);
}

static int group_setup(void **state)
{
    (void)state;
    file_content = xmalloc(FILE_BYTES);
    for (size_t i = 0; i < FILE_BYTES; i++)
        file_content[i] = (char)('a' + i * 7 % 23 + (i >> 12) % 3);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    free(file_content);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_say_what_follows),
        cmocka_unit_test(headers_cannot_be_split_and_framing_is_the_servers),
        cmocka_unit_test(files_and_large_replies_arrive_whole),
        cmocka_unit_test(a_slow_reader_costs_bounded_memory),
        cmocka_unit_test(a_reader_that_stops_is_dropped),
        cmocka_unit_test(an_incomplete_reply_cannot_be_taken_for_a_whole_one),
        cmocka_unit_test(an_aborted_reply_without_framing_is_reset),
        cmocka_unit_test(old_clients_get_no_chunks),
    };

    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
