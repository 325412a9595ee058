/* sas.h - shared access signatures: what a holder of a storage account's key hands out.
 *
 * The strings that are signed are facts of the storage protocol; they differ by version (sv).
 * Values are signed as given, NULL or "" when absent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SAS_H
#define CORE_SAS_H

#include "base/err.h"

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

#endif
