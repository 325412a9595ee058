/* Who is it, and is this the host they meant?
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "control/identify.h"

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

int auth_identify(struct call *call, struct err *e)
{
    const char *header = http_req_header(call->req, "Authorization");
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
    return identify_token(control_principals(call->api->config.control),
                          call->api->config.vault, token, &call->who, e);
}
