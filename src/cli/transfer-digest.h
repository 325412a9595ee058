/* transfer-digest.h - MD5 and CRC-64 of bytes, as the storage protocol writes them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRANSFER_DIGEST_H
#define CLI_TRANSFER_DIGEST_H

#include "base/mem.h"

#include <stddef.h>

enum {
    DIGEST_MD5_BYTES = 28,   /* base64 of 16 bytes, with its NUL and some room */
    DIGEST_CRC64_BYTES = 16, /* base64 of 8 bytes, likewise */
};

const char *digest_md5(const void *bytes, size_t len, char buf[DIGEST_MD5_BYTES]);
const char *digest_crc64(const void *bytes, size_t len, char buf[DIGEST_CRC64_BYTES]);

/* In steps. */
struct md5; /* opaque */
struct md5 *md5_new(void);
void md5_add(struct md5 *md5, const void *bytes, size_t len);
const char *md5_end(struct md5 *md5, char buf[DIGEST_MD5_BYTES]);
void md5_free(struct md5 *md5);
DEFINE_AUTOPTR(md5)

#endif
