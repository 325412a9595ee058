/* The checks on a SAS that a client shows.  The signature comes first: who cannot sign learns
 * nothing from the others.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/sas.h"

#include "base/clock.h"
#include "base/crypt.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    MOST_DEPTH = 1000, /* segments of a directory's name: more than a blob name can have */
};
static const int64_t most_key_life_ms = 7LL * 24 * 3600 * 1000; /* as Azure has it */

/* --- reading --- */

#define AT(member) offsetof(struct sas, member)

/* Where each parameter goes; those with two places mean the same in both kinds. */
static const struct field {
    const char *name;
    size_t at, also;
} fields[] = {
    {"sv", AT(service.version), AT(account.version)},
    {"ss", AT(account.services), 0},
    {"srt", AT(account.levels), 0},
    {"sp", AT(service.permissions), AT(account.permissions)},
    {"st", AT(service.start), AT(account.start)},
    {"se", AT(service.expiry), AT(account.expiry)},
    {"sip", AT(service.ip), AT(account.ip)},
    {"spr", AT(service.protocol), AT(account.protocol)},
    {"ses", AT(service.scope), AT(account.scope)},
    {"si", AT(service.identifier), 0},
    {"sr", AT(service.kind), 0},
    {"sdd", AT(depth), 0},
    {"sig", AT(signature), 0},
    {"rscc", AT(service.cache_control), 0},
    {"rscd", AT(service.disposition), 0},
    {"rsce", AT(service.encoding), 0},
    {"rscl", AT(service.language), 0},
    {"rsct", AT(service.type), 0},
    {"skoid", AT(delegation.object_id), 0},
    {"sktid", AT(delegation.tenant_id), 0},
    {"skt", AT(delegation.key_start), 0},
    {"ske", AT(delegation.key_expiry), 0},
    {"sks", AT(delegation.key_service), 0},
    {"skv", AT(delegation.key_version), 0},
    {"saoid", AT(delegation.authorized), 0},
    {"suoid", AT(delegation.unauthorized), 0},
    {"scid", AT(delegation.correlation), 0},
    {"skdutid", AT(delegation.delegated_tenant), 0},
    {"sduoid", AT(delegation.delegated_user), 0},
};

static int failed(struct err *e, const char *why)
{
    err_set(e, ERR_FORBIDDEN, "%s", why);
    return err_reason(e, "AuthenticationFailed");
}

static const char **place(struct sas *sas, size_t at)
{
    return (const char **)(void *)((char *)sas + at);
}

static const struct field *find_field(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (strlen(fields[i].name) == len && strncasecmp(fields[i].name, name, len) == 0)
            return &fields[i];
    return NULL;
}

static bool is_version(const char *text)
{
    static const char shape[] = "0000-00-00";

    for (size_t i = 0; i < sizeof(shape) - 1; i++)
        if (shape[i] == '0' ? !isdigit((unsigned char)text[i]) : text[i] != shape[i])
            return false;
    return text[sizeof(shape) - 1] == '\0';
}

/* Headers and parameters that a SAS may also sign: refused, since we would not check them. */
static bool is_unsupported(const char *name, size_t len)
{
    return len == 3 && (strncasecmp(name, "srh", 3) == 0 || strncasecmp(name, "srq", 3) == 0);
}

static int read_field(struct sas *sas,
                      struct arena *arena,
                      const char *name,
                      size_t name_len,
                      const char *value,
                      size_t value_len,
                      struct err *e)
{
    const struct field *field = find_field(name, name_len);
    bool is_signature = field && field->at == AT(signature);
    auto_str text = {0};

    if (is_unsupported(name, name_len))
        return failed(e, "a SAS that signs request headers or parameters is not supported");
    if (!field)
        return 0;
    if (*place(sas, field->at))
        return failed(e, "a parameter of the SAS is there twice");
    /* A '+' is a space as some clients write it, but in base64 it can only be itself. */
    if (text_percent_decode(&text, value, value_len, !is_signature, NULL) < 0)
        return failed(e, "a parameter of the SAS cannot be decoded");
    *place(sas, field->at) = arena_strndup(arena, str_text(&text), text.len);
    if (field->also)
        *place(sas, field->also) = *place(sas, field->at);
    return 0;
}

