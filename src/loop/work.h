/* work.h - a pool of threads for work that waits: for the disk, for another thread.
 *
 * A loop's callbacks must not block; they hand such work in here, and the work tells its
 * outcome by loop_post or the like.
 *
 * Threads: any may submit, work itself too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LOOP_WORK_H
#define LOOP_WORK_H

#include "base/mem.h"

struct work_pool; /* opaque */

/* Aborts when a thread cannot be started: nothing runs yet. */
struct work_pool *work_pool_new(int threads);
/* Run fn(arg) on one of the threads; started in order of submission. */
void work_submit(struct work_pool *pool, void (*fn)(void *arg), void *arg);
/* Finish what was submitted, also by work that is finishing, then stop.  NULL is fine. */
void work_pool_free(struct work_pool *pool);
DEFINE_AUTOPTR(work_pool)

#endif
