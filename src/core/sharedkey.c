/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sharedkey.h"

#include "base/clock.h"
#include "base/crypt.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char secondary[] = "-secondary";

static const char *find_header(const struct sharedkey_request *r, const char *name)
{
    for (size_t i = 0; i < r->header_count; i++)
        if (strcasecmp(r->headers[i].name, name) == 0)
            return r->headers[i].value;
    return "";
}

/* --- order of headers --- */

/* A place in the order for each character of a header name, upper case never seen.  What is
 * not in the text comes after it. */
static int place(const char *alphabet, char c)
{
    const char *at = strchr(alphabet, c);

    return at ? (int)(at - alphabet) : (unsigned char)c + 256;
}

static int compare_alphabet(const char *a, const char *b)
{
    static const char alphabet[] =
        "-!#$%&*.^_|~+\"'(),/`0123456789:;<=>?@[]abcdefghijklmnopqrstuvwxyz{}";

    while (*a && *a == *b)
        a++, b++;
    if (!*a || !*b)
        return (*a != '\0') - (*b != '\0');
    return place(alphabet, *a) - place(alphabet, *b);
}

/* First as if there were no hyphens; between equals, the one whose hyphen comes later is
 * first. */
static int compare_culture(const char *a, const char *b)
{
    static const char alphabet[] = "_!#$%&*.^|~+\"'(),/`0123456789abcdefghijklmnopqrstuvwxyz";
    const char *p = a, *q = b;

    for (;; p++, q++) {
        p += strspn(p, "-");
        q += strspn(q, "-");
        if (!*p || !*q || *p != *q)
            break;
    }
    if (*p && *q)
        return place(alphabet, *p) - place(alphabet, *q);
    if (*p || *q)
        return (*p != '\0') - (*q != '\0');
    while (*a && *a == *b)
        a++, b++;
    return (*a == '-') - (*b == '-');
}

/* A header's place among the others; same names stay in their order. */
struct sorted {
    char *name; /* lower case */
    const char *value;
    size_t index;
    enum sharedkey_order order;
};

static int compare_headers(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    int by_name = x->order == SHAREDKEY_BYTES     ? strcmp(x->name, y->name)
                  : x->order == SHAREDKEY_CULTURE ? compare_culture(x->name, y->name)
                                                  : compare_alphabet(x->name, y->name);

    return by_name ? by_name : (x->index > y->index) - (x->index < y->index);
}

static void
add_headers(const struct sharedkey_request *r, enum sharedkey_order order, struct str *out)
{
    auto_free struct sorted *sorted = xcalloc(r->header_count + 1, sizeof(*sorted));
    size_t count = 0;

    for (size_t i = 0; i < r->header_count; i++)
        if (str_starts_nocase(r->headers[i].name, "x-ms-"))
            sorted[count++] =
                (struct sorted){str_lower(r->headers[i].name), r->headers[i].value, i, order};
    qsort(sorted, count, sizeof(*sorted), compare_headers);
    for (size_t i = 0; i < count; i++) {
        if (i && strcmp(sorted[i].name, sorted[i - 1].name) == 0) {
            str_truncate(out, out->len - 1);
            str_addf(out, ",%s\n", sorted[i].value);
        } else {
            str_addf(out, "%s:%s\n", sorted[i].name, sorted[i].value);
        }
    }
    for (size_t i = 0; i < count; i++)
        free(sorted[i].name);
}

/* --- the resource --- */

struct param {
    char *name, *value;
};

/* What cannot be decoded stands for itself: then the signature decides. */
static char *decoded(const char *text, size_t len)
{
    auto_str out = {0};

    if (text_percent_decode(&out, text, len, true, NULL) < 0)
        return xstrndup(text, len);
    return str_take(&out);
}

static int compare_params(const void *a, const void *b)
{
    const struct param *x = a, *y = b;
    int by_name = strcmp(x->name, y->name);

    return by_name ? by_name : strcmp(x->value, y->value);
}

static struct param *split_query(const char *p, size_t *ret_count)
{
    struct param *params;
    size_t most = 1, count = 0;

