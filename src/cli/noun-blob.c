/* Blobs, one by one.  Many at once: noun-blob-batch.c.
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
#include <unistd.h>

static const struct option_row name = {
    .names = "--name -n",
    .help = "Name of the blob.",
    .required = true,
};
static const struct option_row upload_name = {
    .names = "--name -n",
    .help = "Name of the blob; the file's own when not given.",
};
static const struct option_row source_file = {
    .names = "--file -f",
    .help = "The file to send.",
    .required = true,
};
static const struct option_row target_file = {
    .names = "--file -f",
    .help = "Where to put it; the standard output when not given.",
};
static const struct option_row overwrite = {
    .names = "--overwrite",
    .help = "Replace a blob of that name.",
    .kind = OPTION_SWITCH,
};
static const struct option_row delimiter = {
    .names = "--delimiter",
    .help = "Show names only up to the next one of these, as folders: /",
};
static const struct option_row include = {
    .names = "--include",
    .help = "More to list: letters of (m)etadata (s)napshots (c)opy (t)ags.",
};
static const struct option_row delete_snapshots = {
    .names = "--delete-snapshots",
    .help = "What happens to its snapshots.",
    .choices = "include only",
};
static const char *container_named(const struct call *call)
{
    return args_get(call->args, "container-name");
}

static const char *name_of(const struct call *call)
{
    return args_get(call->args, "name");
}

/* --- up and down --- */

/* What az prints after an upload. */
static json_t *upload_result(const struct http_answer *answer)
{
    auto_free char *etag = http_answer_header(answer, "ETag");
    auto_free char *modified = http_answer_header(answer, "Last-Modified");
    auto_free char *md5 = http_answer_header(answer, "Content-MD5");
    auto_free char *id = http_answer_header(answer, "x-ms-request-id");
    auto_free char *version = http_answer_header(answer, "x-ms-version");

    return json_pack("{s:s?, s:s?, s:o, s:s?, s:b, s:s?}", "content_md5", md5, "etag", etag,
                     "lastModified", modified ? storage_shape_time(modified) : json_null(),
                     "request_id", id, "request_server_encrypted", 1, "version", version);
}

static int blob_upload(struct call *call, json_t **ret_result, struct err *e)
{
    struct transfer_options options;
    auto_headers headers = {0};
    auto_answer answer = {0};
    auto_link link = {0};
    struct storage_move move = {
        .kind = SIDE_BLOB,
        .container = container_named(call),
        .path = name_of(call),
        .file = args_get(call->args, "file"),
        .options = &options,
        .is_quiet = args_flag(call->args, "no-progress"),
    };
    bool is_kept;

    transfer_options_init(&options);
    options.patience_ms = WIRE_PATIENCE_MS;
    options.content_type = args_get(call->args, "content-type");
    options.headers = headers.rows;
    options.overwrite =
        args_switch(call->args, "overwrite") == 1 ? OVERWRITE_TRUE : OVERWRITE_FALSE;
    if (!move.path)
        move.path = storage_own_name(move.file);
    if (access(move.file, R_OK) < 0)
        return err_set(e, ERR_NOT_FOUND, "there is no file \"%.300s\" to read", move.file);
    if (headers_add_metadata(&headers, call, e) < 0 ||
        storage_link_open(call, STORAGE_BLOB, &link, e) < 0)
        return -1;
    move.account = link.account;
    if (storage_upload(call, &move, &is_kept, e) < 0)
        return -1;
    if (is_kept)
        return err_set(
            e, ERR_CONFLICT,
            "(BlobAlreadyExists) there is a blob \"%.200s\" already; take --overwrite "
            "to replace it",
            move.path);
    if (storage_look(link.wire, move.container, move.path, &answer, e) < 0)
        return -1;
    *ret_result = upload_result(&answer);
    return 0;
}

static int write_out(void *context, const void *bytes, size_t len)
{
    return fwrite(bytes, 1, len, context) == len ? 0 : -1;
}

