/* db-internal.h - what the files of db/ share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DB_DB_INTERNAL_H
#define DB_DB_INTERNAL_H

#include "db/db.h"

/* Turn the connection's last SQLite error into "could not <doing>: ...".  Returns -1. */
int db_failed(struct db *db, struct err *e, const char *doing);

/* Has this connection met an error after which nothing this process believes about the file may
 * be trusted (an I/O error, damage)?  Once broken, always broken. */
bool db_is_broken(struct db *db);

/* False too when SQLite has undone the whole transaction by itself, as it does after some
 * errors.
 */
bool db_in_transaction(struct db *db);

/* Rows changed since the connection was opened.  The same before and after: nothing was. */
int64_t db_total_changes(struct db *db);

/* Move the log into the database, unless it is short. */
int db_checkpoint_when_due(struct db *db, struct err *e);

#endif
