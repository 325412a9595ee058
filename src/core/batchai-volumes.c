/* SPDX-License-Identifier: Apache-2.0 */
#include "core/batchai-internal.h"
#include "core/batchai.h"

#include "base/mem.h"

#include <string.h>

static const char NO_VAULT[] =
    "there is no Key Vault here; give accountKey itself, it is kept sealed and never shown";

static const struct shape credentials[] = {
    {"accountKey", SHAPE_SECRET, .problem = value_single_line},
    {"accountKeySecretReference", SHAPE_REFUSED, .hint = NO_VAULT},
    {0},
};

/* Clients of old left the account out, it is in the URL. */
static int check_share(struct reader *r, json_t *kept)
{
    const char *account = shape_text(kept, "accountName");
    auto_free char *named = NULL;
    struct share_url url;

    if (!share_url_parse(shape_text(kept, "azureFileUrl"), &url))
        return reader_fail(r, "azureFileUrl", "is no URL of a share");
    named = xstrndup(url.account, url.account_len);
    if (account && !str_equal(account, named))
        return reader_fail(r, "accountName",
                           "\"%s\" is not the account of azureFileUrl, \"%s\"; give the same "
                           "name, or leave this one out",
                           account, named);
    if (!account)
        json_object_set_new(kept, "accountName", json_string(named));
    return 0;
}

#define MOUNT_PATH                                                                             \
    {                                                                                          \
        "relativeMountPath", SHAPE_TEXT, .is_required = true, .problem = value_beneath,        \
                                         .hint = "the folder to mount it at, such as \"data\"" \
    }

/* The yard's own account needs no key: who may use it is decided by who asks. */
static const struct shape share[] = {
    {"accountName", SHAPE_TEXT, .problem = value_account},
    {"azureFileUrl", SHAPE_TEXT, .is_required = true, .problem = value_share_url,
     .hint = "the URL of the share"},
    {"credentials", SHAPE_OBJECT, .is_always = true, .members = credentials},
    MOUNT_PATH,
    {"fileMode", SHAPE_TEXT, .problem = value_mode, .otherwise = "0777"},
    {"directoryMode", SHAPE_TEXT, .problem = value_mode, .otherwise = "0777"},
    {0},
};

static const struct shape blobs[] = {
    {"accountName", SHAPE_TEXT, .is_required = true, .problem = value_account,
     .hint = "the name of the storage account"},
    {"containerName", SHAPE_TEXT, .is_required = true, .problem = value_container,
     .hint = "the name of the container"},
    {"credentials", SHAPE_OBJECT, .is_always = true, .members = credentials},
    MOUNT_PATH,
    {"mountOptions", SHAPE_TEXT, .may_be_empty = true, .problem = value_single_line},
    {0},
};

static const struct shape file_server_id[] = {
    {"id", SHAPE_TEXT, .is_required = true, .problem = value_file_server_id,
     .hint = "the id of the file server"},
    {0},
};

static const struct shape file_server[] = {
    {"fileServer", SHAPE_OBJECT, .is_required = true, .members = file_server_id,
     .hint = "the file server, {\"id\": ...}"},
    {"sourceDirectory", SHAPE_TEXT, .may_be_empty = true, .problem = value_server_folder},
    MOUNT_PATH,
    {"mountOptions", SHAPE_TEXT, .may_be_empty = true, .problem = value_single_line},
    {0},
};

static const struct shape unmanaged[] = {
    {"mountCommand", SHAPE_TEXT, .is_required = true,
     .hint = "the command that mounts it, such as \"mount -t nfs server:/data\"; the folder is "
             "added at its end"},
    MOUNT_PATH,
    {0},
};

const struct shape SHAPE_MOUNT_VOLUMES[] = {
    {"azureFileShares", SHAPE_LIST, .members = share, .check = check_share},
    {"azureBlobFileSystems", SHAPE_LIST, .members = blobs},
    {"fileServers", SHAPE_LIST, .members = file_server},
    {"unmanagedFileSystems", SHAPE_LIST, .members = unmanaged},
    {0},
};

/* In the order they are mounted. */
static const struct {
    const char *name;
    enum volume_kind kind;
} lists[] = {
    {"fileServers", VOLUME_FILE_SERVER},
    {"azureFileShares", VOLUME_FILE_SHARE},
    {"azureBlobFileSystems", VOLUME_BLOBS},
    {"unmanagedFileSystems", VOLUME_UNMANAGED},
};

