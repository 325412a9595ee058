/* syncs.h - one fsync of a folder for all who wait for it.
 *
 * Many puts into one folder each need it on disk after their rename.  An fsync that begins
 * after the rename serves: whoever comes while one runs waits for the next, and that one serves
 * all who came meanwhile.
 *
 * Threads: any.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_SYNCS_H
#define STORAGE_SYNCS_H

#include "base/err.h"

struct syncs; /* opaque */

struct syncs *syncs_new(void);
void syncs_free(struct syncs *syncs);

/* What was done in the folder before the call is on disk when it returns. */
int syncs_wait(struct syncs *syncs, int fd, struct err *e);

#endif
