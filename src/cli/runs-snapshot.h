/* runs-snapshot.h - a folder as it is now, copied into a share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RUNS_SNAPSHOT_H
#define CLI_RUNS_SNAPSHOT_H

#include "base/err.h"

#include <stdint.h>

struct call;
struct storage_account;

struct snapshot {
    const char *folder; /* here */
    const struct storage_account *account;
    const char *share, *path; /* there; made when it is missing */
};

/* Copy what the folder's ignore rules leave.  Large folders are warned of first.  Fails when a
 * single file could not be copied: half a folder is no snapshot. */
int snapshot_take(struct call *call, const struct snapshot *snapshot, struct err *e);

#endif
