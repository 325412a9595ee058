/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-digest.h"

#include "base/crc64.h"
#include "base/str.h"
#include "base/text.h"

#include <endian.h>
#include <openssl/evp.h>
#include <stdio.h>

struct md5 {
    EVP_MD_CTX *context;
};

static const char *write_base64(const void *bytes, size_t len, char *buf, size_t room)
{
    auto_str text = {0};

    text_base64(&text, bytes, len);
    snprintf(buf, room, "%s", str_text(&text));
    return buf;
}

struct md5 *md5_new(void)
{
    struct md5 *md5 = xcalloc(1, sizeof(*md5));

    md5->context = EVP_MD_CTX_new();
    if (!md5->context || !EVP_DigestInit_ex(md5->context, EVP_md5(), NULL))
        abort(); /* only without memory */
    return md5;
}

void md5_add(struct md5 *md5, const void *bytes, size_t len)
{
    if (!EVP_DigestUpdate(md5->context, bytes, len))
        abort();
}

const char *md5_end(struct md5 *md5, char buf[DIGEST_MD5_BYTES])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int len;

    if (!EVP_DigestFinal_ex(md5->context, digest, &len))
        abort();
    return write_base64(digest, len, buf, DIGEST_MD5_BYTES);
}

void md5_free(struct md5 *md5)
{
    if (!md5)
        return;
    EVP_MD_CTX_free(md5->context);
    free(md5);
}

const char *digest_md5(const void *bytes, size_t len, char buf[DIGEST_MD5_BYTES])
{
    autoptr(md5) md5 = md5_new();

    md5_add(md5, bytes, len);
    return md5_end(md5, buf);
}

const char *digest_crc64(const void *bytes, size_t len, char buf[DIGEST_CRC64_BYTES])
{
    uint64_t little = htole64(crc64(0, bytes, len));

    return write_base64(&little, sizeof(little), buf, DIGEST_CRC64_BYTES);
}
