/* Microsoft.Storage, control plane: the accounts themselves.
 *
 * An account keeps sku, kind and a few properties as its client said them; the storage service
 * reads them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "core/names.h"

#include <string.h>

static const char *const skus[] = {
    "Standard_LRS", "Standard_GRS", "Standard_RAGRS", "Standard_ZRS",
    "Premium_LRS",  "Premium_ZRS",  "Standard_GZRS",  "Standard_RAGZRS",
};
static const char *const kinds[] = {
    "Storage", "StorageV2", "BlobStorage", "FileStorage", "BlockBlobStorage",
};

/* What of `properties` is kept, and of which type it must be. */
static const struct {
    const char *name;
    json_type type; /* JSON_TRUE stands for both booleans */
} kept[] = {
    {"accessTier", JSON_STRING},
    {"allowBlobPublicAccess", JSON_TRUE},
    {"allowCrossTenantReplication", JSON_TRUE},
    {"allowSharedKeyAccess", JSON_TRUE},
    {"customDomain", JSON_OBJECT},
    {"defaultToOAuthAuthentication", JSON_TRUE},
    {"encryption", JSON_OBJECT},
    {"isHnsEnabled", JSON_TRUE},
    {"isNfsV3Enabled", JSON_TRUE},
    {"keyPolicy", JSON_OBJECT},
    {"largeFileSharesState", JSON_STRING},
    {"minimumTlsVersion", JSON_STRING},
    {"networkAcls", JSON_OBJECT},
    {"publicNetworkAccess", JSON_STRING},
    {"sasPolicy", JSON_OBJECT},
    {"supportsHttpsTrafficOnly", JSON_TRUE},
};

static const char *one_of(const char *value, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_equal_nocase(value, list[i]))
            return list[i];
    }
    return NULL;
}

static int unknown(struct err *e, const char *target, const char *value, const char *examples)
{
    err_set(e, ERR_INVALID, "%s: \"%.64s\" is unknown; take %s", target, value, examples);
    err_reason(e, "InvalidValuesForRequestParameters");
    return err_target(e, target);
}

static int required(struct err *e, const char *target, const char *example)
{
    err_set(e, ERR_INVALID, "%s: it is required; give for example \"%s\"", target, example);
    err_reason(e, "InvalidRequestContent");
    return err_target(e, target);
}

static int read_sku(struct call *call, bool is_new, json_t *out, struct err *e)
{
    json_t *sku;
    const char *name = NULL, *known;

    if (json_get_object(call->body, "sku", &sku, e) < 0)
        return -1;
    if (sku && json_get_string(sku, "name", &name, e) < 0) {
        err_wrap(e, "sku.name");
        return err_target(e, "sku.name");
    }
    if (!name)
        return is_new ? required(e, "sku.name", "Standard_LRS") : 0;
    known = one_of(name, skus, ARRAY_SIZE(skus));
    if (!known)
        return unknown(e, "sku.name", name, "Standard_LRS, Premium_LRS, Standard_GRS, ...");
    json_object_set_new(out, "sku",
                        json_pack("{s:s, s:s}", "name", known, "tier",
                                  str_starts(known, "Premium") ? "Premium" : "Standard"));
    return 0;
}

static int read_kind(struct call *call, bool is_new, json_t *out, struct err *e)
{
    const char *kind, *known;

    if (json_get_string(call->body, "kind", &kind, e) < 0)
        return -1;
    if (!kind)
        return is_new ? required(e, "kind", "StorageV2") : 0;
    known = one_of(kind, kinds, ARRAY_SIZE(kinds));
    if (!known)
        return unknown(e, "kind", kind, "StorageV2, Storage, BlobStorage or FileStorage");
    json_object_set_new(out, "kind", json_string(known));
    return 0;
}

static bool fits(const json_t *value, json_type type)
{
    return type == JSON_TRUE ? json_is_boolean(value) : json_typeof(value) == type;
}

