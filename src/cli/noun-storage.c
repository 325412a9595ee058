/* Storage accounts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/arm.h"
#include "cli/call.h"
#include "cli/rest.h"
#include "cli/shape.h"
#include "cli/storage-account.h"

#include <string.h>

#define PROVIDER "/providers/Microsoft.Storage"
#define ACCOUNTS "/resourceGroups/{resource-group}" PROVIDER "/storageAccounts"

static const struct option_row name = {
    .names = "--name -n",
    .help = "Name of the storage account: 3 to 24 small letters and digits.",
    .required = true,
};
static const struct option_row account_name = {
    .names = "--account-name -n",
    .help = "Name of the storage account.",
    .required = true,
};
/* Where an account's name is enough: names are unique in a yard. */
static const struct option_row resource_group = {
    .names = "--resource-group -g",
    .help = "Name of its resource group; found by the account's name when not given.",
};
static const struct option_row sku = {
    .names = "--sku",
    .help = "Class of the storage.",
    .choices = "Premium_LRS Premium_ZRS Standard_GRS Standard_GZRS Standard_LRS Standard_RAGRS "
               "Standard_RAGZRS Standard_ZRS",
    .default_text = "Standard_LRS",
};
static const struct option_row new_sku = {
    .names = "--sku",
    .help = "Class of the storage.",
    .choices = "Premium_LRS Premium_ZRS Standard_GRS Standard_GZRS Standard_LRS Standard_RAGRS "
               "Standard_RAGZRS Standard_ZRS",
};
static const struct option_row kind = {
    .names = "--kind",
    .help = "Kind of account.",
    .choices = "BlobStorage BlockBlobStorage FileStorage Storage StorageV2",
    .default_text = "StorageV2",
};
static const struct option_row access_tier = {
    .names = "--access-tier",
    .help = "Tier of the blobs that name none.",
    .choices = "Cool Hot Premium",
};
static const struct option_row https_only = {
    .names = "--https-only",
    .help = "Take requests over https only.",
    .kind = OPTION_SWITCH,
};
static const struct option_row public_access = {
    .names = "--allow-blob-public-access",
    .help = "Let containers be made public.",
    .kind = OPTION_SWITCH,
};
static const struct option_row min_tls = {
    .names = "--min-tls-version",
    .help = "Lowest TLS version that is taken.",
    .choices = "TLS1_0 TLS1_1 TLS1_2",
};

static const struct shape account_shape = {
    .flat = true,
    .members =
        "accessTier allowBlobPublicAccess allowCrossTenantReplication allowSharedKeyAccess "
        "allowedCopyScope azureFilesIdentityBasedAuthentication blobRestoreStatus creationTime "
        "customDomain defaultToOAuthAuthentication dnsEndpointType enableHttpsTrafficOnly "
        "enableNfsV3 encryption extendedLocation failoverInProgress geoReplicationStats id "
        "identity immutableStorageWithVersioning isHnsEnabled isLocalUserEnabled isSftpEnabled "
        "keyCreationTime keyPolicy kind largeFileSharesState lastGeoFailoverTime location "
        "minimumTlsVersion name networkRuleSet primaryEndpoints primaryLocation "
        "privateEndpointConnections provisioningState publicNetworkAccess resourceGroup "
        "routingPreference sasPolicy secondaryEndpoints secondaryLocation sku statusOfPrimary "
        "statusOfSecondary storageAccountSkuConversionStatus tags type",
    .times = "creationTime key1 key2 lastEnabledTime lastGeoFailoverTime",
    .renames = "networkAcls=networkRuleSet supportsHttpsTrafficOnly=enableHttpsTrafficOnly "
               "isNfsV3Enabled=enableNfsV3",
};
static const char account_table[] = "{Name: name, \"Resource Group\": resourceGroup, Location: "
                                    "location, Kind: kind, Sku: sku.name, State: "
                                    "provisioningState}";
static const struct shape key_shape = {
    .members = "creationTime keyName permissions value",
    .times = "creationTime",
};

/* Fill in --resource-group by looking for the account.  key: the option that names it. */
static int find_group(struct call *call, const char *key, struct err *e)
{
    const char *wanted = args_get(call->args, key);
    auto_free char *path = NULL;
    auto_json json_t *all = NULL;
    struct rest *rest;
    json_t *account;
    size_t i;

    if (args_has(call->args, "resource-group"))
        return 0;
    if (call_rest(call, &rest, e) < 0 ||
        arm_path(call, PROVIDER "/storageAccounts", ARM_STORAGE, &path, e) < 0 ||
        rest_list(rest, path, &all, e) < 0)
        return -1;
    json_array_foreach(all, i, account)
    {
        const char *found = json_string_value(json_object_get(account, "name"));
        const char *id = json_string_value(json_object_get(account, "id"));
        auto_free char *group = id ? arm_id_part(id, "resourceGroups") : NULL;

        if (group && found && str_equal_nocase(found, wanted)) {
            args_set(call->args, "resource-group", group);
            return 0;
        }
    }
    return err_set(e, ERR_NOT_FOUND,
                   "(ResourceNotFound) there is no storage account \"%.64s\"; see them with: "
                   "yard storage account list",
                   wanted);
}

