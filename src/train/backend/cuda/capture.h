/* capture.h - steps: the actions as CUDA graphs by STEP_ flags, tickets, times of ops.
 *
 * plan_run() writes the facts of the step, launches one graph and returns; a copy of the values
 * and an event follow it on the stream.  Facts, values and events are kept in a ring, so that
 * PLAN_MOST_AHEAD steps can be under way.  When ops are timed the same actions are enqueued one
 * by one between events.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_CAPTURE_H
#define TRAIN_BACKEND_CUDA_CAPTURE_H

#include "train/backend/cuda/plan.h"

/* Run every action once, waiting for each, so that libraries load what they need and an error
 * names its op.  Params and states are not what they were after it. */
int capture_rehearse(struct cuda_plan *p, struct err *e);
/* The graphs that steps of this plan will want. */
int capture_new(struct cuda_plan *p, struct err *e);
void capture_free(struct capture *capture);

int cuda_plan_run(struct plan *plan,
                  const struct step *step,
                  uint64_t *ret_ticket,
                  struct err *e);
int cuda_plan_wait(struct plan *plan,
                   uint64_t ticket,
                   struct step_values *ret_values,
                   struct err *e);
int cuda_plan_time(struct plan *plan, bool is_on, struct err *e);
const struct plan_span *cuda_plan_spans(struct plan *plan, int *ret_count);

#endif
