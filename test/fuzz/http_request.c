/* http_request.c - fuzz target: the bytes of a connection, through scan, head and body as
 * conn.c does it.
 *
 * What must hold beyond not crashing:
 *  1. The verdict does not depend on how the bytes are cut into reads.
 *  2. What a head gives out lies within the head, and obeys the rules of parser.h.
 *  3. llhttp, left to itself, reads the same number of requests with the same bodies from what
 * we accepted: no room for a request between two parsers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "http/parser.h"

#include <llhttp.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static const struct http_limits limits = {512, 2048, 20};

struct outcome {
    int status;      /* 0, or what the connection was refused with */
    size_t requests; /* complete ones */
    size_t used;     /* bytes up to the end of the last complete one */
    uint64_t bodies; /* hash of all their bodies */
    bool is_upgrade; /* llhttp stops there, we do not */
};

static void require(bool holds)
{
    if (!holds)
        abort();
}

static uint64_t hash(uint64_t sum, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ (unsigned char)bytes[i]) * 0x100000001b3ULL;
    return sum;
}

static void check_head(const struct http_head *head, const char *text, size_t len)
{
    require(head->method[0] && (head->path[0] == '/' || head->path[0] == '*'));
    require(head->path >= text && head->path + strlen(head->path) < text + len);
    require(!strpbrk(head->path, " \t\r\n#"));
    require(head->host || head->minor == 0);
    require(head->content_length >= -1);
    require(!head->expects_continue || head->content_length);
    for (size_t i = 0; i < head->count; i++) {
        const struct http_field *field = &head->fields[i];

        require(field->name >= text && field->name + strlen(field->name) < text + len);
        require(field->name[0] && !strpbrk(field->name, " \t\r\n:"));
        require(!strpbrk(field->value, "\r\n"));
    }
}

/* The bytes as they come: each look sees `step` more than the last. */
struct feed {
    const char *bytes;
    size_t len, step;
};

static size_t more(const struct feed *feed, size_t have)
{
    return feed->len - have < feed->step ? feed->len : have + feed->step;
}

/* Reads a body; returns its end, or 0 when it is not all there or refused. */
static size_t read_body(const struct feed *feed, size_t at, int64_t length, struct outcome *o)
{
    struct http_chunks chunks = {0};
    const char *why = NULL;
    uint64_t sum = o->bodies;
    size_t have = at;

    if (length >= 0) {
        if ((uint64_t)length > feed->len - at)
            return 0;
        o->bodies = hash(o->bodies, feed->bytes + at, (size_t)length);
        return at + (size_t)length;
    }
    while (!http_chunks_is_done(&chunks)) {
        const char *data;
        size_t used, data_len;

        if (at == have) {
            have = more(feed, have);
            if (at == have)
                return 0;
        }
        o->status = http_chunks_feed(&chunks, feed->bytes + at, have - at, &used, &data,
                                     &data_len, &why);
        require(!o->status || why);
        if (o->status)
            return 0;
        require(used && used <= have - at && data_len <= used);
        sum = hash(sum, data, data_len);
        at += used;
    }
    o->bodies = sum;
    return at;
}

/* One request from `at`; returns where the next starts, or 0. */
static size_t
read_request(const struct feed *feed, size_t at, struct outcome *o, bool *ret_last)
{
    struct http_scan scan = {0};
    struct http_field fields[32];
    struct http_head head;
    const char *why = NULL;
    auto_free char *text = NULL;
    size_t have = at;

    while (!scan.length) {
        size_t next = more(feed, have);

        if (next == have)
            return 0;
        have = next;
        o->status = http_scan_head(&scan, &limits, feed->bytes + at, have - at, &why);
        require(!o->status || why);
        if (o->status)
            return 0;
    }
    require(scan.lines <= ARRAY_SIZE(fields) && scan.length <= limits.head_bytes);
    text = xmalloc(scan.length + 1);
    memcpy(text, feed->bytes + at + scan.start, scan.length);
    text[scan.length] = '\0';
    o->status = http_parse_head(text, scan.length, fields, scan.lines, &head, &why);
    require(!o->status || why);
    if (o->status)
        return 0;
    check_head(&head, text, scan.length);
    for (size_t i = 0; i < head.count; i++)
        o->is_upgrade |= str_equal_nocase(head.fields[i].name, "Upgrade") ||
                         strcmp(head.method, "CONNECT") == 0;
    *ret_last = !head.is_keep_alive;
    return read_body(feed, at + scan.start + scan.length, head.content_length, o);
}

static struct outcome run(const char *bytes, size_t len, size_t step)
{
    struct feed feed = {bytes, len, step};
    struct outcome o = {0};
    bool is_last = false;
    size_t at;

    while (!is_last && (at = read_request(&feed, o.used, &o, &is_last))) {
        o.used = at;
        o.requests++;
    }
    return o;
}

/* --- llhttp alone --- */

static int on_body(llhttp_t *parser, const char *bytes, size_t len)
{
    struct outcome *o = parser->data;

    o->bodies = hash(o->bodies, bytes, len);
    return 0;
}

static int on_complete(llhttp_t *parser)
{
    struct outcome *o = parser->data;

    o->requests++;
    return 0;
}

static void compare_with_llhttp(const char *bytes, const struct outcome *ours)
{
    static const llhttp_settings_t settings = {.on_body = on_body,
                                               .on_message_complete = on_complete};
    struct outcome theirs = {0};
    llhttp_t parser;
    llhttp_errno_t error;

    llhttp_init(&parser, HTTP_REQUEST, &settings);
    parser.data = &theirs;
    error = llhttp_execute(&parser, bytes, ours->used);
    if (error == HPE_INVALID_CHUNK_SIZE)
        return;
    require(error == HPE_OK);
    require(theirs.requests == ours->requests && theirs.bodies == ours->bodies);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const size_t steps[] = {1, 7, 64};
    const char *text = (const char *)bytes;
    struct outcome whole = run(text, len, len ? len : 1);

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        struct outcome cut = run(text, len, steps[i]);

        require(cut.status == whole.status && cut.requests == whole.requests);
        require(cut.used == whole.used && cut.bodies == whole.bodies);
    }
    if (whole.requests && !whole.is_upgrade)
        compare_with_llhttp(text, &whole);
    return 0;
}
