/* Containers of blobs.
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

#define CONTAINER "restype=container"

static const struct option_row public_access = {
    .names = "--public-access",
    .help = "Let everybody read.",
    .choices = "blob container off",
    .default_text = "off",
};

static const char *name_of(const struct call *call)
{
    return args_get(call->args, "name");
}

static int container_create(struct call *call, json_t **ret_result, struct err *e)
{
    const char *access = args_get(call->args, "public-access");
    auto_headers headers = {0};
    auto_link link = {0};

    if (headers_add_metadata(&headers, call, e) < 0 ||
        storage_link_open(call, STORAGE_BLOB, &link, e) < 0)
        return -1;
    if (!str_equal(access, "off"))
        headers_add(&headers, "x-ms-blob-public-access: %s", access);
    return storage_create(call, link.wire, name_of(call), NULL, CONTAINER, headers.rows,
                          ret_result, e);
}

static int container_list(struct call *call, json_t **ret_result, struct err *e)
{
    struct storage_listing listing = {
        .query = "comp=list&include=metadata",
        .prefix = args_get(call->args, "prefix"),
    };
    auto_link link = {0};

    if (storage_most_results(call, &listing.most, e) < 0 ||
        storage_link_open(call, STORAGE_BLOB, &link, e) < 0)
        return -1;
    return storage_list(link.wire, &listing, ret_result, e);
}

static int container_show(struct call *call, json_t **ret_result, struct err *e)
{
    auto_link link = {0};
    auto_answer answer = {0};
    struct wire_request request = {
        .method = "GET",
        .container = name_of(call),
        .query = CONTAINER,
    };

    if (storage_link_open(call, STORAGE_BLOB, &link, e) < 0 ||
        wire_call(link.wire, &request, &answer, e) < 0)
        return -1;
    *ret_result = storage_shape_answer(&answer, "Container", name_of(call), NULL);
    return 0;
}

static int container_exists(struct call *call, json_t **ret_result, struct err *e)
{
    auto_link link = {0};

    if (storage_link_open(call, STORAGE_BLOB, &link, e) < 0)
        return -1;
    return storage_exists(link.wire, name_of(call), NULL, CONTAINER, ret_result, e);
}

static int container_delete(struct call *call, json_t **ret_result, struct err *e)
{
    auto_link link = {0};

    if (storage_link_open(call, STORAGE_BLOB, &link, e) < 0)
        return -1;
    return storage_delete(link.wire, name_of(call), NULL, CONTAINER,
                          args_flag(call->args, "fail-not-exist"), ret_result, e);
}

static int container_sas(struct call *call, json_t **ret_result, struct err *e)
{
    return storage_make_sas(call, STORAGE_BLOB, "c", name_of(call), NULL, ret_result, e);
}

const struct command container_commands[] = {
    {
        .path = "storage container create",
        .summary = "Create a container for blobs.",
        .options = OPTIONS(&storage_container,
                           &public_access,
                           &storage_metadata,
                           &storage_fail_on_exist,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Make a container.",
                      "yard storage container create -n images --account-name recipestore"}},
        .run = container_create,
    },
    {
        .path = "storage container list",
        .summary = "List the containers of an account.",
        .options = OPTIONS(&storage_prefix, &storage_num_results, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"List them.",
                      "yard storage container list --account-name recipestore -o table"}},
        .run = container_list,
        .table = storage_container_table,
    },
    {
        .path = "storage container show",
        .summary = "Show a container.",
        .options = OPTIONS(&storage_container, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Show it.",
                      "yard storage container show -n images --account-name recipestore"}},
        .run = container_show,
        .table = storage_container_table,
    },
    {
        .path = "storage container exists",
        .summary = "Say whether a container is there.",
        .options = OPTIONS(&storage_container, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Print true or false.",
                      "yard storage container exists -n images --query exists"}},
        .run = container_exists,
    },
    {
        .path = "storage container delete",
        .summary = "Delete a container with all its blobs.",
        .options =
            OPTIONS(&storage_container, &storage_fail_not_exist, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Delete it.",
                      "yard storage container delete -n images --account-name recipestore"}},
        .run = container_delete,
    },
    {
        .path = "storage container generate-sas",
        .summary = "Make a shared access signature for a container.",
        .options = OPTIONS(&storage_container, STORAGE_SAS_OPTIONS, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Let somebody read and list.",
                      "yard storage container generate-sas -n images --permissions rl --expiry "
                      "2030-01-01T00:00Z -o tsv"}},
        .run = container_sas,
    },
    {0},
};
