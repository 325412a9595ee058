/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/batchai-spec.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/arm.h"
#include "cli/batchai-storage.h"
#include "cli/batchai-verb.h"
#include "cli/call.h"
#include "cli/config.h"
#include "cli/storage-account.h"
#include "cli/storage-address.h"

#include <string.h>

enum {
    MOST_CONFIG_BYTES = 4 * 1024 * 1024,
};

#define ACCOUNT_MARK "<AZURE_BATCHAI_STORAGE_ACCOUNT>"
#define KEY_MARK     "<AZURE_BATCHAI_STORAGE_KEY>"

int batchai_read_config(struct call *call, json_t **ret_body, struct err *e)
{
    const char *path = args_get(call->args, "config-file");
    auto_json json_t *body = NULL;
    auto_str text = {0};

    if (!path) {
        *ret_body = json_pack("{s:{}}", "properties");
        return 0;
    }
    if (fs_read(path, MOST_CONFIG_BYTES, &text, e) < 0 ||
        json_parse(str_text(&text), text.len, &body, e) < 0)
        return err_wrap(e, "--config-file: \"%.200s\"", path);
    if (!json_is_object(body) || !json_is_object(json_object_get(body, "properties")))
        return err_set(e, ERR_INVALID,
                       "--config-file: \"%.200s\" has no object \"properties\": write "
                       "{\"properties\": {...}}",
                       path);
    *ret_body = json_incref(body);
    return 0;
}

char *batchai_replace(const char *text, const char *what, const char *with)
{
    auto_str out = {0};
    const char *found;

    for (; (found = strstr(text, what)); text = found + strlen(what)) {
        str_add_len(&out, text, (size_t)(found - text));
        str_add(&out, with);
    }
    str_add(&out, text);
    return str_take(&out);
}

char *batchai_account_of_url(const char *url)
{
    auto_address address = {0};

    if (address_parse(url, &address, NULL) < 0 || address.is_local || !address.account ||
        !*address.account)
        return NULL;
    return take_ptr(&address.account);
}

/* --- whose storage --- */

struct storage {
    struct call *call;
    const char *account, *key; /* that the options name; NULL = none */
    json_t *keys;              /* account -> key, once asked for */
};

static const char *
either(struct call *call, const char *option, const char *env, const char *in)
{
    const char *text = args_get(call->args, option);

    if (!text)
        text = getenv(env);
    if (text && *text)
        return text;
    return config_get(call->config, "batchai", in);
}

static void storage_open(struct storage *storage, struct call *call)
{
    *storage = (struct storage){
        .call = call,
        .account = either(call, "storage-account-name", "AZURE_BATCHAI_STORAGE_ACCOUNT",
                          "storage_account"),
        .key = either(call, "storage-account-key", "AZURE_BATCHAI_STORAGE_KEY", "storage_key"),
        .keys = json_object(),
    };
}

static void storage_close(struct storage *storage)
{
    json_decref(storage->keys);
}
#define auto_storage __attribute__((cleanup(storage_close))) struct storage

static int need_account(const struct storage *storage, struct err *e)
{
    if (storage->account)
        return 0;
    return args_fail(e, "--storage-account-name",
                     "which storage account? take --storage-account-name, or set "
                     "AZURE_BATCHAI_STORAGE_ACCOUNT, or storage_account under [batchai] in %s",
                     config_path(storage->call->config));
}

/* The key of an account: the one given for it, else the first that the yard tells.  NULL when
 * we may not see keys: then the yard opens its own accounts without one. */
static int
find_key(struct storage *storage, const char *account, const char **ret_key, struct err *e)
{
    autoptr(storage_account) found = NULL;
    json_t *known = json_object_get(storage->keys, account);

    if (storage->key && storage->account && str_equal(account, storage->account)) {
        *ret_key = storage->key;
        return 0;
    }
    if (!known) {
        if (batchai_open_account(storage->call, account, &found, e) < 0)
            return -1;
        known = found->auth == STORAGE_AUTH_KEY ? json_string(found->secret) : json_null();
        json_object_set_new(storage->keys, account, known);
    }
    *ret_key = json_string_value(known);
    return 0;
}

/* --- what a file has --- */

/* Replace the placeholder in a member of a reference. */
static int put_account(struct storage *storage, json_t *ref, const char *name, struct err *e)
{
    const char *text = json_string_value(json_object_get(ref, name));
    auto_free char *whole = NULL;

    if (!text || !strstr(text, ACCOUNT_MARK))
        return 0;
    if (need_account(storage, e) < 0)
        return -1;
    whole = batchai_replace(text, ACCOUNT_MARK, storage->account);
    json_object_set_new(ref, name, json_string(whole));
    return 0;
}

