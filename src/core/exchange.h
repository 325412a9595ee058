/* exchange.h - one request of ours to a storage service: what goes out, and what a refusal
 * says.
 *
 * Calling sequence: make the URL in out->url, add headers, then outgoing_seal, which adds the
 * version, the date and what lets us in; nothing may be added after it.
 *
 * Pure: the clock is passed in.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_EXCHANGE_H
#define CORE_EXCHANGE_H

#include "base/err.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

#define EXCHANGE_VERSION "2021-12-02" /* the newest whose every part is in use here */

enum {
    EXCHANGE_MOST_HEADERS = 160,
    EXCHANGE_CODE_BYTES = 64,
    EXCHANGE_MESSAGE_BYTES = 300,
};

struct outgoing {
    struct str url;
    char *headers[EXCHANGE_MOST_HEADERS + 1]; /* "Name: value", NULL at the end */
    size_t count;
};
void outgoing_done(struct outgoing *out);
#define auto_outgoing __attribute__((cleanup(outgoing_done))) struct outgoing

/* Our own requests, and none has more headers than there is room for. */
void outgoing_add(struct outgoing *out, const char *format, ...) PRINTF_LIKE(2, 3);
/* Append to a URL: "a=b&c=d", encoded; NULL or "" = nothing. */
void url_add_query(struct str *url, const char *query);

/* What lets a request in.  All NULL: nothing. */
struct entry_pass {
    const char *account;
    const struct str *key; /* raw bytes: the request is signed */
    const char *sas;       /* without '?': the URL carries it */
    const char *token;     /* for the Authorization header */
};

void outgoing_seal(struct outgoing *out,
                   const struct entry_pass *pass,
                   const char *method,
                   size_t body_len,
                   int64_t now_ms);

/* What the service says when it does not want to. */
struct refusal {
    char code[EXCHANGE_CODE_BYTES]; /* "BlobNotFound", or "" */
    char message[EXCHANGE_MESSAGE_BYTES];
};

/* header: the value of x-ms-error-code, or NULL; then the body tells.  Fails always, with the
 * service's own words: "(BlobNotFound) The ...". */
int refusal_read(int status,
                 const char *header,
                 const char *body,
                 struct refusal *ret_refusal,
                 struct err *e);
/* May the same request be taken later? */
bool refusal_may_pass(int status, const char *code);

#endif
