/* Copying, in azcopy's forms.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/copy-options.h"
#include "cli/transfer-ends.h"
#include "cli/transfer-find.h"
#include "cli/transfer-journal.h"
#include "cli/transfer-options.h"
#include "cli/transfer-run.h"

static const struct option_row recursive = {
    .names = "--recursive -r",
    .help = "Folders with all that is in them.",
    .kind = OPTION_FLAG,
};
static const struct option_row overwrite = {
    .names = "--overwrite",
    .help = "Replace what is there already.",
    .choices = "true false ifSourceNewer prompt",
    .default_text = "true",
};
static const struct option_row as_subdir = {
    .names = "--as-subdir",
    .help = "A folder goes under its own name; false: only what is in it goes.",
    .choices = "true false",
    .default_text = "true",
};
static const struct option_row job_id = {
    .names = "ID",
    .help = "Id of the job, or the beginning of it.",
    .required = true,
};

static enum transfer_overwrite overwrite_of(const char *text)
{
    return str_equal(text, "false")           ? OVERWRITE_FALSE
           : str_equal(text, "ifSourceNewer") ? OVERWRITE_NEWER
           : str_equal(text, "prompt")        ? OVERWRITE_PROMPT
                                              : OVERWRITE_TRUE;
}

static int nothing_there(const struct end *end, struct err *e)
{
    auto_free char *shown = end_text(end);

    return err_set(e, ERR_NOT_FOUND, "there is nothing at %.300s", shown);
}

/* Where everything goes: see what is there, and apply the rules. */
static int find_placement(struct call *call,
                          const struct ends *ends,
                          struct placement *ret_placement,
                          struct err *e)
{
    struct placement_ask ask = {
        .source = &ends->from.address,
        .destination = &ends->to.address,
        .is_recursive = args_flag(call->args, "recursive"),
        .is_subdir = str_equal(args_get(call->args, "as-subdir"), "true"),
    };
    bool is_there = true;

    if (!ask.source->pattern) {
        if (end_look(call, &ends->from, &is_there, &ask.source_is_folder, e) < 0)
            return -1;
        if (!is_there)
            return nothing_there(&ends->from, e);
    }
    /* A blob's name is what it is; only real folders are asked for. */
    if (!ask.source->pattern && !ask.source_is_folder && ends->to.kind != SIDE_BLOB &&
        end_look(call, &ends->to, &is_there, &ask.destination_is_folder, e) < 0)
        return -1;
    return placement_find(&ask, ret_placement, e);
}

static int open_journal(struct call *call,
                        const struct ends *ends,
                        const struct side *to,
                        const char *sub,
                        struct journal **ret_journal,
                        struct err *e)
{
    auto_json json_t *asked = copy_asked(call, ends);

    if (journal_begin(call->home, asked, ret_journal, e) < 0)
        return -1;
    if (!journal_is_resumed(*ret_journal))
        return 0;
    if (copy_confirm(call, *ret_journal, to, sub, e) < 0)
        return -1;
    call_say(call, "NOTE: going on with job %.8s: %zu files are done already.",
             journal_id(*ret_journal), journal_done_count(*ret_journal));
    return 0;
}

static int copy(struct call *call, json_t **ret_result, struct err *e)
{
    const struct args *args = call->args;
    auto_ends ends = {0};
    autoptr(side) from = NULL;
    autoptr(side) to = NULL;
    autoptr(journal) journal = NULL;
    struct transfer_options options;
    struct find find = {
        .is_recursive = args_flag(args, "recursive"),
        .follows_links = args_flag(args, "follow-symlinks"),
    };
    struct run_config config = {
        .call = call,
        .has_summary = true,
        .options = &options,
        .is_dry = args_flag(args, "dry-run"),
        .find = find_all,
        .context = &find,
    };
    int rc = -1;

    if (copy_read_options(call, &options, e) < 0 ||
        ends_open(call, args_get(args, "SRC"), args_get(args, "DST"), args_get(args, "from-to"),
                  &ends, e) < 0)
        return -1;
    options.overwrite = overwrite_of(args_get(args, "overwrite"));
    copy_read_filter(call, &find.filter);
    find.pattern = ends.from.address.pattern;
    if (find_placement(call, &ends, &find.placement, e) == 0 &&
        end_side(&ends.from, find.placement.source_root, &from, e) == 0 &&
        end_side(&ends.to, find.placement.destination_root, &to, e) == 0 &&
        (config.is_dry ||
         (end_need_container(call, &ends.to, e) == 0 &&
          open_journal(call, &ends, to, find.placement.sub, &journal, e) == 0))) {
        find.side = config.source = from;
        config.destination = to;
        config.journal = journal;
        options.tag = journal ? journal_id(journal) : NULL;
        rc = run_and_tell(&config, ret_result, e);
    }
    placement_done(&find.placement);
    return rc;
}

