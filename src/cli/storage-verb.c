/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage-verb.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/storage-account.h"
#include "cli/storage-listing.h"
#include "cli/storage-shape.h"
#include "cli/storage-wire.h"
#include "cli/term.h"
#include "core/exchange.h"
#include "core/sas.h"

#include <string.h>

const struct option_row storage_account_name = {
    .names = "--account-name",
    .help = "Name of the storage account; not needed when the yard has only one. Environment: "
            "AZURE_STORAGE_ACCOUNT.",
};
const struct option_row storage_account_key = {
    .names = "--account-key",
    .help = "Its key; asked of the yard when not given. Environment: AZURE_STORAGE_KEY.",
};
const struct option_row storage_connection_string = {
    .names = "--connection-string",
    .help = "Account, key and addresses in one. Environment: AZURE_STORAGE_CONNECTION_STRING.",
};
const struct option_row storage_sas_token = {
    .names = "--sas-token",
    .help = "A shared access signature instead of the key. Environment: "
            "AZURE_STORAGE_SAS_TOKEN.",
};
const struct option_row storage_auth_mode = {
    .names = "--auth-mode",
    .help = "Come in with the account's key, or with your own token.",
    .choices = "key login",
};
const struct option_row storage_endpoint = {
    .names = "--blob-endpoint --file-endpoint --service-endpoint",
    .help = "Address of the service, when it is not the yard's.",
};
const struct option_row storage_container = {
    .names = "--name -n",
    .help = "Name of the container: 3 to 63 small letters, digits and single hyphens.",
    .required = true,
};
const struct option_row storage_container_name = {
    .names = "--container-name -c",
    .help = "Name of the container.",
    .required = true,
};
const struct option_row storage_share = {
    .names = "--name -n",
    .help = "Name of the share: 3 to 63 small letters, digits and single hyphens.",
    .required = true,
};
const struct option_row storage_share_name = {
    .names = "--share-name -s",
    .help = "Name of the share.",
    .required = true,
};
const struct option_row storage_metadata = {
    .names = "--metadata",
    .help = "Metadata as key=value, separated by spaces.",
    .kind = OPTION_LIST,
};
const struct option_row storage_fail_on_exist = {
    .names = "--fail-on-exist",
    .help = "Fail when it is there already.",
    .kind = OPTION_FLAG,
};
const struct option_row storage_fail_not_exist = {
    .names = "--fail-not-exist",
    .help = "Fail when it is not there.",
    .kind = OPTION_FLAG,
};
const struct option_row storage_prefix = {
    .names = "--prefix",
    .help = "Only names that begin with this.",
};
const struct option_row storage_num_results = {
    .names = "--num-results",
    .help = "At most so many; \"*\" for all.",
    .default_text = "5000",
};
const struct option_row storage_no_progress = {
    .names = "--no-progress",
    .help = "Do not show how far it is.",
    .kind = OPTION_FLAG,
};

const struct option_row storage_pattern = {
    .names = "--pattern",
    .help = "Only what fits: *, ?, [abc] and [!abc], over the whole path.",
};
const struct option_row storage_dry_run = {
    .names = "--dryrun --dry-run",
    .help = "Say what would be done, and do nothing.",
    .kind = OPTION_FLAG,
};
const struct option_row storage_destination_path = {
    .names = "--destination-path",
    .help = "Folder there that everything goes into.",
};
const struct option_row storage_max_connections = {
    .names = "--max-connections",
    .help = "How many go at once.",
    .default_text = "16",
};
const struct option_row storage_batch_source = {
    .names = "--source -s",
    .help = "The folder to send.",
    .required = true,
};
const struct option_row storage_batch_destination = {
    .names = "--destination -d",
    .help = "Container or share that it goes to: its name, or its URL.",
    .required = true,
};
const struct option_row storage_batch_folder_source = {
    .names = "--source -s",
    .help = "Container or share, or a folder in it: its name, or its URL.",
    .required = true,
};
const struct option_row storage_batch_folder_destination = {
    .names = "--destination -d",
    .help = "The folder to put everything into.",
    .required = true,
};

int storage_parallel(struct call *call, int *ret_parallel, struct err *e)
{
    const char *text = args_get(call->args, "max-connections");
    char *end;
    long count = strtol(text, &end, 10);

    if (*end || count < 1 || count > 256)
        return args_fail(e, "--max-connections",
                         "--max-connections: \"%.64s\" is not a number from 1 to 256", text);
    *ret_parallel = (int)count;
    return 0;
}

