/* job-find.h - the job that a person means: a bare name, experiment/name, or an id.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_JOB_FIND_H
#define CLI_JOB_FIND_H

#include "base/err.h"
#include "cli/command.h"

#include <jansson.h>

struct call;

extern const struct option_row job_positional; /* JOB */

/* Find it; of several with one name the newest, which is said.  *ret_job is its wire form, the
 * caller's. */
int job_find(struct call *call, const char *text, json_t **ret_job, struct err *e);

/* Members of a job's wire form; "" when they are not there. */
const char *job_id(const json_t *job);
const char *job_name(const json_t *job);
const char *job_state(const json_t *job); /* executionState */
const char *job_property(const json_t *job, const char *name);
/* "experiment/name" of an id, for people; the caller frees. */
char *job_short_name(const char *id);

bool job_has_ended(const json_t *job);
/* The exit status for its end: 0, its own exit code, or 255 when it has none. */
int job_exit_status(const json_t *job);
/* How long it has run, or -1 when it has not begun. */
long long job_run_seconds(const json_t *job);
/* "12 s", "3 min 4 s", "2 h 5 min". */
const char *job_format_span(long long seconds, char buf[32]);

#endif
