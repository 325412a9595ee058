/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/listen.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "daemon/activation.h"
#include "daemon/home.h"
#include "daemon/settings.h"
#include "http/server.h"
#include "http/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PORTS_TRIED = 100,
};

static int add(struct listen_names *names, const char *name, struct err *e)
{
    if (names->count == LISTEN_MOST_NAMES)
        return err_set(e, ERR_INVALID, "host_names: more than %d names", LISTEN_MOST_NAMES);
    names->names[names->count++] = name;
    return 0;
}

static bool is_any(const char *address)
{
    return str_equal(address, "0.0.0.0") || str_equal(address, "::");
}

int listen_names_read(const struct settings *settings,
                      struct listen_names *ret_names,
                      struct err *e)
{
    struct listen_names *n = ret_names;
    char *saved = NULL;

    *n = (struct listen_names){0};
    n->more = xstrdup(settings->host_names);
    if (gethostname(n->host, sizeof(n->host)) < 0)
        return err_sys(e, errno, "could not read the host's name");
    n->host[sizeof(n->host) - 1] = '\0';
    add(n, "localhost", e);
    add(n, "127.0.0.1", e);
    add(n, "::1", e);
    if (n->host[0])
        add(n, n->host, e);
    if (!is_any(settings->address))
        add(n, settings->address, e);
    for (char *name = strtok_r(n->more, ", ", &saved); name;
         name = strtok_r(NULL, ", ", &saved)) {
        if (add(n, name, e) < 0)
            return -1;
    }
    return 0;
}

void listen_names_done(struct listen_names *names)
{
    free(names->more);
    *names = (struct listen_names){0};
}

/* What the certificate is for: the yard's own names, and every account's under the suffixes. */
static const char **cert_names(struct arena *arena,
                               const struct settings *settings,
                               const struct listen_names *names,
                               size_t *ret_count)
{
    char *suffixes = arena_strdup(arena, settings->storage_suffix);
    /* Each suffix has a character and a comma, and gives two names. */
    const char **all =
        arena_alloc(arena, (names->count + strlen(suffixes) + 1) * sizeof(all[0]));
    size_t count = names->count;
    char *saved = NULL;

    memcpy(all, names->names, names->count * sizeof(all[0]));
    for (char *suffix = strtok_r(suffixes, ", ", &saved); suffix;
         suffix = strtok_r(NULL, ", ", &saved)) {
        all[count++] = arena_printf(arena, "*.blob.%s", suffix);
        all[count++] = arena_printf(arena, "*.file.%s", suffix);
    }
    *ret_count = count;
    return all;
}

int listen_tls(const struct settings *settings,
               const struct home *home,
               const struct listen_names *names,
               struct http_tls **ret_tls,
               struct err *e)
{
    auto_free char *cert = xasprintf("%s/server.pem", home->tls_folder);
    auto_free char *key = xasprintf("%s/server.key", home->tls_folder);
    autoptr(arena) arena = arena_new();
    const char **wanted;
    size_t count;

    if (*settings->tls_cert || *settings->tls_key)
        return http_tls_open(settings->tls_cert, settings->tls_key, ret_tls, e);
    wanted = cert_names(arena, settings, names, &count);
    if (http_tls_ensure(home->tls_folder, wanted, count, e) < 0)
        return -1;
    return http_tls_open(cert, key, ret_tls, e);
}

static int port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in4;
        struct sockaddr_in6 in6;
    } address = {.in6 = {0}};
    socklen_t len = sizeof(address);

    if (getsockname(fd, &address.any, &len) < 0)
        return 0;
    return ntohs(address.any.sa_family == AF_INET6 ? address.in6.sin6_port
                                                   : address.in4.sin_port);
}

/* The wanted port or the next free one. */
static int open_port(struct http_server *server,
                     const char *address,
                     int wanted,
                     struct http_tls *tls,
                     const struct http_app *app,
                     int *ret_port,
                     struct err *e)
{
    for (int port = wanted; port < wanted + PORTS_TRIED && port <= 65535; port++) {
        struct err why = {0};

        if (http_server_listen_app(server, address, port, tls, app != NULL, app, ret_port,
                                   &why) == 0) {
            if (wanted && *ret_port != wanted)
                log_warning("event=listen port=%d taken, using %d", wanted, *ret_port);
            return 0;
        }
        *e = why;
        if (why.code != ERR_BUSY)
            break;
    }
    return -1;
}

/* A listener of the API: systemd's if it passed one. */
static int open_api(struct http_server *server,
                    const char *name,
                    const char *address,
                    int wanted,
                    struct http_tls *tls,
                    int *ret_port,
                    struct err *e)
{
    int passed = activation_take(name);

    if (passed >= 0) {
        *ret_port = port_of(passed);
        return http_server_listen_fd(server, passed, tls, e);
    }
    if (open_port(server, address, wanted, tls, NULL, ret_port, e) < 0)
        return err_wrap(e, "%s on %s", name, address);
    return 0;
}

/* "https://host:port" as clients write it. */
static char *url_of(const struct settings *settings, const char *scheme, int port)
{
    const char *shown = is_any(settings->address) ? "127.0.0.1" : settings->address;
    bool is_v6 = strchr(shown, ':') != NULL;

    return xasprintf("%s://%s%s%s:%d", scheme, is_v6 ? "[" : "", shown, is_v6 ? "]" : "", port);
}

int listen_open(const struct settings *settings,
                struct http_server *server,
                struct http_tls *tls,
                char **ret_api_url,
                char **ret_http_url,
                struct err *e)
{
    int https_port, http_port;

    if (open_api(server, "https", settings->address, settings->https_port, tls, &https_port,
                 e) < 0 ||
        open_api(server, "http", "127.0.0.1", settings->http_port, NULL, &http_port, e) < 0)
        return -1;
    *ret_api_url = url_of(settings, "https", https_port);
    *ret_http_url = xasprintf("http://127.0.0.1:%d", http_port);
    return 0;
}

int listen_app(const struct settings *settings,
               struct http_server *server,
               struct http_tls *tls,
               const char *name,
               int port,
               const struct http_app *app,
               char **ret_url,
               struct err *e)
{
    bool loopback =
        str_starts(settings->address, "127.") || str_equal(settings->address, "::1");
    int got;

    if (open_port(server, settings->address, port, tls, app, &got, e) < 0)
        return err_wrap(e, "%s on %s", name, settings->address);
    *ret_url = url_of(settings, loopback ? "http" : "https", got);
    return 0;
}
