/* address.c - which account, container and object a request is for, in both styles of address:
 * http://host/account/container/object and http://account.blob.suffix/container/object.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-proto.h"

#include "base/mem.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char secondary[] = "-secondary";

/* --- hosts --- */

/* The name in "name", "name:port", "[v6]" or "[v6]:port", and the port with its colon ("" when
 * there is none). */
static const char *split_host(struct arena *arena, const char *host, const char **ret_port)
{
    const char *end = *host == '[' ? strchr(host, ']') : host + strcspn(host, ":");

    if (!end)
        end = host + strlen(host);
    *ret_port = *end == ']' ? end + 1 : end;
    return *host == '[' ? arena_strndup(arena, host + 1, (size_t)(end - host - 1))
                        : arena_strndup(arena, host, (size_t)(end - host));
}

static bool is_address(const char *name)
{
    struct in6_addr binary;

    return inet_pton(AF_INET, name, &binary) == 1 || inet_pton(AF_INET6, name, &binary) == 1;
}

static bool is_own_name(const struct storage_config *config, const char *name)
{
    for (size_t i = 0; i < config->host_count; i++)
        if (strcasecmp(config->hosts[i], name) == 0)
            return true;
    return false;
}

static bool is_path_style(const struct storage_config *config, const char *name)
{
    return is_address(name) || !strchr(name, '.') || is_own_name(config, name);
}

/* The account of "account.blob.suffix"; NULL when it is no such name. */
static const char *host_account(const struct storage_call *call, const char *name)
{
    const struct storage_config *config = &call->service->config;
    size_t len = strcspn(name, ".");

    for (size_t i = 0; i < config->suffix_count; i++) {
        auto_free char *rest = xasprintf(".%s.%s", call->table->service, config->suffixes[i]);

        if (len && strcasecmp(name + len, rest) == 0)
            return arena_strndup(call->arena, name, len);
    }
    return NULL;
}

/* --- paths --- */

/* Names are decoded once; a backslash counts as a slash, as everywhere in Azure. */
static int decode_name(struct storage_call *call,
                       const char *raw,
                       size_t len,
                       const char **ret_name,
                       struct err *e)
{
    auto_str text = {0};
    char *name;

    if (text_percent_decode(&text, raw, len, false, e) < 0)
        return err_reason(e, "InvalidUri");
    if (!text_is_utf8(str_text(&text), text.len))
        return storage_refuse(e, ERR_INVALID, "InvalidUri", "the address is not UTF-8");
    name = arena_strndup(call->arena, str_text(&text), text.len);
    for (char *p = name; (p = strchr(p, '\\')) != NULL;)
        *p = '/';
    *ret_name = name;
    return 0;
}

static int set_account(struct storage_call *call, const char *name, struct err *e)
{
    size_t len = strlen(name), tail = strlen(secondary);

    call->is_secondary = len > tail && strcmp(name + len - tail, secondary) == 0;
    if (call->is_secondary)
        len -= tail;
    for (size_t i = 0; i < len; i++)
        if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]))
            len = 0;
    if (len < 3 || len > 24)
        return storage_refuse(e, ERR_INVALID, "InvalidUri",
                              "\"%.64s\" is not the name of a storage account", name);
    call->account = arena_strndup(call->arena, name, len);
    return 0;
}

/* What follows the account: "", "container", "container/object". */
static int set_names(struct storage_call *call, const char *rest, struct err *e)
{
    size_t len = strcspn(rest, "/");
    const char *object = rest[len] == '/' ? rest + len + 1 : "";

    call->container = call->object = NULL;
    call->level = *object ? STORAGE_OBJECT : len ? STORAGE_CONTAINER : STORAGE_SERVICE;
    if (!len && *object)
        return storage_refuse(e, ERR_INVALID, "InvalidUri",
                              "the name of the container is empty");
    if (len && decode_name(call, rest, len, &call->container, e) < 0)
        return -1;
    if (*object && decode_name(call, object, strlen(object), &call->object, e) < 0)
        return -1;
    if (call->level == STORAGE_CONTAINER && call->table->has_root &&
        !storage_query(call, "restype")) {
        call->object = call->container;
        call->container = "$root";
        call->level = STORAGE_OBJECT;
    }
    return 0;
}

static int split_url(struct storage_call *call,
                     const char *url,
                     const char **ret_host,
                     const char **ret_path,
                     const char **ret_query)
{
    const char *p = str_starts_nocase(url, "http://")    ? url + 7
                    : str_starts_nocase(url, "https://") ? url + 8
                                                         : NULL;
    size_t host, path;

    if (!p)
        return -1;
    host = strcspn(p, "/?#");
    path = strcspn(p + host, "?#");
    if (!host || memchr(p, '@', host) || !path || p[host + path] == '#')
        return -1;
    *ret_host = arena_strndup(call->arena, p, host);
    *ret_path = arena_strndup(call->arena, p + host, path);
    p += host + path;
    *ret_query = arena_strdup(call->arena, *p ? p + 1 : "");
    return 0;
}

/* The client for JavaScript leaves the account out of the address that it renames to; that of
 * the source has it.  The signature is checked for the account all the same. */
