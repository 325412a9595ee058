/* chunks.c - the chunked coding, one byte at a time except for the data itself.
 *
 * Extensions and trailers mean nothing here and are dropped, but only so many of them: a peer
 * could otherwise send for ever without a byte of body.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/parser.h"

#include "base/mem.h"

#include <string.h>

enum {
    SIZE,       /* hex digits, then ';' or CR */
    NAME_FIRST, /* of an extension, which is ;name or ;name=value */
    NAME,
    VALUE_FIRST,
    VALUE,
    SIZE_LF,
    DATA, /* as many bytes as are left */
    DATA_CR,
    DATA_LF,
    TRAILER, /* first byte of a trailer line, or CR */
    TRAILER_NAME,
    TRAILER_TEXT,
    TRAILER_LF,
    LAST_LF,
    DONE,
};

enum {
    MOST_DIGITS = 15,       /* 60 bits: cannot overflow, and more than any disk */
    MOST_EXTRA = 16 * 1024, /* as Node has it for extensions */
};

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Visible ASCII and, if asked, blanks. */
static bool is_text(char c, bool blanks)
{
    return (c > ' ' && c < 0x7f) || (blanks && (c == ' ' || c == '\t'));
}

static bool is_name(char c)
{
    return is_text(c, false) && !strchr("\"(),/:;<=>?@[\\]{}", c);
}

static bool size_byte(struct http_chunks *chunks, char c)
{
    int digit = digit_of(c);

    if (digit >= 0) {
        chunks->left = chunks->left * 16 + (unsigned)digit;
        return ++chunks->digits <= MOST_DIGITS;
    }
    chunks->state = c == ';' ? NAME_FIRST : SIZE_LF;
    return chunks->digits && (c == ';' || c == '\r');
}

static bool extension_byte(struct http_chunks *chunks, char c)
{
    bool is_first = chunks->state == NAME_FIRST || chunks->state == VALUE_FIRST;

    if (is_name(c)) {
        chunks->state += is_first;
        return true;
    }
    if (c == '=' && chunks->state == NAME)
        chunks->state = VALUE_FIRST;
    else if (c == ';')
        chunks->state = NAME_FIRST;
    else if (c == '\r')
        chunks->state = SIZE_LF;
    else
        return false;
    return !is_first;
}

/* One more byte of a trailer's name; at its end, is it one that may be there? */
static bool trailer_name_byte(struct http_chunks *chunks, char c)
{
    static const char *const forbidden[] = {"connection", "content-length",    "expect",
                                            "host",       "proxy-connection",  "te",
                                            "trailer",    "transfer-encoding", "upgrade"};
    size_t room = sizeof(chunks->name) - 1;

    if (c != ':') {
        if (chunks->named < room)
            chunks->name[chunks->named] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
        chunks->named++;
        return is_name(c);
    }
    chunks->name[chunks->named < room ? chunks->named : room] = '\0';
    chunks->named = 0;
    chunks->state = TRAILER_TEXT;
    for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++)
        if (strcmp(chunks->name, forbidden[i]) == 0)
            return false;
    return true;
}

static bool trailer_byte(struct http_chunks *chunks, char c)
{
    switch (chunks->state) {
    case TRAILER:
        chunks->state = c == '\r' ? LAST_LF : TRAILER_NAME;
        return c == '\r' || (is_name(c) && trailer_name_byte(chunks, c));
    case TRAILER_NAME:
        return trailer_name_byte(chunks, c);
    case TRAILER_TEXT:
        if (c == '\r')
            chunks->state = TRAILER_LF;
        return c == '\r' || is_text(c, true) || (unsigned char)c >= 0x80;
    case TRAILER_LF:
        chunks->state = TRAILER;
        return c == '\n';
    default: /* LAST_LF */
        chunks->state = DONE;
        return c == '\n';
    }
}

/* Any byte but data; false when it does not belong here. */
static bool frame_byte(struct http_chunks *chunks, char c)
{
    switch (chunks->state) {
    case SIZE:
        return size_byte(chunks, c);
    case NAME_FIRST:
    case NAME:
    case VALUE_FIRST:
    case VALUE:
        chunks->extra++;
        return extension_byte(chunks, c);
    case SIZE_LF:
        chunks->state = chunks->left ? DATA : TRAILER;
        chunks->digits = 0;
        return c == '\n';
    case DATA_CR:
        chunks->state = DATA_LF;
        return c == '\r';
    case DATA_LF:
        chunks->state = SIZE;
        return c == '\n';
    default:
        chunks->extra++;
        return trailer_byte(chunks, c);
    }
}

int http_chunks_feed(struct http_chunks *chunks,
                     const char *bytes,
                     size_t len,
                     size_t *ret_used,
                     const char **ret_data,
                     size_t *ret_data_len,
                     const char **ret_why)
{
    size_t used = 0, data = 0;

    while (used < len && chunks->state != DONE && chunks->state != DATA) {
        if (!frame_byte(chunks, bytes[used++])) {
            *ret_why = "malformed chunk";
            return 400;
        }
        if (chunks->extra > MOST_EXTRA) {
            *ret_why = "too many chunk extensions or trailers";
            return 400;
        }
    }
    if (chunks->state == DATA && used < len) {
        data = len - used < chunks->left ? len - used : (size_t)chunks->left;
        chunks->left -= data;
        if (!chunks->left)
            chunks->state = DATA_CR;
    }
    *ret_data = bytes + used;
    *ret_data_len = data;
    *ret_used = used + data;
    return 0;
}

bool http_chunks_is_done(const struct http_chunks *chunks)
{
    return chunks->state == DONE;
}
