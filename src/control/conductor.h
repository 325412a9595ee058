/* conductor.h - moves clusters and jobs on: feeds the mind (core/yard.h), records what changed,
 * tells the engine.
 *
 * Everything happens on control's thread.  A client's change is recorded by its own
 * transaction; afterwards conductor_touch makes the conductor read the row and tell the mind.
 * What the mind then changes is written in one transaction at a time (never two under way, so
 * that rows are never overwritten by older ones; what happens meanwhile gathers for the next),
 * and only after its commit is the engine told.
 *
 * After a start the same reading builds the mind again, and the mind says again what is under
 * way.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTROL_CONDUCTOR_H
#define CONTROL_CONDUCTOR_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct control;
struct conductor; /* opaque */
struct engine;
struct yard;

/* Before control's thread runs. */
int conductor_new(struct control *control, struct conductor **ret_conductor, struct err *e);
/* After control's thread has ended and the writer has. */
void conductor_free(struct conductor *conductor);

/* Read everything and go on with it.  On control's thread, once. */
void conductor_start(struct conductor *conductor);
/* On control's thread, before it ends: the engine is let go of. */
void conductor_stop(struct conductor *conductor);

/* The row of a cluster or job was changed by a client.  From any thread. */
void conductor_touch(struct conductor *conductor, int64_t resource_id);

/* Is nothing of the resource or below it alive any more?  If not, its clusters and jobs are
 * told to go, and `again` is called when it may be worth asking again.  On control's thread. */
bool conductor_is_clear(struct conductor *conductor,
                        int64_t resource_id,
                        const char *arm_id,
                        void (*again)(void *arg),
                        void *arg);
/* Has the job ended?  Likewise. */
bool conductor_job_has_ended(struct conductor *conductor,
                             int64_t job_id,
                             void (*again)(void *arg),
                             void *arg);

/* Let the trees of file servers go whose rows are gone.  On control's thread. */
void conductor_sweep_file_servers(struct conductor *conductor);

const struct yard *conductor_yard(const struct conductor *conductor);
struct engine *conductor_engine(const struct conductor *conductor);

#endif