void (*storage_trace(const struct call *call))(const char *line)
{
    return args_flag(call->args, "debug") ? term_debug : NULL;
}

int storage_link_open(struct call *call,
                      enum storage_service service,
                      struct storage_link *ret_link,
                      struct err *e)
{
    auto_link link = {0};
    struct wire_config config = {
        .service = service,
        .patience_ms = WIRE_PATIENCE_MS,
        .trace = storage_trace(call),
    };

    if (storage_account_of_args(call, &link.account, e) < 0)
        return -1;
    config.account = link.account;
    if (wire_new(&config, &link.wire, e) < 0)
        return -1;
    ret_link->account = take_ptr(&link.account);
    ret_link->wire = take_ptr(&link.wire);
    return 0;
}

void storage_link_close(struct storage_link *link)
{
    wire_free(link->wire);
    storage_account_free(link->account);
}

int storage_create(struct call *call,
                   struct wire *wire,
                   const char *container,
                   const char *path,
                   const char *query,
                   const char *const *headers,
                   json_t **ret_result,
                   struct err *e)
{
    struct wire_request request = {
        .method = "PUT",
        .container = container,
        .path = path,
        .query = query,
        .headers = headers,
    };
    bool is_made = wire_call(wire, &request, NULL, e) == 0;

    if (!is_made &&
        (!str_ends(wire_code(wire), "AlreadyExists") || args_flag(call->args, "fail-on-exist")))
        return -1;
    *ret_result = json_pack("{s:b}", "created", is_made);
    return 0;
}

int storage_exists(struct wire *wire,
                   const char *container,
                   const char *path,
                   const char *query,
                   json_t **ret_result,
                   struct err *e)
{
    struct wire_request request = {
        .method = "HEAD",
        .container = container,
        .path = path,
        .query = query,
    };
    bool is_there = wire_call(wire, &request, NULL, e) == 0;

    if (!is_there && !wire_is_missing(wire))
        return -1;
    *ret_result = json_pack("{s:b}", "exists", is_there);
    return 0;
}

int storage_delete(struct wire *wire,
                   const char *container,
                   const char *path,
                   const char *query,
                   bool fail_missing,
                   json_t **ret_result,
                   struct err *e)
{
    struct wire_request request = {
        .method = "DELETE",
        .container = container,
        .path = path,
        .query = query,
    };
    bool is_gone = wire_call(wire, &request, NULL, e) == 0;

    if (!is_gone && (fail_missing || !wire_is_missing(wire)))
        return -1;
    if (ret_result)
        *ret_result = json_pack("{s:b}", "deleted", is_gone);
    return 0;
}

struct found {
    const struct storage_listing *listing;
    json_t *items;
};

static int see_entry(void *context, const struct listing_entry *entry, struct err *e)
{
    struct found *found = context;
    const struct storage_listing *listing = found->listing;

    (void)e;
    if (listing->only && !str_equal(listing->only, listing_kind(entry)))
        return 0;
    json_array_append_new(
        found->items,
        storage_shape_entry(entry, listing->are_blobs ? listing->container : NULL));
    return listing->most && json_array_size(found->items) >= listing->most;
}

int storage_list(struct wire *wire,
                 const struct storage_listing *listing,
                 json_t **ret_result,
                 struct err *e)
{
    auto_json json_t *items = json_array();
    struct found found = {.listing = listing, .items = items};
    auto_str query = {0};

    str_add(&query, listing->query);
    if (listing->prefix) {
        str_add(&query, "&prefix=");
        text_percent(&query, listing->prefix);
    }
    /* Not more than is wanted; a page holds at most 5000. */
    if (listing->most && listing->most < 5000)
        str_addf(&query, "&maxresults=%zu", listing->most);
    if (listing_walk(wire, listing->container, listing->path, str_text(&query), see_entry,
                     &found, e) < 0)
        return -1;
    *ret_result = json_incref(items);
    return 0;
}

int storage_most_results(struct call *call, size_t *ret_most, struct err *e)
{
    const char *text = args_get(call->args, "num-results");
    char *end;

    if (str_equal(text, "*")) {
        *ret_most = 0;
        return 0;
    }
    *ret_most = strtoul(text, &end, 10);
    if (*end || !*ret_most || text[0] == '-')
        return args_fail(e, "--num-results", "--num-results: \"%.64s\" is not a number", text);
    return 0;
}

/* --- shared access signatures --- */

