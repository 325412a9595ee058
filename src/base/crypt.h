/* crypt.h - randomness, digests, signatures, and sealing of secrets at rest.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CRYPT_H
#define BASE_CRYPT_H

#include "base/err.h"

#include <stddef.h>

struct str;

enum {
    CRYPT_SHA256_BYTES = 32,
    CRYPT_KEY_BYTES = 32,  /* of a sealing key */
    CRYPT_UUID_BYTES = 37, /* text with its NUL */
};

/* Aborts when the kernel has none to give: no caller could go on. */
void crypt_random(void *bytes, size_t len);
/* A random (version 4) UUID, lower case. */
const char *crypt_uuid(char buf[CRYPT_UUID_BYTES]);
bool crypt_is_uuid(const char *text);

void crypt_sha256(const void *bytes, size_t len, unsigned char digest[CRYPT_SHA256_BYTES]);
void crypt_hmac_sha256(const void *key,
                       size_t key_len,
                       const void *bytes,
                       size_t len,
                       unsigned char digest[CRYPT_SHA256_BYTES]);
/* Equal in constant time for equal lengths. */
bool crypt_equal(const void *a, const void *b, size_t len);

/* Sealed text is base64 of: version byte 1, 12 bytes nonce, ciphertext, 16 bytes tag
 * (AES-256-GCM). `context` is authenticated with it, so that a sealed value cannot be moved to
 * another row. */
void crypt_seal(struct str *out,
                const unsigned char key[CRYPT_KEY_BYTES],
                const char *context,
                const char *plain);
int crypt_unseal(struct str *out,
                 const unsigned char key[CRYPT_KEY_BYTES],
                 const char *context,
                 const char *sealed,
                 struct err *e);

#endif
