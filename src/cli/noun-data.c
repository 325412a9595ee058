/* Looking at data, and removing it, by URL or by account/container/path.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/storage-account.h"
#include "cli/storage-shape.h"
#include "cli/storage-verb.h"
#include "cli/storage-wire.h"
#include "cli/table.h"
#include "cli/term.h"
#include "cli/transfer-ends.h"
#include "cli/transfer-find.h"
#include "cli/transfer-options.h"
#include "cli/transfer-run.h"

#include <stdio.h>
#include <string.h>

static const struct option_row place_to_list = {
    .names = "PLACE",
    .help = "A URL, or account/container/path; the accounts when not given.",
};
static const struct option_row place = {
    .names = "PLACE",
    .help = "A URL, or account/container/path.",
    .required = true,
};
static const struct option_row recursive = {
    .names = "--recursive -r",
    .help = "With all that is below.",
    .kind = OPTION_FLAG,
};
static const struct option_row is_long = {
    .names = "--long -l",
    .help = "Sizes and times, too.",
    .kind = OPTION_FLAG,
};
static const struct option_row include_pattern = {
    .names = "--include-pattern",
    .help = "Only files whose names fit one of these: *.jpg;*.png",
};
static const struct option_row exclude_pattern = {
    .names = "--exclude-pattern",
    .help = "Not the files whose names fit one of these.",
};
static const struct option_row dry_run = {
    .names = "--dry-run",
    .help = "Say what would be done, and do nothing.",
    .kind = OPTION_FLAG,
};

static int open_end(struct call *call, struct end *ret_end, struct err *e)
{
    return end_open(call, args_get(call->args, "PLACE"), STORAGE_UNKNOWN, NULL, true, ret_end,
                    e);
}

static void close_end(struct end *end)
{
    end_close(end);
}
#define auto_end __attribute__((cleanup(close_end))) struct end

/* --- ls --- */

static void add_row(json_t *rows, const char *name, const char *type)
{
    json_array_append_new(rows, json_pack("{s:s, s:s}", "name", name, "type", type));
}

static int list_accounts(struct call *call, json_t *rows, struct err *e)
{
    auto_json json_t *accounts = NULL;
    json_t *row;
    size_t i;

    if (storage_account_list(call, &accounts, e) < 0)
        return -1;
    json_array_foreach(accounts, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));

        add_row(rows, name ? name : "", "account");
    }
    return 0;
}

static int list_service(struct call *call,
                        const struct end *end,
                        enum storage_service service,
                        json_t *rows,
                        struct err *e)
{
    struct wire_config config = {
        .account = end->account,
        .service = service,
        .patience_ms = WIRE_PATIENCE_MS,
        .trace = storage_trace(call),
    };
    struct storage_listing listing = {.query = "comp=list"};
    auto_json json_t *found = NULL;
    autoptr(wire) wire = NULL;
    json_t *item;
    size_t i;

    if (wire_new(&config, &wire, e) < 0 || storage_list(wire, &listing, &found, e) < 0)
        return -1;
    json_array_foreach(found, i, item)
    {
        add_row(rows, json_string_value(json_object_get(item, "name")),
                service == STORAGE_FILE ? "share" : "container");
    }
    return 0;
}

static int list_account(struct call *call, const struct end *end, json_t *rows, struct err *e)
{
    bool has_both = !end->address.endpoint; /* account was typed, not the URL of one service */

    for (int s = STORAGE_BLOB; s <= STORAGE_FILE; s++) {
        if ((has_both ? end->account->endpoints[s] != NULL : (int)end->address.service == s) &&
            list_service(call, end, (enum storage_service)s, rows, e) < 0)
            return -1;
    }
    return 0;
}

static int see_entry(void *context, const char *path, const struct facts *facts, struct err *e)
{
    char time[CLOCK_ISO_BYTES] = "";
    json_t *row;

    (void)e;
    if (facts->modified_ns >= 0)
        clock_format_iso(facts->modified_ns / 1000000, time);
    row = json_pack("{s:s, s:s}", "name", path, "type", facts->is_folder ? "folder" : "file");
    if (row && !facts->is_folder)
        json_object_set_new(row, "size", json_integer(facts->size_bytes));
    if (row && *time)
        json_object_set_new(row, "lastModified", json_string(time));
    json_array_append_new(context, row);
    return 0;
}

