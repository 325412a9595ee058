/* File shares.
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

#include <stdlib.h>

#define SHARE "restype=share"

static const struct option_row quota = {
    .names = "--quota",
    .help = "How large it may become, in GiB.",
};

static const char *name_of(const struct call *call)
{
    return args_get(call->args, "name");
}

static int add_quota(struct headers *headers, const struct args *args, struct err *e)
{
    const char *text = args_get(args, "quota");
    char *end;
    long gib;

    if (!text)
        return 0;
    gib = strtol(text, &end, 10);
    if (*end || gib < 1 || gib > 102400)
        return args_fail(e, "--quota", "--quota: \"%.64s\" is not a number from 1 to 102400",
                         text);
    headers_add(headers, "x-ms-share-quota: %ld", gib);
    return 0;
}

static int share_create(struct call *call, json_t **ret_result, struct err *e)
{
    auto_headers headers = {0};
    auto_link link = {0};

    if (add_quota(&headers, call->args, e) < 0 || headers_add_metadata(&headers, call, e) < 0 ||
        storage_link_open(call, STORAGE_FILE, &link, e) < 0)
        return -1;
    return storage_create(call, link.wire, name_of(call), NULL, SHARE, headers.rows, ret_result,
                          e);
}

static int share_list(struct call *call, json_t **ret_result, struct err *e)
{
    struct storage_listing listing = {
        .query = "comp=list&include=metadata",
        .prefix = args_get(call->args, "prefix"),
    };
    auto_link link = {0};

    if (storage_most_results(call, &listing.most, e) < 0 ||
        storage_link_open(call, STORAGE_FILE, &link, e) < 0)
        return -1;
    return storage_list(link.wire, &listing, ret_result, e);
}

static int share_show(struct call *call, json_t **ret_result, struct err *e)
{
    auto_link link = {0};
    auto_answer answer = {0};
    struct wire_request request = {.method = "GET", .container = name_of(call), .query = SHARE};

    if (storage_link_open(call, STORAGE_FILE, &link, e) < 0 ||
        wire_call(link.wire, &request, &answer, e) < 0)
        return -1;
    *ret_result = storage_shape_answer(&answer, "Share", name_of(call), NULL);
    return 0;
}

static int share_exists(struct call *call, json_t **ret_result, struct err *e)
{
    auto_link link = {0};

    if (storage_link_open(call, STORAGE_FILE, &link, e) < 0)
        return -1;
    return storage_exists(link.wire, name_of(call), NULL, SHARE, ret_result, e);
}

static int share_delete(struct call *call, json_t **ret_result, struct err *e)
{
    auto_link link = {0};

    if (storage_link_open(call, STORAGE_FILE, &link, e) < 0)
        return -1;
    return storage_delete(link.wire, name_of(call), NULL, SHARE,
                          args_flag(call->args, "fail-not-exist"), ret_result, e);
}

static int share_url(struct call *call, json_t **ret_result, struct err *e)
{
    auto_link link = {0};
    auto_free char *url = NULL;

    if (storage_link_open(call, STORAGE_FILE, &link, e) < 0)
        return -1;
    url = wire_url(link.wire, name_of(call), NULL);
    *ret_result = json_string(url);
    return 0;
}

static int share_sas(struct call *call, json_t **ret_result, struct err *e)
{
    return storage_make_sas(call, STORAGE_FILE, "s", name_of(call), NULL, ret_result, e);
}

const struct command share_commands[] = {
    {
        .path = "storage share create",
        .summary = "Create a file share.",
        .options = OPTIONS(&storage_share,
                           &quota,
                           &storage_metadata,
                           &storage_fail_on_exist,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Make a share for scripts.",
                      "yard storage share create -n scripts --account-name recipestore"}},
        .run = share_create,
    },
    {
        .path = "storage share list",
        .summary = "List the file shares of an account.",
        .options = OPTIONS(&storage_prefix, &storage_num_results, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"List them.",
                      "yard storage share list --account-name recipestore -o table"}},
        .run = share_list,
        .table = storage_share_table,
    },
    {
        .path = "storage share show",
        .summary = "Show a file share.",
        .options = OPTIONS(&storage_share, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Show how large it may become.",
                      "yard storage share show -n scripts --query properties.quota"}},
        .run = share_show,
        .table = storage_share_table,
    },
    {
        .path = "storage share exists",
        .summary = "Say whether a file share is there.",
        .options = OPTIONS(&storage_share, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Print true or false.",
                      "yard storage share exists -n scripts --query exists"}},
        .run = share_exists,
    },
    {
        .path = "storage share delete",
        .summary = "Delete a file share with everything in it.",
        .options = OPTIONS(&storage_share, &storage_fail_not_exist, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Delete it.",
                      "yard storage share delete -n scripts --account-name recipestore"}},
        .run = share_delete,
    },
    {
        .path = "storage share generate-sas",
        .summary = "Make a shared access signature for a file share.",
        .options = OPTIONS(&storage_share, STORAGE_SAS_OPTIONS, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Let somebody read and list.",
                      "yard storage share generate-sas -n scripts --permissions rl --expiry "
                      "2030-01-01T00:00Z -o tsv"}},
        .run = share_sas,
    },
    {
        .path = "storage share url",
        .summary = "Print the URL of a file share.",
        .options = OPTIONS(&storage_share, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Print it.", "yard storage share url -n scripts -o tsv"}},
        .run = share_url,
    },
    {0},
};
