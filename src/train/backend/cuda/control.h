/* control.h - the actions before the first and behind the last op of a pass.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_CONTROL_H
#define TRAIN_BACKEND_CUDA_CONTROL_H

struct cuda_plan;

/* Scale, norm and clip as they are when a pass begins. */
void plan_beginning(struct cuda_plan *p);
/* The values of the step, put together where one copy takes them to the host. */
void plan_ending(struct cuda_plan *p);

#endif
