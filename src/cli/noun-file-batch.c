/* Many files of a share at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/storage-batch.h"
#include "cli/storage-wire.h"
#include "cli/table.h"

static const struct option_row content_type = {
    .names = "--content-type",
    .help = "What they are; by their names when not given.",
};

static int upload_batch(struct call *call, json_t **ret_result, struct err *e)
{
    auto_batch batch = {0};
    auto_free char *url = NULL, *before = NULL;
    struct storage_batch todo;

    if (batch_open(call, SIDE_FILE, "destination", &batch, e) < 0 ||
        headers_add_metadata(&batch.headers, call, e) < 0)
        return -1;
    batch.options.content_type = args_get(call->args, "content-type");
    batch.options.headers = batch.headers.rows;
    batch_todo(call, &batch, args_get(call->args, "source"), &todo);
    if (storage_upload_all(call, &todo, e) < 0)
        return -1;
    url = wire_url(batch.link.wire, batch.container, batch.path);
    before = xasprintf("%s/", url);
    if (!todo.is_dry)
        *ret_result = storage_names(batch.targets, before);
    return 0;
}

static int download_batch(struct call *call, json_t **ret_result, struct err *e)
{
    auto_batch batch = {0};
    struct storage_batch todo;

    if (batch_open(call, SIDE_FILE, "source", &batch, e) < 0)
        return -1;
    batch_todo(call, &batch, args_get(call->args, "destination"), &todo);
    if (storage_download_all(call, &todo, e) < 0)
        return -1;
    if (!todo.is_dry)
        *ret_result = storage_names(batch.targets, "");
    return 0;
}

static int delete_batch(struct call *call, json_t **ret_result, struct err *e)
{
    auto_batch batch = {0};
    struct storage_batch todo;

    (void)ret_result;
    if (batch_open(call, SIDE_FILE, "source", &batch, e) < 0)
        return -1;
    batch_todo(call, &batch, NULL, &todo);
    return storage_remove_all(call, &todo, e);
}

const struct command file_batch_commands[] = {
    {
        .path = "storage file upload-batch",
        .summary = "Send a folder into a share.",
        .options = OPTIONS(&storage_batch_source,
                           &storage_batch_destination,
                           &storage_destination_path,
                           &storage_pattern,
                           &content_type,
                           &storage_metadata,
                           &storage_max_connections,
                           &storage_dry_run,
                           &storage_no_progress,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Send the scripts of a folder.",
                      "yard storage file upload-batch -s . -d scripts --pattern '*.py'"}},
        .run = upload_batch,
    },
    {
        .path = "storage file download-batch",
        .summary = "Fetch the files of a share into a folder.",
        .options = OPTIONS(&storage_batch_folder_source,
                           &storage_batch_folder_destination,
                           &storage_pattern,
                           &storage_max_connections,
                           &storage_dry_run,
                           &storage_no_progress,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Fetch the logs of a job.",
                      "yard storage file download-batch -s logs/job -d ./here"}},
        .run = download_batch,
    },
    {
        .path = "storage file delete-batch",
        .summary = "Delete files of a share.",
        .options = OPTIONS(&storage_batch_folder_source,
                           &storage_pattern,
                           &storage_max_connections,
                           &storage_dry_run,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"See what would go.",
                      "yard storage file delete-batch -s logs --pattern '*.txt' --dryrun"}},
        .run = delete_batch,
    },
    {0},
};
