/* storage-wire.h - requests to a storage account: signed or with a SAS, tried again, explained.
 *
 * Trying again is harmless here: every request of ours sets something to a value, or asks.  So
 * broken connections, time-outs, 408, 429 and answers from 500 on are tried again with growing
 * pauses, as long as patience lasts.
 *
 * Threads: one wire belongs to one thread; accounts are shared.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_STORAGE_WIRE_H
#define CLI_STORAGE_WIRE_H

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/storage-address.h"
#include "http/client.h"

#include <stdatomic.h>
#include <stdint.h>

struct storage_account;
struct wire; /* opaque */

enum {
    WIRE_PATIENCE_MS = 3 * 1000, /* of a verb with a person waiting */
};

struct wire_config {
    const struct storage_account *account; /* borrowed as long as the wire lives */
    enum storage_service service;
    int64_t patience_ms;             /* how long a request is tried; 0 = once */
    void (*trace)(const char *line); /* secrets taken out; NULL = none */
    const atomic_bool *stop;         /* set: give up at once; NULL = never */
    /* Told of every byte of a body that moves, and of those that have to move again. */
    void (*moved)(void *context, int64_t bytes);
    void *context;
};

int wire_new(const struct wire_config *config, struct wire **ret_wire, struct err *e);
void wire_free(struct wire *wire);
DEFINE_AUTOPTR(wire)

struct wire_request {
    const char *method;
    const char *container;      /* or share; NULL = the account */
    const char *path;           /* decoded; NULL or "" = the container */
    const char *query;          /* encoded; NULL = none */
    const char *const *headers; /* "Name: value"; an empty string is left out; ends with NULL */
    const void *body;
    size_t body_len;
    /* Where the bytes of the answer go instead of its body: exactly this many. */
    void *into;
    size_t into_len;
    /* Or one by one, as they come; then the request is not tried again once some came. */
    int (*sink)(void *context, const void *bytes, size_t len);
    void *sink_context;
    bool once; /* not worth trying again: there is another way */
};

/* 2xx, or failure: the server's own words, "(BlobNotFound) The ...".  ret_answer must be zeroed
 * or an earlier answer; NULL = not wanted. */
int wire_call(struct wire *wire,
              const struct wire_request *request,
              struct http_answer *ret_answer,
              struct err *e);

/* Of the last call: the status (0 = no answer came) and the code ("BlobNotFound", or ""). */
int wire_status(const struct wire *wire);
const char *wire_code(const struct wire *wire);
/* Did it fail because the thing, or all above it, is not there? */
bool wire_is_missing(const struct wire *wire);

const struct storage_account *wire_account(const struct wire *wire);
enum storage_service wire_service(const struct wire *wire);

/* The URL of a thing, without any secret.  The caller frees. */
char *wire_url(const struct wire *wire, const char *container, const char *path);
/* The same for others to read from: with our SAS, or one made for the purpose that lasts a
 * week. It is a secret. */
int wire_readable_url(const struct wire *wire,
                      const char *container,
                      const char *path,
                      char **ret_url,
                      struct err *e);

#endif
