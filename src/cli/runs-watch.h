/* runs-watch.h - a job of `yard run`, watched to its end.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RUNS_WATCH_H
#define CLI_RUNS_WATCH_H

#include "base/err.h"

#include <jansson.h>

struct call;
struct storage_account;

/* Show stdout.txt and stderr.txt as they are written; at the end say in one line how it ended
 * and where its outputs are, fetch them into the folder out (NULL = do not), and take the job's
 * exit code for ours.  Ctrl-C leaves the job running. */
int runs_watch(struct call *call,
               const json_t *job,
               const struct storage_account *account,
               const char *out,
               struct err *e);

#endif