/* Is one of two paths the other, or within it? */
static bool overlap(const char *a, const char *b)
{
    size_t len = strlen(a), other = strlen(b), shorter = len < other ? len : other;

    return strncmp(a, b, shorter) == 0 && (len > other   ? a[shorter] == '/'
                                           : len < other ? b[shorter] == '/'
                                                         : true);
}

/* Fail when the path is in use by a volume before the given one. */
static int check_place(
    struct reader *r, const json_t *volumes, const char *path, size_t list, size_t index)
{
    for (size_t i = 0; i <= list; i++) {
        const json_t *array = json_object_get(volumes, lists[i].name), *element;
        size_t j;

        json_array_foreach(array, j, element)
        {
            const char *other = shape_text(element, "relativeMountPath");
            auto_free char *member = NULL;

            if (i == list && j >= index)
                break;
            if (!overlap(other, path))
                continue;
            member = xasprintf("%s[%zu].relativeMountPath", lists[list].name, index);
            return reader_fail(r, member,
                               "\"%.100s\" and \"%.100s\" of %s[%zu] are the same place or lie "
                               "within one another; give each volume a folder of its own",
                               path, other, lists[i].name, j);
        }
    }
    return 0;
}

int volumes_check(struct reader *r, json_t *mount_volumes)
{
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        const json_t *array = json_object_get(mount_volumes, lists[i].name), *element;
        size_t j;

        json_array_foreach(array, j, element)
        {
            const char *path = shape_text(element, "relativeMountPath");

            if (check_place(r, mount_volumes, path, i, j) < 0)
                return -1;
        }
    }
    return 0;
}

/* --- reading them back --- */

static const char *text_or_null(const json_t *object, const char *name)
{
    const char *text = shape_text(object, name);

    return text && *text ? text : NULL;
}

static int
fill_share(const json_t *row, struct arena *arena, struct volume *volume, struct err *e)
{
    const char *url = shape_text(row, "azureFileUrl");
    struct share_url parts;

    if (!url || !share_url_parse(url, &parts))
        return err_set(e, ERR_INVALID, "azureFileUrl: \"%.100s\" is no URL of a share",
                       url ? url : "");
    volume->account = arena_strndup(arena, parts.account, parts.account_len);
    volume->name = arena_strndup(arena, parts.share, parts.share_len);
    return 0;
}

static int fill_volume(const json_t *row,
                       enum volume_kind kind,
                       struct arena *arena,
                       struct volume *ret_volume,
                       struct err *e)
{
    struct volume volume = {
        .kind = kind,
        .account = shape_text(row, "accountName"),
        .name = shape_text(row, "containerName"),
        .key = text_or_null(json_object_get(row, "credentials"), "accountKey"),
        .server_id = shape_text(json_object_get(row, "fileServer"), "id"),
        .folder = text_or_null(row, "sourceDirectory"),
        .command = shape_text(row, "mountCommand"),
        .options = text_or_null(row, "mountOptions"),
        .path = shape_text(row, "relativeMountPath"),
    };

    if (!volume.path)
        return err_set(e, ERR_INVALID, "relativeMountPath: is missing");
    if (kind == VOLUME_FILE_SHARE && fill_share(row, arena, &volume, e) < 0)
        return -1;
    if (volume.folder) { /* "/data" and "data" are the same place of the export; "/" is all */
        volume.folder += strspn(volume.folder, "/");
        volume.folder = *volume.folder ? volume.folder : NULL;
    }
    *ret_volume = volume;
    return 0;
}

int batchai_volumes(const json_t *kept,
                    struct arena *arena,
                    struct volume **ret_volumes,
                    size_t *ret_count,
                    struct err *e)
{
    const json_t *setup = json_object_get(kept, "nodeSetup");
    const json_t *mounts = json_object_get(setup ? setup : kept, "mountVolumes");
    struct volume *volumes;
    size_t room = 0, count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        room += json_array_size(json_object_get(mounts, lists[i].name));
    volumes = arena_alloc(arena, (room + 1) * sizeof(*volumes));
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        const json_t *array = json_object_get(mounts, lists[i].name), *row;
        size_t j;

        json_array_foreach(array, j, row)
        {
            if (fill_volume(row, lists[i].kind, arena, &volumes[count++], e) < 0)
                return err_wrap(e, "%s[%zu]", lists[i].name, j);
        }
    }
    *ret_volumes = volumes;
    *ret_count = count;
    return 0;
}
