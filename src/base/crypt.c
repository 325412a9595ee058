/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crypt.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

void crypt_random(void *bytes, size_t len)
{
    char *p = bytes;

    while (len > 0) {
        ssize_t got = getrandom(p, len, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            abort();
        p += got;
        len -= (size_t)got;
    }
}

const char *crypt_uuid(char buf[CRYPT_UUID_BYTES])
{
    unsigned char b[16];

    crypt_random(b, sizeof(b));
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    snprintf(buf, CRYPT_UUID_BYTES,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
    return buf;
}

bool crypt_is_uuid(const char *text)
{
    size_t i;

    for (i = 0; i < 36 && text[i]; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
            return false;
    }
    return i == 36 && !text[36];
}

/* EVP_sha256() is looked up in the provider at every use, which costs more than the hash of a
 * token. */
static EVP_MD *sha256;
static pthread_once_t sha256_once = PTHREAD_ONCE_INIT;

enum {
    SHA256_BLOCK = 64,
};

static void fetch_sha256(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
}

void crypt_sha256(const void *bytes, size_t len, unsigned char digest[CRYPT_SHA256_BYTES])
{
    pthread_once(&sha256_once, fetch_sha256);
    if (!sha256 || EVP_Digest(bytes, len, digest, NULL, sha256, NULL) != 1)
        abort();
}

/* One half of an HMAC: the hash of the masked key and then the bytes. */
static void hash_keyed(EVP_MD_CTX *ctx,
                       const unsigned char key[SHA256_BLOCK],
                       unsigned char mask,
                       const void *bytes,
                       size_t len,
                       unsigned char digest[CRYPT_SHA256_BYTES])
{
    unsigned char masked[SHA256_BLOCK];

    for (size_t i = 0; i < SHA256_BLOCK; i++)
        masked[i] = key[i] ^ mask;
    if (EVP_DigestInit_ex(ctx, sha256, NULL) != 1 ||
        EVP_DigestUpdate(ctx, masked, sizeof(masked)) != 1 ||
        EVP_DigestUpdate(ctx, bytes, len) != 1 || EVP_DigestFinal_ex(ctx, digest, NULL) != 1)
        abort();
    OPENSSL_cleanse(masked, sizeof(masked));
}

/* RFC 2104 by hand: OpenSSL's HMAC() makes and copies so much at every use that it takes three
 * times as long, and this is asked for with every signed request. */
void crypt_hmac_sha256(const void *key,
                       size_t key_len,
                       const void *bytes,
                       size_t len,
                       unsigned char digest[CRYPT_SHA256_BYTES])
{
    unsigned char block[SHA256_BLOCK] = {0};
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();

    pthread_once(&sha256_once, fetch_sha256);
    if (!ctx || !sha256)
        abort();
    if (key_len > sizeof(block))
        crypt_sha256(key, key_len, block);
    else if (key_len > 0)
        memcpy(block, key, key_len);
    hash_keyed(ctx, block, 0x36, bytes, len, digest);
    hash_keyed(ctx, block, 0x5c, digest, CRYPT_SHA256_BYTES, digest);
    OPENSSL_cleanse(block, sizeof(block));
    EVP_MD_CTX_free(ctx);
}

bool crypt_equal(const void *a, const void *b, size_t len)
{
    return CRYPTO_memcmp(a, b, len) == 0;
}

enum {
    SEAL_VERSION = 1,
    NONCE_BYTES = 12,
    TAG_BYTES = 16,
    HEAD_BYTES = 1 + NONCE_BYTES,
};

static void cipher_ctx_done(EVP_CIPHER_CTX **ctx)
{
    EVP_CIPHER_CTX_free(*ctx);
}

void crypt_seal(struct str *out,
                const unsigned char key[CRYPT_KEY_BYTES],
                const char *context,
                const char *plain)
{
    __attribute__((cleanup(cipher_ctx_done))) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    size_t len = strlen(plain);
    auto_free unsigned char *box = xmalloc(HEAD_BYTES + len + TAG_BYTES);
    int n;

    box[0] = SEAL_VERSION;
    crypt_random(box + 1, NONCE_BYTES);
    if (!ctx || EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, box + 1) != 1 ||
        EVP_EncryptUpdate(ctx, NULL, &n, (const unsigned char *)context,
                          (int)strlen(context)) != 1 ||
        EVP_EncryptUpdate(ctx, box + HEAD_BYTES, &n, (const unsigned char *)plain, (int)len) !=
            1 ||
        EVP_EncryptFinal_ex(ctx, box + HEAD_BYTES + len, &n) != 1 ||
        EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, box + HEAD_BYTES + len) != 1)
        abort(); /* nothing here depends on foreign input */
    text_base64(out, box, HEAD_BYTES + len + TAG_BYTES);
}

int crypt_unseal(struct str *out,
                 const unsigned char key[CRYPT_KEY_BYTES],
                 const char *context,
                 const char *sealed,
                 struct err *e)
{
    __attribute__((cleanup(cipher_ctx_done))) EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    auto_str raw = {0};
    auto_free unsigned char *plain = NULL;
    unsigned char *box;
    size_t len;
    int n;

    /* What does not unseal was sealed by us and spoilt here: never the client's fault. */
    if (text_base64_decode(&raw, sealed, NULL) < 0 || raw.len < HEAD_BYTES + TAG_BYTES ||
        raw.data[0] != SEAL_VERSION)
        return err_set(e, ERR_INTERNAL, "could not unseal a secret: unknown form");
    box = (unsigned char *)raw.data;
    len = raw.len - HEAD_BYTES - TAG_BYTES;
    plain = xmalloc(len + 1);
    if (!ctx || EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, box + 1) != 1 ||
        EVP_DecryptUpdate(ctx, NULL, &n, (const unsigned char *)context,
                          (int)strlen(context)) != 1 ||
        EVP_DecryptUpdate(ctx, plain, &n, box + HEAD_BYTES, (int)len) != 1 ||
        EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, box + HEAD_BYTES + len) !=
            1 ||
        EVP_DecryptFinal_ex(ctx, plain + len, &n) != 1)
        return err_set(e, ERR_INTERNAL,
                       "could not unseal a secret: wrong key file or altered data");
    str_add_len(out, plain, len);
    return 0;
}
