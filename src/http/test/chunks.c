/* SPDX-License-Identifier: Apache-2.0 */
#include "http/parser.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define BYTES(text) text, sizeof(text) - 1

/* Decode in steps; returns the status, -1 when the body is not complete. */
static int decode(const char *bytes, size_t len, size_t step, struct str *ret, size_t *ret_used)
{
    struct http_chunks chunks = {0};
    size_t at = 0;

    while (at < len && !http_chunks_is_done(&chunks)) {
        size_t have = step < len - at ? step : len - at, used, data_len;
        const char *data, *why = NULL;
        int status = http_chunks_feed(&chunks, bytes + at, have, &used, &data, &data_len, &why);

        if (status) {
            assert_non_null(why);
            return status;
        }
        assert_true(used > 0 && used <= have);
        str_add_len(ret, data, data_len);
        at += used;
    }
    *ret_used = at;
    return http_chunks_is_done(&chunks) ? 0 : -1;
}

static const struct row {
    const char *name, *bytes;
    size_t len;
    const char *body; /* NULL: refused */
} rows[] = {
    {"empty", BYTES("0\r\n\r\n"), ""},
    {"one", BYTES("5\r\nhello\r\n0\r\n\r\n"), "hello"},
    {"several", BYTES("1\r\na\r\n2\r\nbc\r\n00003\r\ndef\r\n000\r\n\r\n"), "abcdef"},
    {"hex digits of both cases", BYTES("a\r\n0123456789\r\nB\r\n0123456789a\r\n0\r\n\r\n"),
     "01234567890123456789a"},
    {"data that looks like framing", BYTES("5\r\n0\r\n\r\n\r\n0\r\n\r\n"), "0\r\n\r\n"},
    {"extension", BYTES("1;a\r\nx\r\n0;b=c;d\r\n\r\n"), "x"},
    {"extensions", BYTES("1;a=b;c;d=e\r\nx\r\n0\r\n\r\n"), "x"},
    {"trailers", BYTES("1\r\nx\r\n0\r\nA: b\r\nC:\r\n\r\n"), "x"},

    {"no size", BYTES("\r\nx\r\n"), NULL},
    {"no digits before extension", BYTES(";a\r\n"), NULL},
    {"size negative", BYTES("-1\r\nx\r\n0\r\n\r\n"), NULL},
    {"size with a sign", BYTES("+1\r\nx\r\n0\r\n\r\n"), NULL},
    {"size with 0x", BYTES("0x1\r\nx\r\n0\r\n\r\n"), NULL},
    {"size with a leading blank", BYTES(" 1\r\nx\r\n0\r\n\r\n"), NULL},
    {"size with a trailing blank", BYTES("1 \r\nx\r\n0\r\n\r\n"), NULL},
    {"blank before extension", BYTES("1 ;a\r\nx\r\n0\r\n\r\n"), NULL},
    {"size no hex", BYTES("g\r\nx\r\n0\r\n\r\n"), NULL},
    {"size too large", BYTES("1000000000000000\r\nx"), NULL},
    {"size overflow", BYTES("ffffffffffffffff1\r\nx"), NULL},
    {"size with an underscore", BYTES("1_0\r\nx"), NULL},
    {"size ends in bare LF", BYTES("1\nx\r\n0\r\n\r\n"), NULL},
    {"size ends in bare CR", BYTES("1\rx\r\n0\r\n\r\n"), NULL},
    {"CR in an extension", BYTES("1;a\rb\r\nx\r\n0\r\n\r\n"), NULL},
    {"LF in an extension", BYTES("1;a\nb\r\nx\r\n0\r\n\r\n"), NULL},
    {"NUL in an extension", BYTES("1;\0\r\nx\r\n0\r\n\r\n"), NULL},
    {"extension without name", BYTES("1;\r\nx\r\n0\r\n\r\n"), NULL},
    {"extension without name but value", BYTES("1;=b\r\nx\r\n0\r\n\r\n"), NULL},
    {"extension without value", BYTES("1;a=\r\nx\r\n0\r\n\r\n"), NULL},
    {"extension with two values", BYTES("1;a=b=c\r\nx\r\n0\r\n\r\n"), NULL},
    {"two semicolons", BYTES("1;;a\r\nx\r\n0\r\n\r\n"), NULL},
    {"quoted extension", BYTES("1;a=\"b\"\r\nx\r\n0\r\n\r\n"), NULL},
    {"data longer than said", BYTES("1\r\nxy\r\n0\r\n\r\n"), NULL},
    {"data shorter than said", BYTES("3\r\nx\r\n0\r\n\r\n"), NULL},
    {"data ends in bare LF", BYTES("1\r\nx\n0\r\n\r\n"), NULL},
    {"data ends in bare CR", BYTES("1\r\nx\r0\r\n\r\n"), NULL},
    {"data ends in nothing", BYTES("1\r\nx0\r\n\r\n"), NULL},
    {"last ends in bare LF", BYTES("0\n\r\n"), NULL},
    {"end in bare LF", BYTES("0\r\n\n"), NULL},
    {"end in CR CR", BYTES("0\r\n\r\r"), NULL},
    {"trailer without colon", BYTES("0\r\nA\r\n\r\n"), NULL},
    {"trailer without name", BYTES("0\r\n: b\r\n\r\n"), NULL},
    {"trailer with a blank in its name", BYTES("0\r\nA : b\r\n\r\n"), NULL},
    {"trailer folded", BYTES("0\r\nA: b\r\n c\r\n\r\n"), NULL},
    {"trailer with NUL", BYTES("0\r\nA: \0\r\n\r\n"), NULL},
    {"trailer ends in bare LF", BYTES("0\r\nA: b\n\r\n"), NULL},
    {"trailer Content-Length", BYTES("0\r\nContent-Length: 5\r\n\r\n"), NULL},
    {"trailer of any case", BYTES("0\r\nA: b\r\ntransfer-ENCODING: chunked\r\n\r\n"), NULL},
    {"trailer Connection", BYTES("0\r\nConnection: close\r\n\r\n"), NULL},
    {"trailer that only starts so", BYTES("0\r\nHosts: a\r\nTransfer-Encodings: b\r\n\r\n"),
     ""},
    {"a second request instead of an end", BYTES("0\r\nGET / HTTP/1.1\r\n\r\n"), NULL},
};

