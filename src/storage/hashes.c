/* hashes.c - MD5 and CRC-64 of bytes in memory, as the protocol writes them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-proto.h"

#include "base/crc64.h"
#include "base/mem.h"
#include "base/text.h"
#include "storage/storage-internal.h"

#include <endian.h>
#include <openssl/evp.h>
#include <string.h>

void storage_md5(const void *bytes, size_t len, struct str *out)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int digest_len;

    if (!EVP_Digest(bytes, len, digest, &digest_len, EVP_md5(), NULL))
        abort(); /* only without memory */
    text_base64(out, digest, digest_len);
}

void storage_crc64(const void *bytes, size_t len, struct str *out)
{
    uint64_t little = htole64(crc64(0, bytes, len));

    text_base64(out, &little, sizeof(little));
}

int storage_check_body(struct storage_call *call,
                       const char *md5,
                       const char *crc64_text,
                       struct err *e)
{
    auto_str own = {0};

    if (md5) {
        storage_md5(call->body, call->body_len, &own);
        if (strcmp(str_text(&own), md5) != 0)
            return storage_refuse(e, ERR_INVALID, "Md5Mismatch",
                                  "the MD5 of the body is %s and not %.32s", str_text(&own),
                                  md5);
    } else if (crc64_text) {
        storage_crc64(call->body, call->body_len, &own);
        if (strcmp(str_text(&own), crc64_text) != 0)
            return storage_refuse(e, ERR_INVALID, "Crc64Mismatch",
                                  "the CRC-64 of the body is %s and not %.32s", str_text(&own),
                                  crc64_text);
    }
    return 0;
}