const struct option_row storage_sas_permissions = {
    .names = "--permissions",
    .help = "What it allows: letters of (r)ead (a)dd (c)reate (w)rite (d)elete (l)ist.",
};
const struct option_row storage_sas_expiry = {
    .names = "--expiry",
    .help = "When it ends, UTC: 2030-01-31T12:00Z.",
};
const struct option_row storage_sas_start = {
    .names = "--start",
    .help = "When it begins to be valid, UTC.",
};
const struct option_row storage_sas_ip = {
    .names = "--ip",
    .help = "Address or range of addresses that may use it.",
};
const struct option_row storage_sas_https_only = {
    .names = "--https-only",
    .help = "Valid over https only.",
    .kind = OPTION_FLAG,
};
const struct option_row storage_sas_policy = {
    .names = "--policy-name",
    .help = "A stored access policy that says the rest.",
};
const struct option_row storage_sas_full_uri = {
    .names = "--full-uri",
    .help = "Print the whole URL.",
    .kind = OPTION_FLAG,
};
const struct option_row storage_sas_cache_control = {
    .names = "--cache-control",
    .help = "Cache-Control of the answers.",
};
const struct option_row storage_sas_disposition = {
    .names = "--content-disposition",
    .help = "Content-Disposition of the answers.",
};
const struct option_row storage_sas_encoding = {
    .names = "--content-encoding",
    .help = "Content-Encoding of the answers.",
};
const struct option_row storage_sas_language = {
    .names = "--content-language",
    .help = "Content-Language of the answers.",
};
const struct option_row storage_sas_type = {
    .names = "--content-type",
    .help = "Content-Type of the answers.",
};

static int check_time(const struct args *args, const char *key, struct err *e)
{
    const char *text = args_get(args, key);
    int64_t ignored;

    if (!text || clock_parse_iso(text, &ignored, NULL) == 0)
        return 0;
    return args_fail(e, key, "--%s: \"%.64s\" is not a time; write it like 2030-01-31T12:00Z",
                     key, text);
}

/* Fill in what the options say.  Those of the answers' headers are not everywhere. */
static int read_sas(struct call *call, bool has_headers, struct sas_service *sas, struct err *e)
{
    const struct args *args = call->args;

    sas->permissions = args_get(args, "permissions");
    sas->expiry = args_get(args, "expiry");
    sas->start = args_get(args, "start");
    sas->ip = args_get(args, "ip");
    sas->identifier = args_get(args, "policy-name");
    sas->protocol = args_flag(args, "https-only") ? "https" : NULL;
    sas->version = EXCHANGE_VERSION;
    if (!sas->identifier && (!sas->permissions || !sas->expiry))
        return args_fail(e, NULL,
                         "take --permissions and --expiry, or --policy-name with both in it");
    if (check_time(args, "expiry", e) < 0 || check_time(args, "start", e) < 0)
        return -1;
    if (has_headers) {
        sas->cache_control = args_get(args, "cache-control");
        sas->disposition = args_get(args, "content-disposition");
        sas->encoding = args_get(args, "content-encoding");
        sas->language = args_get(args, "content-language");
        sas->type = args_get(args, "content-type");
    }
    return 0;
}

int storage_make_sas(struct call *call,
                     enum storage_service service,
                     const char *kind,
                     const char *container,
                     const char *path,
                     json_t **ret_result,
                     struct err *e)
{
    auto_link link = {0};
    auto_free char *resource = NULL, *url = NULL;
    bool is_object = str_equal(kind, "b") || str_equal(kind, "f");
    struct sas_service sas = {.kind = kind};
    auto_str token = {0};

    if (read_sas(call, is_object, &sas, e) < 0 ||
        storage_link_open(call, service, &link, e) < 0)
        return -1;
    if (link.account->auth != STORAGE_AUTH_KEY)
        return err_set(e, ERR_INVALID,
                       "a shared access signature is made with the account's key");
    resource = xasprintf("/%s/%s/%s%s%s", storage_service_name(service), link.account->name,
                         container, path ? "/" : "", path ? path : "");
    sas.resource = resource;
    if (sas_service_token(&sas, link.account->secret, &token, e) < 0)
        return -1;
    if (is_object && args_flag(call->args, "full-uri")) {
        url = wire_url(link.wire, container, path);
        *ret_result = json_sprintf("%s?%s", url, str_text(&token));
        return 0;
    }
    *ret_result = json_string(str_text(&token));
    return 0;
}
