/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage-address.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "http/client.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

void address_done(struct address *address)
{
    free(address->path);
    free(address->pattern);
    free(address->endpoint);
    free(address->host);
    free(address->account);
    free(address->container);
    free(address->sas);
    *address = (struct address){0};
}

const char *storage_service_name(enum storage_service service)
{
    return service == STORAGE_FILE ? "file" : "blob";
}

char *address_base(const char *path)
{
    size_t end = strlen(path), start;

    while (end && path[end - 1] == '/')
        end--;
    for (start = end; start && path[start - 1] != '/'; start--)
        ;
    return xstrndup(path + start, end - start);
}

/* --- hosts --- */

static bool is_digits(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

/* The ports of blob, queue, table and file service of emulators: 10000-10004, 10100-10104,
 * 11000-11004, 11100-11104. */
static bool is_emulator_port(const char *port)
{
    return strlen(port) == 5 && is_digits(port) && port[0] == '1' && port[1] <= '1' &&
           port[2] <= '1' && port[3] == '0' && port[4] <= '4';
}

static const char *port_of(const char *host)
{
    const char *colon = strrchr(host, ':');

    return colon && is_digits(colon + 1) ? colon + 1 : "";
}

static char *name_of(const char *host)
{
    size_t port = strlen(port_of(host));

    return xstrndup(host, strlen(host) - (port ? port + 1 : 0));
}

static bool is_path_style(const char *host)
{
    auto_free char *name = name_of(host);
    unsigned char v4[4];

    return name[0] == '[' || inet_pton(AF_INET, name, v4) == 1 || !strchr(name, '.') ||
           str_equal_nocase(name, "host.docker.internal") || is_emulator_port(port_of(host));
}

static bool is_loopback(const char *name)
{
    auto_free char *url = xasprintf("http://%s", name);

    return http_url_is_loopback(url);
}

bool address_same_host(const char *a, const char *b)
{
    auto_free char *name_a = name_of(a), *name_b = name_of(b);

    if (!str_equal(port_of(a), port_of(b)))
        return false;
    return str_equal_nocase(name_a, name_b) || (is_loopback(name_a) && is_loopback(name_b));
}

static enum storage_service guess_service(const char *host)
{
    const char *port = port_of(host);

    if (strstr(host, ".blob."))
        return STORAGE_BLOB;
    if (strstr(host, ".file."))
        return STORAGE_FILE;
    if (is_emulator_port(port) && port[4] == '0')
        return STORAGE_BLOB;
    if (is_emulator_port(port) && port[4] == '4')
        return STORAGE_FILE;
    return STORAGE_UNKNOWN;
}

/* --- paths --- */

/* Take the last segment off as the pattern when it has a star.  raw: not yet decoded. */
static int split_pattern(char *raw, char **ret_pattern, struct err *e)
{
    char *slash = strrchr(raw, '/');
    char *last = slash ? slash + 1 : raw;
    const char *star = strchr(raw, '*');

    if (!star)
        return 0;
    if (star < last)
        return err_set(e, ERR_INVALID,
                       "a wildcard may stand in the last part of a path only: \"%.200s\"", raw);
    *ret_pattern = xstrdup(last);
    *last = '\0';
    return 0;
}

static int decode(const char *raw, char **ret_text, struct err *e)
{
    auto_str text = {0};

    if (text_percent_decode(&text, raw, strlen(raw), false, e) < 0)
        return err_wrap(e, "\"%.200s\"", raw);
    *ret_text = str_take(&text);
    return 0;
}

/* container/path, still encoded. */
static int parse_below(const char *raw, struct address *a, struct err *e)
{
    size_t len = strcspn(raw, "/");
    auto_free char *container = xstrndup(raw, len);
    auto_free char *path = xstrdup(raw + len + strspn(raw + len, "/"));
    auto_free char *pattern = NULL;
    size_t end;

    if (split_pattern(path, &pattern, e) < 0 || decode(container, &a->container, e) < 0 ||
        (pattern && decode(pattern, &a->pattern, e) < 0))
        return -1;
    end = strlen(path);
    a->ends_in_slash = !pattern && raw[len] && (!end || path[end - 1] == '/');
    while (end && path[end - 1] == '/')
        path[--end] = '\0';
    return decode(path, &a->path, e);
}

static int bad_url(const char *text, struct err *e)
{
    return err_set(e, ERR_INVALID,
                   "\"%.200s\" is not the URL of a storage account; write it like "
                   "http://127.0.0.1:10000/account/container/path",
                   text);
}

/* What follows '?': a SAS or nothing. */
static int take_query(char *rest, struct address *a, struct err *e)
{
    char *query = strchr(rest, '?');

    if (!query)
        return 0;
    *query++ = '\0';
    if (!*query)
        return 0;
    if (!strstr(query, "sig="))
        return err_set(e, ERR_INVALID,
                       "what follows the '?' in the URL is not a shared access signature");
    a->sas = xstrdup(query);
    return 0;
}

static int parse_url(const char *text, struct address *a, struct err *e)
{
    static const char blob_cloud[] = ".blob.core.windows.net";
    static const char file_cloud[] = ".file.core.windows.net";
    const char *start = strstr(text, "://") + 3;
    auto_free char *scheme = xstrndup(text, (size_t)(start - text));
    auto_free char *copy = xstrdup(start);
    const char *below = "";
    char *slash;

    if (take_query(copy, a, e) < 0)
        return -1;
    slash = strchr(copy, '/');
    if (slash) {
        *slash = '\0';
        below = slash + 1;
    }
    if (!*copy || strpbrk(copy, "@ \t\r\n#"))
        return bad_url(copy, e);
    a->host = str_lower(copy);
    if (is_path_style(a->host)) {
        size_t len = strcspn(below, "/");

        if (!len)
            return bad_url(copy, e);
        a->account = xstrndup(below, len);
        a->endpoint = xasprintf("%s%s/%s", scheme, a->host, a->account);
        below += len + (below[len] == '/');
    } else {
        a->account = xstrndup(a->host, strcspn(a->host, "."));
        a->endpoint = xasprintf("%s%s", scheme, a->host);
    }
    a->service = guess_service(a->host);
    a->is_public_cloud = str_ends(a->host, blob_cloud) || str_ends(a->host, file_cloud);
    return parse_below(below, a, e);
}

static int parse_local(const char *text, struct address *a, struct err *e)
{
    auto_free char *path = xstrdup(text);

    if (!*path)
        return err_set(e, ERR_INVALID, "a path is empty");
    if (split_pattern(path, &a->pattern, e) < 0)
        return -1;
    a->is_local = true;
    a->service = STORAGE_UNKNOWN;
    a->ends_in_slash = !a->pattern && str_ends(path, "/");
    a->path = *path ? take_ptr(&path) : xstrdup(".");
    return 0;
}

/* account/container/path.  It is no URL: a percent sign stands for itself. */
static int parse_short(const char *text, struct address *a, struct err *e)
{
    size_t len = strcspn(text, "/");
    auto_str encoded = {0};

    if (!len)
        return bad_url(text, e);
    a->account = xstrndup(text, len);
    a->service = STORAGE_UNKNOWN;
    for (const char *p = text + len + (text[len] == '/'); *p; p++) {
        if (*p == '%')
            str_add(&encoded, "%25");
        else
            str_add_char(&encoded, *p);
    }
    return parse_below(str_text(&encoded), a, e);
}

static bool is_url(const char *text)
{
    return str_starts_nocase(text, "http://") || str_starts_nocase(text, "https://");
}

static int parse(const char *text, bool is_remote, struct address *a, struct err *e)
{
    if (is_url(text))
        return parse_url(text, a, e);
    return is_remote ? parse_short(text, a, e) : parse_local(text, a, e);
}

int address_parse(const char *text, struct address *ret_address, struct err *e)
{
    auto_address a = {0};

    if (parse(text, false, &a, e) < 0)
        return -1;
    *ret_address = a;
    a = (struct address){0};
    return 0;
}

int address_parse_remote(const char *text, struct address *ret_address, struct err *e)
{
    auto_address a = {0};

    if (parse(text, true, &a, e) < 0)
        return -1;
    *ret_address = a;
    a = (struct address){0};
    return 0;
}