static int put_key(struct storage *storage, json_t *ref, struct err *e)
{
    const char *account = json_string_value(json_object_get(ref, "accountName"));
    json_t *credentials = json_object_get(ref, "credentials");
    const char *key = json_string_value(json_object_get(credentials, "accountKey"));
    bool is_mark = key && str_equal(key, KEY_MARK);

    if (!account || (key && !is_mark) ||
        json_is_object(json_object_get(credentials, "accountKeySecretReference")))
        return 0;
    credentials = batchai_object(ref, "credentials");
    if (is_mark && storage->key)
        key = storage->key;
    else if (find_key(storage, account, &key, e) < 0)
        return -1;
    if (key)
        json_object_set_new(credentials, "accountKey", json_string(key));
    else
        json_object_del(credentials, "accountKey");
    return 0;
}

static int patch(struct storage *storage, json_t *ref, struct err *e)
{
    const char *url;

    if (put_account(storage, ref, "accountName", e) < 0 ||
        put_account(storage, ref, "azureFileUrl", e) < 0)
        return -1;
    url = json_string_value(json_object_get(ref, "azureFileUrl"));
    if (url && !json_is_string(json_object_get(ref, "accountName"))) {
        auto_free char *account = batchai_account_of_url(url);

        if (account)
            json_object_set_new(ref, "accountName", json_string(account));
    }
    return put_key(storage, ref, e);
}

static int patch_all(struct storage *storage, json_t *volumes, const char *kind, struct err *e)
{
    json_t *ref;
    size_t i;

    json_array_foreach(json_object_get(volumes, kind), i, ref)
    {
        if (patch(storage, ref, e) < 0)
            return err_wrap(e, "mountVolumes.%s[%zu]", kind, i);
    }
    return 0;
}

/* --- what the options add --- */

static void add_volume(json_t *parent, const char *kind, json_t *ref)
{
    json_t *volumes = batchai_object(parent, "mountVolumes");
    json_t *list = json_object_get(volumes, kind);

    if (!json_is_array(list)) {
        list = json_array();
        json_object_set_new(volumes, kind, list);
    }
    json_array_append_new(list, ref);
}

static json_t *share_ref(const char *account, const char *share, const char *path)
{
    return json_pack("{s:s, s:o, s:s}", "accountName", account, "azureFileUrl",
                     json_sprintf("https://%s.file.core.windows.net/%s", account, share),
                     "relativeMountPath", path);
}

static json_t *container_ref(const char *account, const char *container, const char *path)
{
    return json_pack("{s:s, s:s, s:s}", "accountName", account, "containerName", container,
                     "relativeMountPath", path);
}

/* A name means a file server of the same workspace. */
static int add_nfs(struct call *call, json_t *parent, struct err *e)
{
    const char *nfs = args_get(call->args, "nfs");
    auto_free char *path = NULL, *id = NULL;

    if (!nfs)
        return 0;
    if (batchai_is_id(nfs)) {
        id = xstrdup(nfs);
    } else {
        if (arm_path(call, BATCHAI_SERVERS "/{nfs}", ARM_BATCHAI, &path, e) < 0)
            return -1;
        id = xstrndup(path, strcspn(path, "?"));
    }
    add_volume(parent, "fileServers",
               json_pack("{s:{s:s}, s:s, s:s}", "fileServer", "id", id, "relativeMountPath",
                         args_get(call->args, "nfs-mount-path"), "mountOptions", "rw"));
    return 0;
}

static int add_options(struct storage *storage, json_t *parent, struct err *e)
{
    const struct args *args = storage->call->args;
    const char *share = args_get(args, "afs-name"), *container = args_get(args, "bfs-name");

    if ((share || container) && need_account(storage, e) < 0)
        return -1;
    if (share)
        add_volume(parent, "azureFileShares",
                   share_ref(storage->account, share, args_get(args, "afs-mount-path")));
    if (container)
        add_volume(
            parent, "azureBlobFileSystems",
            container_ref(storage->account, container, args_get(args, "bfs-mount-path")));
    return add_nfs(storage->call, parent, e);
}

static int fill(struct storage *storage, json_t *parent, struct err *e)
{
    json_t *volumes = json_object_get(parent, "mountVolumes");

    if (patch_all(storage, volumes, "azureFileShares", e) < 0 ||
        patch_all(storage, volumes, "azureBlobFileSystems", e) < 0)
        return -1;
    return 0;
}

int batchai_set_volumes(struct call *call, json_t *parent, struct err *e)
{
    auto_storage storage;

    storage_open(&storage, call);
    if (add_options(&storage, parent, e) < 0)
        return -1;
    return fill(&storage, parent, e);
}

int batchai_add_auto_storage(struct call *call,
                             json_t *parent,
                             const char *location,
                             struct err *e)
{
    autoptr(storage_account) account = NULL;
    auto_storage storage;

    storage_open(&storage, call);
    if (batchai_auto_storage(call, location, &account, e) < 0)
        return -1;
    add_volume(parent, "azureFileShares",
               share_ref(account->name, BATCHAI_AUTO_SHARE, "autoafs"));
    add_volume(parent, "azureBlobFileSystems",
               container_ref(account->name, BATCHAI_AUTO_CONTAINER, "autobfs"));
    return fill(&storage, parent, e);
}
