/* runs-job.h - the job that `yard run` submits.
 *
 * Its working folder is the snapshot, which lies in the share that holds its logs and outputs,
 * too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RUNS_JOB_H
#define CLI_RUNS_JOB_H

#include "base/err.h"

#include <jansson.h>
#include <stddef.h>

struct runs_place;

struct runs_job {
    char *name;
    char *folder;             /* of the snapshot, within the share: set by runs_job_check */
    const char *const *words; /* of the command */
    size_t word_count;
    const char *const *env; /* "NAME=value" */
    size_t env_count;
    const char *image; /* NULL = none */
    long nodes, procs;
};
void runs_job_done(struct runs_job *job);
#define auto_runs_job __attribute__((cleanup(runs_job_done))) struct runs_job

/* A name for a job that runs this: "train-3fa2c1".  The caller frees. */
char *runs_job_name(const char *program);

/* Are the name and the variables right?  Also gives it the name of its snapshot. */
int runs_job_check(struct runs_job *job, struct err *e);

/* The body of its PUT; the caller owns it. */
json_t *runs_job_body(const struct runs_job *job, const struct runs_place *place);

#endif
