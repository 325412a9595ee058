/* The files of a job's output directory: one level, each file with a signed link to it.
 *
 * Listing waits for the disk, so it is an errand.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "api/output-place.h"
#include "base/clock.h"
#include "base/text.h"
#include "control/vault.h"
#include "core/sas.h"
#include "storage/blobs.h"
#include "storage/files.h"

#include <string.h>

enum {
    MOST_FILES = 1000,
    LEAST_MINUTES = 5,
    MOST_MINUTES = 600,
    DEFAULT_MINUTES = 60,
};

struct listing {
    struct errand errand;
    struct volume volume;
    const char *path;     /* of the folder in the volume */
    const char *after;    /* name or, in a container, marker of the page before */
    const char *base_url; /* of the service */
    int64_t most;
    char expiry[CLOCK_ISO_BYTES];
    struct str key;  /* of the account */
    struct str out;  /* rows */
    char *next;      /* marker of the next page, "" = none */
    struct err each; /* of a row */
};

static struct listing *listing_of(struct errand *errand)
{
    return container_of(errand, struct listing, errand);
}

static void done(struct errand *errand)
{
    struct listing *l = listing_of(errand);

    str_done(&l->key);
    str_done(&l->out);
    free(l->next);
    free(l);
}

/* --- rows --- */

static void open_row(struct listing *l, const char *name, const char *type)
{
    str_add(&l->out, l->out.len ? ",{\"name\":" : "{\"name\":");
    json_write_string(&l->out, name, strlen(name));
    str_addf(&l->out, ",\"fileType\":\"%s\"", type);
}

/* http://host/account/share/path?sv=...&sig=... */
static int write_link(struct listing *l, const char *path, struct str *out, struct err *e)
{
    bool is_blob = l->volume.kind == VOLUME_BLOBS;
    auto_free char *resource = xasprintf("/%s/%s/%s/%s", is_blob ? "blob" : "file",
                                         l->volume.account, l->volume.name, path);
    const struct sas_service sas = {
        .resource = resource,
        .kind = is_blob ? "b" : "f",
        .permissions = "rl",
        .expiry = l->expiry,
        .version = CALL_SAS_VERSION,
    };
    auto_str token = {0};

    if (sas_service_token(&sas, str_text(&l->key), &token, e) < 0)
        return -1;
    str_addf(out, "%s/%s/%s/", l->base_url, l->volume.account, l->volume.name);
    text_percent_path(out, path);
    str_addf(out, "?%s", str_text(&token));
    return 0;
}

static void add_file(struct listing *l, const char *name, int64_t size, int64_t modified_ms)
{
    auto_free char *path = xasprintf("%s/%s", l->path, name);
    auto_str link = {0};

    if (l->each.code != ERR_NONE || write_link(l, path, &link, &l->each) < 0)
        return;
    open_row(l, name, "file");
    shape_add(&l->out, "downloadUrl", str_text(&link));
    str_add(&l->out, ",\"properties\":{\"lastModified\":");
    shape_write_time(&l->out, modified_ms / 1000 * 1000); /* whole seconds, as ever */
    str_addf(&l->out, ",\"contentLength\":%lld}}", (long long)size);
}

static void add_folder(struct listing *l, const char *name)
{
    open_row(l, name, "directory");
    str_add_char(&l->out, '}');
}

/* --- shares --- */

static void add_share_row(const struct file *file, void *context)
{
    struct listing *l = context;

    if (file->is_directory)
        add_folder(l, file->name);
    else
        add_file(l, file->name, file->size_bytes, file->modified_ms);
}

/* Before the job has begun there is no folder, and so nothing in it. */
static int list_share(struct listing *l, struct err *e)
{
    const struct file_address at = {.account = l->volume.account,
                                    .share = l->volume.name,
                                    .path = l->path,
                                    .trailing_dots = true};
    struct err why = {0};

    if (files_list(l->errand.call->api->files, &at, "", l->after, (size_t)l->most,
                   add_share_row, l, NULL, &l->next, &why) == 0)
        return 0;
    if (str_equal(why.reason, "ResourceNotFound") || str_equal(why.reason, "ParentNotFound"))
        return 0;
    *e = why;
    return -1;
}