static int decide_kind(struct sas *sas, struct err *e)
{
    const char *version = sas->service.version;

    if (!sas->signature)
        return failed(e, "the SAS has no signature");
    if (!version || !is_version(version) || strcmp(version, "2015-04-05") < 0)
        return failed(e, "the version (sv) of the SAS is missing or too old");
    if (sas->account.services && sas->account.levels && !sas->service.kind) {
        sas->kind = SAS_ACCOUNT;
    } else if (sas->service.kind && !sas->account.services && !sas->account.levels) {
        sas->kind = sas->delegation.object_id ? SAS_DELEGATION : SAS_SERVICE;
        if (sas->kind == SAS_DELEGATION)
            sas->service.delegation = &sas->delegation;
    } else {
        return failed(e, "the SAS is neither for an account (ss, srt) nor for a resource (sr)");
    }
    return 0;
}

bool sas_is_in(const char *raw_query)
{
    const char *p = raw_query;

    while (*p) {
        if (strncasecmp(p, "sig=", 4) == 0)
            return true;
        p += strcspn(p, "&");
        p += *p == '&';
    }
    return false;
}

int sas_parse(const char *raw_query, struct arena *arena, struct sas *ret_sas, struct err *e)
{
    const char *p = raw_query;

    *ret_sas = (struct sas){0};
    while (*p) {
        size_t len = strcspn(p, "&"), name = strcspn(p, "=&");
        size_t value = name < len ? name + 1 : len;

        if (read_field(ret_sas, arena, p, name, p + value, len - value, e) < 0)
            return -1;
        p += len + (p[len] == '&');
    }
    return decide_kind(ret_sas, e);
}

/* --- the signature --- */

/* The directory of sr=d: the first `depth` segments of the object's name.  NULL when the object
 * is not below it. */
static char *directory_of(const char *object, const char *depth)
{
    const char *p = object;
    char *end;
    unsigned long left = depth ? strtoul(depth, &end, 10) : 0;

    if (!depth || *end || !isdigit((unsigned char)*depth) || left > MOST_DEPTH)
        return NULL;
    if (left == 0)
        return xstrdup("");
    while (left) {
        size_t len = strcspn(p, "/");

        if (len == 0)
            return NULL;
        p += len;
        if (--left && *p++ != '/')
            return NULL;
    }
    return xstrndup(object, (size_t)(p - object));
}

/* Before 2018-11-09 the kind (sr) was not signed: a SAS of one blob must not be turned into one
 * of its snapshots, or of the directory of the same name. */
static bool is_kind_signed(const struct sas *sas)
{
    return strcmp(sas->service.version, "2018-11-09") >= 0;
}

/* What the SAS must have been signed for, if it is to cover what is asked for. */
static char *resource_of(const struct sas *sas, const struct sas_ask *ask)
{
    const char *kind = sas->service.kind;
    bool is_blob = strcmp(ask->service, "blob") == 0;
    auto_free char *directory = NULL;

    if (!ask->container)
        return NULL;
    if (strcmp(kind, is_blob ? "c" : "s") == 0)
        return xasprintf("/%s/%s/%s", ask->service, ask->account, ask->container);
    if (!ask->object)
        return NULL;
    if (strcmp(kind, is_blob ? "b" : "f") == 0 ||
        (is_blob && strcmp(kind, "bs") == 0 && is_kind_signed(sas)))
        return xasprintf("/%s/%s/%s/%s", ask->service, ask->account, ask->container,
                         ask->object);
    if (is_blob && strcmp(kind, "d") == 0 && is_kind_signed(sas) &&
        (directory = directory_of(ask->object, sas->depth)) != NULL)
        return xasprintf("/blob/%s/%s%s%s", ask->account, ask->container, *directory ? "/" : "",
                         directory);
    return NULL;
}

static bool equals(const char *signature, const char *given)
{
    size_t len = strlen(signature);

    return strlen(given) == len && crypt_equal(signature, given, len);
}

static bool is_signed(const struct sas *sas,
                      const struct sas_ask *ask,
                      const char *resource,
                      const char *key)
{
    char signature[SAS_SIGNATURE_BYTES];
    int rc;

    if (!key || !*key)
        return false;
    if (sas->kind == SAS_ACCOUNT) {
        struct sas_account account = sas->account;

        account.account = ask->account;
        rc = sas_sign_account(&account, key, signature, NULL);
    } else {
        struct sas_service service = sas->service;

        service.resource = resource;
        service.snapshot = strcmp(service.kind, "bs") == 0 ? ask->snapshot : NULL;
        rc = sas_sign_service(&service, key, signature, NULL);
    }
    return rc == 0 && equals(signature, sas->signature);
}

static int check_signature(const struct sas *sas,
                           const struct sas_ask *ask,
                           const char *key1,
                           const char *key2,
                           struct err *e)
{
    auto_free char *resource = sas->kind == SAS_ACCOUNT ? NULL : resource_of(sas, ask);