static int list_below(struct call *call, const struct end *end, json_t *rows, struct err *e)
{
    struct transfer_options options;
    struct port_config config = {.options = &options, .trace = storage_trace(call)};
    struct side_walk walk = {
        .is_recursive = args_flag(call->args, "recursive"),
        .shows_folders = true,
        .pattern = end->address.pattern,
        .see = see_entry,
        .context = rows,
    };
    autoptr(side) side = NULL;
    struct facts facts;
    struct port port;
    bool is_file = false;
    int rc = 0;

    transfer_options_init(&options);
    config.patience_ms = WIRE_PATIENCE_MS;
    if (end_side(end, end->address.path, &side, e) < 0 ||
        port_open(side, &config, &port, e) < 0)
        return -1;
    if (*end->address.path && !end->address.ends_in_slash && !end->address.pattern)
        rc = side->ops->look(&port, "", &facts, &is_file, e);
    if (rc == 0 && is_file && !facts.is_folder) {
        auto_free char *name = address_base(end->address.path);

        rc = see_entry(rows, name, &facts, e);
    } else if (rc == 0) {
        rc = side->ops->walk(&port, &walk, e);
    }
    port_close(&port);
    return rc;
}

static void print_rows(const json_t *rows, bool with_sizes)
{
    auto_str text = {0};
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        const char *type = json_string_value(json_object_get(row, "type"));
        const char *time = json_string_value(json_object_get(row, "lastModified"));

        if (with_sizes)
            str_addf(&text, "%14lld  %-20.20s  ",
                     (long long)json_integer_value(json_object_get(row, "size")),
                     time ? time : "");
        str_addf(&text, "%s%s\n", json_string_value(json_object_get(row, "name")),
                 str_equal(type, "file") ? "" : "/");
    }
    term_write(stdout, str_text(&text), text.len);
}

static int ls(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *rows = json_array();
    auto_end end = {0};
    int rc;

    if (!args_get(call->args, "PLACE"))
        rc = list_accounts(call, rows, e);
    else if ((rc = open_end(call, &end, e)) == 0)
        rc = *end.address.container || end.address.pattern ? list_below(call, &end, rows, e)
                                                           : list_account(call, &end, rows, e);
    if (rc < 0)
        return -1;
    if (call_wants_text(call))
        print_rows(rows, args_flag(call->args, "long"));
    else
        *ret_result = json_incref(rows);
    return 0;
}

/* --- cat --- */

static int write_out(void *context, const void *bytes, size_t len)
{
    return fwrite(bytes, 1, len, context) == len ? 0 : -1;
}

static int cat(struct call *call, json_t **ret_result, struct err *e)
{
    auto_end end = {0};
    autoptr(wire) wire = NULL;
    struct wire_config config = {.patience_ms = WIRE_PATIENCE_MS, .trace = storage_trace(call)};
    struct wire_request request = {.method = "GET", .sink = write_out, .sink_context = stdout};

    (void)ret_result;
    if (open_end(call, &end, e) < 0)
        return -1;
    if (!*end.address.container || !*end.address.path || end.address.pattern)
        return args_fail(e, "PLACE", "\"%.200s\" does not name one file",
                         args_get(call->args, "PLACE"));
    config.account = end.account;
    config.service = end.address.service;
    request.container = end.address.container;
    request.path = end.address.path;
    if (wire_new(&config, &wire, e) < 0)
        return -1;
    return wire_call(wire, &request, NULL, e);
}

/* --- rm --- */

static int compare_deepest(const void *a, const void *b)
{
    return strcmp(*(const char *const *)b, *(const char *const *)a);
}

/* Folders of a share go when they are empty: what is in them has a longer path, so backwards.
 */
