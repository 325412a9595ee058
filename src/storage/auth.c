/* auth.c - may this call be done?  By the account's key, by a SAS, or by a token of the yard.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-proto.h"

#include "base/mem.h"

#include <string.h>
#include <strings.h>

static const char bearer_scheme[] = "Bearer ";

struct keys {
    char key1[STORAGE_KEY_BYTES], key2[STORAGE_KEY_BYTES];
};

static int find_keys(struct storage_call *call, struct keys *keys, struct err *e)
{
    const struct storage_config *config = &call->service->config;

    *keys = (struct keys){0};
    if (config->account_keys(config->context, call->account, keys->key1, keys->key2, e) == 0)
        return 0;
    if (e->code == ERR_NOT_FOUND)
        err_reason(e, "ResourceNotFound");
    return -1;
}

/* --- the key --- */

static int by_key(struct storage_call *call, const char *header, struct err *e)
{
    const struct sharedkey_request request = {
        .verb = call->method,
        .headers = call->headers,
        .header_count = call->header_count,
        .raw_path = call->raw_path,
        .raw_query = call->raw_query,
        .account = call->account,
    };
    struct keys keys;

    if (find_keys(call, &keys, e) < 0 ||
        sharedkey_verify(&request, header, keys.key1, keys.key2, call->now_ms, e) < 0)
        return -1;
    call->by = STORAGE_BY_KEY;
    return 0;
}

/* --- a token --- */

static int by_bearer(struct storage_call *call, const char *header, struct err *e)
{
    const struct storage_config *config = &call->service->config;
    const char *token = header + strlen(bearer_scheme);
    bool is_write = call->op->flags & OP_WRITES;
    struct keys keys;

    if (!config->bearer)
        return storage_refuse(e, ERR_FORBIDDEN, "AuthenticationFailed",
                              "tokens are not taken here");
    /* The account must exist, whatever the token may do. */
    if (find_keys(call, &keys, e) < 0 ||
        config->bearer(config->context, token + strspn(token, " "), call->account, is_write,
                       call->who, e) < 0)
        return -1;
    call->by = STORAGE_BY_BEARER;
    return 0;
}

/* --- a SAS --- */

static const char level_letters[][2] = {
    [STORAGE_SERVICE] = "s",
    [STORAGE_CONTAINER] = "c",
    [STORAGE_OBJECT] = "o",
};

/* The stored policy that the SAS names; false when there is none. */
static bool
find_policy(struct storage_call *call, const char *id, struct sas_policy *ret_policy)
{
    json_t *policies = NULL, *policy;
    size_t i;

    if (!call->container || call->table->policies(call, &policies, NULL) < 0)
        return false;
    storage_keep_json(call, policies);
    json_array_foreach(policies, i, policy)
    {
        const char *own = json_string_value(json_object_get(policy, "id"));

        if (!own || strcmp(own, id) != 0)
            continue;
        ret_policy->start = json_string_value(json_object_get(policy, "start"));
        ret_policy->expiry = json_string_value(json_object_get(policy, "expiry"));
        ret_policy->permissions = json_string_value(json_object_get(policy, "permission"));
        return true;
    }
    return false;
}

/* A user's key is derived, not kept: its facts are in the SAS.  The user must still be allowed
 * to do what the SAS is used for. */
static int delegation_keys(struct storage_call *call,
                           const struct sas *sas,
                           struct keys *keys,
                           struct err *e)
{
    const struct storage_config *config = &call->service->config;

    if (!config->principal)
        return storage_refuse(e, ERR_FORBIDDEN, "AuthenticationFailed",
                              "user delegation is not possible here");
    sas_delegation_key(&sas->delegation, call->account, config->delegation_secret,
                       sizeof(config->delegation_secret), keys->key1);
    keys->key2[0] = '\0';
    return 0;
}

static int check_delegator(struct storage_call *call, const struct sas *sas, struct err *e)
{
    const struct storage_config *config = &call->service->config;

    if (sas->kind != SAS_DELEGATION)
        return 0;
    if (config->principal(config->context, sas->delegation.object_id, call->account,
                          call->op->flags & OP_WRITES, e) < 0)
        return storage_refuse(e, ERR_FORBIDDEN, "AuthorizationPermissionMismatch",
                              "who handed out the SAS may not do this any more");
    return 0;
}

static int check_sas(struct storage_call *call, const struct sas *sas, struct err *e)
{
    const struct storage_op *op = call->op;
    const struct sas_ask ask = {
        .service = call->table->service,
        .account = call->account,
        .container = call->container,
        .object = call->object,
        .snapshot = storage_query(call, "snapshot"),
        .levels = op->levels ? op->levels : level_letters[call->level],
        .permissions = op->permissions,
        .is_service_ok = call->level == STORAGE_OBJECT || (op->flags & OP_SERVICE_SAS),
        .peer = call->peer,
        .is_tls = call->is_tls,
        .now_ms = call->now_ms,
    };
    const char *id = sas->kind == SAS_SERVICE ? sas->service.identifier : NULL;
    char letters[SAS_LETTERS_BYTES];
    struct sas_policy policy = {0};
    bool has_policy = id && *id && find_policy(call, id, &policy);
    struct keys keys;

    if (find_keys(call, &keys, e) < 0 ||
        (sas->kind == SAS_DELEGATION && delegation_keys(call, sas, &keys, e) < 0) ||
        sas_verify(sas, &ask, keys.key1, keys.key2, has_policy ? &policy : NULL, letters, e) <
            0 ||
        check_delegator(call, sas, e) < 0)
        return -1;
    call->may_not_replace = (op->flags & OP_CREATES) && !strchr(letters, 'w');
    call->by = STORAGE_BY_SAS;
    return 0;
}

static int by_sas(struct storage_call *call, struct err *e)
{
    if (sas_parse(call->raw_query, call->arena, &call->sas, e) < 0)
        return -1;
    return check_sas(call, &call->sas, e);
}

/* --- which of them --- */

/* A part of a batch that says nothing stands under what the batch came with: a SAS must cover
 * it, a token must allow it.  A key signs one request and not what is inside it. */
static int by_outer(struct storage_call *call, struct err *e)
{
    const struct storage_call *outer = call->outer;

    if (outer->by == STORAGE_BY_SAS)
        return check_sas(call, &outer->sas, e);
    if (outer->by == STORAGE_BY_BEARER)
        return by_bearer(call, storage_header(outer, "Authorization"), e);
    return storage_refuse(e, ERR_FORBIDDEN, "AuthenticationFailed",
                          "each part of a batch needs a signature of its own");
}

int storage_authorise(struct storage_call *call, struct err *e)
{
    const char *header = storage_header(call, "Authorization");

    if (header && sharedkey_is_used(header))
        return by_key(call, header, e);
    if (header && strncasecmp(header, bearer_scheme, strlen(bearer_scheme)) == 0)
        return by_bearer(call, header, e);
    if (header)
        return storage_refuse(e, ERR_INVALID, "InvalidAuthenticationInfo",
                              "the Authorization header must be SharedKey, SharedKeyLite or "
                              "Bearer");
    if (sas_is_in(call->raw_query))
        return by_sas(call, e);
    if (call->outer)
        return by_outer(call, e);
    return storage_refuse(e, ERR_UNAUTHORIZED, "NoAuthenticationInformation",
                          "sign the request with the account's key, or use a SAS or a token");
}
