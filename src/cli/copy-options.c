/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy-options.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/storage-verb.h"
#include "cli/table.h"
#include "cli/transfer-ends.h"
#include "cli/transfer-filter.h"
#include "cli/transfer-journal.h"
#include "cli/transfer-options.h"
#include "cli/transfer-side.h"

#include <string.h>

enum {
    MOST_PARALLEL = 256,
    MIB = 1024 * 1024,
};

const struct option_row copy_source = {
    .names = "SRC",
    .help = "What to copy: a path here or a URL; dir/* for all in it.",
    .required = true,
};
const struct option_row copy_destination = {
    .names = "DST",
    .help = "Where to: a URL or a path here.",
    .required = true,
};
const struct option_row copy_include_pattern = {
    .names = "--include-pattern",
    .help = "Only files whose names fit one of these: *.jpg;*.png",
};
const struct option_row copy_exclude_pattern = {
    .names = "--exclude-pattern",
    .help = "Not the files whose names fit one of these.",
};
const struct option_row copy_include_path = {
    .names = "--include-path",
    .help = "Only these files and folders below the source: train;val/a.jpg",
};
const struct option_row copy_exclude_path = {
    .names = "--exclude-path",
    .help = "Not these files and folders below the source.",
};
const struct option_row copy_from_to = {
    .names = "--from-to",
    .help = "What both are, where the URLs do not tell.",
    .choices = "LocalBlob LocalFile BlobLocal FileLocal BlobBlob BlobFile FileBlob FileFile",
};
const struct option_row copy_put_md5 = {
    .names = "--put-md5",
    .help = "Keep the MD5 of each file with it, of large ones too.",
    .kind = OPTION_FLAG,
};
const struct option_row copy_check_md5 = {
    .names = "--check-md5",
    .help = "What to do with the MD5 that is kept with a source.",
    .choices = "NoCheck FailIfDifferent FailIfDifferentOrMissing",
    .default_text = "FailIfDifferent",
};
const struct option_row copy_check_length = {
    .names = "--check-length",
    .help = "Ask again how long a large file is when it has arrived.",
    .choices = "true false",
    .default_text = "true",
};
const struct option_row copy_cap_mbps = {
    .names = "--cap-mbps",
    .help = "At most so many megabits each second.",
};
const struct option_row copy_dry_run = {
    .names = "--dry-run",
    .help = "Say what would be done, and do nothing.",
    .kind = OPTION_FLAG,
};
const struct option_row copy_follow_symlinks = {
    .names = "--follow-symlinks",
    .help = "Copy what symbolic links lead to; else they are passed over.",
    .kind = OPTION_FLAG,
};
const struct option_row copy_preserve_time = {
    .names = "--preserve-last-modified-time",
    .help = "Files that come down get the time of their source.",
    .kind = OPTION_FLAG,
};
const struct option_row copy_block_size = {
    .names = "--block-size-mb",
    .help = "Size of the pieces of large files, in MiB.",
    .default_text = "8",
};
const struct option_row copy_parallel = {
    .names = "--parallel",
    .help = "How many files, or pieces of them, go at once.",
    .default_text = "16",
};
const struct option_row copy_content_type = {
    .names = "--content-type",
    .help = "What the files are; by their names when not given.",
};
const struct option_row copy_source_sas = {
    .names = "--source-sas",
    .help = "A shared access signature for the source, when its URL has none.",
};
const struct option_row copy_destination_sas = {
    .names = "--destination-sas",
    .help = "A shared access signature for the destination, when its URL has none.",
};

/* --- meaning --- */

static int read_number(const struct args *args,
                       const char *key,
                       double least,
                       double most,
                       double *ret,
                       struct err *e)
{
    const char *text = args_get(args, key);
    char *end;

    if (!text)
        return 0;
    *ret = strtod(text, &end);
    if (*end || !*text || !(*ret >= least && *ret <= most))
        return args_fail(e, key, "--%s: \"%.64s\" is not a number from %g to %g", key, text,
                         least, most);
    return 0;
}

static enum transfer_md5 md5_of(const char *text)
{
    return str_equal(text, "NoCheck")           ? MD5_IGNORE
           : str_equal(text, "FailIfDifferent") ? MD5_MUST_FIT
                                                : MD5_MUST_EXIST;
}

int copy_read_options(struct call *call, struct transfer_options *ret_options, struct err *e)
{
    const struct args *args = call->args;
    double block_mib = 8, parallel = 16;

    transfer_options_init(ret_options);
    if (read_number(args, "block-size-mb", 0.0625, 256, &block_mib, e) < 0 ||
        read_number(args, "parallel", 1, MOST_PARALLEL, &parallel, e) < 0 ||
        read_number(args, "cap-mbps", 0.001, 1e6, &ret_options->cap_mbps, e) < 0)
        return -1;
    ret_options->piece_bytes = (int64_t)(block_mib * MIB);
    ret_options->parallel = (int)parallel;
    ret_options->put_md5 = args_flag(args, "put-md5");
    ret_options->check_md5 = md5_of(args_get(args, "check-md5"));
    ret_options->check_length = str_equal(args_get(args, "check-length"), "true");
    ret_options->keeps_time = args_flag(args, "preserve-last-modified-time");
    ret_options->content_type = args_get(args, "content-type");
    return 0;
}

