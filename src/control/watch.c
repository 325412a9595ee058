/* Telling others that a job is not what it was.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "control/control-internal.h"

void control_watch_jobs(struct control *control,
                        void (*changed)(int64_t job_id, enum job_state state, void *context),
                        void *context)
{
    pthread_mutex_lock(&control->watch_lock);
    control->job_changed = changed;
    control->job_context = context;
    pthread_mutex_unlock(&control->watch_lock);
}

/* Under the lock, so that nobody is told any more once control_watch_jobs has said so. */
void control_tell_job(struct control *control, int64_t job_id, enum job_state state)
{
    pthread_mutex_lock(&control->watch_lock);
    if (control->job_changed)
        control->job_changed(job_id, state, control->job_context);
    pthread_mutex_unlock(&control->watch_lock);
}
