/* output-place.h - where the files of a job lie.
 *
 * Calling sequence: call_output_folder finds the job of the path, output_on_volume says where
 * the folder is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef API_OUTPUT_PLACE_H
#define API_OUTPUT_PLACE_H

#include "base/err.h"
#include "core/batchai.h"
#include "core/yard.h"

#include <jansson.h>
#include <stdint.h>

struct call;

/* What is known of a job; borrowed from the call. */
struct output_job {
    int64_t id, attempt_id; /* rows; attempt 0 = none yet */
    enum job_state state;
    const char *segment;               /* jobOutputDirectoryPathSegment */
    const json_t *kept, *cluster_kept; /* of a cluster that is gone: NULL */
};

/* A folder within one of its output directories. */
struct output_folder {
    struct output_job job;
    const char *id;     /* "stdouterr", ... */
    const char *within; /* "" = the directory itself */
};

/* The job of the path, and the folder as a client names it ("." = the directory itself). */
int call_output_folder(struct call *call,
                       const char *id,
                       const char *folder,
                       struct output_folder *ret_folder,
                       struct err *e);

/* The volume and the path in it.  Fails as batchai_output_place does. */
int output_on_volume(struct call *call,
                     const struct output_folder *folder,
                     struct volume *ret_volume,
                     const char **ret_path,
                     struct err *e);

#endif