    if (sas->kind != SAS_ACCOUNT && !resource)
        return failed(e, "the SAS is for another resource");
    if (!is_signed(sas, ask, resource, key1) && !is_signed(sas, ask, resource, key2))
        return failed(e, "the signature of the SAS does not fit");
    return 0;
}

/* --- time --- */

/* `start` and `expiry` may be absent; an expiry is wanted from one of the two who may say it.
 */
static int check_span(const char *start, const char *expiry, int64_t now_ms, struct err *e)
{
    int64_t from_ms = INT64_MIN, until_ms = INT64_MAX;

    if (start && *start && clock_parse_iso(start, &from_ms, NULL) < 0)
        return failed(e, "the start (st) of the SAS is not a time");
    if (expiry && *expiry && clock_parse_iso(expiry, &until_ms, NULL) < 0)
        return failed(e, "the expiry (se) of the SAS is not a time");
    if (now_ms < from_ms)
        return failed(e, "the SAS is not valid yet");
    if (now_ms >= until_ms)
        return failed(e, "the SAS has expired");
    return 0;
}

static int check_delegation(const struct sas *sas, const struct sas_ask *ask, struct err *e)
{
    const struct sas_delegation *d = &sas->delegation;
    const char letter[] = {ask->service[0], '\0'};
    int64_t from_ms, until_ms;

    if (!d->key_start || !d->key_expiry || clock_parse_iso(d->key_start, &from_ms, NULL) < 0 ||
        clock_parse_iso(d->key_expiry, &until_ms, NULL) < 0)
        return failed(e, "the user delegation key has no life");
    if (until_ms - from_ms > most_key_life_ms)
        return failed(e, "the user delegation key lives longer than seven days");
    if (check_span(d->key_start, d->key_expiry, ask->now_ms, e) < 0)
        return -1;
    if (!str_equal(d->key_service, letter))
        return failed(e, "the user delegation key is for another service");
    if (sas->service.identifier)
        return failed(e, "a user delegation SAS cannot name a stored policy");
    if (d->delegated_user && *d->delegated_user)
        return failed(e, "a SAS that is bound to a user is not supported");
    return 0;
}

static int check_life(const struct sas *sas,
                      const struct sas_ask *ask,
                      const struct sas_policy *policy,
                      struct err *e)
{
    const char *identifier = sas->service.identifier, *expiry = sas->service.expiry;

    if (identifier && *identifier && sas->kind == SAS_SERVICE && !policy)
        return failed(e, "there is no stored access policy of that name");
    if (!(expiry && *expiry) && !(policy && policy->expiry && *policy->expiry))
        return failed(e, "the SAS never expires: it needs se");
    if (sas->kind == SAS_DELEGATION && check_delegation(sas, ask, e) < 0)
        return -1;
    if (policy && check_span(policy->start, policy->expiry, ask->now_ms, e) < 0)
        return -1;
    return check_span(sas->service.start, expiry, ask->now_ms, e);
}

/* --- where from --- */

/* a.b.c.d as a number; -1 when it is none.  An IPv4 address inside IPv6 counts as itself. */
static int64_t parse_ip(const char *text, size_t len)
{
    int64_t value = 0;
    size_t at = len > 7 && strncasecmp(text, "::ffff:", 7) == 0 ? 7 : 0;

    for (int part = 0; part < 4; part++) {
        int number = 0, digits = 0;

        for (; at < len && isdigit((unsigned char)text[at]) && digits < 4; at++, digits++)
            number = number * 10 + (text[at] - '0');
        if (!digits || number > 255)
            return -1;
        value = value * 256 + number;
        if (part < 3 && (at >= len || text[at++] != '.'))
            return -1;
    }
    return at == len ? value : -1;
}

static int check_source(const struct sas *sas, const struct sas_ask *ask, struct err *e)
{
    const char *range = sas->service.ip;
    const char *dash = range ? strchr(range, '-') : NULL;
    int64_t from, to, peer;

    if (!range || !*range || strcasecmp(range, ask->peer) == 0)
        return 0;
    from = parse_ip(range, dash ? (size_t)(dash - range) : strlen(range));
    to = dash ? parse_ip(dash + 1, strlen(dash + 1)) : from;
    peer = parse_ip(ask->peer, strlen(ask->peer));
    if (from >= 0 && to >= 0 && peer >= from && peer <= to)
        return 0;
    err_set(e, ERR_FORBIDDEN, "the SAS is not for requests from %.64s", ask->peer);
    return err_reason(e, "AuthorizationSourceIPMismatch");
}

