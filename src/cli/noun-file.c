/* Files in a share, one by one.  Many at once: noun-file-batch.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/storage-account.h"
#include "cli/storage-headers.h"
#include "cli/storage-move.h"
#include "cli/storage-object.h"
#include "cli/storage-shape.h"
#include "cli/storage-verb.h"
#include "cli/storage-wire.h"
#include "cli/transfer-options.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct option_row path = {
    .names = "--path -p",
    .help = "Path of the file in the share.",
    .required = true,
};
static const struct option_row upload_path = {
    .names = "--path -p",
    .help = "Where it goes in the share. A last part without a dot is a folder.",
};
static const struct option_row list_path = {
    .names = "--path -p",
    .help = "The folder to look into; the share's own when not given.",
};
static const struct option_row source = {
    .names = "--source",
    .help = "The file to send.",
    .required = true,
};
static const struct option_row destination = {
    .names = "--dest",
    .help = "Where to put it: a file or a folder; here when not given.",
};
static const struct option_row exclude_dir = {
    .names = "--exclude-dir",
    .help = "List files only.",
    .kind = OPTION_FLAG,
};
static const char *share_of(const struct call *call)
{
    return args_get(call->args, "share-name");
}

/* az's rule: a path whose last part has no dot is a folder, and the file keeps its name in it.
 */
static char *upload_target(const char *given, const char *file)
{
    size_t len = given ? strlen(given) : 0;

    while (len && given[len - 1] == '/')
        len--;
    if (!len)
        return xstrdup(storage_own_name(file));
    {
        auto_free char *clean = xstrndup(given, len);

        if (strchr(storage_own_name(clean), '.') && given[len] != '/')
            return take_ptr(&clean);
        return xasprintf("%s/%s", clean, storage_own_name(file));
    }
}

static int file_upload(struct call *call, json_t **ret_result, struct err *e)
{
    const char *file = args_get(call->args, "source");
    auto_free char *target = upload_target(args_get(call->args, "path"), file);
    struct transfer_options options;
    auto_headers headers = {0};
    auto_link link = {0};
    struct storage_move move = {
        .kind = SIDE_FILE,
        .container = share_of(call),
        .path = target,
        .file = file,
        .options = &options,
        .is_quiet = args_flag(call->args, "no-progress"),
    };
    bool is_kept;

    (void)ret_result;
    transfer_options_init(&options);
    options.patience_ms = WIRE_PATIENCE_MS;
    options.content_type = args_get(call->args, "content-type");
    options.headers = headers.rows;
    if (access(file, R_OK) < 0)
        return err_set(e, ERR_NOT_FOUND, "there is no file \"%.300s\" to read", file);
    if (headers_add_metadata(&headers, call, e) < 0 ||
        storage_link_open(call, STORAGE_FILE, &link, e) < 0)
        return -1;
    move.account = link.account;
    return storage_upload(call, &move, &is_kept, e);
}

/* A folder gets the file under its own name. */
static char *download_target(const char *given, const char *from)
{
    struct stat st;

    if (!given)
        return xstrdup(storage_own_name(from));
    if (str_ends(given, "/") || (stat(given, &st) == 0 && S_ISDIR(st.st_mode)))
        return xasprintf("%s%s%s", given, str_ends(given, "/") ? "" : "/",
                         storage_own_name(from));
    return xstrdup(given);
}

static int file_download(struct call *call, json_t **ret_result, struct err *e)
{
    const char *from = args_get(call->args, "path");
    auto_free char *target = download_target(args_get(call->args, "dest"), from);
    struct transfer_options options;
    auto_answer answer = {0};
    auto_link link = {0};
    struct storage_move move = {
        .kind = SIDE_FILE,
        .container = share_of(call),
        .path = from,
        .file = target,
        .options = &options,
        .is_quiet = args_flag(call->args, "no-progress"),
    };
    bool is_kept;

    transfer_options_init(&options);
    options.patience_ms = WIRE_PATIENCE_MS;
    if (storage_link_open(call, STORAGE_FILE, &link, e) < 0)
        return -1;
    move.account = link.account;
    if (storage_look(link.wire, move.container, from, &answer, e) < 0 ||
        storage_download(call, &move, &is_kept, e) < 0)
        return -1;
    *ret_result = storage_shape_answer(&answer, "File", storage_own_name(from), NULL);
    return 0;
}

static int file_list(struct call *call, json_t **ret_result, struct err *e)
{
    struct storage_listing listing = {
        .container = share_of(call),
        .path = args_get(call->args, "path"),
        .query = "restype=directory&comp=list&include=Timestamps,ETag,Attributes,PermissionKey",
        .only = args_flag(call->args, "exclude-dir") ? "File" : NULL,
    };
    auto_link link = {0};

    if (storage_most_results(call, &listing.most, e) < 0 ||
        storage_link_open(call, STORAGE_FILE, &link, e) < 0)
        return -1;
    return storage_list(link.wire, &listing, ret_result, e);
}

