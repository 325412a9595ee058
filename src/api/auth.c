/* Who is it, and is this the host they meant?
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "base/clock.h"
#include "control/vault.h"

#include <string.h>
#include <strings.h>

/* The name in "name", "name:port", "[v6]" or "[v6]:port". */
static char *host_name(struct arena *arena, const char *host)
{
    const char *end;

    if (*host == '[') {
        end = strchr(host, ']');
        return end ? arena_strndup(arena, host + 1, (size_t)(end - host - 1)) : NULL;
    }
    return arena_strndup(arena, host, strcspn(host, ":"));
}

/* A page elsewhere can make a browser send requests here under a name of its own (DNS
 * rebinding): answer only to our names. */
int auth_check_host(struct api *api, struct http_req *req, struct err *e)
{
    const char *host = http_req_host(req);
    char *name = host ? host_name(http_req_arena(req), host) : NULL;

    for (size_t i = 0; name && i < api->config.host_count; i++) {
        if (strcasecmp(name, api->config.hosts[i]) == 0)
            return 0;
    }
    return err_set(e, ERR_MISDIRECT,
                   "this yard does not answer to the name \"%.100s\"; add it with the setting "
                   "host_names",
                   name ? name : "");
}

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
static int identify_signed(struct call *call, const char *token, struct err *e)
{
    auto_str client_id = {0};
    int64_t expires_ms;

    if (vault_read_token(call->api->config.vault, token, &client_id, &expires_ms, e) < 0)
        return err_reason(e, "InvalidAuthenticationToken");
    if (!principals_by_client(control_principals(call->api->config.control),
                              str_text(&client_id), &call->who))
        return unknown_token(e);
    return check_expiry(call->who.name, expires_ms, e);
}

int auth_identify(struct call *call, struct err *e)
{
    const char *header = http_req_header(call->req, "Authorization");
    char hash[2 * CRYPT_SHA256_BYTES + 1];
    const char *token;

    if (!header) {
        err_set(e, ERR_UNAUTHORIZED,
                "a token is required: send \"Authorization: Bearer TOKEN\"; \"yard status\" "
                "says where the token lies");
        return err_reason(e, "AuthenticationFailed");
    }
    if (strncasecmp(header, "Bearer ", 7) != 0) {
        err_set(e, ERR_UNAUTHORIZED, "the Authorization header must be \"Bearer TOKEN\"");
        return err_reason(e, "AuthenticationFailed");
    }
    token = header + 7 + strspn(header + 7, " ");
    if (str_starts(token, "yt1."))
        return identify_signed(call, token, e) < 0
                   ? -1
                   : check_expiry(call->who.name, call->who.expires_ms, e);
    principals_hash_token(token, hash);
    if (!principals_by_token(control_principals(call->api->config.control), hash, &call->who))
        return unknown_token(e);
    return check_expiry(call->who.name, call->who.expires_ms, e);
}