/* Everything that acts on one account: find it, make its path with what follows, call. */
static int account_call(struct call *call,
                        const char *key,
                        const char *method,
                        const char *after,
                        const json_t *body,
                        json_t **ret_result,
                        struct err *e)
{
    auto_free char *pattern = xasprintf(ACCOUNTS "/{%s}%s", key, after);
    auto_free char *path = NULL;
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 || find_group(call, key, e) < 0 ||
        arm_path(call, pattern, ARM_STORAGE, &path, e) < 0)
        return -1;
    return rest_long(rest, method, path, body, true, ret_result, e);
}

static void set_switch(json_t *object, const char *member, int value)
{
    if (value >= 0)
        json_object_set_new(object, member, json_boolean(value));
}

/* The members that create and update have in common. */
static json_t *account_body(const struct args *args)
{
    auto_json json_t *properties =
        json_pack("{s:s*, s:s*}", "accessTier", args_get(args, "access-tier"),
                  "minimumTlsVersion", args_get(args, "min-tls-version"));
    auto_json json_t *sku_value = NULL;

    set_switch(properties, "supportsHttpsTrafficOnly", args_switch(args, "https-only"));
    set_switch(properties, "allowBlobPublicAccess",
               args_switch(args, "allow-blob-public-access"));
    if (args_get(args, "sku"))
        sku_value = json_pack("{s:s}", "name", args_get(args, "sku"));
    return json_pack("{s:O*, s:o*, s:O}", "sku", sku_value, "tags", arm_tags(args),
                     "properties", properties);
}

static int group_location(struct call *call, char **ret_location, struct err *e)
{
    auto_free char *path = NULL;
    auto_json json_t *group = NULL;
    const char *text = NULL;
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 ||
        arm_path(call, "/resourcegroups/{resource-group}", ARM_RESOURCES, &path, e) < 0 ||
        rest_call(rest, "GET", path, NULL, &group, e) < 0 ||
        json_get_string(group, "location", &text, e) < 0)
        return -1;
    if (!text)
        return err_set(e, ERR_INTERNAL, "the resource group has no location; use --location");
    *ret_location = xstrdup(text);
    return 0;
}

static int account_create(struct call *call, json_t **ret_result, struct err *e)
{
    const char *location = args_get(call->args, "location");
    auto_free char *path = NULL, *found = NULL;
    auto_json json_t *body = account_body(call->args);
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 ||
        arm_path(call, ACCOUNTS "/{name}", ARM_STORAGE, &path, e) < 0 ||
        (!location && group_location(call, &found, e) < 0))
        return -1;
    json_object_set_new(body, "location", json_string(location ? location : found));
    json_object_set_new(body, "kind", json_string(args_get(call->args, "kind")));
    return rest_long(rest, "PUT", path, body, true, ret_result, e);
}

static int account_show(struct call *call, json_t **ret_result, struct err *e)
{
    return account_call(call, "name", "GET", "", NULL, ret_result, e);
}

static int account_update(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *body = account_body(call->args);

    return account_call(call, "name", "PATCH", "", body, ret_result, e);
}

static int account_delete(struct call *call, json_t **ret_result, struct err *e)
{
    (void)ret_result;
    return account_call(call, "name", "DELETE", "", NULL, NULL, e);
}

static int account_list(struct call *call, json_t **ret_result, struct err *e)
{
    bool all = !args_has(call->args, "resource-group");
    auto_free char *path = NULL;
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 ||
        arm_path(call, all ? PROVIDER "/storageAccounts" : ACCOUNTS, ARM_STORAGE, &path, e) < 0)
        return -1;
    return rest_list(rest, path, ret_result, e);
}

static int account_check_name(struct call *call, json_t **ret_result, struct err *e)
{
    auto_free char *path = NULL;
    auto_json json_t *body = json_pack("{s:s, s:s}", "name", args_get(call->args, "name"),
                                       "type", "Microsoft.Storage/storageAccounts");
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 ||
        arm_path(call, PROVIDER "/checkNameAvailability", ARM_STORAGE, &path, e) < 0)
        return -1;
    return rest_call(rest, "POST", path, body, ret_result, e);
}

static int keys_result(json_t *answer, json_t **ret_result, struct err *e)
{
    json_t *keys = NULL;

    if (json_get_array(answer, "keys", &keys, e) < 0)
        return -1;
    *ret_result = json_incref(keys);
    return 0;
}