static int file_show(struct call *call, json_t **ret_result, struct err *e)
{
    const char *file = args_get(call->args, "path");
    auto_answer answer = {0};
    auto_link link = {0};

    if (storage_link_open(call, STORAGE_FILE, &link, e) < 0 ||
        storage_look(link.wire, share_of(call), file, &answer, e) < 0)
        return -1;
    *ret_result = storage_shape_answer(&answer, "File", storage_own_name(file), NULL);
    return 0;
}

static int file_exists(struct call *call, json_t **ret_result, struct err *e)
{
    auto_link link = {0};

    if (storage_link_open(call, STORAGE_FILE, &link, e) < 0)
        return -1;
    return storage_exists(link.wire, share_of(call), args_get(call->args, "path"), NULL,
                          ret_result, e);
}

static int file_delete(struct call *call, json_t **ret_result, struct err *e)
{
    auto_link link = {0};

    (void)ret_result;
    if (storage_link_open(call, STORAGE_FILE, &link, e) < 0)
        return -1;
    return storage_delete(link.wire, share_of(call), args_get(call->args, "path"), NULL, true,
                          NULL, e);
}

static int file_url(struct call *call, json_t **ret_result, struct err *e)
{
    return storage_object_url(call, STORAGE_FILE, share_of(call), args_get(call->args, "path"),
                              ret_result, e);
}

static int file_sas(struct call *call, json_t **ret_result, struct err *e)
{
    return storage_make_sas(call, STORAGE_FILE, "f", share_of(call),
                            args_get(call->args, "path"), ret_result, e);
}

const struct command file_commands[] = {
    {
        .path = "storage file upload",
        .summary = "Send a file into a share.",
        .options = OPTIONS(&storage_share_name,
                           &source,
                           &upload_path,
                           &storage_content_type,
                           &storage_metadata,
                           &storage_no_progress,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples =
            {{"Send a script into a folder.",
              "yard storage file upload -s scripts --source jobprep_benchmark.sh --path "
              "horovod --account-name recipestore"}},
        .run = file_upload,
    },
    {
        .path = "storage file download",
        .summary = "Fetch a file from a share.",
        .options = OPTIONS(&storage_share_name,
                           &path,
                           &destination,
                           &storage_no_progress,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Fetch it.",
                      "yard storage file download -s logs -p job/stdout.txt --dest here.txt"}},
        .run = file_download,
        .table = storage_file_table,
    },
    {
        .path = "storage file list",
        .summary = "List the files and folders in a share, or in a folder of it.",
        .options = OPTIONS(&storage_share_name,
                           &list_path,
                           &exclude_dir,
                           &storage_num_results,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"List a folder.",
                      "yard storage file list -s scripts -p horovod -o table"}},
        .run = file_list,
        .table = storage_file_table,
    },
    {
        .path = "storage file show",
        .summary = "Show a file of a share.",
        .options = OPTIONS(&storage_share_name, &path, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Print how long it is.", "yard storage file show -s scripts -p "
                                               "horovod/prep.sh --query "
                                               "properties.contentLength"}},
        .run = file_show,
        .table = storage_file_table,
    },
    {
        .path = "storage file exists",
        .summary = "Say whether a file is there.",
        .options = OPTIONS(&storage_share_name, &path, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Print true or false.",
                      "yard storage file exists -s scripts -p horovod/prep.sh --query exists"}},
        .run = file_exists,
    },
    {
        .path = "storage file delete",
        .summary = "Delete a file of a share.",
        .options = OPTIONS(&storage_share_name, &path, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Delete it.", "yard storage file delete -s scripts -p horovod/prep.sh"}},
        .run = file_delete,
    },
    {
        .path = "storage file generate-sas",
        .summary = "Make a shared access signature for a file.",
        .options = OPTIONS(&storage_share_name,
                           &path,
                           STORAGE_SAS_OPTIONS,
                           &storage_sas_full_uri,
                           STORAGE_SAS_HEADER_OPTIONS,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples =
            {{"Make a link to read it with.",
              "yard storage file generate-sas -s logs -p job/stdout.txt --permissions r "
              "--expiry 2030-01-01T00:00Z --full-uri -o tsv"}},
        .run = file_sas,
    },
    {
        .path = "storage file url",
        .summary = "Print the URL of a file.",
        .options =
            OPTIONS(&storage_share_name, &path, &storage_protocol, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Print it.", "yard storage file url -s logs -p job/stdout.txt -o tsv"}},
        .run = file_url,
    },
    {0},
};
