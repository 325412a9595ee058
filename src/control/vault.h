/* vault.h - secrets at rest: sealed with a key that lives in a file beside the database, not in
 * it.
 *
 * A sealed value is bound to its place (resource row and name) and cannot be moved to another.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTROL_VAULT_H
#define CONTROL_VAULT_H

#include "base/crypt.h"
#include "base/err.h"

#include <stdint.h>

struct db;
struct str;

struct vault {
    unsigned char key[CRYPT_KEY_BYTES];
};

/* Read the key file, or make it (mode 0600) when there is none; but not when the database holds
 * secrets that were sealed with the one that is lost. */
int vault_open(const char *path, struct db *db, struct vault *ret_vault, struct err *e);

int vault_put(const struct vault *vault,
              struct db *db,
              int64_t resource_id,
              const char *name,
              const char *plain,
              int64_t now_ms,
              struct err *e);
/* ERR_NOT_FOUND when there is none of that name. */
int vault_get(const struct vault *vault,
              struct db *db,
              int64_t resource_id,
              const char *name,
              struct str *out,
              int64_t *ret_created_ms,
              struct err *e);

/* Signed, expiring words for clients that traded their secret for a token:
 * "yt1.<payload>.<hmac>". */
void vault_issue_token(const struct vault *vault,
                       const char *client_id,
                       int64_t expires_ms,
                       struct str *out);
/* Check form and signature, not the time.  ERR_UNAUTHORIZED. */
int vault_read_token(const struct vault *vault,
                     const char *token,
                     struct str *ret_client_id,
                     int64_t *ret_expires_ms,
                     struct err *e);

#endif