static const char *renamed_account(struct storage_call *call, const char *path)
{
    const char *url = storage_header(call, "x-ms-file-rename-source");
    const char *host, *source, *query;
    size_t len;

    if (!url || split_url(call, url, &host, &source, &query) < 0)
        return NULL;
    source += *source == '/';
    len = strcspn(source, "/");
    if (strncmp(path, source, len) == 0 && path[len] == '/')
        return NULL;
    return arena_strndup(call->arena, source, len);
}

/* /account/rest */
static int resolve_path(struct storage_call *call, struct err *e)
{
    const char *p = call->raw_path + (*call->raw_path == '/');
    size_t len = strcspn(p, "/");
    const char *account = renamed_account(call, p);

    call->is_path_style = true;
    if (account)
        return set_account(call, account, e) < 0 ? -1 : set_names(call, p, e);
    if (decode_name(call, p, len, &account, e) < 0 || set_account(call, account, e) < 0)
        return -1;
    return set_names(call, p + len + (p[len] == '/'), e);
}

/* A part of a batch names its account or leaves it out, whatever the address of the batch. */
static int resolve_part(struct storage_call *call, struct err *e)
{
    const struct storage_call *outer = call->outer;
    const char *p = call->raw_path + (*call->raw_path == '/');
    size_t len = strlen(outer->account);

    call->account = outer->account;
    call->is_secondary = outer->is_secondary;
    call->is_path_style = outer->is_path_style;
    if (strncmp(p, outer->account, len) == 0 && p[len] == '/' && strchr(p + len + 1, '/'))
        return set_names(call, p + len + 1, e);
    return set_names(call, p, e);
}

int storage_resolve(struct storage_call *call, struct err *e)
{
    const char *port;
    const char *name = split_host(call->arena, call->host, &port);
    const char *account;

    if (call->outer)
        return resolve_part(call, e);
    if (is_path_style(&call->service->config, name))
        return resolve_path(call, e);
    account = host_account(call, name);
    if (!account)
        return err_set(e, ERR_MISDIRECT, "this yard does not answer to the name \"%.100s\"",
                       name);
    if (set_account(call, account, e) < 0)
        return -1;
    return set_names(call, call->raw_path + (*call->raw_path == '/'), e);
}

const char *storage_endpoint(struct storage_call *call)
{
    const char *scheme = call->is_tls ? "https" : "http";

    if (!call->is_path_style)
        return arena_printf(call->arena, "%s://%s/", scheme, call->host);
    return arena_printf(call->arena, "%s://%s/%s%s/", scheme, call->host, call->account,
                        call->is_secondary ? secondary : "");
}

/* --- sources of copies --- */

static int foreign(struct err *e)
{
    return storage_refuse(e, ERR_INVALID, "CannotVerifyCopySource",
                          "the source must be an object of this yard, under an address that "
                          "this yard has");
}

/* Is it this server, as far as the client can tell: its own Host, or another name of ours at
 * the same port?  An address alone proves nothing. */
static bool is_same_server(struct storage_call *call, const char *host)
{
    const struct storage_config *config = &call->service->config;
    const char *port, *own_port;
    const char *name = split_host(call->arena, host, &port);
    const char *own = split_host(call->arena, call->host, &own_port);

    if (strcmp(port, own_port) != 0)
        return false;
    return strcasecmp(name, own) == 0 || is_own_name(config, name) ||
           strcasecmp(name, "localhost") == 0 || host_account(call, name) != NULL;
}

/* The client may read the source: by a SAS in its address, by a token of its own, or because it
 * holds the key (or a token) of the account that both are in. */
static int
authorise_source(struct storage_call *call, struct storage_call *source, struct err *e)
{
    bool is_same = strcmp(call->account, source->account) == 0;

    if (is_same && !sas_is_in(source->raw_query) && !source->header_count &&
        (call->by == STORAGE_BY_KEY || call->by == STORAGE_BY_BEARER))
        return 0;
    if (storage_authorise(source, e) == 0)
        return 0;
    err_wrap(e, "reading the source");
    e->code = ERR_FORBIDDEN;
    return err_reason(e, "CannotVerifyCopySource");
}

int storage_copy_source(struct storage_call *call,
                        struct storage_call **ret_source,
                        struct err *e)
{
    const char *url = storage_need_header(call, "x-ms-copy-source", e);
    const char *token = storage_header(call, "x-ms-copy-source-authorization");
    struct sharedkey_header *header = arena_alloc(call->arena, sizeof(*header));
    const char *host, *path, *query;
    struct storage_call *source;

    if (!url)
        return -1;
    if (split_url(call, url, &host, &path, &query) < 0 || !is_same_server(call, host))
        return foreign(e);
    *header = (struct sharedkey_header){"Authorization", token};
    source = storage_call_part(call, "GET", path, query, header, token ? 1 : 0);
    source->host = host;
    if (storage_resolve(source, e) < 0 || source->level != STORAGE_OBJECT ||
        storage_find_op(source, e) < 0)
        return foreign(e);
    if (authorise_source(call, source, e) < 0)
        return -1;
    *ret_source = source;
    return 0;
}
