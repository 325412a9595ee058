/* sas.h - shared access signatures: what a holder of a storage account's key hands out.
 *
 * The strings that are signed are facts of the storage protocol; they differ by version (sv).
 * Values are signed as given, NULL or "" when absent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SAS_H
#define CORE_SAS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct arena;
struct str;

/* An account SAS: some services (ss), some levels (srt), some verbs (sp). */
struct sas_account {
    const char *account;
    const char *permissions; /* sp */
    const char *services;    /* ss: of b f q t */
    const char *levels;      /* srt: of s c o */
    const char *start, *expiry, *ip, *protocol;
    const char *version; /* sv */
    const char *scope;   /* ses: encryption scope */
};

/* Who signed, when it was a user's key and not the account's: as the key's owner was told. */
struct sas_delegation {
    const char *object_id, *tenant_id;             /* skoid, sktid */
    const char *key_start, *key_expiry;            /* skt, ske */
    const char *key_service, *key_version;         /* sks, skv */
    const char *authorized, *unauthorized;         /* saoid, suoid */
    const char *correlation;                       /* scid */
    const char *delegated_tenant, *delegated_user; /* skdutid, sduoid */
};

/* A service SAS: one container, blob, share or file. */
struct sas_service {
    const char
        *resource; /* canonical: /blob/account/container[/blob], /file/account/share[/path] */
    const char *kind; /* sr: c b bs d, s f */
    const char *permissions;
    const char *start, *expiry, *identifier, *ip, *protocol;
    const char *version;
    const char *snapshot, *scope;
    const char *cache_control, *disposition, *encoding, *language, *type; /* rscc ... rsct */
    const struct sas_delegation *delegation; /* NULL = signed with the account's key */
};

enum {
    SAS_SIGNATURE_BYTES = 48, /* base64 of 32 bytes, with its NUL and some room */
};

/* The signature, base64, with an account key (base64).  ERR_INTERNAL when the key is not
 * base64. */
int sas_sign_account(const struct sas_account *sas,
                     const char *key,
                     char ret_signature[SAS_SIGNATURE_BYTES],
                     struct err *e);
int sas_sign_service(const struct sas_service *sas,
                     const char *key,
                     char ret_signature[SAS_SIGNATURE_BYTES],
                     struct err *e);

/* The whole token as a query string without '?', signature included. */
int sas_account_token(const struct sas_account *sas,
                      const char *key,
                      struct str *out,
                      struct err *e);
int sas_service_token(const struct sas_service *sas,
                      const char *key,
                      struct str *out,
                      struct err *e);

/* --- the other side: a SAS that somebody shows --- */

enum sas_kind { SAS_ACCOUNT, SAS_SERVICE, SAS_DELEGATION };

/* A SAS as received: every parameter decoded once, NULL when absent. */
struct sas {
    enum sas_kind kind;
    struct sas_account account;       /* without its account */
    struct sas_service service;       /* without its resource */
    struct sas_delegation delegation; /* service points here when the kind is so */
    const char *depth;                /* sdd: how many segments the directory of sr=d has */
    const char *signature;
};

/* Does the query hold a SAS at all? */
bool sas_is_in(const char *raw_query);
/* A parameter that is there twice, an unknown kind or version: "AuthenticationFailed". */
int sas_parse(const char *raw_query, struct arena *arena, struct sas *ret_sas, struct err *e);

/* What a request wants, and where it comes from. */
struct sas_ask {
    const char *service;   /* "blob" or "file" */
    const char *account;   /* without "-secondary" */
    const char *container; /* or share; NULL at the level of the service */
    const char *object;    /* blob name or path, decoded; NULL at the levels above */
    const char *snapshot;  /* NULL = none is asked for */
    const char *levels;    /* the request is one of these: of s c o */
    /* One of these letters is enough; "*": any letter is; "": no SAS can do this. */
    const char *permissions;
    bool is_service_ok; /* may a service SAS do it? */
    const char *peer;   /* numeric address */
    bool is_tls;
    int64_t now_ms;
};

/* A stored access policy; NULL members say nothing. */
struct sas_policy {
    const char *start, *expiry, *permissions;
};

enum {
    SAS_LETTERS_BYTES = 32,
};

/* May the request be done?  Keys: both of the account, or the delegation key and NULL.  policy:
 * the one that the SAS names, NULL when there is none of that name.  ret_letters are the
 * permissions that hold.  Reasons: AuthenticationFailed, AuthorizationPermissionMismatch,
 * AuthorizationResourceTypeMismatch, AuthorizationServiceMismatch,
 * AuthorizationSourceIPMismatch, AuthorizationProtocolMismatch; all ERR_FORBIDDEN. */
int sas_verify(const struct sas *sas,
               const struct sas_ask *ask,
               const char *key1,
               const char *key2,
               const struct sas_policy *policy,
               char ret_letters[SAS_LETTERS_BYTES],
               struct err *e);

/* The user delegation key of these facts, base64; the same facts give the same key. */
void sas_delegation_key(const struct sas_delegation *facts,
                        const char *account,
                        const void *secret,
                        size_t secret_len,
                        char ret_key[SAS_SIGNATURE_BYTES]);

#endif
