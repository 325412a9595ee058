/* batchai-spec.h - the bodies of clusters and jobs: a configuration file, what the options add
 * to it, and the accounts and keys that az fills in.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BATCHAI_SPEC_H
#define CLI_BATCHAI_SPEC_H

#include "base/err.h"

#include <jansson.h>

struct call;

/* The file of --config-file as an object with "properties"; one with empty properties when the
 * option was not given.  The caller owns it. */
int batchai_read_config(struct call *call, json_t **ret_body, struct err *e);

/* What is to be mounted: mountVolumes of parent (the properties of a job, or nodeSetup of a
 * cluster, which is made when something is mounted).  Placeholders are replaced, missing
 * account names taken from the URL, missing keys asked for; then come the mounts of the
 * options:
 * --afs-name, --bfs-name, --nfs.
 *
 * Placeholders stand for --storage-account-name and --storage-account-key, else for
 * AZURE_BATCHAI_STORAGE_ACCOUNT and AZURE_BATCHAI_STORAGE_KEY, else for storage_account and
 * storage_key of the section [batchai]. */
int batchai_set_volumes(struct call *call, json_t *parent, struct err *e);

/* The share and the container of auto storage, at autoafs and autobfs. */
int batchai_add_auto_storage(struct call *call,
                             json_t *parent,
                             const char *location,
                             struct err *e);

/* "acct" of "https://acct.file.core.windows.net/share" or "http://127.0.0.1:10004/acct/share";
 * NULL when there is none.  The caller frees. */
char *batchai_account_of_url(const char *url);

/* A copy of text with every occurrence replaced.  The caller frees. */
char *batchai_replace(const char *text, const char *what, const char *with);

#endif
