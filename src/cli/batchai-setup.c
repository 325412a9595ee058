/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/batchai-setup.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/batchai-storage.h"
#include "cli/batchai-verb.h"
#include "cli/call.h"
#include "cli/storage-account.h"
#include "cli/storage-listing.h"
#include "cli/storage-verb.h"
#include "cli/storage-wire.h"
#include "core/batchai.h"
#include "core/exchange.h"
#include "core/sas.h"

#include <string.h>

void batchai_output_done(struct batchai_output *output)
{
    free(output->account);
    free(output->name);
    free(output->path);
}

/* --- where --- */

/* What follows the mount root in a path, or NULL. */
static const char *below_mounts(const char *path)
{
    static const char *const roots[] = {"$AZ_BATCHAI_MOUNT_ROOT/", "${AZ_BATCHAI_MOUNT_ROOT}/"};

    for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
        if (str_starts(path, roots[i])) {
            path += strlen(roots[i]);
            return path + strspn(path, "/");
        }
    }
    return NULL;
}

/* What follows the folder in a path; NULL when it is not in it. */
static const char *below_folder(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    while (len && folder[len - 1] == '/')
        len--;
    if (!len || strncmp(path, folder, len) != 0 || (path[len] && path[len] != '/'))
        return NULL;
    return path + len + strspn(path + len, "/");
}

static int no_place(const char *prefix, struct err *e)
{
    return err_set(e, ERR_INVALID,
                   "the output of the set-up task goes to \"%.200s\", which is on no mounted "
                   "share and in no mounted container",
                   prefix);
}

static int find_volume(const json_t *properties,
                       const char *prefix,
                       const char *suffix,
                       struct batchai_output *ret,
                       struct err *e)
{
    autoptr(arena) arena = arena_new();
    const char *path = below_mounts(prefix);
    struct volume *volumes;
    size_t count;

    if (!path)
        return no_place(prefix, e);
    if (batchai_volumes(properties, arena, &volumes, &count, e) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const struct volume *v = &volumes[i];
        const char *below = below_folder(path, v->path);

        if (!below || (v->kind != VOLUME_FILE_SHARE && v->kind != VOLUME_BLOBS))
            continue;
        *ret = (struct batchai_output){
            .service = v->kind == VOLUME_BLOBS ? STORAGE_BLOB : STORAGE_FILE,
            .account = xstrdup(v->account),
            .name = xstrdup(v->name),
            .path =
                xasprintf("%s%s%s", below, *below && !str_ends(below, "/") ? "/" : "", suffix),
        };
        return 0;
    }
    return no_place(prefix, e);
}

int batchai_setup_place(const json_t *cluster, struct batchai_output *ret, struct err *e)
{
    const json_t *properties = json_object_get(cluster, "properties");
    const json_t *task = json_object_get(json_object_get(properties, "nodeSetup"), "setupTask");
    const char *prefix = json_string_value(json_object_get(task, "stdOutErrPathPrefix"));
    const char *suffix = json_string_value(json_object_get(task, "stdOutErrPathSuffix"));

    if (!prefix || !suffix)
        return err_set(e, ERR_NOT_FOUND, "the cluster has no set-up task");
    return find_volume(properties, prefix, suffix, ret, e);
}

/* --- what --- */

struct found {
    const struct batchai_output *place;
    const char *folder; /* within the share or container */
    struct wire *wire;
    int64_t end_ms; /* of the links */
    json_t *rows;
};

