/* Microsoft.Storage, control plane: account keys, and the signatures made with them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "base/clock.h"
#include "control/vault.h"
#include "core/sas.h"

#include <string.h>

static int find_account(struct call *call,
                        struct store_reader *reader,
                        struct resource **ret_account,
                        struct err *e)
{
    if (call_find(call, RESOURCE_STORAGE_ACCOUNT, ret_account, e) < 0)
        return -1;
    return store_pool_take(call->api->config.pool, reader, e);
}

/* key1, key2 and the older spellings of both. */
static const char *key_name(const char *given)
{
    if (!given || str_equal_nocase(given, "key1") || str_equal_nocase(given, "primary"))
        return "key1";
    if (str_equal_nocase(given, "key2") || str_equal_nocase(given, "secondary"))
        return "key2";
    return NULL;
}

static int shape_keys(struct call *call, int64_t account_row, json_t **ret_keys, struct err *e)
{
    static const char *const names[] = {"key1", "key2"};
    auto_json json_t *keys = json_array();
    auto_reader reader = {0};

    if (store_pool_take(call->api->config.pool, &reader, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        auto_str value = {0};
        int64_t created_ms;

        if (vault_get(call->api->config.vault, reader.db, account_row, names[i], &value,
                      &created_ms, e) < 0)
            return -1;
        json_array_append_new(keys, json_pack("{s:s, s:s, s:s, s:o}", "keyName", names[i],
                                              "value", str_text(&value), "permissions", "FULL",
                                              "creationTime", shape_time(created_ms)));
    }
    *ret_keys = json_pack("{s:O}", "keys", keys);
    return 0;
}

static void reply_keys(struct call *call, int64_t account_row)
{
    struct err e = {0};
    json_t *keys;

    if (shape_keys(call, account_row, &keys, &e) < 0)
        reply_error(call, &e);
    else
        reply_json(call, 200, keys);
}

void handle_account_keys(struct call *call)
{
    autoptr(resource) account = NULL;
    struct err e = {0};

    if (call_find(call, RESOURCE_STORAGE_ACCOUNT, &account, &e) < 0) {
        reply_error(call, &e);
        return;
    }
    call_record_use(call);
    reply_keys(call, account->id);
}

static void rotated(struct call *call, struct control_change *change, const struct err *why)
{
    if (why->code != ERR_NONE)
        reply_error(call, why);
    else
        reply_keys(call, change->resource->id);
}

void handle_account_rotate(struct call *call)
{
    autoptr(resource) account = NULL;
    const char *given = NULL, *name = NULL;
    struct control_change *change;
    struct err e = {0};

    if (call_find(call, RESOURCE_STORAGE_ACCOUNT, &account, &e) == 0 &&
        json_get_string(call->body, "keyName", &given, &e) == 0) {
        name = given ? key_name(given) : NULL;
        if (!name) {
            err_set(&e, ERR_INVALID, "keyName: \"%.64s\" is unknown; take key1 or key2",
                    given ? given : "");
            err_reason(&e, "InvalidValuesForRequestParameters");
            err_target(&e, "keyName");
        }
    }
    if (!name) {
        call_record_refusal(call, &e);
        reply_error(call, &e);
        return;
    }
    change = call_change(call);
    call_when_done(call, change, rotated);
    control_rotate_key(call->api->config.control, change, account->arm_id, name);
}

/* A field of a SAS request: required ones must be there, times must be times. */
struct field {
    const char *name;
    const char **to;
    bool required, is_time;
};

static int
read_fields(struct call *call, const struct field *fields, size_t count, struct err *e)
{
    for (size_t i = 0; i < count; i++) {
        int64_t when;

        if (json_get_string(call->body, fields[i].name, fields[i].to, e) < 0)
            return -1;
        if (!*fields[i].to && fields[i].required) {
            err_set(e, ERR_INVALID, "%s: it is required", fields[i].name);
            err_reason(e, "InvalidRequestContent");
            return err_target(e, fields[i].name);
        }
        if (*fields[i].to && fields[i].is_time &&
            clock_parse_iso(*fields[i].to, &when, e) < 0) {
            err_wrap(e, "%s", fields[i].name);
            err_reason(e, "InvalidValuesForRequestParameters");
            return err_target(e, fields[i].name);
        }
    }
    return 0;
}

/* The key that the request wants to sign with. */
static int signing_key(struct call *call,
                       const char *wanted,
                       struct str *ret_key,
                       struct resource **ret_account,
                       struct err *e)
{
    auto_reader reader = {0};
    const char *name = key_name(wanted);
    int64_t created_ms;

    if (!name) {
        err_set(e, ERR_INVALID, "keyToSign: \"%.64s\" is unknown; take key1 or key2", wanted);
        return err_target(e, "keyToSign");
    }
    if (find_account(call, &reader, ret_account, e) < 0)
        return -1;
    return vault_get(call->api->config.vault, reader.db, (*ret_account)->id, name, ret_key,
                     &created_ms, e);
}

/* Clients send times with fractions ("2030-01-01T00:00:00.000000Z"); what is signed has none.
 */
static void shorten_time(struct call *call, const char **time)
{
    const char *dot = *time ? strchr(*time, '.') : NULL;

    if (dot)
        *time = arena_printf(call->arena, "%.*sZ", (int)(dot - *time), *time);
}

void handle_account_sas(struct call *call)
{
    autoptr(resource) account = NULL;
    auto_str key = {0}, token = {0};
    struct sas_account sas = {.version = CALL_SAS_VERSION};
    const char *key_wanted;
    const struct field fields[] = {
        {"signedServices", &sas.services, true, false},
        {"signedResourceTypes", &sas.levels, true, false},
        {"signedPermission", &sas.permissions, true, false},
        {"signedExpiry", &sas.expiry, true, true},
        {"signedStart", &sas.start, false, true},
        {"signedIp", &sas.ip, false, false},
        {"signedProtocol", &sas.protocol, false, false},
        {"keyToSign", &key_wanted, false, false},
    };
    struct err e = {0};

    if (read_fields(call, fields, ARRAY_SIZE(fields), &e) == 0 &&
        signing_key(call, key_wanted, &key, &account, &e) == 0) {
        sas.account = account->name;
        shorten_time(call, &sas.start);
        shorten_time(call, &sas.expiry);
        if (sas_account_token(&sas, str_text(&key), &token, &e) == 0) {
            call_record_use(call);
            reply_json(call, 200, json_pack("{s:s}", "accountSasToken", str_text(&token)));
            return;
        }
    }
    reply_error(call, &e);
}

/* Does "/blob/account/container" name this very account? */
static int
check_resource(const struct sas_service *sas, const struct resource *account, struct err *e)
{
    auto_free char *blob = xasprintf("/blob/%s/", account->name);
    auto_free char *file = xasprintf("/file/%s/", account->name);

    if (str_starts(sas->resource, blob) || str_starts(sas->resource, file))
        return 0;
    err_set(e, ERR_INVALID,
            "canonicalizedResource: \"%.100s\" does not lie in this account; it must begin "
            "with %s or %s",
            sas->resource, blob, file);
    err_reason(e, "InvalidValuesForRequestParameters");
    return err_target(e, "canonicalizedResource");
}

void handle_service_sas(struct call *call)
{
    autoptr(resource) account = NULL;
    auto_str key = {0}, token = {0};
    struct sas_service sas = {.version = CALL_SAS_VERSION};
    const char *key_wanted;
    const struct field fields[] = {
        {"canonicalizedResource", &sas.resource, true, false},
        {"signedResource", &sas.kind, true, false},
        {"signedPermission", &sas.permissions, false, false},
        {"signedExpiry", &sas.expiry, false, true},
        {"signedStart", &sas.start, false, true},
        {"signedIp", &sas.ip, false, false},
        {"signedProtocol", &sas.protocol, false, false},
        {"signedIdentifier", &sas.identifier, false, false},
        {"rscc", &sas.cache_control, false, false},
        {"rscd", &sas.disposition, false, false},
        {"rsce", &sas.encoding, false, false},
        {"rscl", &sas.language, false, false},
        {"rsct", &sas.type, false, false},
        {"keyToSign", &key_wanted, false, false},
    };
    struct err e = {0};

    if (read_fields(call, fields, ARRAY_SIZE(fields), &e) == 0 &&
        signing_key(call, key_wanted, &key, &account, &e) == 0 &&
        check_resource(&sas, account, &e) == 0) {
        shorten_time(call, &sas.start);
        shorten_time(call, &sas.expiry);
        if (sas_service_token(&sas, str_text(&key), &token, &e) == 0) {
            call_record_use(call);
            reply_json(call, 200, json_pack("{s:s}", "serviceSasToken", str_text(&token)));
            return;
        }
    }
    reply_error(call, &e);
}
