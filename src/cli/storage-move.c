/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage-move.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/storage-account.h"
#include "cli/table.h"
#include "cli/transfer-find.h"
#include "cli/transfer-options.h"
#include "cli/transfer-run.h"

#include <string.h>

/* The path split into folder and name: what placement_find does for addresses. */
static void split(const char *path, const char *here, char **ret_folder, char **ret_name)
{
    const char *slash = strrchr(path, '/');

    *ret_name = xstrdup(slash ? slash + 1 : path);
    if (!slash)
        *ret_folder = xstrdup(here);
    else
        *ret_folder = slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

static int move_one(struct call *call,
                    const struct storage_move *move,
                    bool is_up,
                    bool *ret_is_kept,
                    struct err *e)
{
    auto_free char *here = NULL, *file = NULL, *there = NULL, *name = NULL;
    autoptr(side) local = NULL;
    autoptr(side) remote = NULL;
    struct find find = {0};
    struct run_config config = {
        .call = call,
        .options = move->options,
        .is_quiet = move->is_quiet,
        .is_single = true,
        .find = find_all,
        .context = &find,
    };
    struct run_result result = {0};
    int rc;

    split(move->file, ".", &here, &file);
    split(move->path, "", &there, &name);
    if (side_new_local(here, &local, e) < 0)
        return -1;
    remote = side_new_remote(move->kind, move->account, move->container, there);
    config.source = is_up ? local : remote;
    config.destination = is_up ? remote : local;
    find.side = config.source;
    find.placement.single = is_up ? file : name;
    find.placement.name = is_up ? name : file;
    rc = run_transfer(&config, &result, e);
    if (rc == 0)
        *ret_is_kept = json_integer_value(json_object_get(result.totals, "skipped")) > 0;
    json_decref(result.totals);
    return rc;
}

int storage_upload(struct call *call,
                   const struct storage_move *move,
                   bool *ret_is_kept,
                   struct err *e)
{
    return move_one(call, move, true, ret_is_kept, e);
}

int storage_download(struct call *call,
                     const struct storage_move *move,
                     bool *ret_is_kept,
                     struct err *e)
{
    return move_one(call, move, false, ret_is_kept, e);
}

/* --- many --- */

static char nothing[] = "";

static int run_batch(struct call *call, struct run_config *config, struct err *e)
{
    struct run_result result = {0};
    int rc = run_transfer(config, &result, e);

    json_decref(result.totals);
    if (rc == 0 && !result.is_well)
        call->exit_status = 1;
    return rc;
}

static int
move_all(struct call *call, const struct storage_batch *batch, bool is_up, struct err *e)
{
    const struct storage_move *move = &batch->move;
    autoptr(side) local = NULL;
    autoptr(side) remote = NULL;
    struct find find = {
        .filter.whole_pattern = batch->pattern,
        .placement.sub = nothing,
        .is_recursive = true,
        .follows_links = true, /* as az does */
        .targets = batch->targets,
    };
    struct run_config config = {
        .call = call,
        .options = move->options,
        .is_quiet = move->is_quiet,
        .is_dry = batch->is_dry,
        .find = find_all,
        .context = &find,
    };

    if (side_new_local(move->file, &local, e) < 0)
        return -1;
    remote = side_new_remote(move->kind, move->account, move->container, move->path);
    config.source = is_up ? local : remote;
    config.destination = is_up ? remote : local;
    find.side = config.source;
    return run_batch(call, &config, e);
}

int storage_upload_all(struct call *call, const struct storage_batch *batch, struct err *e)
{
    return move_all(call, batch, true, e);
}

int storage_download_all(struct call *call, const struct storage_batch *batch, struct err *e)
{
    return move_all(call, batch, false, e);
}

int storage_remove_all(struct call *call, const struct storage_batch *batch, struct err *e)
{
    const struct storage_move *move = &batch->move;
    autoptr(side) remote =
        side_new_remote(move->kind, move->account, move->container, move->path);
    struct find find = {
        .side = remote,
        .filter.whole_pattern = batch->pattern,
        .removes = true,
        .is_recursive = true,
        .targets = batch->targets,
    };
    struct run_config config = {
        .call = call,
        .destination = remote,
        .options = move->options,
        .is_quiet = move->is_quiet,
        .is_dry = batch->is_dry,
        .find = find_all,
        .context = &find,
    };

    return run_batch(call, &config, e);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

json_t *storage_names(const struct table *targets, const char *before)
{
    auto_free const char **names = xcalloc(table_count(targets) + 1, sizeof(*names));
    json_t *list = json_array();
    size_t at = 0, count = 0;
    const char *name;
    void *value;

    while (table_next(targets, &at, &name, &value))
        names[count++] = name;
    qsort(names, count, sizeof(*names), compare);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_sprintf("%s%s", before, names[i]));
    return list;
}
