/* runs-place.h - where `yard run` runs: group, workspace, experiment, storage and cluster, made
 * when they are missing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RUNS_PLACE_H
#define CLI_RUNS_PLACE_H

#include "base/err.h"

struct call;
struct storage_account;

#define RUNS_SHARE "runs"

struct runs_place {
    struct storage_account *account;
    char *cluster_id;
    char *jobs; /* path of the jobs: ".../experiments/e/jobs" */
};

/* By the options of `yard run`.  What was made is said with --verbose. */
int runs_place_make(struct call *call, long nodes, struct runs_place *ret, struct err *e);
void runs_place_done(struct runs_place *place);
#define auto_runs_place __attribute__((cleanup(runs_place_done))) struct runs_place

/* The cluster for machines of a size: "run-host".  The caller frees. */
char *runs_cluster_name(const char *size);
/* The storage account of a group: the same name each time, another in each group.  The caller
 * frees. */
char *runs_account_name(const char *subscription, const char *group);

#endif