static int add_link(const struct found *found, json_t *row, const char *path, struct err *e)
{
    const struct storage_account *account = wire_account(found->wire);
    auto_free char *url = wire_url(found->wire, found->place->name, path);
    auto_free char *resource =
        xasprintf("/%s/%s/%s/%s", storage_service_name(found->place->service), account->name,
                  found->place->name, path);
    char expiry[CLOCK_ISO_BYTES];
    auto_str token = {0};
    const struct sas_service sas = {
        .resource = resource,
        .kind = found->place->service == STORAGE_BLOB ? "b" : "f",
        .permissions = "r",
        .expiry = clock_format_iso(found->end_ms, expiry),
        .version = EXCHANGE_VERSION,
    };

    if (account->auth == STORAGE_AUTH_KEY &&
        sas_service_token(&sas, account->secret, &token, e) < 0)
        return -1;
    json_object_set_new(row, "downloadUrl",
                        json_sprintf("%s%s%s", url, token.len ? "?" : "", str_text(&token)));
    return 0;
}

static int see(void *context, const struct listing_entry *entry, struct err *e)
{
    struct found *found = context;
    const char *kind = listing_kind(entry);
    bool is_folder = str_equal(kind, "Directory") || str_equal(kind, "BlobPrefix");
    const char *name = listing_name(entry);
    auto_free char *base = address_base(name);
    auto_free char *path = str_equal(kind, "Blob") || !*found->folder
                               ? xstrdup(name)
                               : xasprintf("%s/%s", found->folder, base);
    json_t *row = json_pack("{s:s, s:b, s:n, s:n}", "name", base, "isDirectory", is_folder,
                            "size", "downloadUrl");

    json_array_append_new(found->rows, row);
    if (is_folder)
        return 0;
    json_object_set_new(row, "size", json_integer(listing_size(entry)));
    return add_link(found, row, path, e);
}

static int list_folder(struct found *found, struct err *e)
{
    auto_str query = {0};

    if (found->place->service == STORAGE_FILE)
        return listing_walk(found->wire, found->place->name, found->folder,
                            "restype=directory&comp=list", see, found, e);
    str_add(&query, "restype=container&comp=list&delimiter=%2F&prefix=");
    if (*found->folder) {
        text_percent(&query, found->folder);
        str_add(&query, "%2F");
    }
    return listing_walk(found->wire, found->place->name, NULL, str_text(&query), see, found, e);
}

/* The folder of --path, NULL when it leads elsewhere; the caller frees. */
static char *folder_of(struct call *call, const struct batchai_output *place, struct err *e)
{
    const char *path = args_get(call->args, "path");
    char *folder;

    while (str_starts(path, "./") || *path == '/')
        path++;
    if (strstr(path, "..")) {
        args_fail(e, "--path", "--path: \"%.100s\" leads out of the folder", path);
        return NULL;
    }
    if (!*path || str_equal(path, "."))
        folder = xstrdup(place->path);
    else
        folder = xasprintf("%s/%s", place->path, path);
    for (size_t len = strlen(folder); len && folder[len - 1] == '/'; len--)
        folder[len - 1] = '\0';
    return folder;
}

int batchai_setup_files(struct call *call,
                        const json_t *cluster,
                        json_t **ret_files,
                        struct err *e)
{
    __attribute__((cleanup(batchai_output_done))) struct batchai_output place = {0};
    autoptr(storage_account) account = NULL;
    autoptr(wire) wire = NULL;
    auto_json json_t *rows = json_array();
    auto_free char *folder = NULL;
    struct wire_config config = {.patience_ms = WIRE_PATIENCE_MS, .trace = storage_trace(call)};
    struct found found = {.place = &place, .rows = rows};
    long minutes = 60;

    if (batchai_number(call, "expiry", 1, 7 * 24 * 60, &minutes, e) < 0 ||
        batchai_setup_place(cluster, &place, e) < 0 || !(folder = folder_of(call, &place, e)) ||
        batchai_open_account(call, place.account, &account, e) < 0)
        return -1;
    config.account = account;
    config.service = place.service;
    if (wire_new(&config, &wire, e) < 0)
        return -1;
    found.wire = wire;
    found.folder = folder;
    found.end_ms = (clock_wall_ms() / 1000 + minutes * 60) * 1000;
    if (list_folder(&found, e) < 0)
        return -1;
    *ret_files = json_incref(rows);
    return 0;
}
