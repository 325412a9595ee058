/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage-batch.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/storage-account.h"
#include "cli/storage-wire.h"
#include "cli/table.h"

#include <string.h>

void batch_close(struct batch *batch)
{
    storage_link_close(&batch->link);
    free(batch->container);
    free(batch->path);
    headers_done(&batch->headers);
    table_free(batch->targets);
}

static char *trimmed(const char *path)
{
    size_t len;

    path += strspn(path, "/");
    for (len = strlen(path); len && path[len - 1] == '/'; len--)
        ;
    return xstrndup(path, len);
}

/* "images", "images/train", or http://.../account/images/train. */
static int read_place(const char *text, struct batch *batch, struct err *e)
{
    auto_address address = {0};
    size_t len = strcspn(text, "/");

    if (!strstr(text, "://")) {
        batch->container = xstrndup(text, len);
        batch->path = trimmed(text + len);
        return 0;
    }
    if (address_parse(text, &address, e) < 0)
        return -1;
    batch->container = take_ptr(&address.container);
    batch->path = take_ptr(&address.path);
    return 0;
}

static void add_path(struct batch *batch, const char *below)
{
    auto_free char *clean = trimmed(below);
    char *whole = *batch->path ? xasprintf("%s/%s", batch->path, clean) : xstrdup(clean);

    free(batch->path);
    batch->path = whole;
}

int batch_open(struct call *call,
               enum side_kind kind,
               const char *key,
               struct batch *ret_batch,
               struct err *e)
{
    bool is_up = str_equal(key, "destination");

    ret_batch->kind = kind;
    ret_batch->targets = table_new(NULL);
    transfer_options_init(&ret_batch->options);
    if (storage_parallel(call, &ret_batch->options.parallel, e) < 0 ||
        read_place(args_get(call->args, key), ret_batch, e) < 0)
        return -1;
    if (is_up && args_get(call->args, "destination-path"))
        add_path(ret_batch, args_get(call->args, "destination-path"));
    return storage_link_open(call, kind == SIDE_FILE ? STORAGE_FILE : STORAGE_BLOB,
                             &ret_batch->link, e);
}

void batch_todo(struct call *call,
                const struct batch *batch,
                const char *folder,
                struct storage_batch *ret_todo)
{
    *ret_todo = (struct storage_batch){
        .move =
            {
                .kind = batch->kind,
                .account = batch->link.account,
                .container = batch->container,
                .path = batch->path,
                .file = folder,
                .options = &batch->options,
                /* A delete has no bytes to show. */
                .is_quiet = !folder || args_flag(call->args, "no-progress"),
            },
        .pattern = args_get(call->args, "pattern"),
        .is_dry = args_flag(call->args, "dryrun"),
        .targets = batch->targets,
    };
}
