/* SPDX-License-Identifier: Apache-2.0 */
#include "http/parser.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct http_limits limits = {8192, 32768, 100};

/* Bytes with their length: some of them hold NULs. */
#define BYTES(text) text, sizeof(text) - 1

struct read {
    int status; /* 0: accepted; -1: more is needed */
    const char *why;
    struct http_head head;
    struct http_field fields[128];
    size_t used;
    char *text;
};

/* As a connection does it, with `step` more bytes each time. */
static void read_head(struct read *r, const char *bytes, size_t len, size_t step)
{
    struct http_scan scan = {0};
    size_t have = 0;

    *r = (struct read){.status = 0};
    while (!r->status && !scan.length && have < len) {
        have = have + step < len ? have + step : len;
        r->status = http_scan_head(&scan, &limits, bytes, have, &r->why);
    }
    if (r->status)
        return;
    if (!scan.length) {
        r->status = -1;
        return;
    }
    assert_true(scan.lines <= ARRAY_SIZE(r->fields));
    r->used = scan.start + scan.length;
    r->text = xstrndup("", 0);
    r->text = xrealloc(r->text, scan.length + 1);
    memcpy(r->text, bytes + scan.start, scan.length);
    r->text[scan.length] = '\0';
    r->status = http_parse_head(r->text, scan.length, r->fields, scan.lines, &r->head, &r->why);
}

