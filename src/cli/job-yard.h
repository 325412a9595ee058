/* job-yard.h - the yard of somebody who stays: looked up anew for each question, since it may
 * have restarted elsewhere, and waited for while it is away.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_JOB_YARD_H
#define CLI_JOB_YARD_H

#include "base/err.h"

#include <jansson.h>

struct call;
struct place;
struct rest;

struct job_yard {
    struct place *place;
    struct rest *rest;
};
/* A connection of its own to where the yard is now.  ERR_BUSY when none runs. */
int job_yard_open(struct job_yard *yard, const struct call *call, struct err *e);
void job_yard_close(struct job_yard *yard);

/* Wait a moment before the next question. */
void job_yard_pause(void);

/* GET a path; a yard that is away is waited for, STREAM_PATIENCE_MS long.  The caller owns
 * *ret_result. */
int job_yard_get(const struct call *call, const char *path, json_t **ret_result, struct err *e);

#endif