static int remove_folders(const struct side *side,
                          const struct table *folders,
                          const struct transfer_options *options,
                          struct err *e)
{
    auto_free const char **paths = xcalloc(table_count(folders) + 2, sizeof(*paths));
    struct port_config config = {.options = options, .patience_ms = options->patience_ms};
    size_t count = 0, at = 0;
    struct port port;
    void *value;
    int rc = 0;

    while (table_next(folders, &at, &paths[count], &value))
        count++;
    if (*side->root)
        paths[count++] = "";
    qsort(paths, count, sizeof(*paths), compare_deepest);
    if (port_open(side, &config, &port, e) < 0)
        return -1;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = side->ops->remove(&port, paths[i], true, e);
    port_close(&port);
    return rc;
}

static int find_what(struct call *call, const struct end *end, struct find *find, struct err *e)
{
    struct placement_ask ask = {
        .source = &end->address,
        .destination = &end->address,
        .is_recursive = args_flag(call->args, "recursive"),
    };
    struct address no_pattern = end->address;
    bool is_there = true;

    if (!*end->address.container)
        return args_fail(e, "PLACE",
                         "that is a whole account; see: yard storage account delete");
    if (!end->address.pattern && end_look(call, end, &is_there, &ask.source_is_folder, e) < 0)
        return -1;
    if (!is_there)
        return err_set(e, ERR_NOT_FOUND, "there is nothing at %.200s",
                       args_get(call->args, "PLACE"));
    no_pattern.pattern = NULL;
    ask.destination = &no_pattern;
    return placement_find(&ask, &find->placement, e);
}

static int rm(struct call *call, json_t **ret_result, struct err *e)
{
    auto_end end = {0};
    autoptr(side) side = NULL;
    autoptr(table) folders = table_new(NULL);
    struct transfer_options options;
    struct find find = {
        .removes = true,
        .is_recursive = args_flag(call->args, "recursive"),
        .filter = {.include_pattern = args_get(call->args, "include-pattern"),
                   .exclude_pattern = args_get(call->args, "exclude-pattern")},
        .folders = folders,
    };
    struct run_config config = {
        .call = call,
        .has_summary = true,
        .options = &options,
        .is_dry = args_flag(call->args, "dry-run"),
        .is_quiet = true,
        .find = find_all,
        .context = &find,
    };
    bool is_all;
    int rc = -1;

    transfer_options_init(&options);
    if (open_end(call, &end, e) < 0)
        return -1;
    find.pattern = end.address.pattern;
    if (find_what(call, &end, &find, e) == 0 &&
        end_side(&end, find.placement.source_root, &side, e) == 0) {
        find.side = config.destination = side;
        rc = run_and_tell(&config, ret_result, e);
    }
    is_all = !find.filter.include_pattern && !find.filter.exclude_pattern && !find.pattern;
    if (rc == 0 && !config.is_dry && end.kind == SIDE_FILE && !find.placement.single &&
        call->exit_status == 0 && is_all)
        rc = remove_folders(side, folders, &options, e);
    placement_done(&find.placement);
    return rc;
}

const struct command data_commands[] = {
    {
        .path = "ls",
        .summary = "List accounts, containers and shares, or what is in them.",
        .options = OPTIONS(&place_to_list, &recursive, &is_long),
        .examples = {{"List a folder of a container.", "yard ls recipestore/images/train"},
                     {"List all, with sizes.", "yard ls -rl recipestore/images"}},
        .run = ls,
        .table = "{Name: name, Type: type, Size: size, \"Last Modified\": lastModified}",
    },
    {
        .path = "cat",
        .summary = "Print a blob, or a file of a share.",
        .options = OPTIONS(&place),
        .examples = {{"Read a log.", "yard cat recipestore/logs/job/stdout.txt"}},
        .run = cat,
    },
    {
        .path = "rm",
        .summary = "Remove blobs, or files of a share.",
        .options = OPTIONS(&place, &recursive, &include_pattern, &exclude_pattern, &dry_run),
        .examples = {{"Remove a folder with all that is in it.",
                      "yard rm -r recipestore/images/old"}},
        .run = rm,
    },
    {0},
};
