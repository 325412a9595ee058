/* SPDX-License-Identifier: Apache-2.0 */
#include "control/identify.h"

#include "base/clock.h"
#include "base/str.h"
#include "control/vault.h"

static int check_expiry(const char *name, int64_t expires_ms, struct err *e)
{
    if (expires_ms == 0 || clock_wall_ms() < expires_ms)
        return 0;
    err_set(e, ERR_UNAUTHORIZED, "the token of \"%.64s\" has expired; make a new one", name);
    return err_reason(e, "ExpiredAuthenticationToken");
}

static int unknown_token(struct err *e)
{
    err_set(e, ERR_UNAUTHORIZED,
            "the token is not known here; \"yard status\" says where the right one lies");
    return err_reason(e, "InvalidAuthenticationToken");
}

/* A token we signed for a client: its owner may have lost the right since. */
static int identify_signed(struct principals *principals,
                           const struct vault *vault,
                           const char *token,
                           struct identity *ret_identity,
                           struct err *e)
{
    auto_str client_id = {0};
    int64_t expires_ms;

    if (vault_read_token(vault, token, &client_id, &expires_ms, e) < 0)
        return err_reason(e, "InvalidAuthenticationToken");
    if (!principals_by_client(principals, str_text(&client_id), ret_identity))
        return unknown_token(e);
    return check_expiry(ret_identity->name, expires_ms, e);
}

int identify_token(struct principals *principals,
                   const struct vault *vault,
                   const char *token,
                   struct identity *ret_identity,
                   struct err *e)
{
    char hash[2 * CRYPT_SHA256_BYTES + 1];

    if (str_starts(token, "yt1.")) {
        if (identify_signed(principals, vault, token, ret_identity, e) < 0)
            return -1;
    } else {
        principals_hash_token(token, hash);
        if (!principals_by_token(principals, hash, ret_identity))
            return unknown_token(e);
    }
    return check_expiry(ret_identity->name, ret_identity->expires_ms, e);
}
