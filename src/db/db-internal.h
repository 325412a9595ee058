/* db-internal.h - what the files of db/ share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DB_DB_INTERNAL_H
#define DB_DB_INTERNAL_H

#include "db/db.h"

/* Turn the connection's last SQLite error into "could not <doing>: ...".  Returns -1. */
int db_failed(struct db *db, struct err *e, const char *doing);

/* Was the last error one after which nothing this process believes about the file may be
 * trusted (an I/O error, damage)? */
bool db_is_broken(struct db *db);

#endif
