/* batchai-storage.h - groups, storage accounts, shares and containers that are made when they
 * are missing: for --use-auto-storage and `yard run`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BATCHAI_STORAGE_H
#define CLI_BATCHAI_STORAGE_H

#include "base/err.h"

struct call;
struct storage_account;

/* Make sure of the group; one that is there stays as it is. */
int batchai_need_group(struct call *call,
                       const char *group,
                       const char *location,
                       struct err *e);
int batchai_need_account(struct call *call,
                         const char *group,
                         const char *name,
                         const char *location,
                         struct err *e);

/* The account of the yard that is called so, with its key where we may see it. */
int batchai_open_account(struct call *call,
                         const char *name,
                         struct storage_account **ret_account,
                         struct err *e);

int batchai_need_share(struct call *call,
                       const struct storage_account *account,
                       const char *share,
                       struct err *e);
int batchai_need_container(struct call *call,
                           const struct storage_account *account,
                           const char *container,
                           struct err *e);

/* What az calls auto storage: the account of the group batchaiautostorage in this location,
 * made when there is none, with its share and its container. */
#define BATCHAI_AUTO_SHARE     "batchaishare"
#define BATCHAI_AUTO_CONTAINER "batchaicontainer"
int batchai_auto_storage(struct call *call,
                         const char *location,
                         struct storage_account **ret_account,
                         struct err *e);

#endif