static int check_protocol(const struct sas *sas, const struct sas_ask *ask, struct err *e)
{
    const char *protocol = sas->service.protocol;

    if (!protocol || !*protocol || strcasecmp(protocol, "https,http") == 0 ||
        strcasecmp(protocol, "http,https") == 0)
        return 0;
    if (strcasecmp(protocol, "https") == 0 && ask->is_tls)
        return 0;
    err_set(e, ERR_FORBIDDEN, "the SAS is for %.16s only", protocol);
    return err_reason(e, "AuthorizationProtocolMismatch");
}

/* --- what for --- */

static int check_reach(const struct sas *sas, const struct sas_ask *ask, struct err *e)
{
    if (sas->kind == SAS_ACCOUNT) {
        if (!strchr(sas->account.services, ask->service[0])) {
            err_set(e, ERR_FORBIDDEN, "the SAS is not for the %s service", ask->service);
            return err_reason(e, "AuthorizationServiceMismatch");
        }
        if (!strpbrk(sas->account.levels, ask->levels)) {
            err_set(e, ERR_FORBIDDEN, "the SAS is not for this level (srt)");
            return err_reason(e, "AuthorizationResourceTypeMismatch");
        }
        return 0;
    }
    /* A snapshot is another resource than its blob. */
    if (strcmp(sas->service.kind, "b") == 0 && ask->snapshot && *ask->snapshot) {
        err_set(e, ERR_FORBIDDEN, "the SAS is for the blob and not for its snapshots");
        return err_reason(e, "AuthorizationResourceTypeMismatch");
    }
    return 0;
}

/* The letters that both the SAS and its policy give; who says nothing does not object. */
static void effective(const char *own, const char *policy, char ret_letters[SAS_LETTERS_BYTES])
{
    const char *base = own && *own ? own : policy ? policy : "";
    size_t count = 0;

    for (; *base && count < SAS_LETTERS_BYTES - 1; base++)
        if (!policy || !*policy || strchr(policy, *base))
            ret_letters[count++] = *base;
    ret_letters[count] = '\0';
}

static int check_permission(const struct sas *sas,
                            const struct sas_ask *ask,
                            const char *letters,
                            struct err *e)
{
    bool is_kind_ok = sas->kind == SAS_ACCOUNT || ask->is_service_ok;
    bool is_letter_ok = strcmp(ask->permissions, "*") == 0
                            ? *letters
                            : strpbrk(letters, ask->permissions) != NULL;

    if (is_kind_ok && is_letter_ok)
        return 0;
    err_set(e, ERR_FORBIDDEN, "the permissions (sp) of the SAS do not allow this");
    return err_reason(e, "AuthorizationPermissionMismatch");
}

int sas_verify(const struct sas *sas,
               const struct sas_ask *ask,
               const char *key1,
               const char *key2,
               const struct sas_policy *policy,
               char ret_letters[SAS_LETTERS_BYTES],
               struct err *e)
{
    if (check_signature(sas, ask, key1, key2, e) < 0 || check_life(sas, ask, policy, e) < 0 ||
        check_protocol(sas, ask, e) < 0 || check_source(sas, ask, e) < 0 ||
        check_reach(sas, ask, e) < 0)
        return -1;
    effective(sas->service.permissions, policy ? policy->permissions : NULL, ret_letters);
    return check_permission(sas, ask, ret_letters, e);
}

/* --- user delegation keys --- */

static void add_fact(struct str *text, const char *value)
{
    str_addf(text, "%zu:%s\n", value ? strlen(value) : 0, value ? value : "");
}

void sas_delegation_key(const struct sas_delegation *facts,
                        const char *account,
                        const void *secret,
                        size_t secret_len,
                        char ret_key[SAS_SIGNATURE_BYTES])
{
    const char *const parts[] = {
        "user delegation key",  account,           facts->object_id,   facts->tenant_id,
        facts->key_start,       facts->key_expiry, facts->key_service, facts->key_version,
        facts->delegated_tenant};
    unsigned char digest[CRYPT_SHA256_BYTES];
    auto_str text = {0}, key = {0};

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        add_fact(&text, parts[i]);
    crypt_hmac_sha256(secret, secret_len, str_text(&text), text.len, digest);
    text_base64(&key, digest, sizeof(digest));
    snprintf(ret_key, SAS_SIGNATURE_BYTES, "%s", str_text(&key));
}
