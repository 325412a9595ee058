/* client.h - one blocking HTTP request at a time, on libcurl.
 *
 * For command lines and tests, not for the daemon's loop threads: a call returns when the
 * answer is whole.
 *
 * Redirects are not followed, so that a token never travels to a host it was not meant for.
 * Proxies of the environment are honoured, except for loopback.  429, 503 and refused
 * connections are tried again with growing pauses, or after the Retry-After that the server
 * asked for; nothing else is, since a request that was sent may have had its effect.
 *
 * A client keeps its connections open between calls.  The path of a URL is sent as given, dots
 * and all.
 *
 * Threads: one client belongs to one thread.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdint.h>
#include <stdio.h>

struct http_client; /* opaque */

struct http_client_config {
    const char *ca_file;        /* certificates to trust; NULL = those of the system */
    const char *user_agent;     /* NULL = "trainyard/<version>" */
    int64_t connect_timeout_ms; /* 10 s */
    int64_t silence_timeout_ms; /* longest time without a byte moving; 60 s */
    int most_retries;           /* 4 */
    int64_t first_pause_ms;     /* doubled with each retry; 200 ms */
    int64_t longest_pause_ms;   /* a longer Retry-After is cut to this; 30 s */
    /* Told each line of the heads ('>' sent, '<' received, '*' remarks), secrets and all.  May
     * be NULL. */
    void (*trace)(void *context, char direction, const char *line);
    void *context;
};

/* The defaults stated above. */
void http_client_config_init(struct http_client_config *config);

int http_client_new(const struct http_client_config *config,
                    struct http_client **ret_client,
                    struct err *e);
void http_client_free(struct http_client *client);
DEFINE_AUTOPTR(http_client)

struct http_call {
    const char *method;         /* "GET" */
    const char *url;            /* http or https, absolute */
    const char *const *headers; /* "Name: value", NULL at the end; NULL = none */
    const void *body;           /* NULL = none, or in body_file */
    size_t body_len;
    FILE *body_file; /* sent from its start to its end; must be seekable */
    /* Takes the bytes of a 2xx answer as they come, instead of the answer's body; returning -1
     * breaks the call off.  NULL = collect them. */
    int (*sink)(void *context, const void *bytes, size_t len);
    void *sink_context;
    size_t most_bytes; /* of a collected body; 0 = 256 MiB */
    /* Told now and then how many bytes of the bodies have moved; returning -1 breaks the call
     * off.  NULL = nobody watches. */
    int (*watch)(void *context, int64_t sent_bytes, int64_t received_bytes);
    void *watch_context;
};

struct http_answer {
    int status;
    /* How often the request went out, also when no answer came.  More than once when it was
     * tried again, and when a kept connection was closed before the answer: libcurl sends it
     * again by itself then, and the first may have had its effect. */
    int sends;
    struct str head; /* header lines of the last answer, CRLF included */
    struct str body;
};
void http_answer_done(struct http_answer *answer);
#define auto_answer __attribute__((cleanup(http_answer_done))) struct http_answer

/* Make the call.  Any answer of the server is a success, whatever its status.  ERR_BUSY when no
 * connection could be made or it broke, ERR_TIMEOUT, ERR_FORBIDDEN when the certificate is not
 * trusted, ERR_TOO_LARGE, ERR_INVALID for a URL that is none.  ret_answer must be zeroed or an
 * earlier answer. */
int http_client_call(struct http_client *client,
                     const struct http_call *call,
                     struct http_answer *ret_answer,
                     struct err *e);

/* The value of a header, trimmed, or NULL; the caller frees. */
char *http_answer_header(const struct http_answer *answer, const char *name);

/* Does the URL name this very machine by a loopback address? */
bool http_url_is_loopback(const char *url);

#endif