    for (const char *c = p; *c; c++)
        most += *c == '&';
    params = xcalloc(most, sizeof(*params));
    while (*p) {
        size_t len = strcspn(p, "&"), name = strcspn(p, "=&");

        if (len) {
            auto_free char *raw_name = decoded(p, name);

            params[count].name = str_lower(raw_name);
            params[count++].value =
                name < len ? decoded(p + name + 1, len - name - 1) : xstrdup("");
        }
        p += len + (p[len] == '&');
    }
    qsort(params, count, sizeof(*params), compare_params);
    *ret_count = count;
    return params;
}

static void add_query(const struct sharedkey_request *r, bool is_lite, struct str *out)
{
    size_t count;
    auto_free struct param *params = split_query(r->raw_query, &count);

    for (size_t i = 0; i < count; i++) {
        if (is_lite && strcmp(params[i].name, "comp") == 0)
            str_addf(out, "?comp=%s", params[i].value);
        else if (is_lite)
            continue;
        else if (i && strcmp(params[i].name, params[i - 1].name) == 0)
            str_addf(out, ",%s", params[i].value);
        else
            str_addf(out, "\n%s:%s", params[i].name, params[i].value);
    }
    for (size_t i = 0; i < count; i++) {
        free(params[i].name);
        free(params[i].value);
    }
}

/* --- the text --- */

static void add_line(struct str *out, const char *value)
{
    str_add(out, value);
    str_add_char(out, '\n');
}

static void add_date(const struct sharedkey_request *r, struct str *out)
{
    add_line(out, *find_header(r, "x-ms-date") ? "" : find_header(r, "Date"));
}

void sharedkey_string(const struct sharedkey_request *r,
                      bool is_lite,
                      enum sharedkey_order order,
                      struct str *out)
{
    static const char *const before[] = {"Content-Encoding", "Content-Language"};
    static const char *const after[] = {"If-Modified-Since", "If-Match", "If-None-Match",
                                        "If-Unmodified-Since", "Range"};
    const char *length = find_header(r, "Content-Length");

    add_line(out, r->verb);
    if (!is_lite) {
        for (size_t i = 0; i < ARRAY_SIZE(before); i++)
            add_line(out, find_header(r, before[i]));
        add_line(out, strcmp(length, "0") == 0 ? "" : length);
    }
    add_line(out, find_header(r, "Content-MD5"));
    add_line(out, find_header(r, "Content-Type"));
    add_date(r, out);
    if (!is_lite)
        for (size_t i = 0; i < ARRAY_SIZE(after); i++)
            add_line(out, find_header(r, after[i]));
    add_headers(r, order, out);
    str_addf(out, "/%s%s", r->account, r->raw_path);
    add_query(r, is_lite, out);
}

/* --- checking --- */

static bool scheme(const char *authorization, bool *ret_lite, const char **ret_rest)
{
    static const struct {
        const char *name;
        bool is_lite;
    } schemes[] = {{"SharedKey ", false}, {"SharedKeyLite ", true}};

    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
        if (str_starts_nocase(authorization, schemes[i].name)) {
            *ret_lite = schemes[i].is_lite;
            *ret_rest = authorization + strlen(schemes[i].name);
            *ret_rest += strspn(*ret_rest, " ");
            return true;
        }
    return false;
}

void sharedkey_sign(const struct sharedkey_request *r,
                    const void *key,
                    size_t key_len,
                    struct str *out)
{
    unsigned char digest[CRYPT_SHA256_BYTES];
    auto_str text = {0};

    sharedkey_string(r, false, SHAREDKEY_CULTURE, &text);
    crypt_hmac_sha256(key, key_len, str_text(&text), text.len, digest);
    str_addf(out, "SharedKey %s:", r->account);
    text_base64(out, digest, sizeof(digest));
}

bool sharedkey_is_used(const char *authorization)
{
    const char *rest;
    bool is_lite;

    return scheme(authorization, &is_lite, &rest);
}

