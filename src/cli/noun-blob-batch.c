/* Many blobs at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/storage-account.h"
#include "cli/storage-batch.h"
#include "cli/storage-headers.h"
#include "cli/storage-listing.h"
#include "cli/storage-shape.h"
#include "cli/storage-verb.h"
#include "cli/storage-wire.h"
#include "cli/table.h"

static const struct option_row overwrite = {
    .names = "--overwrite",
    .help = "Replace what is there already.",
    .kind = OPTION_SWITCH,
};
static const struct option_row content_type = {
    .names = "--content-type",
    .help = "What they are; by their names when not given.",
};

/* What az tells of each blob that was sent.  One list gives it for all of them. */
struct sent {
    const struct table *targets;
    struct wire *wire;
    const struct batch *batch;
    json_t *rows;
};

static int see_sent(void *context, const struct listing_entry *entry, struct err *e)
{
    struct sent *sent = context;
    const char *root = sent->batch->path;
    const char *blob = listing_name(entry);
    const char *path = *root ? blob + strlen(root) + 1 : blob;
    const char *etag = listing_get(entry, "Properties/Etag");
    const char *modified = listing_get(entry, "Properties/Last-Modified");
    auto_free char *url = NULL;

    (void)e;
    if (!table_get(sent->targets, path))
        return 0;
    url = wire_url(sent->wire, sent->batch->container, blob);
    json_array_append_new(
        sent->rows, json_pack("{s:s, s:o, s:s?, s:s?}", "Blob", url, "Last Modified",
                              modified ? storage_shape_time(modified) : json_null(), "Type",
                              listing_get(entry, "Properties/Content-Type"), "eTag", etag));
    return 0;
}

static int tell_sent(struct batch *batch, json_t **ret_result, struct err *e)
{
    auto_json json_t *rows = json_array();
    struct sent sent = {
        .targets = batch->targets,
        .wire = batch->link.wire,
        .batch = batch,
        .rows = rows,
    };
    auto_str query = {0};

    str_add(&query, "restype=container&comp=list");
    if (*batch->path) {
        auto_free char *prefix = xasprintf("%s/", batch->path);

        str_add(&query, "&prefix=");
        text_percent(&query, prefix);
    }
    if (listing_walk(batch->link.wire, batch->container, NULL, str_text(&query), see_sent,
                     &sent, e) < 0)
        return -1;
    *ret_result = json_incref(rows);
    return 0;
}

static int upload_batch(struct call *call, json_t **ret_result, struct err *e)
{
    auto_batch batch = {0};
    struct storage_batch todo;

    if (batch_open(call, SIDE_BLOB, "destination", &batch, e) < 0 ||
        headers_add_metadata(&batch.headers, call, e) < 0)
        return -1;
    batch.options.content_type = args_get(call->args, "content-type");
    batch.options.headers = batch.headers.rows;
    /* az keeps what is there, unless it is told otherwise. */
    if (args_switch(call->args, "overwrite") != 1)
        batch.options.overwrite = OVERWRITE_FALSE;
    batch_todo(call, &batch, args_get(call->args, "source"), &todo);
    if (storage_upload_all(call, &todo, e) < 0)
        return -1;
    return todo.is_dry ? 0 : tell_sent(&batch, ret_result, e);
}

static int download_batch(struct call *call, json_t **ret_result, struct err *e)
{
    auto_batch batch = {0};
    struct storage_batch todo;

    if (batch_open(call, SIDE_BLOB, "source", &batch, e) < 0)
        return -1;
    if (args_switch(call->args, "overwrite") == 0)
        batch.options.overwrite = OVERWRITE_FALSE;
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
    if (batch_open(call, SIDE_BLOB, "source", &batch, e) < 0)
        return -1;
    batch_todo(call, &batch, NULL, &todo);
    return storage_remove_all(call, &todo, e);
}

const struct command blob_batch_commands[] = {
    {
        .path = "storage blob upload-batch",
        .summary = "Send a folder into a container.",
        .options = OPTIONS(&storage_batch_source,
                           &storage_batch_destination,
                           &storage_destination_path,
                           &storage_pattern,
                           &overwrite,
                           &content_type,
                           &storage_metadata,
                           &storage_max_connections,
                           &storage_dry_run,
                           &storage_no_progress,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Send the pictures of a folder.",
                      "yard storage blob upload-batch -s ./train -d images --pattern '*.jpg'"}},
        .run = upload_batch,
    },
    {
        .path = "storage blob download-batch",
        .summary = "Fetch the blobs of a container into a folder.",
        .options = OPTIONS(&storage_batch_folder_source,
                           &storage_batch_folder_destination,
                           &storage_pattern,
                           &overwrite,
                           &storage_max_connections,
                           &storage_dry_run,
                           &storage_no_progress,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples =
            {{"Fetch a part of them.",
              "yard storage blob download-batch -s images -d ./here --pattern 'val/*'"}},
        .run = download_batch,
    },
    {
        .path = "storage blob delete-batch",
        .summary = "Delete blobs of a container.",
        .options = OPTIONS(&storage_batch_folder_source,
                           &storage_pattern,
                           &storage_max_connections,
                           &storage_dry_run,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"See what would go.",
                      "yard storage blob delete-batch -s images --pattern '*.tmp' --dryrun"}},
        .run = delete_batch,
    },
    {0},
};