static int print_blob(struct call *call, struct wire *wire, struct err *e)
{
    struct wire_request request = {
        .method = "GET",
        .container = container_named(call),
        .path = name_of(call),
        .sink = write_out,
        .sink_context = stdout,
    };

    return wire_call(wire, &request, NULL, e);
}

static int blob_download(struct call *call, json_t **ret_result, struct err *e)
{
    struct transfer_options options;
    auto_answer answer = {0};
    auto_link link = {0};
    struct storage_move move = {
        .kind = SIDE_BLOB,
        .container = container_named(call),
        .path = name_of(call),
        .file = args_get(call->args, "file"),
        .options = &options,
        .is_quiet = args_flag(call->args, "no-progress"),
    };
    bool is_kept;

    transfer_options_init(&options);
    options.patience_ms = WIRE_PATIENCE_MS;
    if (args_switch(call->args, "overwrite") == 0)
        options.overwrite = OVERWRITE_FALSE;
    if (storage_link_open(call, STORAGE_BLOB, &link, e) < 0)
        return -1;
    if (!move.file)
        return print_blob(call, link.wire, e);
    move.account = link.account;
    if (storage_look(link.wire, move.container, move.path, &answer, e) < 0 ||
        storage_download(call, &move, &is_kept, e) < 0)
        return -1;
    if (is_kept)
        return err_set(e, ERR_CONFLICT, "\"%.300s\" is there already", move.file);
    *ret_result = storage_shape_answer(&answer, "Blob", move.path, move.container);
    return 0;
}

/* --- the others --- */

static void add_include(struct str *query, const char *letters)
{
    static const struct {
        char letter;
        const char *word;
    } words[] = {{'m', "metadata"}, {'s', "snapshots"}, {'c', "copy"}, {'t', "tags"}};

    str_add(query, "&include=");
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (strchr(letters, words[i].letter))
            str_addf(query, "%s%s", str_ends(str_text(query), "=") ? "" : "%2C", words[i].word);
    }
}

static int blob_list(struct call *call, json_t **ret_result, struct err *e)
{
    const char *letters = args_get(call->args, "include");
    const char *mark = args_get(call->args, "delimiter");
    struct storage_listing listing = {
        .container = container_named(call),
        .prefix = args_get(call->args, "prefix"),
        .are_blobs = true,
    };
    auto_str query = {0};
    auto_link link = {0};

    str_add(&query, "restype=container&comp=list");
    add_include(&query, letters ? letters : "m");
    if (mark && !str_equal(mark, "/"))
        return args_fail(e, "--delimiter", "--delimiter: only / divides names");
    if (mark)
        str_add(&query, "&delimiter=%2F");
    listing.query = str_text(&query);
    if (storage_most_results(call, &listing.most, e) < 0 ||
        storage_link_open(call, STORAGE_BLOB, &link, e) < 0)
        return -1;
    return storage_list(link.wire, &listing, ret_result, e);
}

static int blob_show(struct call *call, json_t **ret_result, struct err *e)
{
    auto_answer answer = {0};
    auto_link link = {0};

    if (storage_link_open(call, STORAGE_BLOB, &link, e) < 0 ||
        storage_look(link.wire, container_named(call), name_of(call), &answer, e) < 0)
        return -1;
    *ret_result = storage_shape_answer(&answer, "Blob", name_of(call), container_named(call));
    return 0;
}

static int blob_exists(struct call *call, json_t **ret_result, struct err *e)
{
    auto_link link = {0};

    if (storage_link_open(call, STORAGE_BLOB, &link, e) < 0)
        return -1;
    return storage_exists(link.wire, container_named(call), name_of(call), NULL, ret_result, e);
}

