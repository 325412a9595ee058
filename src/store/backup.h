/* backup.h - the whole yard in one file, and back.
 *
 * A backup is a yard's database with one table more, backup_file (name, content, mode), that
 * carries the files a database alone is nothing without: the sealing key, the token, the
 * certificates.
 *
 * To restore, the backup is put into the data folder as STORE_RESTORE_FILE; the next start
 * takes it over. Every step of that can be repeated, so a crash in between does no harm.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_BACKUP_H
#define STORE_BACKUP_H

#include "base/err.h"

struct event;

#define STORE_RESTORE_FILE "restore.waiting"

/* Copy the database, while it is in use, and the named files (relative to home; missing ones
 * are left out) into a new file, mode 0600. */
int store_backup(const char *db_path,
                 const char *home,
                 const char *const *files,
                 const char *to,
                 struct err *e);
/* Is this a backup that this program can take over? */
int store_check_backup(const char *path, struct err *e);
/* Add an event to a backup: who puts it back is known to the yard that it becomes. */
int store_note_in_backup(const char *path, const struct event *event, struct err *e);
/* If a backup waits in home, take it over: its files are written, the old database is kept as
 * yard.db.before-restore, the backup becomes the database.  *ret_restored says whether there
 * was one. */
int store_take_over_restore(const char *home,
                            const char *db_path,
                            bool *ret_restored,
                            struct err *e);

#endif