static int keys_list(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *answer = NULL;

    if (account_call(call, "account-name", "POST", "/listKeys", NULL, &answer, e) < 0)
        return -1;
    return keys_result(answer, ret_result, e);
}

static int keys_renew(struct call *call, json_t **ret_result, struct err *e)
{
    const char *key = args_get(call->args, "key");
    auto_json json_t *answer = NULL, *body = NULL;

    key = str_equal(key, "primary") ? "key1" : str_equal(key, "secondary") ? "key2" : key;
    body = json_pack("{s:s}", "keyName", key);
    if (account_call(call, "account-name", "POST", "/regenerateKey", body, &answer, e) < 0)
        return -1;
    return keys_result(answer, ret_result, e);
}

/* A time as the wire wants it: 2030-01-01T00:00:00Z. */
static int wire_time(const struct args *args, const char *key, json_t **ret_time, struct err *e)
{
    const char *text = args_get(args, key);
    char buf[CLOCK_ISO_BYTES];
    int64_t wall_ms;

    if (!text)
        return 0;
    if (clock_parse_iso(text, &wall_ms, NULL) < 0)
        return args_fail(e, key,
                         "--%s: \"%.64s\" is not a time; write it like 2030-01-31T12:00Z", key,
                         text);
    *ret_time = json_string(clock_format_iso(wall_ms - wall_ms % 1000, buf));
    return 0;
}

static int generate_sas(struct call *call, json_t **ret_result, struct err *e)
{
    const struct args *args = call->args;
    auto_json json_t *body = NULL, *answer = NULL, *expiry = NULL, *start = NULL;
    const char *token = NULL;

    if (wire_time(args, "expiry", &expiry, e) < 0 || wire_time(args, "start", &start, e) < 0)
        return -1;
    body = json_pack("{s:s, s:s, s:s, s:O, s:O*, s:s*, s:s, s:s}", "signedServices",
                     args_get(args, "services"), "signedResourceTypes",
                     args_get(args, "resource-types"), "signedPermission",
                     args_get(args, "permissions"), "signedExpiry", expiry, "signedStart",
                     start, "signedIp", args_get(args, "ip"), "signedProtocol",
                     args_flag(args, "https-only") ? "https" : "https,http", "keyToSign",
                     args_get(args, "key"));
    if (account_call(call, "account-name", "POST", "/ListAccountSas", body, &answer, e) < 0 ||
        json_get_string(answer, "accountSasToken", &token, e) < 0)
        return -1;
    *ret_result = json_string(token ? token : "");
    return 0;
}

static int show_connection_string(struct call *call, json_t **ret_result, struct err *e)
{
    bool is_second = str_equal(args_get(call->args, "key"), "key2") ||
                     str_equal(args_get(call->args, "key"), "secondary");
    auto_json json_t *account = NULL, *answer = NULL;
    const json_t *endpoints;
    auto_free char *text = NULL;
    struct storage_account known = {.name = (char *)args_get(call->args, "name")};

    if (account_call(call, "name", "GET", "", NULL, &account, e) < 0 ||
        account_call(call, "name", "POST", "/listKeys", NULL, &answer, e) < 0)
        return -1;
    endpoints = json_object_get(json_object_get(account, "properties"), "primaryEndpoints");
    known.endpoints[STORAGE_BLOB] =
        (char *)json_string_value(json_object_get(endpoints, "blob"));
    known.endpoints[STORAGE_FILE] =
        (char *)json_string_value(json_object_get(endpoints, "file"));
    known.secret = (char *)json_string_value(json_object_get(
        json_array_get(json_object_get(answer, "keys"), is_second ? 1 : 0), "value"));
    if (!known.secret)
        return err_set(e, ERR_INTERNAL, "the account has no such key");
    text = storage_account_text(&known);
    *ret_result = json_pack("{s:s}", "connectionString", text);
    return 0;
}

static const struct option_row connection_key = {
    .names = "--key",
    .help = "Which key to put in.",
    .choices = "key1 key2 primary secondary",
    .default_text = "key1",
};
static const struct option_row renew_key = {
    .names = "--key",
    .help = "Which key to make anew.",
    .choices = "key1 key2 primary secondary",
    .required = true,
};
static const struct option_row sas_expiry = {
    .names = "--expiry",
    .help = "When the signature ends, UTC: 2030-01-31T12:00Z.",
    .required = true,
};
static const struct option_row sas_permissions = {
    .names = "--permissions",
    .help = "What it allows: letters of (a)dd (c)reate (d)elete (l)ist (p)rocess (r)ead "
            "(u)pdate (w)rite.",
    .required = true,
};
static const struct option_row sas_resource_types = {
    .names = "--resource-types",
    .help = "On what: letters of (s)ervice (c)ontainer (o)bject.",
    .required = true,
};
static const struct option_row sas_services = {
    .names = "--services",
    .help = "In which services: letters of (b)lob (f)ile (q)ueue (t)able.",
    .required = true,
};
static const struct option_row sas_https_only = {
    .names = "--https-only",
    .help = "Valid over https only.",
    .kind = OPTION_FLAG,
};
static const struct option_row sas_start = {
    .names = "--start",
    .help = "When the signature begins to be valid, UTC.",
};
static const struct option_row sas_ip = {
    .names = "--ip",
    .help = "Address or range of addresses that may use it.",
};
static const struct option_row sas_key = {
    .names = "--key",
    .help = "Which key to sign with.",
    .choices = "key1 key2",
    .default_text = "key1",
};

