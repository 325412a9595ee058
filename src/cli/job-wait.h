/* job-wait.h - waiting for the end of a job, and telling it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_JOB_WAIT_H
#define CLI_JOB_WAIT_H

#include "base/err.h"

#include <jansson.h>

struct call;

/* GET the job at path every so many seconds, say how it changes, and set the exit status to
 * that of its end.  A yard that restarts meanwhile is waited for. */
int job_wait(struct call *call, const char *path, long interval_s, struct err *e);

/* The job as it has ended, asked for a few times a second; the caller owns it. */
int job_wait_end(const struct call *call, const char *job_id, json_t **ret_job, struct err *e);

/* Say on stderr what went wrong: its errors, a line each. */
void job_say_errors(struct call *call, const json_t *job);

#endif
