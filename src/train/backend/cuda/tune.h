/* tune.h - choices among kernels that do the same: measured once, kept on disk.
 *
 * The file is DIR/cuda-<card>-<libraries>.tune: a line for each key, "choice nanoseconds key".
 * A key says all that the choice depends on (kind, shapes, strides, types, the libraries'
 * versions are the file's), as text without a newline.  Lines that cannot be read are passed
 * over; the file is written anew beside the old one and renamed when a plan that measured
 * something is made.  Without options.cache_dir all is measured for each plan.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_TUNE_H
#define TRAIN_BACKEND_CUDA_TUNE_H

#include "base/err.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

struct cuda_plan;
struct tune;

/* Enqueue candidate i; -1 when it cannot do it, which leaves it out. */
typedef int tune_run_fn(void *context, int i, cudaStream_t stream);

/* `dir` may be NULL: nothing is read or written.  `name` is the file's. */
struct tune *tune_open(const char *dir, const char *name);
/* Writes what is new. */
int tune_save(struct tune *tune, struct err *e);
void tune_free(struct tune *tune);

/* A choice of `count` candidates for `key`: remembered, or measured by running each between
 * events after a warm-up; ties go to the first.  Candidates are measured in turns and each
 * counts by its best time.  With one candidate it is that one, unmeasured; where steps are to
 * be repeatable it is the first that runs, since the next measurement may find another, with
 * other bits.  ERR_METHOD when none runs.  Only from a tune_fn (plan.h). */
int tune_choose(struct cuda_plan *p,
                const char *key,
                int count,
                tune_run_fn *run,
                void *context,
                int *ret_choice,
                struct err *e);

/* For tests: what is remembered, and a measured choice put in. */
int tune_find(const struct tune *tune, const char *key, int count, int *ret_choice);
void tune_put(struct tune *tune, const char *key, int choice, int64_t nanoseconds);

#endif
