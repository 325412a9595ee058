/* hasher.h - the MD5 of a file that is still being written, reckoned by another thread.
 *
 * A body of gigabytes comes over one connection, whose thread reads from the socket and writes
 * to the file; the MD5 costs more than both.  So another thread follows through the file, which
 * it finds in the page cache.
 *
 * Calling sequence: hasher_new(), hasher_advance() whenever more was written, hasher_end()
 * once, hasher_free().  Threads: one owner.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_HASHER_H
#define STORAGE_HASHER_H

#include "base/err.h"

#include <openssl/types.h>
#include <stdint.h>

struct hasher; /* opaque */
struct work_pool;

enum {
    HASHER_MD5_BYTES = 16,
};

/* Go on from offset, up to which md5 has seen all.  Borrows pool and fd, takes ownership of
 * md5.
 */
struct hasher *hasher_new(struct work_pool *pool, int fd, EVP_MD_CTX *md5, uint64_t offset);
/* The file has so many bytes now. */
void hasher_advance(struct hasher *hasher, uint64_t written);
/* Waits for the rest. */
int hasher_end(struct hasher *hasher, unsigned char digest[HASHER_MD5_BYTES], struct err *e);
void hasher_free(struct hasher *hasher);

#endif
