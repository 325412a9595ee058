/* folder.h - the files of a run folder.
 *
 *     spec     what to run (spec.h; mode 0600: the environment has secrets)
 *     lock     held (flock) by the shim while it lives; whoever cannot get it must not start
 *     shim     "<pid> <start time in ticks> <boot id>\n" of the shim
 *     started  "<wall ms> <pid> <start time> <boot id>\n" of the command: on disk before the
 *              command is executed; a shim that finds it starts nothing and ends
 *     exit     the end (record.h), by write, fsync, rename
 *     error    one line for a person: why it could not be started, or why its end is not
 *              recorded yet
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHIM_FOLDER_H
#define SHIM_FOLDER_H

#include "base/err.h"
#include "shim/process.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct str;

/* A process, and the boot it belongs to. */
struct shim_identity {
    pid_t pid;
    uint64_t start;
    char boot_id[SHIM_BOOT_ID_BYTES];
};

/* Of a living process. */
int shim_identity_read(pid_t pid, struct shim_identity *ret_identity, struct err *e);
/* An error says nothing about the process: it could not be looked at. */
int shim_identity_check(const struct shim_identity *identity, bool *ret_lives, struct err *e);

/* Write name whole: beside it, then renamed.  Mode 0600; not synced. */
int shim_folder_put(
    int folder_fd, const char *name, const void *bytes, size_t len, struct err *e);
/* Append the whole file.  ERR_NOT_FOUND. */
int shim_folder_get(
    int folder_fd, const char *name, size_t most, struct str *out, struct err *e);
int shim_folder_has(int folder_fd, const char *name, bool *ret_has, struct err *e);
int shim_folder_open(const char *folder, int *ret_fd, struct err *e);

int shim_folder_put_shim(int folder_fd, const struct shim_identity *shim, struct err *e);
/* ERR_NOT_FOUND when there is none; ERR_INVALID when it is no such file. */
int shim_folder_get_shim(int folder_fd, struct shim_identity *ret_shim, struct err *e);

/* On disk when it returns, with the folder and the two above it; when it fails there is none.
 */
int shim_folder_put_started(int folder_fd,
                            const struct shim_identity *command,
                            int64_t wall_ms,
                            struct err *e);
int shim_folder_get_started(int folder_fd,
                            struct shim_identity *ret_command,
                            int64_t *ret_wall_ms,
                            struct err *e);

/* The line of "error"; "" when there is none. */
void shim_folder_get_error(int folder_fd, char *ret_text, size_t room);

#endif