static const struct bad {
    const char *name, *bytes;
    size_t len;
    int status;
} bads[] = {
    /* the fourteen */
    {"CL and TE",
     BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: "
           "chunked\r\n\r\n"),
     400},
    {"two CL, differing",
     BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"),
     400},
    {"two CL, identical",
     BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n"),
     400},
    {"CL with a sign", BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n"), 400},
    {"TE not chunked",
     BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n"), 400},
    {"space before colon", BYTES("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), 400},
    {"obs-fold", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n"), 400},
    {"bare LF", BYTES("GET / HTTP/1.1\nHost: a\n\n"), 400},
    {"bare CR in value", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: b\rY: c\r\n\r\n"), 400},
    {"NUL in value", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n"), 400},
    {"no Host", BYTES("GET / HTTP/1.1\r\n\r\n"), 400},
    {"two Hosts", BYTES("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400},
    {"TE in 1.0", BYTES("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
     400},
    {"blank before first header", BYTES("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), 400},

    /* request line */
    {"no method", BYTES(" / HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"unknown method", BYTES("GRAB / HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"lower-case method", BYTES("get / HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"method is no token", BYTES("G\"T / HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"method with a colon", BYTES("GET: / HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"two spaces before target", BYTES("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"two spaces after target", BYTES("GET /  HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"tab as space", BYTES("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"space at the end", BYTES("GET / HTTP/1.1 \r\nHost: a\r\n\r\n"), 400},
    {"no version", BYTES("GET /\r\nHost: a\r\n\r\n"), 400},
    {"HTTP/0.9", BYTES("GET / HTTP/0.9\r\nHost: a\r\n\r\n"), 400},
    {"HTTP/1.2", BYTES("GET / HTTP/1.2\r\nHost: a\r\n\r\n"), 400},
    {"HTTP/2.0", BYTES("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 400},
    {"HTTP/2 preface", BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 400},
    {"lower-case version", BYTES("GET / http/1.1\r\nHost: a\r\n\r\n"), 400},
    {"version with a zero", BYTES("GET / HTTP/1.01\r\nHost: a\r\n\r\n"), 400},
    {"version of another protocol", BYTES("GET / ICE/1.0\r\nHost: a\r\n\r\n"), 400},
    {"absolute-form", BYTES("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"authority-form", BYTES("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"asterisk for GET", BYTES("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"asterisk and more", BYTES("OPTIONS */ HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"fragment", BYTES("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"raw non-ASCII in target", BYTES("GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"NUL in target", BYTES("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"DEL in target", BYTES("GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"tab in target", BYTES("GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"TLS hello", BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), 400},
    {"two empty lines first", BYTES("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"bare LF first", BYTES("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400},
    {"bare LF after request line", BYTES("GET / HTTP/1.1\nHost: a\r\n\r\n"), 400},
    {"bare CR after request line", BYTES("GET / HTTP/1.1\rHost: a\r\n\r\n"), 400},
    {"CR CR LF", BYTES("GET / HTTP/1.1\r\r\nHost: a\r\n\r\n"), 400},

    /* header lines */
    {"bare LF after a header", BYTES("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"), 400},
    {"bare LF at the end", BYTES("GET / HTTP/1.1\r\nHost: a\r\n\n"), 400},
    {"only CRs", BYTES("GET / HTTP/1.1\rHost: a\r\r"), 400},
    {"no colon", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n"), 400},
    {"no name", BYTES("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"), 400},
    {"tab before colon", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX\t: b\r\n\r\n"), 400},
    {"name with a space", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX Y: b\r\n\r\n"), 400},
    {"name with a slash", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX/Y: b\r\n\r\n"), 400},
    {"name with non-ASCII", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX\xff: b\r\n\r\n"), 400},
    {"NUL in name", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n"), 400},
    {"escape in value", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: \x1b[2J\r\n\r\n"), 400},
    {"DEL in value", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n"), 400},
    {"fold with a tab", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc\r\n\r\n"), 400},
    {"fold of nothing", BYTES("GET / HTTP/1.1\r\nHost: a\r\n \r\n\r\n"), 400},

    /* Host */
    {"empty Host", BYTES("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 400},
    {"Host of blanks", BYTES("GET / HTTP/1.1\r\nHost:  \t\r\n\r\n"), 400},
    {"Host with a path", BYTES("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400},
    {"Host with a user", BYTES("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"), 400},
    {"Host list", BYTES("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"), 400},
    {"Host with an empty port", BYTES("GET / HTTP/1.1\r\nHost: a:\r\n\r\n"), 400},
    {"Host with a bad port", BYTES("GET / HTTP/1.1\r\nHost: a:8x\r\n\r\n"), 400},
    {"Host with a long port", BYTES("GET / HTTP/1.1\r\nHost: a:123456\r\n\r\n"), 400},
    {"Host of a port alone", BYTES("GET / HTTP/1.1\r\nHost: :80\r\n\r\n"), 400},
    {"Host open bracket", BYTES("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"), 400},
    {"Host with two differing", BYTES("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"), 400},
    {"bad Host in 1.0", BYTES("GET / HTTP/1.0\r\nHost: a b\r\n\r\n"), 400},

    /* Content-Length */
    {"CL negative", BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"), 400},
    {"CL empty", BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n"), 400},
    {"CL with a blank inside",
     BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 2\r\n\r\n"), 400},
    {"CL hex", BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x10\r\n\r\n"), 400},
    {"CL list", BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n"), 400},
    {"CL decimal", BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5.0\r\n\r\n"), 400},
    {"CL overflow",
     BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n"), 400},
    {"CL beyond a signed number",
     BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775808\r\n\r\n"), 400},

    /* Transfer-Encoding */
    {"TE identity", BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n"),
     400},
    {"TE gzip, chunked",
     BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"), 400},
    {"TE chunked, identity",
     BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n"), 400},
    {"TE twice",
     BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
           "chunked\r\n\r\n"),
     400},
    {"TE chunked, chunked",
     BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n"), 400},
    {"TE quoted", BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n"),
     400},
    {"TE with parameter",
     BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n"), 400},
    {"TE with comma",
     BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked,\r\n\r\n"), 400},
    {"TE with vertical tab",
     BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0b"
           "chunked\r\n\r\n"),
     400},
    {"TE empty", BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n"), 400},
    {"TE and CL, other order",
     BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: "
           "0\r\n\r\n"),
     400},

    {"expectation unknown", BYTES("GET / HTTP/1.1\r\nHost: a\r\nExpect: coffee\r\n\r\n"), 417},
};

static void malformed_heads_are_refused_whole_or_byte_by_byte(void **state)
{
    static const size_t steps[] = {1, 3, 100000};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bads); i++)
        for (size_t s = 0; s < ARRAY_SIZE(steps); s++) {
            struct read r;

            read_head(&r, bads[i].bytes, bads[i].len, steps[s]);
            if (r.status != bads[i].status || !r.why)
                fail_msg("%s: status %d at step %zu", bads[i].name, r.status, steps[s]);
            free(r.text);
        }
}

/* The well-formed neighbours of the above. */
static const struct good {
    const char *bytes;
    const char *method, *path, *query, *host;
    int64_t length;
    bool keep_alive;
} goods[] = {
    {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/", "", "a", 0, true},
    {"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/", "", "a", 0, true},
    {"GET / HTTP/1.1\r\nhOST:a\r\n\r\n", "GET", "/", "", "a", 0, true},
    {"GET / HTTP/1.1\r\nHost: \t a.b-c_d:8080 \t\r\n\r\n", "GET", "/", "", "a.b-c_d:8080", 0,
     true},
    {"GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET", "/", "", "[::1]:80", 0, true},
    {"GET /a%20b/c?d=e&f HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/a%20b/c", "d=e&f", "a", 0,
     true},
    {"GET /? HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/", "", "a", 0, true},
    {"GET //a?b?c HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "//a", "b?c", "a", 0, true},
    {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS", "*", "", "a", 0, true},
    {"PATCH /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "PATCH", "/x", "", "a", 0,
     true},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 107374182400\r\n\r\n", "POST", "/", "", "a",
     107374182400, true},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \t5 \r\n\r\n", "POST", "/", "", "a", 5,
     true},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n", "POST", "/", "", "a",
     -1, true},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, Close\r\n\r\n", "GET", "/", "", "a", 0,
     false},
    {"GET / HTTP/1.1\r\nHost: a\r\nX:\r\nY: \xc3\xa9\tz\r\n\r\n", "GET", "/", "", "a", 0, true},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "GET", "/", "",
     "a", 0, true},
    {"GET / HTTP/1.0\r\n\r\n", "GET", "/", "", NULL, 0, false},
    {"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", "GET", "/", "", "a", 0,
     true},
    {"DELETE / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n",
     "DELETE", "/", "", "a", 3, true},
};

static void well_formed_heads_are_taken_apart(void **state)
{
    static const size_t steps[] = {1, 100000};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(goods) * 2; i++) {
        const struct good *good = &goods[i / 2];
        auto_free char *bytes = xasprintf("%sGET /next", good->bytes);
        struct read r;

        read_head(&r, bytes, strlen(bytes), steps[i % 2]);
        if (r.status)
            fail_msg("%s: status %d, %s", good->bytes, r.status, r.why);
        assert_int_equal(r.used, strlen(good->bytes));
        assert_string_equal(r.head.method, good->method);
        assert_string_equal(r.head.path, good->path);
        assert_string_equal(r.head.query, good->query);
        assert_true(str_equal(r.head.host, good->host));
        assert_int_equal(r.head.content_length, good->length);
        assert_int_equal(r.head.is_keep_alive, good->keep_alive);
        free(r.text);
    }
}

static void values_are_trimmed_and_empty_ones_are_there(void **state)
{
    static const char bytes[] = "GET / HTTP/1.1\r\nHost: a\r\nEmpty:\r\nBlank: \t \r\n"
                                "Padded: \t x  y\t\r\nExpect: 100-continue\r\n\r\n";
    static const struct http_field expected[] = {{"Host", "a"},
                                                 {"Empty", ""},
                                                 {"Blank", ""},
                                                 {"Padded", "x  y"},
                                                 {"Expect", "100-continue"}};
    struct read r;

    (void)state;
    read_head(&r, bytes, sizeof(bytes) - 1, 1000);
    assert_int_equal(r.status, 0);
    assert_int_equal(r.head.count, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        assert_string_equal(r.head.fields[i].name, expected[i].name);
        assert_string_equal(r.head.fields[i].value, expected[i].value);
    }
    assert_false(r.head.expects_continue); /* without a body there is nothing to wait for */
    free(r.text);
}

static int status_of(const struct str *text, size_t step)
{
    struct read r;

    read_head(&r, text->data, text->len, step);
    free(r.text);
    return r.status;
}

/* A request with a target of so many bytes, a header value of so many, and so many more
 * headers. */
static int status_of_sizes(size_t target, size_t value, size_t headers)
{
    auto_str text = {0};

    str_add(&text, "GET ");
    for (size_t i = 0; i < target; i++)
        str_add_char(&text, '/');
    str_add(&text, " HTTP/1.1\r\nHost: a\r\nX: ");
    for (size_t i = 0; i < value; i++)
        str_add_char(&text, 'x');
    str_add(&text, "\r\n");
    for (size_t i = 0; i < headers; i++)
        str_addf(&text, "H%zu: 1\r\n", i);
    str_add(&text, "\r\n");
    assert_int_equal(status_of(&text, 1), status_of(&text, 1000000));
    return status_of(&text, 4000);
}

static void sizes_at_the_limit_pass_and_beyond_are_refused(void **state)
{
    (void)state;
    assert_int_equal(status_of_sizes(8192 - 15, 1, 0), 0);
    assert_int_equal(status_of_sizes(8192 - 14, 1, 0), 414);
    assert_int_equal(status_of_sizes(100000, 1, 0), 414);
    assert_int_equal(status_of_sizes(1, 8192 - 5, 0), 0);
    assert_int_equal(status_of_sizes(1, 8192 - 4, 0), 431);
    assert_int_equal(status_of_sizes(1, 1, 98), 0);
    assert_int_equal(status_of_sizes(1, 1, 99), 431);
}

static void a_head_of_many_long_lines_is_refused(void **state)
{
    auto_str text = {0};

    (void)state;
    str_add(&text, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < 5; i++)
        str_addf(&text, "X: %08000d\r\n", i);
    str_add(&text, "\r\n");
    assert_int_equal(status_of(&text, 1000000), 431);
    assert_int_equal(status_of(&text, 7), 431);
}

static void an_unfinished_head_needs_more(void **state)
{
    static const char bytes[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    (void)state;
    for (size_t len = 0; len < sizeof(bytes) - 1; len++) {
        struct read r;

        read_head(&r, bytes, len, 2);
        assert_int_equal(r.status, -1);
    }
}

static void tokens_are_found_in_lists_whatever_the_case(void **state)
{
    (void)state;
    assert_true(http_list_has("close", "close"));
    assert_true(http_list_has("a,CLOSE ,b", "close"));
    assert_true(http_list_has(", ,close", "close"));
    assert_false(http_list_has("closed", "close"));
    assert_false(http_list_has("clos", "close"));
    assert_false(http_list_has("not close", "close"));
    assert_false(http_list_has("close not", "close"));
    assert_false(http_list_has("", "close"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_heads_are_refused_whole_or_byte_by_byte),
        cmocka_unit_test(well_formed_heads_are_taken_apart),
        cmocka_unit_test(values_are_trimmed_and_empty_ones_are_there),
        cmocka_unit_test(sizes_at_the_limit_pass_and_beyond_are_refused),
        cmocka_unit_test(a_head_of_many_long_lines_is_refused),
        cmocka_unit_test(an_unfinished_head_needs_more),
        cmocka_unit_test(tokens_are_found_in_lists_whatever_the_case),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
