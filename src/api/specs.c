/* What clusters, file servers and jobs have in common on their way in: a spec with secrets, and
 * volumes that must be this yard's.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "core/batchai.h"

#include <string.h>

void call_put_spec(struct call *call, enum resource_kind kind, const struct batchai_spec *spec)
{
    struct control_put put = {.properties = spec->kept, .secrets = spec->secrets};

    call_put(call, kind, &put);
}

const char *call_group_key(struct call *call, const char *arm_id)
{
    return resource_group_key(call->arena, arm_id);
}

/* Members of mountVolumes, by kind. */
static const struct {
    const char *list, *member;
} places[] = {
    [VOLUME_FILE_SHARE] = {"azureFileShares", "accountName"},
    [VOLUME_BLOBS] = {"azureBlobFileSystems", "accountName"},
    [VOLUME_FILE_SERVER] = {"fileServers", "fileServer.id"},
    [VOLUME_UNMANAGED] = {"unmanagedFileSystems", "mountCommand"},
};

static int check_account(struct db *db, const char *place, const char *name, struct err *e)
{
    autoptr(resource) account = NULL;

    if (store_find_account(db, name, &account, e) < 0)
        return -1;
    if (account)
        return 0;
    err_set(e, ERR_INVALID,
            "%s: there is no storage account \"%.64s\" in this yard; make it, or name one that "
            "is here",
            place, name);
    err_reason(e, "StorageAccountNotFound");
    return err_target(e, place);
}

static int
check_server(struct call *call, struct db *db, const char *place, const char *id, struct err *e)
{
    autoptr(resource) server = NULL;

    if (store_find_resource(db, resource_key(call->arena, id), &server, e) < 0)
        return -1;
    if (server && server->kind == RESOURCE_FILE_SERVER &&
        access_sees(call->who.scope, call_group_key(call, id)))
        return 0;
    err_set(e, ERR_INVALID, "%s: there is no file server %.200s; create it first", place, id);
    err_reason(e, "FileServerNotFound");
    return err_target(e, place);
}

int call_check_volumes(struct call *call, const json_t *kept, const char *where, struct err *e)
{
    size_t count, seen[ARRAY_SIZE(places)] = {0};
    auto_reader reader = {0};
    struct volume *volumes;

    if (batchai_volumes(kept, call->arena, &volumes, &count, e) < 0 ||
        store_pool_take(call->api->config.pool, &reader, e) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const struct volume *v = &volumes[i];
        const char *place =
            arena_printf(call->arena, "%s.%s[%zu].%s", where, places[v->kind].list,
                         seen[v->kind]++, places[v->kind].member);

        if (v->account && check_account(reader.db, place, v->account, e) < 0)
            return -1;
        if (v->server_id && check_server(call, reader.db, place, v->server_id, e) < 0)
            return -1;
    }
    return 0;
}
