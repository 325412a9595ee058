/* principals.h - everybody who may come in, in memory: asked at every request, changed seldom.
 *
 * Threads: any.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTROL_PRINCIPALS_H
#define CONTROL_PRINCIPALS_H

#include "base/crypt.h"
#include "base/err.h"
#include "core/access.h"

#include <stdint.h>

struct db;
struct principals; /* opaque */

/* What a request needs to know of its principal: a plain value. */
struct identity {
    char name[72];
    char client_id[CRYPT_UUID_BYTES];
    char scope[256]; /* the group's key, or "" */
    enum access_role role;
    int64_t expires_ms; /* 0 = never */
};

struct principals *principals_new(void);
void principals_free(struct principals *principals);
/* Read them all anew. */
int principals_load(struct principals *principals, struct db *db, struct err *e);

/* The one whose token has that hash (hex), or whose client id that is.  False when there is
 * none. */
bool principals_by_token(struct principals *principals,
                         const char *token_hash,
                         struct identity *ret_identity);
bool principals_by_client(struct principals *principals,
                          const char *client_id,
                          struct identity *ret_identity);

/* SHA-256 in hex, as tokens are kept. */
void principals_hash_token(const char *token, char ret_hash[2 * CRYPT_SHA256_BYTES + 1]);

#endif