static const char account_ids[] = "resourceGroups=resource-group storageAccounts=name";

const struct command storage_commands[] = {
    {
        .path = "storage account create",
        .summary = "Create a storage account.",
        .options = OPTIONS(&name,
                           &option_resource_group,
                           &option_location,
                           &sku,
                           &kind,
                           &access_tier,
                           &https_only,
                           &public_access,
                           &min_tls,
                           &option_tags),
        .examples = {{"Make an account in the location of its group.",
                      "yard storage account create -n recipestore -g recipes --sku "
                      "Standard_LRS"}},
        .run = account_create,
        .shape = &account_shape,
        .table = account_table,
    },
    {
        .path = "storage account show",
        .summary = "Show a storage account.",
        .options = OPTIONS(&name, &resource_group),
        .examples = {{"Show where its blobs are.",
                      "yard storage account show -n recipestore --query primaryEndpoints.blob "
                      "-o tsv"}},
        .run = account_show,
        .shape = &account_shape,
        .table = account_table,
        .ids = account_ids,
    },
    {
        .path = "storage account list",
        .summary = "List the storage accounts.",
        .options = OPTIONS(&option_resource_group_optional),
        .examples = {{"List those of a group.",
                      "yard storage account list -g recipes -o table"}},
        .run = account_list,
        .shape = &account_shape,
        .table = account_table,
    },
    {
        .path = "storage account update",
        .summary = "Change a storage account.",
        .options = OPTIONS(&name,
                           &resource_group,
                           &new_sku,
                           &access_tier,
                           &https_only,
                           &public_access,
                           &min_tls,
                           &option_tags),
        .examples = {{"Refuse plain http.",
                      "yard storage account update -n recipestore --https-only true"}},
        .run = account_update,
        .shape = &account_shape,
        .table = account_table,
        .ids = account_ids,
    },
    {
        .path = "storage account delete",
        .summary = "Delete a storage account with everything in it.",
        .options = OPTIONS(&name, &resource_group),
        .examples = {{"Delete without being asked.",
                      "yard storage account delete -n recipestore -g recipes -y"}},
        .run = account_delete,
        .ids = account_ids,
        .confirms = true,
    },
    {
        .path = "storage account check-name",
        .summary = "Say whether a name can be used for a new account.",
        .options = OPTIONS(&name),
        .examples = {{"Print true or false.", "yard storage account check-name -n recipestore "
                                              "--query nameAvailable"}},
        .run = account_check_name,
    },
    {
        .path = "storage account show-connection-string",
        .summary = "Show account, key and addresses in the one line that clients take.",
        .options = OPTIONS(&name, &resource_group, &connection_key),
        .examples = {{"Hand it to a program.",
                      "yard storage account show-connection-string -n recipestore --query "
                      "connectionString -o tsv"}},
        .run = show_connection_string,
        .ids = account_ids,
    },
    {
        .path = "storage account keys list",
        .summary = "List the keys of a storage account.",
        .options = OPTIONS(&account_name, &resource_group),
        .examples = {{"Print the first key.", "yard storage account keys list -n recipestore "
                                              "--query [0].value -o tsv"}},
        .run = keys_list,
        .shape = &key_shape,
    },
    {
        .path = "storage account keys renew",
        .summary = "Make a key of a storage account anew.",
        .options = OPTIONS(&account_name, &resource_group, &renew_key),
        .examples = {{"Make the first key anew.",
                      "yard storage account keys renew -n recipestore --key key1"}},
        .run = keys_renew,
        .shape = &key_shape,
    },
    {
        .path = "storage account generate-sas",
        .summary = "Make a shared access signature for a storage account.",
        .options = OPTIONS(&account_name,
                           &resource_group,
                           &sas_expiry,
                           &sas_permissions,
                           &sas_resource_types,
                           &sas_services,
                           &sas_https_only,
                           &sas_start,
                           &sas_ip,
                           &sas_key),
        .examples = {{"Let somebody read and list blobs.",
                      "yard storage account generate-sas --account-name recipestore --services "
                      "b --resource-types co --permissions rl --expiry 2030-01-01T00:00Z -o "
                      "tsv"}},
        .run = generate_sas,
    },
    {0},
};