static bool is_signed_with(const struct str *text, const char *key, const struct str *signature)
{
    unsigned char digest[CRYPT_SHA256_BYTES];
    auto_str raw_key = {0};

    if (!key || !*key || text_base64_decode(&raw_key, key, NULL) < 0)
        return false;
    crypt_hmac_sha256(str_text(&raw_key), raw_key.len, str_text(text), text->len, digest);
    return signature->len == sizeof(digest) &&
           crypt_equal(digest, str_text(signature), sizeof(digest));
}

static bool is_signed(const struct sharedkey_request *r,
                      bool is_lite,
                      const struct str *signature,
                      const char *key1,
                      const char *key2)
{
    bool is_good = false;

    for (int order = 0; order < SHAREDKEY_ORDERS && !is_good; order++) {
        auto_str text = {0};

        sharedkey_string(r, is_lite, (enum sharedkey_order)order, &text);
        is_good =
            is_signed_with(&text, key1, signature) || is_signed_with(&text, key2, signature);
    }
    return is_good;
}

/* "/account-secondary/x" as "/account/x"; NULL when it is no such path. */
static char *without_suffix(const struct sharedkey_request *r)
{
    size_t len = strlen(r->account);
    const char *p = r->raw_path;

    if (*p != '/' || strncmp(p + 1, r->account, len) != 0 ||
        !str_starts(p + 1 + len, secondary))
        return NULL;
    return xasprintf("/%s%s", r->account, p + 1 + len + strlen(secondary));
}

static int check_date(const struct sharedkey_request *r, int64_t now_ms, struct err *e)
{
    const char *date = find_header(r, "x-ms-date");
    int64_t sent_ms;

    if (!*date)
        date = find_header(r, "Date");
    if (!*date)
        err_set(e, ERR_FORBIDDEN, "a signed request needs a date: send x-ms-date");
    else if (clock_parse_http(date, &sent_ms, NULL) < 0)
        err_set(e, ERR_FORBIDDEN, "\"%.40s\" is not a date", date);
    else if (sent_ms > now_ms + SHAREDKEY_SKEW_MS || sent_ms < now_ms - SHAREDKEY_SKEW_MS)
        err_set(e, ERR_FORBIDDEN,
                "the request's date \"%.40s\" is more than 15 minutes off: set the clock of "
                "the machine that sent it",
                date);
    else
        return 0;
    return err_reason(e, "AuthenticationFailed");
}

static int bad_header(struct err *e)
{
    err_set(e, ERR_INVALID, "the Authorization header must be \"SharedKey ACCOUNT:SIGNATURE\"");
    return err_reason(e, "InvalidAuthenticationInfo");
}

/* The account that signs must be the one that is asked. */
static bool is_account(const char *text, size_t len, const char *account)
{
    size_t own = strlen(account);

    if (len < own || strncmp(text, account, own) != 0)
        return false;
    return len == own || (len == own + strlen(secondary) &&
                          strncmp(text + own, secondary, strlen(secondary)) == 0);
}

int sharedkey_verify(const struct sharedkey_request *r,
                     const char *authorization,
                     const char *key1,
                     const char *key2,
                     int64_t now_ms,
                     struct err *e)
{
    auto_str signature = {0};
    const char *rest, *colon;
    bool is_lite;

    if (!scheme(authorization, &is_lite, &rest) || !(colon = strchr(rest, ':')) ||
        text_base64_decode(&signature, colon + 1, NULL) < 0)
        return bad_header(e);
    if (check_date(r, now_ms, e) < 0)
        return -1;
    if (is_account(rest, (size_t)(colon - rest), r->account)) {
        struct sharedkey_request other = *r;
        auto_free char *path = without_suffix(r);

        other.raw_path = path;
        if (is_signed(r, is_lite, &signature, key1, key2) ||
            (path && is_signed(&other, is_lite, &signature, key1, key2)))
            return 0;
    }
    err_set(e, ERR_FORBIDDEN,
            "the signature does not fit the request: check account name, key and what was "
            "signed");
    return err_reason(e, "AuthenticationFailed");
}
