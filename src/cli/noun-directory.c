/* Folders in a file share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/storage-headers.h"
#include "cli/storage-shape.h"
#include "cli/storage-verb.h"
#include "cli/storage-wire.h"

#define DIRECTORY "restype=directory"

static const struct option_row name = {
    .names = "--name -n",
    .help = "Path of the folder in the share.",
    .required = true,
};
static const struct option_row parent = {
    .names = "--name -n",
    .help = "Path of the folder to look into; the share's own when not given.",
};

static const char *share_of(const struct call *call)
{
    return args_get(call->args, "share-name");
}

static int directory_create(struct call *call, json_t **ret_result, struct err *e)
{
    auto_headers headers = {0};
    auto_link link = {0};

    if (headers_add_metadata(&headers, call, e) < 0 ||
        storage_link_open(call, STORAGE_FILE, &link, e) < 0)
        return -1;
    return storage_create(call, link.wire, share_of(call), args_get(call->args, "name"),
                          DIRECTORY, headers.rows, ret_result, e);
}

static int directory_list(struct call *call, json_t **ret_result, struct err *e)
{
    struct storage_listing listing = {
        .container = share_of(call),
        .path = args_get(call->args, "name"),
        .query = DIRECTORY "&comp=list&include=Timestamps,ETag,Attributes,PermissionKey",
        .only = "Directory",
    };
    auto_link link = {0};

    if (storage_link_open(call, STORAGE_FILE, &link, e) < 0)
        return -1;
    return storage_list(link.wire, &listing, ret_result, e);
}

static int directory_exists(struct call *call, json_t **ret_result, struct err *e)
{
    auto_link link = {0};

    if (storage_link_open(call, STORAGE_FILE, &link, e) < 0)
        return -1;
    return storage_exists(link.wire, share_of(call), args_get(call->args, "name"), DIRECTORY,
                          ret_result, e);
}

static int directory_delete(struct call *call, json_t **ret_result, struct err *e)
{
    auto_link link = {0};

    if (storage_link_open(call, STORAGE_FILE, &link, e) < 0)
        return -1;
    return storage_delete(link.wire, share_of(call), args_get(call->args, "name"), DIRECTORY,
                          args_flag(call->args, "fail-not-exist"), ret_result, e);
}

const struct command directory_commands[] = {
    {
        .path = "storage directory create",
        .summary = "Create a folder in a file share.",
        .options = OPTIONS(&storage_share_name,
                           &name,
                           &storage_metadata,
                           &storage_fail_on_exist,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Make a folder.", "yard storage directory create -n horovod -s scripts "
                                        "--account-name recipestore"}},
        .run = directory_create,
    },
    {
        .path = "storage directory list",
        .summary = "List the folders in a share, or in a folder of it.",
        .options = OPTIONS(&storage_share_name, &parent, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"List them.", "yard storage directory list -s scripts -o table"}},
        .run = directory_list,
        .table = storage_file_table,
    },
    {
        .path = "storage directory exists",
        .summary = "Say whether a folder is there.",
        .options = OPTIONS(&storage_share_name, &name, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Print true or false.",
                      "yard storage directory exists -s scripts -n horovod --query exists"}},
        .run = directory_exists,
    },
    {
        .path = "storage directory delete",
        .summary = "Delete an empty folder.",
        .options = OPTIONS(
            &storage_share_name, &name, &storage_fail_not_exist, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Delete it.", "yard storage directory delete -s scripts -n horovod"}},
        .run = directory_delete,
    },
    {0},
};