static void bodies_are_decoded_or_refused_however_they_are_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows) * 8; i++) {
        const struct row *row = &rows[i / 8];
        auto_str body = {0};
        size_t used = 0;
        int status = decode(row->bytes, row->len, i % 8 ? i % 8 : 1000, &body, &used);

        if (status != (row->body ? 0 : 400))
            fail_msg("%s, cut %zu: status %d", row->name, i % 8, status);
        if (row->body) {
            assert_string_equal(str_text(&body), row->body);
            assert_int_equal(used, row->len);
        }
    }
}

static void what_follows_the_body_is_left_alone(void **state)
{
    static const char bytes[] = "1\r\nx\r\n0\r\n\r\nGET /";
    auto_str body = {0};
    size_t used = 0;

    (void)state;
    assert_int_equal(decode(bytes, sizeof(bytes) - 1, 100, &body, &used), 0);
    assert_string_equal(bytes + used, "GET /");
}

static void extensions_and_trailers_without_end_are_refused(void **state)
{
    static const char *const starts[] = {"1;", "0\r\nA: ", "0\r\nA"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
        auto_str text = {0}, body = {0};
        size_t used;

        str_add(&text, starts[i]);
        for (int n = 0; n < 20000; n++)
            str_add_char(&text, 'x');
        assert_int_equal(decode(text.data, text.len, 1000, &body, &used), 400);
    }
}

/* One extension of a byte per chunk of a byte: no single line is long. */
static void many_small_extensions_are_refused(void **state)
{
    auto_str text = {0}, body = {0};
    size_t used;

    (void)state;
    for (int n = 0; n < 20000; n++)
        str_add(&text, "1;a\r\nx\r\n");
    assert_int_equal(decode(text.data, text.len, 1000, &body, &used), 400);
    assert_true(body.len < 10000);
}

static void an_unfinished_body_is_not_done(void **state)
{
    static const char bytes[] = "3\r\nabc\r\n0\r\nA: b\r\n\r\n";

    (void)state;
    for (size_t len = 0; len < sizeof(bytes) - 1; len++) {
        auto_str body = {0};
        size_t used;

        assert_int_equal(decode(bytes, len, 5, &body, &used), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_decoded_or_refused_however_they_are_cut),
        cmocka_unit_test(what_follows_the_body_is_left_alone),
        cmocka_unit_test(extensions_and_trailers_without_end_are_refused),
        cmocka_unit_test(many_small_extensions_are_refused),
        cmocka_unit_test(an_unfinished_body_is_not_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
