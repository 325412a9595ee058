/* home.h - the data folder: whose it is, what lies in it.
 *
 *     lock            held while a daemon lives; its text is the daemon's pid
 *     yard.db         everything that was acknowledged
 *     secret.key      seals the secrets in yard.db
 *     token           the owner's token, mode 0600
 *     tls/            the yard's own certificate authority and certificate
 *     run/yardd.json  where the running daemon can be reached
 *     yardd.conf      settings, if any
 *     log/            what "yard up" has yardd write
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_HOME_H
#define DAEMON_HOME_H

#include "base/err.h"

struct db;

struct home {
    char *folder, *db_path, *key_path, *token_path, *tls_folder, *run_path;
    int lock_fd;
};

/* What a backup carries besides the database; NULL ends. */
extern const char *const home_backup_files[];

/* Make the folder if need be and take its lock.  ERR_BUSY names the daemon that has it. */
int home_open(const char *folder, struct home *ret_home, struct err *e);
/* Give the lock back. */
void home_done(struct home *home);

/* The facts of a yard, made at its first start.  Caller frees. */
int home_facts(struct db *db, char **ret_subscription, char **ret_tenant, struct err *e);
/* Whoever can read the token file is owner: make the file if there is none, and let the tables
 * follow it. */
int home_owner(const struct home *home, struct db *db, struct err *e);

struct home_addresses {
    const char *api_url, *http_url, *blob_url, *file_url, *ca_file, *subscription_id,
        *tenant_id;
};
/* Tell clients on this machine where the yard is; taken back by home_withdraw. */
int home_announce(const struct home *home, const struct home_addresses *where, struct err *e);
void home_withdraw(const struct home *home);

#endif
