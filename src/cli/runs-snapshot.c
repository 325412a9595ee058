/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runs-snapshot.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/call.h"
#include "cli/runs-ignore.h"
#include "cli/transfer-options.h"
#include "cli/transfer-progress.h"
#include "cli/transfer-run.h"
#include "cli/transfer-side.h"

enum {
    MANY_FILES = 5000,
    MUCH_MIB = 256, /* some seconds on a usual disk: worth a thought, not a question */
};

struct find {
    const struct side *side;
    const struct ignore *ignore;
    struct run *run; /* NULL while it is only measured */
    int64_t files, bytes;
};

static bool enters(void *context, const char *path)
{
    const struct find *find = context;

    return !ignore_skips(find->ignore, path, true);
}

static int see(void *context, const char *path, const struct facts *facts, struct err *e)
{
    struct find *find = context;

    (void)e;
    if (ignore_skips(find->ignore, path, facts->is_folder))
        return 0;
    if (!facts->is_folder) {
        find->files++;
        find->bytes += facts->size_bytes;
    }
    if (!find->run)
        return 0;
    return run_add(find->run,
                   item_new(facts->is_folder ? ITEM_FOLDER : ITEM_COPY, path, path, facts));
}

static int walk(struct find *find, const struct port_config *config, struct err *e)
{
    const struct side_walk walk = {
        .is_recursive = true,
        .follows_links = true,
        .see = see,
        .enters = enters,
        .context = find,
    };
    struct port port;
    int rc;

    if (port_open(find->side, config, &port, e) < 0)
        return -1;
    rc = find->side->ops->walk(&port, &walk, e);
    port_close(&port);
    return rc;
}

static int find_all(struct run *run, void *context, struct err *e)
{
    struct find *find = context;
    struct port_config config;

    find->run = run;
    run_port_config(run, &config);
    return walk(find, &config, e);
}

static int measure(struct call *call, struct find *find, struct err *e)
{
    const struct port_config config = {0};
    auto_str size = {0};

    if (walk(find, &config, e) < 0)
        return -1;
    progress_bytes(&size, (double)find->bytes);
    call_info(call, "the folder has %lld files, %s", (long long)find->files, str_text(&size));
    if (find->files > MANY_FILES || find->bytes > (int64_t)MUCH_MIB * 1024 * 1024)
        call_say(call,
                 "This folder is large: %lld files, %s. All of it is copied; list what is not "
                 "needed in .yardignore.",
                 (long long)find->files, str_text(&size));
    return 0;
}

int snapshot_take(struct call *call, const struct snapshot *snapshot, struct err *e)
{
    autoptr(side) here = NULL;
    autoptr(side) there =
        side_new_remote(SIDE_FILE, snapshot->account, snapshot->share, snapshot->path);
    autoptr(ignore) ignore = NULL;
    struct transfer_options options;
    struct find find = {0};
    struct run_config config = {
        .call = call,
        .destination = there,
        .options = &options,
        .find = find_all,
        .context = &find,
    };
    struct run_result result = {0};

    transfer_options_init(&options);
    if (side_new_local(snapshot->folder, &here, e) < 0 ||
        ignore_read(snapshot->folder, &ignore, e) < 0)
        return -1;
    find.side = config.source = here;
    find.ignore = ignore;
    if (measure(call, &find, e) < 0 || run_transfer(&config, &result, e) < 0)
        return -1;
    json_decref(result.totals);
    if (!result.is_well)
        return err_set(e, ERR_BUSY, "the folder was not copied whole; nothing was submitted");
    return 0;
}