static int blob_delete(struct call *call, json_t **ret_result, struct err *e)
{
    const char *snapshots = args_get(call->args, "delete-snapshots");
    auto_headers headers = {0};
    auto_link link = {0};
    struct wire_request request = {
        .method = "DELETE",
        .container = container_named(call),
        .path = name_of(call),
        .headers = headers.rows,
    };

    (void)ret_result;
    if (snapshots)
        headers_add(&headers, "x-ms-delete-snapshots: %s", snapshots);
    if (storage_link_open(call, STORAGE_BLOB, &link, e) < 0)
        return -1;
    return wire_call(link.wire, &request, NULL, e);
}

static int blob_url(struct call *call, json_t **ret_result, struct err *e)
{
    return storage_object_url(call, STORAGE_BLOB, container_named(call), name_of(call),
                              ret_result, e);
}

static int blob_sas(struct call *call, json_t **ret_result, struct err *e)
{
    return storage_make_sas(call, STORAGE_BLOB, "b", container_named(call), name_of(call),
                            ret_result, e);
}

const struct command blob_commands[] = {
    {
        .path = "storage blob upload",
        .summary = "Send a file into a container.",
        .options = OPTIONS(&storage_container_name,
                           &upload_name,
                           &source_file,
                           &overwrite,
                           &storage_content_type,
                           &storage_metadata,
                           &storage_no_progress,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Send a file.", "yard storage blob upload -c images -n train/cat.jpg -f "
                                      "cat.jpg --account-name recipestore"}},
        .run = blob_upload,
    },
    {
        .path = "storage blob download",
        .summary = "Fetch a blob into a file.",
        .options = OPTIONS(&storage_container_name,
                           &name,
                           &target_file,
                           &overwrite,
                           &storage_no_progress,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Fetch it.",
                      "yard storage blob download -c images -n train/cat.jpg -f cat.jpg"}},
        .run = blob_download,
        .table = storage_blob_table,
    },
    {
        .path = "storage blob list",
        .summary = "List the blobs in a container.",
        .options = OPTIONS(&storage_container_name,
                           &storage_prefix,
                           &delimiter,
                           &include,
                           &storage_num_results,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"List a part of them.",
                      "yard storage blob list -c images --prefix train/ -o table"}},
        .run = blob_list,
        .table = storage_blob_table,
    },
    {
        .path = "storage blob show",
        .summary = "Show a blob.",
        .options = OPTIONS(&storage_container_name, &name, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Print how long it is.", "yard storage blob show -c images -n "
                                               "train/cat.jpg --query "
                                               "properties.contentLength"}},
        .run = blob_show,
        .table = storage_blob_table,
    },
    {
        .path = "storage blob exists",
        .summary = "Say whether a blob is there.",
        .options = OPTIONS(&storage_container_name, &name, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Print true or false.", "yard storage blob exists -c images -n "
                                              "train/cat.jpg --query exists"}},
        .run = blob_exists,
    },
    {
        .path = "storage blob delete",
        .summary = "Delete a blob.",
        .options =
            OPTIONS(&storage_container_name, &name, &delete_snapshots, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Delete it.", "yard storage blob delete -c images -n train/cat.jpg"}},
        .run = blob_delete,
    },
    {
        .path = "storage blob generate-sas",
        .summary = "Make a shared access signature for a blob.",
        .options = OPTIONS(&storage_container_name,
                           &name,
                           STORAGE_SAS_OPTIONS,
                           &storage_sas_full_uri,
                           STORAGE_SAS_HEADER_OPTIONS,
                           STORAGE_ACCOUNT_OPTIONS),
        .examples =
            {{"Make a link to read it with.",
              "yard storage blob generate-sas -c images -n train/cat.jpg --permissions r "
              "--expiry 2030-01-01T00:00Z --full-uri -o tsv"}},
        .run = blob_sas,
    },
    {
        .path = "storage blob url",
        .summary = "Print the URL of a blob.",
        .options =
            OPTIONS(&storage_container_name, &name, &storage_protocol, STORAGE_ACCOUNT_OPTIONS),
        .examples = {{"Print it.", "yard storage blob url -c images -n train/cat.jpg -o tsv"}},
        .run = blob_url,
    },
    {0},
};
