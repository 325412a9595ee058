/* parser.h - the bytes of a request, read so strictly that no second parser can read them
 * differently.
 *
 * Pure: no sockets, no allocation, no state beyond the structs here.  Three parts, used in this
 * order: http_scan_head     finds the end of the head as bytes come in, and refuses a bad line
 * at once http_parse_head    takes the complete head apart (llhttp) and applies the rules below
 *     http_chunks_feed   decodes a chunked body; a sized body needs no parser
 *
 * Rules beyond llhttp's strict mode: lines end in CRLF and nothing else; no control characters;
 * no folded lines; version is exactly HTTP/1.1 or HTTP/1.0; a target starts with "/" (or is "*"
 * for OPTIONS) and is visible ASCII without "#"; exactly one valid Host (1.0 may have none); at
 * most one Content-Length, all digits; Transfer-Encoding only as one "chunked", only in 1.1,
 * never beside Content-Length.
 *
 * Each function returns 0, or the HTTP status to refuse the request with; *ret_why is then a
 * static text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_PARSER_H
#define HTTP_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_limits {
    size_t line_bytes, head_bytes, headers;
};

/* Zeroed at the start of a request. */
struct http_scan {
    size_t start;  /* of the head within the bytes: 2 after one empty line before it, which is
                      skipped */
    size_t at;     /* all before this has been looked at */
    size_t line;   /* where the line at hand starts */
    size_t lines;  /* complete ones, the request line included */
    size_t length; /* of the head with its last CRLF, 0 until it is complete */
};

/* Look at bytes[0..len), of which the first scan->at were there the last time. */
int http_scan_head(struct http_scan *scan,
                   const struct http_limits *limits,
                   const char *bytes,
                   size_t len,
                   const char **ret_why);

struct http_field {
    const char *name, *value; /* the value is trimmed */
};

struct http_head {
    const char *method, *path, *query; /* query "" when there is none */
    const char *host;                  /* NULL only in 1.0 */
    int minor;                         /* 1 or 0 */
    struct http_field *fields;
    size_t count;
    int64_t content_length; /* -1 chunked, 0 no body */
    bool expects_continue, is_keep_alive;
};

/* Take apart a head that http_scan_head found complete, writing NULs into it; everything in
 * *ret_head points into bytes.  fields has room for `room` fields: scan->lines is enough. */
int http_parse_head(char *bytes,
                    size_t len,
                    struct http_field *fields,
                    size_t room,
                    struct http_head *ret_head,
                    const char **ret_why);

/* Zeroed at the start of a body. */
struct http_chunks {
    int state;
    uint64_t left;   /* of the chunk at hand */
    unsigned digits; /* of its size */
    unsigned extra;  /* bytes of extensions and trailers so far, in all of the body */
    unsigned named;  /* bytes of the trailer's name so far */
    char name[20];   /* its beginning, lower case */
};

/* Read on until there is a piece of the body, or no more input.  *ret_used says how much was
 * read; *ret_data and *ret_data_len are the piece, within bytes, empty if there was none. */
int http_chunks_feed(struct http_chunks *chunks,
                     const char *bytes,
                     size_t len,
                     size_t *ret_used,
                     const char **ret_data,
                     size_t *ret_data_len,
                     const char **ret_why);
/* The last chunk and the trailers have been read: what follows is the next request. */
bool http_chunks_is_done(const struct http_chunks *chunks);

/* Does a comma-separated list hold the token (case-insensitive)? */
bool http_list_has(const char *list, const char *token);

#endif