/* --- containers: folders are what names have in common --- */

static void add_blob_row(const struct blob *blob, void *context)
{
    struct listing *l = context;

    add_file(l, blob->name + strlen(l->path) + 1, blob->size_bytes, blob->modified_ms);
}

static void add_prefix_row(const char *prefix, void *context)
{
    struct listing *l = context;
    const char *name = prefix + strlen(l->path) + 1;
    auto_free char *folder = xstrdup(name);

    folder[strlen(folder) - 1] = '\0'; /* the delimiter */
    add_folder(l, folder);
}

static int list_container(struct listing *l, struct err *e)
{
    auto_free char *prefix = xasprintf("%s/", l->path);
    const struct blob_listing listing = {
        .prefix = prefix,
        .delimiter = "/",
        .marker = l->after,
        .most = (size_t)l->most,
        .blob = add_blob_row,
        .prefix_found = add_prefix_row,
        .context = l,
    };

    return blobs_list(l->errand.call->api->blobs, l->volume.account, l->volume.name, &listing,
                      &l->next, e);
}

/* --- the errand --- */

static int read_key(struct listing *l, struct err *e)
{
    const struct api_config *config = &l->errand.call->api->config;
    autoptr(resource) account = NULL;
    auto_reader reader = {0};

    if (store_pool_take(config->pool, &reader, e) < 0 ||
        store_find_account(reader.db, l->volume.account, &account, e) < 0)
        return -1;
    if (!account)
        return err_set(e, ERR_NOT_FOUND, "the storage account \"%.64s\" is gone",
                       l->volume.account);
    return vault_get(config->vault, reader.db, account->id, "key1", &l->key, NULL, e);
}

static void work(struct errand *errand)
{
    struct listing *l = listing_of(errand);

    if (read_key(l, &errand->e) < 0)
        return;
    if ((l->volume.kind == VOLUME_BLOBS ? list_container(l, &errand->e)
                                        : list_share(l, &errand->e)) < 0)
        return;
    errand->e = l->each;
}

static void answer(struct errand *errand)
{
    struct listing *l = listing_of(errand);
    auto_str body = {0};

    str_addf(&body, "{\"value\":[%s]", str_text(&l->out));
    if (l->next && *l->next)
        call_add_next_link(errand->call, l->next, &body);
    str_add_char(&body, '}');
    reply_text(errand->call, 200, "application/json; charset=utf-8", str_text(&body));
}

static int read_listing(struct call *call, struct listing *l, struct err *e)
{
    const char *id = http_req_query(call->req, "outputdirectoryid");
    const char *folder = http_req_query(call->req, "directory");
    int64_t minutes = DEFAULT_MINUTES;
    struct output_folder where;

    if (!id || !*id) {
        err_set(e, ERR_INVALID,
                "outputdirectoryid: it is required; give \"stdouterr\" or the id of one of the "
                "job's outputDirectories");
        err_reason(e, "InvalidParameterValue");
        return err_target(e, "outputdirectoryid");
    }
    if (call_read_number(call, "linkexpiryinminutes", LEAST_MINUTES, MOST_MINUTES, &minutes,
                         e) < 0 ||
        call_read_number(call, "maxresults", 1, MOST_FILES, &l->most, e) < 0 ||
        call_read_skip_text(call, &l->after, e) < 0 ||
        call_output_folder(call, id, folder ? folder : ".", &where, e) < 0 ||
        output_on_volume(call, &where, &l->volume, &l->path, e) < 0)
        return -1;
    clock_format_iso((clock_wall_ms() / 1000 + minutes * 60) * 1000, l->expiry);
    l->base_url = l->volume.kind == VOLUME_BLOBS ? call->api->blob_url : call->api->file_url;
    return 0;
}

void handle_output_files(struct call *call)
{
    struct listing *l = xcalloc(1, sizeof(*l));

    l->errand = (struct errand){.call = call, .work = work, .answer = answer, .done = done};
    l->after = "";
    l->most = MOST_FILES;
    if (read_listing(call, l, &l->errand.e) < 0)
        errand_answer(&l->errand);
    else
        errand_start(&l->errand);
}