static int read_properties(struct call *call, json_t *ret, struct err *e)
{
    json_t *given;

    if (json_get_object(call->body, "properties", &given, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        json_t *value = json_object_get(given, kept[i].name);

        if (!value || json_is_null(value))
            continue;
        if (!fits(value, kept[i].type)) {
            err_set(e, ERR_INVALID, "properties.%s: %s is not what it takes", kept[i].name,
                    json_type_name(value));
            err_reason(e, "InvalidRequestContent");
            return err_target(e, kept[i].name);
        }
        json_object_set(ret, kept[i].name, value);
    }
    return 0;
}

static void drop(void *value)
{
    json_decref(value);
}

/* sku, kind and properties of the body; what an account has already (NULL for a new one) need
 * not be said again. */
static int read_account(struct call *call,
                        const struct resource *had,
                        struct control_put *put,
                        struct err *e)
{
    json_t *said = json_object(), *properties = json_object();

    arena_defer(call->arena, drop, said);
    if (!had)
        json_object_set_new(properties, "supportsHttpsTrafficOnly", json_true());
    json_object_set_new(said, "properties", properties);
    put->properties = said;
    if (read_sku(call, !had, said, e) < 0 || read_kind(call, !had, said, e) < 0 ||
        read_properties(call, properties, e) < 0)
        return -1;
    return call_read_tags(call, &put->tags, e);
}

void handle_account_put(struct call *call)
{
    autoptr(resource) had = NULL;
    struct control_put put = {0};
    struct err e = {0}, missing = {0};

    if (call_find(call, RESOURCE_STORAGE_ACCOUNT, &had, &missing) < 0 &&
        missing.code != ERR_NOT_FOUND)
        call_refuse(call, &missing);
    else if (call_read_location(call, !had, &put.location, &e) < 0 ||
             read_account(call, had, &put, &e) < 0)
        call_refuse(call, &e);
    else
        call_put(call, RESOURCE_STORAGE_ACCOUNT, &put);
}

void handle_account_patch(struct call *call)
{
    autoptr(resource) had = NULL;
    struct control_put put = {.must_exist = true};
    struct err e = {0};

    if (call_find(call, RESOURCE_STORAGE_ACCOUNT, &had, &e) < 0 ||
        read_account(call, had, &put, &e) < 0)
        call_refuse(call, &e);
    else
        call_put(call, RESOURCE_STORAGE_ACCOUNT, &put);
}

void handle_account_get(struct call *call)
{
    call_get(call, RESOURCE_STORAGE_ACCOUNT);
}

void handle_account_delete(struct call *call)
{
    call_delete(call, RESOURCE_STORAGE_ACCOUNT, true);
}

void handle_account_list(struct call *call)
{
    struct store_filter filter = {
        .kind = RESOURCE_STORAGE_ACCOUNT,
        .key_prefix = resource_key(
            call->arena,
            resource_subscription_id(call->arena, call_param(call, "subscriptionId"))),
    };

    call_list(call, &filter);
}

void handle_account_list_by_group(struct call *call)
{
    struct store_filter filter = {.kind = RESOURCE_STORAGE_ACCOUNT,
                                  .group_key = call->group_key};
    autoptr(resource) group = NULL;
    struct err e = {0};

    if (call_find(call, RESOURCE_GROUP, &group, &e) < 0)
        reply_error(call, &e);
    else
        call_list(call, &filter);
}

/* Is it bad, or taken?  NULL: neither. */
static int why_not_available(struct call *call,
                             const char *name,
                             const char **ret_reason,
                             const char **ret_text,
                             struct err *e)
{
    autoptr(resource) taken = NULL;
    auto_reader reader = {0};
    const char *problem = names_account_problem(name);

    if (problem) {
        *ret_reason = "AccountNameInvalid";
        *ret_text = arena_printf(call->arena, "%.100s is not a valid storage account name. %s",
                                 name, problem);
        return 0;
    }
    if (store_pool_take(call->api->config.pool, &reader, e) < 0 ||
        store_find_account(reader.db, name, &taken, e) < 0)
        return -1;
    if (taken) {
        *ret_reason = "AlreadyExists";
        *ret_text =
            arena_printf(call->arena, "The storage account named %s is already taken.", name);
    }
    return 0;
}

void handle_account_name(struct call *call)
{
    const char *name, *reason = NULL, *text = NULL;
    struct err e = {0};

    if (json_get_string(call->body, "name", &name, &e) < 0 ||
        (!name && required(&e, "name", "mystorage") < 0) ||
        why_not_available(call, name, &reason, &text, &e) < 0)
        reply_error(call, &e);
    else if (reason)
        reply_json(call, 200,
                   json_pack("{s:b, s:s, s:s}", "nameAvailable", 0, "reason", reason, "message",
                             text));
    else
        reply_json(call, 200, json_pack("{s:b}", "nameAvailable", 1));
}