/* --- jobs --- */

static int list_jobs(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *jobs = NULL, *rows = json_array();
    json_t *job;
    size_t i;

    if (journal_list(call->home, &jobs, e) < 0)
        return -1;
    json_array_foreach(jobs, i, job)
    {
        json_t *row = json_copy(job), *asked = json_object_get(job, "asked");

        json_object_update(row, asked);
        json_object_del(row, "asked");
        json_object_del(row, "bootId");
        json_array_append_new(rows, row);
    }
    *ret_result = json_incref(rows);
    return 0;
}

static const char *no_default(void *context, const char *key)
{
    (void)context;
    (void)key;
    return NULL;
}

/* The same command line once more, as the journal remembers it. */
static int run_again(struct call *call, const json_t *job, json_t **ret_result, struct err *e)
{
    auto_json json_t *words = copy_words(json_object_get(job, "asked"));
    size_t count = json_array_size(words);
    auto_free char **texts = xcalloc(count + 1, sizeof(*texts));
    static const char *const again[] = {"source-sas",      "destination-sas", "output",
                                        "query",           "verbose",         "debug",
                                        "only-show-errors"};
    struct args *typed = call->args;
    autoptr(args) args = NULL;
    int rc;

    for (size_t i = 0; i < count; i++)
        texts[i] = (char *)json_string_value(json_array_get(words, i));
    if (args_parse((int)count, texts, &args, e) < 0)
        return err_wrap(e, "the job is not understood");
    for (size_t i = 0; i < ARRAY_SIZE(again); i++) {
        if (args_has(typed, again[i]))
            args_set(args, again[i], args_get(typed, again[i]));
    }
    args_defaults(args, no_default, NULL);
    call->args = args;
    rc = args_command(args)->run(call, ret_result, e);
    call->args = typed;
    return rc;
}

static int resume(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *job = NULL;
    const char *state;

    if (journal_find(call->home, args_get(call->args, "ID"), &job, e) < 0)
        return -1;
    state = json_string_value(json_object_get(job, "state"));
    if (state && str_equal(state, "Completed"))
        return err_set(e, ERR_INVALID, "the job has ended well: there is nothing left to do");
    return run_again(call, job, ret_result, e);
}

static const char jobs_table[] =
    "{Id: id, State: state, Started: startedAt, Files: files, Failed: failed, Source: source, "
    "Destination: destination}";

static const struct option_row *const copy_rows[] = {
    &recursive, &overwrite, &as_subdir, COPY_OPTIONS, NULL,
};

const struct command copy_commands[] = {
    {
        .path = "copy",
        .summary = "Copy files to, from or between containers and shares.",
        .options = copy_rows,
        .examples = {{"Send this folder into a container, which is made when it is missing.",
                      "yard copy -r . https://recipestore.blob.core.windows.net/images"},
                     {"Fetch a part of it.",
                      "yard copy -r --include-pattern '*.jpg' "
                      "'http://127.0.0.1:10000/recipestore/images/train/*' ./here"},
                     {"Copy between accounts, with a signature for the other one.",
                      "yard copy -r 'https://other.blob.core.windows.net/c?sv=1&sig=x' "
                      "http://127.0.0.1:10000/recipestore/c"}},
        .run = copy,
    },
    {
        .path = "cp",
        .summary = "The same as copy.",
        .options = copy_rows,
        .examples = {{"Send a folder.",
                      "yard cp -r data http://127.0.0.1:10000/recipestore/images"}},
        .run = copy,
        .hidden = true,
    },
    {
        .path = "copy list",
        .summary = "List what was copied, and what was broken off.",
        .examples = {{"List it.", "yard copy list -o table"}},
        .run = list_jobs,
        .table = jobs_table,
    },
    {
        .path = "copy resume",
        .summary = "Go on with a copy that was broken off.",
        .options = OPTIONS(&job_id, &copy_source_sas, &copy_destination_sas),
        .examples = {{"Go on.", "yard copy resume 3f2a9c41"}},
        .run = resume,
    },
    {0},
};
