/* A token endpoint in the form that SDK credentials know, so that they work unpatched.
 *
 * The client id and secret are those of an access token made with "yard token create"; what is
 * given out is a signed word that lives for an hour.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "base/clock.h"
#include "control/vault.h"

enum {
    LIFETIME_S = 3600,
};

static void reply_oauth_error(struct call *call, int status, const char *code, const char *text)
{
    reply_json(call, status, json_pack("{s:s, s:s}", "error", code, "error_description", text));
}

/* Does the secret belong to the client? */
static bool knows(struct call *call, const char *client_id, const char *secret)
{
    char hash[2 * CRYPT_SHA256_BYTES + 1];

    principals_hash_token(secret, hash);
    return principals_by_token(control_principals(call->api->config.control), hash,
                               &call->who) &&
           str_equal_nocase(call->who.client_id, client_id) &&
           (call->who.expires_ms == 0 || clock_wall_ms() < call->who.expires_ms);
}

void handle_token(struct call *call)
{
    const char *grant = json_string_value(json_object_get(call->body, "grant_type"));
    const char *client = json_string_value(json_object_get(call->body, "client_id"));
    const char *secret = json_string_value(json_object_get(call->body, "client_secret"));
    int64_t expires_ms = clock_wall_ms() + INT64_C(1000) * LIFETIME_S;
    auto_str token = {0};

    if (!str_equal(grant, "client_credentials")) {
        reply_oauth_error(call, 400, "unsupported_grant_type",
                          "grant_type: this yard knows client_credentials only");
        return;
    }
    if (!client || !secret) {
        reply_oauth_error(call, 400, "invalid_request",
                          "client_id and client_secret are required");
        return;
    }
    if (!knows(call, client, secret)) {
        reply_oauth_error(call, 401, "invalid_client",
                          "the client id or its secret is wrong; make a pair with "
                          "\"yard token create\"");
        return;
    }
    vault_issue_token(call->api->config.vault, call->who.client_id, expires_ms, &token);
    http_reply_header(call->req, "Pragma", "no-cache");
    reply_json(call, 200,
               json_pack("{s:s, s:i, s:i, s:o, s:s}", "token_type", "Bearer", "expires_in",
                         LIFETIME_S, "ext_expires_in", LIFETIME_S, "expires_on",
                         json_sprintf("%lld", (long long)(expires_ms / 1000)), "access_token",
                         str_text(&token)));
}

void handle_openid(struct call *call)
{
    const char *base = call_base_url(call), *tenant = call_param(call, "tenantId");

    reply_json(call, 200,
               json_pack("{s:o, s:o, s:o, s:[s, s], s:[s], s:[s], s:[s]}", "issuer",
                         json_sprintf("%s/%s/v2.0", base, tenant), "token_endpoint",
                         json_sprintf("%s/%s/oauth2/v2.0/token", base, tenant),
                         "authorization_endpoint",
                         json_sprintf("%s/%s/oauth2/v2.0/authorize", base, tenant),
                         "token_endpoint_auth_methods_supported", "client_secret_post",
                         "client_secret_basic", "response_types_supported", "token",
                         "subject_types_supported", "pairwise",
                         "id_token_signing_alg_values_supported", "RS256"));
}

void handle_discovery(struct call *call)
{
    const char *base = call_base_url(call);

    reply_json(call, 200,
               json_pack("{s:o, s:s, s:[{s:s, s:s, s:[s]}]}", "tenant_discovery_endpoint",
                         json_sprintf("%s/%s/v2.0/.well-known/openid-configuration", base,
                                      call->api->config.tenant_id),
                         "api-version", "1.1", "metadata", "preferred_network",
                         http_req_host(call->req), "preferred_cache", http_req_host(call->req),
                         "aliases", http_req_host(call->req)));
}
