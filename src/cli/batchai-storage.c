/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/batchai-storage.h"

#include "base/crypt.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/arm.h"
#include "cli/call.h"
#include "cli/rest.h"
#include "cli/storage-account.h"
#include "cli/storage-verb.h"
#include "cli/storage-wire.h"

#define AUTO_GROUP "batchaiautostorage"

enum {
    AUTO_LETTERS = 12, /* after "bai" */
};

/* "/subscriptions/<id>/resourceGroups/<group><rest>?api-version=..."; the caller frees. */
static int group_path(struct call *call,
                      const char *group,
                      const char *rest,
                      const char *version,
                      char **ret_path,
                      struct err *e)
{
    auto_str path = {0};
    const char *subscription;

    if (call_subscription(call, &subscription, e) < 0)
        return -1;
    str_add(&path, "/subscriptions/");
    text_percent(&path, subscription);
    str_add(&path, "/resourceGroups/");
    text_percent(&path, group);
    str_addf(&path, "%s?api-version=%s", rest, version);
    *ret_path = str_take(&path);
    return 0;
}

int batchai_need_group(struct call *call,
                       const char *group,
                       const char *location,
                       struct err *e)
{
    auto_json json_t *body = json_pack("{s:s}", "location", location);
    auto_free char *path = NULL;
    struct rest *rest;
    bool is_there;

    if (call_rest(call, &rest, e) < 0 ||
        group_path(call, group, "", ARM_RESOURCES, &path, e) < 0 ||
        rest_exists(rest, path, &is_there, e) < 0)
        return -1;
    return is_there ? 0 : rest_long(rest, "PUT", path, body, true, NULL, e);
}

int batchai_need_account(
    struct call *call, const char *group, const char *name, const char *location, struct err *e)
{
    auto_json json_t *body = json_pack("{s:s, s:{s:s}, s:s}", "kind", "StorageV2", "sku",
                                       "name", "Standard_LRS", "location", location);
    auto_free char *rest_of =
        xasprintf("/providers/Microsoft.Storage/storageAccounts/%s", name);
    auto_free char *path = NULL;
    struct err why = {0};
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 ||
        group_path(call, group, rest_of, ARM_STORAGE, &path, e) < 0)
        return -1;
    if (rest_call(rest, "GET", path, NULL, NULL, &why) == 0)
        return 0;
    if (why.code != ERR_NOT_FOUND) {
        *e = why;
        return -1;
    }
    return rest_long(rest, "PUT", path, body, true, NULL, e);
}

int batchai_open_account(struct call *call,
                         const char *name,
                         struct storage_account **ret_account,
                         struct err *e)
{
    auto_free char *text = xasprintf("%s/any", name);
    auto_address address = {0};

    if (address_parse_remote(text, &address, e) < 0)
        return -1;
    return storage_account_of_address(call, &address, ret_account, e);
}

static int need(struct call *call,
                const struct storage_account *account,
                enum storage_service service,
                const char *name,
                struct err *e)
{
    const struct wire_config config = {
        .account = account,
        .service = service,
        .patience_ms = WIRE_PATIENCE_MS,
        .trace = storage_trace(call),
    };
    const struct wire_request request = {
        .method = "PUT",
        .container = name,
        .query = service == STORAGE_FILE ? "restype=share" : "restype=container",
    };
    autoptr(wire) wire = NULL;

    if (wire_new(&config, &wire, e) < 0)
        return -1;
    if (wire_call(wire, &request, NULL, e) < 0 && !str_ends(wire_code(wire), "AlreadyExists"))
        return -1;
    return 0;
}

int batchai_need_share(struct call *call,
                       const struct storage_account *account,
                       const char *share,
                       struct err *e)
{
    return need(call, account, STORAGE_FILE, share, e);
}

int batchai_need_container(struct call *call,
                           const struct storage_account *account,
                           const char *container,
                           struct err *e)
{
    return need(call, account, STORAGE_BLOB, container, e);
}

/* --- az's auto storage --- */

static char *random_name(void)
{
    unsigned char bytes[AUTO_LETTERS];
    auto_str name = {0};

    crypt_random(bytes, sizeof(bytes));
    str_add(&name, "bai");
    for (size_t i = 0; i < sizeof(bytes); i++)
        str_add_char(&name, (char)('a' + bytes[i] % 26));
    return str_take(&name);
}

/* The one that an earlier call has made; NULL when there is none.  The caller frees. */
static int find_auto(struct call *call, const char *location, char **ret_name, struct err *e)
{
    auto_free char *path = NULL;
    auto_json json_t *rows = NULL;
    struct rest *rest;
    json_t *row;
    size_t i;

    if (call_rest(call, &rest, e) < 0 ||
        group_path(call, AUTO_GROUP, "/providers/Microsoft.Storage/storageAccounts",
                   ARM_STORAGE, &path, e) < 0 ||
        rest_list(rest, path, &rows, e) < 0)
        return -1;
    json_array_foreach(rows, i, row)
    {
        const char *where = json_string_value(json_object_get(row, "location"));
        const char *name = json_string_value(json_object_get(row, "name"));

        if (name && where && str_equal_nocase(where, location)) {
            *ret_name = xstrdup(name);
            return 0;
        }
    }
    *ret_name = NULL;
    return 0;
}

int batchai_auto_storage(struct call *call,
                         const char *location,
                         struct storage_account **ret_account,
                         struct err *e)
{
    autoptr(storage_account) account = NULL;
    auto_free char *name = NULL;

    if (batchai_need_group(call, AUTO_GROUP, location, e) < 0 ||
        find_auto(call, location, &name, e) < 0)
        return -1;
    if (name) {
        call_say(call, "Using existing %s storage account as an auto-storage account", name);
    } else {
        name = random_name();
        call_say(call, "Creating %s storage account as an auto-storage account", name);
        if (batchai_need_account(call, AUTO_GROUP, name, location, e) < 0)
            return -1;
    }
    if (batchai_open_account(call, name, &account, e) < 0 ||
        batchai_need_share(call, account, BATCHAI_AUTO_SHARE, e) < 0 ||
        batchai_need_container(call, account, BATCHAI_AUTO_CONTAINER, e) < 0)
        return -1;
    *ret_account = take_ptr(&account);
    return 0;
}
