/* remote.h - requests to one container or share: signed, on kept connections, tried again.
 *
 * Trying again is harmless here: every request of ours asks, or sets something to a value.  So
 * broken connections, time-outs, 408, 429 and most answers from 500 on are tried again with
 * growing pauses for as long as patience lasts: a server that restarts is waited for.
 *
 * Threads: all functions may be called from any thread; each request takes an idle connection
 * or opens one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MOUNT_REMOTE_H
#define MOUNT_REMOTE_H

#include "base/err.h"
#include "base/mem.h"
#include "http/client.h"

#include <stddef.h>
#include <stdint.h>

struct remote; /* opaque */

enum remote_auth {
    REMOTE_KEY,   /* secret: the account's key, base64 */
    REMOTE_SAS,   /* secret: a shared access signature without '?' */
    REMOTE_TOKEN, /* secret: a bearer token */
};

struct remote_config {
    const char
        *endpoint; /* with the account, without slash: "http://127.0.0.1:10000/account" */
    const char *account;
    const char *container; /* or share */
    bool is_share;
    enum remote_auth auth;
    const char *secret;
    const char *ca_file; /* NULL = the system's */
    int64_t patience_ms; /* how long a request is tried */
};

int remote_new(const struct remote_config *config, struct remote **ret_remote, struct err *e);
void remote_free(struct remote *remote);
DEFINE_AUTOPTR(remote)

/* From now on every request fails, also those that are waiting. */
void remote_stop(struct remote *remote);

struct remote_call {
    const char *method;
    const char *path;           /* below the container, decoded; NULL or "" = the container */
    const char *query;          /* encoded; NULL = none */
    const char *const *headers; /* "Name: value", NULL at the end; NULL = none */
    const void *body;
    size_t body_len;
    /* Takes the bytes of a good answer as they come; -1 breaks off.  A request that broke off
     * after some were taken is not tried again: go on from there with another.  NULL = they
     * are collected. */
    int (*sink)(void *context, const void *bytes, size_t len);
    void *sink_context;
    /* What a request that went out twice finds when the first had its effect and only the
     * answer was lost: ENOENT of a removal, EEXIST of a creation.  Then that is a success, and
     * the answer's status is that of the refusal.  0 = nothing. */
    int done_errno;
};

/* 2xx (but see done_errno), or failure.  ret_answer must be zeroed or an earlier answer; NULL =
 * not wanted. */
int remote_call(struct remote *remote,
                const struct remote_call *call,
                struct http_answer *ret_answer,
                struct err *e);

/* The URL of a thing for the server to read from, with our SAS in it when we came with one.
 * The caller frees; it may be a secret. */
char *remote_url(const struct remote *remote, const char *path);

/* What a failure means to a program that asked the kernel: ENOENT, EACCES, ... */
int remote_errno(const struct err *e);

#endif
