/* storage-account.h - an account to speak to: where it is and what lets us in.
 *
 * Verbs find it as az does: by options, then by the environment
 * (AZURE_STORAGE_CONNECTION_STRING, ..._ACCOUNT, ..._KEY, ..._SAS_TOKEN).  With no more than a
 * name, or nothing when there is only one account, it is the yard's own: its addresses and its
 * key are asked for.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_STORAGE_ACCOUNT_H
#define CLI_STORAGE_ACCOUNT_H

#include "base/err.h"
#include "base/mem.h"
#include "cli/storage-address.h"

#include <jansson.h>

struct args;
struct call;

enum storage_auth {
    STORAGE_AUTH_NONE,
    STORAGE_AUTH_KEY,   /* every request is signed */
    STORAGE_AUTH_SAS,   /* every URL carries it */
    STORAGE_AUTH_TOKEN, /* the yard's own token, for the yard's own addresses */
};

/* Nothing in it changes once it is made: threads share it. */
struct storage_account {
    char *name;
    /* With the account in it, without slash; NULL = not known.  Index: enum storage_service. */
    char *endpoints[2];
    enum storage_auth auth;
    char *secret;  /* key in base64, SAS without '?', or token */
    char *ca_file; /* NULL = the system's */
    bool is_ours;  /* of the yard */
};

void storage_account_free(struct storage_account *account);
DEFINE_AUTOPTR(storage_account)

/* The account of a verb with the options of storage-options.h. */
int storage_account_of_args(struct call *call,
                            struct storage_account **ret_account,
                            struct err *e);

/* The account that a URL (or account/container) names.  The address learns its service and, for
 * an account of the yard, the yard's own endpoint.  Without a SAS, an environment that names
 * the account gives the key; else it must be the yard's. */
int storage_account_of_address(struct call *call,
                               struct address *address,
                               struct storage_account **ret_account,
                               struct err *e);

/* Read a connection string. */
int storage_account_of_text(const char *text,
                            struct storage_account **ret_account,
                            struct err *e);

/* The yard's accounts as it tells them: an array. */
int storage_account_list(struct call *call, json_t **ret_accounts, struct err *e);

/* "DefaultEndpointsProtocol=...;AccountName=...;...": the caller frees. */
char *storage_account_text(const struct storage_account *account);

#endif
