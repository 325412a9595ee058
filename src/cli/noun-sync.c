/* Making a destination like its source.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/copy-options.h"
#include "cli/table.h"
#include "cli/transfer-ends.h"
#include "cli/transfer-filter.h"
#include "cli/transfer-journal.h"
#include "cli/transfer-options.h"
#include "cli/transfer-run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct option_row delete_destination = {
    .names = "--delete-destination",
    .help = "Remove what the source does not have.",
    .choices = "true false prompt",
    .default_text = "false",
};

/* What is there already, and what was found of it. */
struct there {
    struct facts facts;
    bool is_found;
};

struct sync {
    const struct side *from, *to;
    struct filter filter;
    bool follows_links, removes;
    struct table *there; /* path: struct there */
    struct run *run;
};

static int see_there(void *context, const char *path, const struct facts *facts, struct err *e)
{
    struct sync *sync = context;
    struct there *there;

    (void)e;
    if (facts->is_folder || !filter_takes(&sync->filter, path))
        return 0;
    there = xcalloc(1, sizeof(*there));
    there->facts = *facts;
    table_set(sync->there, path, there);
    return 0;
}

/* The same length, and not older: nothing to do. */
static bool is_same(const struct facts *from, const struct facts *there)
{
    return from->size_bytes == there->size_bytes && there->modified_ns >= from->modified_ns;
}

static int see_source(void *context, const char *path, const struct facts *facts, struct err *e)
{
    struct sync *sync = context;
    struct there *there;

    (void)e;
    if (facts->is_folder || !filter_takes(&sync->filter, path))
        return 0;
    there = table_get(sync->there, path);
    if (there)
        there->is_found = true;
    if (there && is_same(facts, &there->facts))
        return 0;
    return run_add(sync->run, item_new(ITEM_COPY, path, path, facts));
}

static void pass(void *context, const char *path, const char *why)
{
    struct sync *sync = context;

    run_pass(sync->run, path, why);
}

static int walk_side(struct sync *sync, const struct side *side, side_see *see, struct err *e)
{
    struct side_walk walk = {
        .is_recursive = true,
        .follows_links = sync->follows_links,
        .see = see,
        .context = sync,
        .pass = pass,
    };
    struct port_config config;
    struct facts facts;
    struct port port;
    bool is_there = true;
    int rc;

    run_port_config(sync->run, &config);
    if (port_open(side, &config, &port, e) < 0)
        return -1;
    /* A destination that is not there yet is an empty one. */
    rc = see == see_there && side->kind != SIDE_BLOB
             ? side->ops->look(&port, "", &facts, &is_there, e)
             : 0;
    if (rc == 0 && is_there)
        rc = side->ops->walk(&port, &walk, e);
    port_close(&port);
    return rc;
}

static int remove_rest(struct sync *sync)
{
    const char *path;
    size_t at = 0;
    void *value;

    while (table_next(sync->there, &at, &path, &value)) {
        const struct there *there = value;

        if (!there->is_found &&
            run_add(sync->run, item_new(ITEM_REMOVE, path, path, &there->facts)) != 0)
            break;
    }
    return 0;
}

static int find(struct run *run, void *context, struct err *e)
{
    struct sync *sync = context;

    sync->run = run;
    if (walk_side(sync, sync->to, see_there, e) < 0 ||
        walk_side(sync, sync->from, see_source, e) < 0)
        return -1;
    return sync->removes ? remove_rest(sync) : 0;
}

static int check_source(struct call *call, const struct ends *ends, struct err *e)
{
    auto_free char *shown = end_text(&ends->from);
    bool is_there = false, is_folder = false;

    if (ends->from.address.pattern || ends->to.address.pattern)
        return args_fail(e, NULL, "sync takes folders, no wildcards; see --include-pattern");
    if (end_look(call, &ends->from, &is_there, &is_folder, e) < 0)
        return -1;
    if (!is_there || !is_folder)
        return err_set(e, ERR_NOT_FOUND, "there is no folder %.300s", shown);
    return 0;
}

static int read_removes(struct call *call, bool *ret_removes, struct err *e)
{
    const char *text = args_get(call->args, "delete-destination");

    *ret_removes = !str_equal(text, "false");
    if (!str_equal(text, "prompt"))
        return 0;
    if (!isatty(STDIN_FILENO))
        return args_fail(e, "--delete-destination",
                         "--delete-destination prompt needs a terminal to ask on");
    fputs("Remove what the source does not have? (y/n): ", stderr);
    {
        char answer[16] = "";

        *ret_removes = fgets(answer, sizeof(answer), stdin) && answer[0] == 'y';
    }
    return 0;
}

static int run_sync(struct call *call, json_t **ret_result, struct err *e)
{
    const struct args *args = call->args;
    auto_json json_t *asked = NULL;
    auto_ends ends = {0};
    autoptr(side) from = NULL;
    autoptr(side) to = NULL;
    autoptr(journal) journal = NULL;
    autoptr(table) there = table_new(free);
    struct transfer_options options;
    struct sync sync = {.there = there, .follows_links = args_flag(args, "follow-symlinks")};
    struct run_config config = {
        .call = call,
        .has_summary = true,
        .options = &options,
        .is_dry = args_flag(args, "dry-run"),
        .find = find,
        .context = &sync,
    };

    copy_read_filter(call, &sync.filter);
    if (copy_read_options(call, &options, e) < 0 || read_removes(call, &sync.removes, e) < 0 ||
        ends_open(call, args_get(args, "SRC"), args_get(args, "DST"), args_get(args, "from-to"),
                  &ends, e) < 0 ||
        check_source(call, &ends, e) < 0 ||
        end_side(&ends.from, ends.from.address.path, &from, e) < 0 ||
        end_side(&ends.to, ends.to.address.path, &to, e) < 0)
        return -1;
    asked = copy_asked(call, &ends);
    if (!config.is_dry &&
        (end_need_container(call, &ends.to, e) < 0 ||
         journal_begin(call->home, asked, &journal, e) < 0 ||
         (journal_is_resumed(journal) && copy_confirm(call, journal, to, "", e) < 0)))
        return -1;
    sync.from = config.source = from;
    sync.to = config.destination = to;
    config.journal = journal;
    options.tag = journal ? journal_id(journal) : NULL;
    return run_and_tell(&config, ret_result, e);
}

const struct command sync_commands[] = {
    {
        .path = "sync",
        .summary = "Copy what is new or has changed, so that a folder is like another.",
        .options = OPTIONS(&delete_destination, COPY_OPTIONS),
        .examples = {{"Send what has changed.",
                      "yard sync ./data http://127.0.0.1:10000/recipestore/images"},
                     {"Fetch what has changed, and remove what is gone.",
                      "yard sync http://127.0.0.1:10000/recipestore/images ./data "
                      "--delete-destination true"}},
        .run = run_sync,
    },
    {0},
};
