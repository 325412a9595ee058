/* listen.h - where the yard is to be reached, and under which names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_LISTEN_H
#define DAEMON_LISTEN_H

#include "base/err.h"

#include <stddef.h>

struct home;
struct http_app;
struct http_server;
struct http_tls;
struct settings;

enum {
    LISTEN_MOST_NAMES = 32,
};

/* The names and addresses this yard answers to; borrowed from settings and from itself. */
struct listen_names {
    const char *names[LISTEN_MOST_NAMES];
    size_t count;
    char host[256];
    char *more; /* the split setting */
};
int listen_names_read(const struct settings *settings,
                      struct listen_names *ret_names,
                      struct err *e);
void listen_names_done(struct listen_names *names);

/* The certificate that the settings name, else one of the yard's own authority. */
int listen_tls(const struct settings *settings,
               const struct home *home,
               const struct listen_names *names,
               struct http_tls **ret_tls,
               struct err *e);

/* Open both listeners.  A taken port moves to the next free one.  The caller frees the URLs. */
int listen_open(const struct settings *settings,
                struct http_server *server,
                struct http_tls *tls,
                char **ret_api_url,
                char **ret_http_url,
                struct err *e);

/* One more listener on the same address, for an app of its own: TLS, and plain http from
 * loopback.  *ret_url is what clients use: http on loopback, else https; caller frees. */
int listen_app(const struct settings *settings,
               struct http_server *server,
               struct http_tls *tls,
               const char *name,
               int port,
               const struct http_app *app,
               char **ret_url,
               struct err *e);

#endif
