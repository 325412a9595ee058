/* storage-verb.h - what the verbs of the storage nouns share: options, connection, results.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_STORAGE_VERB_H
#define CLI_STORAGE_VERB_H

#include "base/err.h"
#include "cli/command.h"
#include "cli/storage-address.h"

#include <jansson.h>

struct call;
struct http_answer;
struct listing_entry;
struct str;
struct storage_account;
struct transfer_options;
struct wire;

/* The options that name an account and what lets us in. */
extern const struct option_row storage_account_name, storage_account_key,
    storage_connection_string, storage_sas_token, storage_auth_mode, storage_endpoint;
#define STORAGE_ACCOUNT_OPTIONS                                                                \
    &storage_account_name, &storage_account_key, &storage_connection_string,                   \
        &storage_sas_token, &storage_auth_mode, &storage_endpoint

extern const struct option_row storage_container, storage_container_name, storage_share,
    storage_share_name, storage_metadata, storage_fail_on_exist, storage_fail_not_exist,
    storage_prefix, storage_num_results, storage_no_progress, storage_pattern, storage_dry_run,
    storage_destination_path, storage_max_connections, storage_batch_source,
    storage_batch_destination, storage_batch_folder_source, storage_batch_folder_destination;

/* Of generate-sas. */
extern const struct option_row storage_sas_permissions, storage_sas_expiry, storage_sas_start,
    storage_sas_ip, storage_sas_https_only, storage_sas_policy, storage_sas_full_uri,
    storage_sas_cache_control, storage_sas_disposition, storage_sas_encoding,
    storage_sas_language, storage_sas_type;
#define STORAGE_SAS_OPTIONS                                                                    \
    &storage_sas_permissions, &storage_sas_expiry, &storage_sas_start, &storage_sas_ip,        \
        &storage_sas_https_only, &storage_sas_policy
#define STORAGE_SAS_HEADER_OPTIONS                                                             \
    &storage_sas_cache_control, &storage_sas_disposition, &storage_sas_encoding,               \
        &storage_sas_language, &storage_sas_type

/* Trace lines for --debug, or NULL. */
void (*storage_trace(const struct call *call))(const char *line);

/* A connection to the account of the options. */
struct storage_link {
    struct storage_account *account;
    struct wire *wire;
};
int storage_link_open(struct call *call,
                      enum storage_service service,
                      struct storage_link *ret_link,
                      struct err *e);
void storage_link_close(struct storage_link *link);
#define auto_link __attribute__((cleanup(storage_link_close))) struct storage_link

/* PUT that says whether it made something: {"created": true}; a 409 of the given code is false,
 * or a failure with --fail-on-exist. */
int storage_create(struct call *call,
                   struct wire *wire,
                   const char *container,
                   const char *path,
                   const char *query,
                   const char *const *headers,
                   json_t **ret_result,
                   struct err *e);
/* HEAD: {"exists": true}. */
int storage_exists(struct wire *wire,
                   const char *container,
                   const char *path,
                   const char *query,
                   json_t **ret_result,
                   struct err *e);
/* DELETE: {"deleted": true}; of something that is not there false, unless fail_missing. */
int storage_delete(struct wire *wire,
                   const char *container,
                   const char *path,
                   const char *query,
                   bool fail_missing,
                   json_t **ret_result,
                   struct err *e);

/* A list as az prints it. */
struct storage_listing {
    const char *container, *path;
    const char *query;  /* without prefix */
    const char *prefix; /* of the names; NULL = none */
    const char *only;   /* of this kind, see storage-listing.h; NULL = all */
    size_t most;        /* 0 = all */
    bool are_blobs;     /* each is told its container */
};
int storage_list(struct wire *wire,
                 const struct storage_listing *listing,
                 json_t **ret_result,
                 struct err *e);

/* --num-results: "*" and the default of az mean their number. */
int storage_most_results(struct call *call, size_t *ret_most, struct err *e);

/* --max-connections, 16 when it is not given. */
int storage_parallel(struct call *call, int *ret_parallel, struct err *e);

/* The SAS that the options describe, or with --full-uri the URL that carries it.  kind is sr:
 * c b s f. */
int storage_make_sas(struct call *call,
                     enum storage_service service,
                     const char *kind,
                     const char *container,
                     const char *path,
                     json_t **ret_result,
                     struct err *e);

#endif
