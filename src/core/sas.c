/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sas.h"

#include "base/crypt.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* Versions are dates: text order is their order. */
static bool at_least(const char *version, const char *since)
{
    return version && strcmp(version, since) >= 0;
}

static void line(struct str *text, const char *value)
{
    str_add(text, value ? value : "");
    str_add_char(text, '\n');
}

static int sign(const struct str *text, const char *key, char *ret_signature, struct err *e)
{
    auto_str raw_key = {0}, signature = {0};
    unsigned char digest[CRYPT_SHA256_BYTES];

    if (text_base64_decode(&raw_key, key, NULL) < 0)
        return err_set(e, ERR_INTERNAL, "the account key is damaged: it is not base64");
    crypt_hmac_sha256(str_text(&raw_key), raw_key.len, str_text(text), text->len, digest);
    text_base64(&signature, digest, sizeof(digest));
    snprintf(ret_signature, SAS_SIGNATURE_BYTES, "%s", str_text(&signature));
    return 0;
}

int sas_sign_account(const struct sas_account *s,
                     const char *key,
                     char ret_signature[SAS_SIGNATURE_BYTES],
                     struct err *e)
{
    auto_str text = {0};

    line(&text, s->account);
    line(&text, s->permissions);
    line(&text, s->services);
    line(&text, s->levels);
    line(&text, s->start);
    line(&text, s->expiry);
    line(&text, s->ip);
    line(&text, s->protocol);
    line(&text, s->version);
    if (at_least(s->version, "2020-12-06"))
        line(&text, s->scope);
    return sign(&text, key, ret_signature, e);
}

static void add_delegation(struct str *text,
                           const struct sas_delegation *d,
                           const char *version,
                           bool is_blob)
{
    line(text, d->object_id);
    line(text, d->tenant_id);
    line(text, d->key_start);
    line(text, d->key_expiry);
    line(text, d->key_service);
    line(text, d->key_version);
    if (is_blob && at_least(version, "2020-02-10")) {
        line(text, d->authorized);
        line(text, d->unauthorized);
        line(text, d->correlation);
    }
    if (at_least(version, "2025-07-05")) {
        line(text, d->delegated_tenant);
        line(text, d->delegated_user);
    }
}

int sas_sign_service(const struct sas_service *s,
                     const char *key,
                     char ret_signature[SAS_SIGNATURE_BYTES],
                     struct err *e)
{
    bool is_blob = str_starts(s->resource, "/blob/");
    auto_str text = {0};

    line(&text, s->permissions);
    line(&text, s->start);
    line(&text, s->expiry);
    line(&text, s->resource);
    if (s->delegation)
        add_delegation(&text, s->delegation, s->version, is_blob);
    else
        line(&text, s->identifier);
    line(&text, s->ip);
    line(&text, s->protocol);
    line(&text, s->version);
    if (is_blob && at_least(s->version, "2018-11-09")) {
        line(&text, s->kind);
        line(&text, s->snapshot);
    }
    if (is_blob && at_least(s->version, "2020-12-06"))
        line(&text, s->scope);
    if (is_blob && s->delegation && at_least(s->version, "2026-04-06"))
        str_add(&text, "\n\n"); /* signed request headers and query: not supported, so empty */
    line(&text, s->cache_control);
    line(&text, s->disposition);
    line(&text, s->encoding);
    line(&text, s->language);
    str_add(&text, s->type ? s->type : "");
    return sign(&text, key, ret_signature, e);
}

static void add_param(struct str *out, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    if (out->len)
        str_add_char(out, '&');
    str_addf(out, "%s=", name);
    text_percent(out, value);
}

int sas_account_token(const struct sas_account *s,
                      const char *key,
                      struct str *out,
                      struct err *e)
{
    char signature[SAS_SIGNATURE_BYTES];

    if (sas_sign_account(s, key, signature, e) < 0)
        return -1;
    add_param(out, "sv", s->version);
    add_param(out, "ss", s->services);
    add_param(out, "srt", s->levels);
    add_param(out, "sp", s->permissions);
    add_param(out, "st", s->start);
    add_param(out, "se", s->expiry);
    add_param(out, "sip", s->ip);
    add_param(out, "spr", s->protocol);
    add_param(out, "ses", s->scope);
    add_param(out, "sig", signature);
    return 0;
}

int sas_service_token(const struct sas_service *s,
                      const char *key,
                      struct str *out,
                      struct err *e)
{
    char signature[SAS_SIGNATURE_BYTES];

    if (sas_sign_service(s, key, signature, e) < 0)
        return -1;
    add_param(out, "sv", s->version);
    add_param(out, "sr", s->kind);
    add_param(out, "sp", s->permissions);
    add_param(out, "st", s->start);
    add_param(out, "se", s->expiry);
    add_param(out, "si", s->identifier);
    add_param(out, "sip", s->ip);
    add_param(out, "spr", s->protocol);
    add_param(out, "ses", s->scope);
    add_param(out, "rscc", s->cache_control);
    add_param(out, "rscd", s->disposition);
    add_param(out, "rsce", s->encoding);
    add_param(out, "rscl", s->language);
    add_param(out, "rsct", s->type);
    add_param(out, "sig", signature);
    return 0;
}