void copy_read_filter(struct call *call, struct filter *ret_filter)
{
    *ret_filter = (struct filter){
        .include_pattern = args_get(call->args, "include-pattern"),
        .exclude_pattern = args_get(call->args, "exclude-pattern"),
        .include_path = args_get(call->args, "include-path"),
        .exclude_path = args_get(call->args, "exclude-path"),
    };
}

/* --- what is kept --- */

static bool is_kept(const struct option_row *row)
{
    char key[OPTION_BYTES];
    const char *name = option_key(row, key);

    return !option_is_positional(row) && !str_ends(name, "-sas") &&
           !str_equal(name, "dry-run") && !str_equal(name, "yes");
}

json_t *copy_asked(struct call *call, const struct ends *ends)
{
    const struct command *command = args_command(call->args);
    auto_free char *from = end_text(&ends->from), *to = end_text(&ends->to);
    json_t *options = json_object();
    const struct option_row *row;
    char key[OPTION_BYTES];

    for (size_t i = 0; (row = command_option_at(command, i)) != global_option_at(0); i++) {
        const char *name = option_key(row, key);

        if (is_kept(row) && args_has(call->args, name))
            json_object_set_new(options, name,
                                row->kind == OPTION_FLAG
                                    ? json_true()
                                    : json_string(args_get(call->args, name)));
    }
    /* `cp` is `copy`. */
    return json_pack("{s:s, s:s, s:s, s:o}", "verb",
                     str_equal(command->path, "cp") ? "copy" : command->path, "source", from,
                     "destination", to, "options", options);
}

json_t *copy_words(const json_t *asked)
{
    const char *verb = json_string_value(json_object_get(asked, "verb"));
    const char *from = json_string_value(json_object_get(asked, "source"));
    const char *to = json_string_value(json_object_get(asked, "destination"));
    json_t *words = json_array(), *value;
    const char *name;

    json_array_append_new(words, json_string(verb ? verb : "copy"));
    json_object_foreach(json_object_get(asked, "options"), name, value)
    {
        if (json_is_string(value))
            json_array_append_new(words,
                                  json_sprintf("--%s=%s", name, json_string_value(value)));
        else
            json_array_append_new(words, json_sprintf("--%s", name));
    }
    json_array_append_new(words, json_string("--"));
    json_array_append_new(words, json_string(from ? from : ""));
    json_array_append_new(words, json_string(to ? to : ""));
    return words;
}

/* --- going on --- */

struct confirming {
    struct port *port;
    struct table *sizes; /* of what is there; NULL = look at each */
};

static int see_there(void *context, const char *path, const struct facts *facts, struct err *e)
{
    int64_t *size = xmalloc(sizeof(*size));

    (void)e;
    *size = facts->size_bytes;
    table_set(context, path, size);
    return 0;
}

static bool is_there(void *context, const char *target, int64_t size_bytes)
{
    struct confirming *c = context;
    struct facts facts = {0};
    bool found = false;

    if (c->sizes) {
        const int64_t *size = table_get(c->sizes, target);

        return size && *size == size_bytes;
    }
    return c->port->side->ops->look(c->port, target, &facts, &found, NULL) == 0 && found &&
           facts.size_bytes == size_bytes;
}

int copy_confirm(struct call *call,
                 struct journal *journal,
                 const struct side *destination,
                 const char *sub,
                 struct err *e)
{
    autoptr(table) sizes = table_new(free);
    struct transfer_options options;
    struct port_config config = {.options = &options, .trace = storage_trace(call)};
    struct side_walk walk = {
        .is_recursive = true,
        /* A name with wildcards in it would fit others, too: harmless, but more to list. */
        .pattern = *sub ? sub : NULL,
        .see = see_there,
        .context = sizes,
    };
    struct port port;
    struct confirming confirming = {.port = &port};
    int rc = 0;

    if (!journal_done_count(journal))
        return 0;
    transfer_options_init(&options);
    config.patience_ms = options.patience_ms;
    if (strpbrk(sub, "*?[\\"))
        walk.pattern = NULL;
    if (port_open(destination, &config, &port, e) < 0)
        return -1;
    /* There, one list is cheaper than a question for each; here, the folder may hold much else.
     */
    if (destination->kind != SIDE_LOCAL) {
        rc = destination->ops->walk(&port, &walk, e);
        confirming.sizes = sizes;
    }
    if (rc == 0)
        journal_confirm(journal, is_there, &confirming);
    port_close(&port);
    return rc;
}
