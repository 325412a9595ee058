/* share.h - memory that several processes of one host see.
 *
 * A named segment is where ranks meet first (POSIX shared memory; its name is handed round and
 * goes as soon as all have mapped it).  All else is anonymous: a rank makes a file without a
 * name and the others open it through /proc/<pid>/fd, so that /dev/shm's size (64 MB in many
 * containers) is no limit and nothing stays behind whatever dies.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_SHARE_H
#define TRAIN_COMM_SHARE_H

#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>

struct share {
    void *at; /* NULL = none; zeroed when it was made */
    size_t bytes;
    int fd; /* of the maker, for share_open() elsewhere; else -1 */
};

enum {
    SHARE_NAME_BYTES = 64,
};

/* A new named segment: the name is chosen here. */
int share_create_named(size_t bytes, char ret_name[SHARE_NAME_BYTES], struct err *e);
int share_open_named(const char *name, struct share *ret_share, struct err *e);
void share_unlink(const char *name); /* a missing one is fine */

/* Anonymous; all pages are there when it returns if is_ready, so that no step pays for them. */
int share_create(size_t bytes, bool is_ready, struct share *ret_share, struct err *e);
int share_open(
    pid_t pid, int fd, size_t bytes, bool is_ready, struct share *ret_share, struct err *e);

void share_done(struct share *share);

#endif
