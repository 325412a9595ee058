/* feed.h - inputs on their way to the card.
 *
 * The host's data are copied into pinned memory, go to the card on a stream of their own while
 * the step before runs, and are moved into the input's place, which the captured graph knows,
 * in front of the step.  Two sets of both, so that a step can be handed over while another
 * runs.  An input that is not fed keeps what it had: nothing is done at all.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_FEED_H
#define TRAIN_BACKEND_CUDA_FEED_H

#include "train/backend/cuda/plan.h"

/* Places of inputs get memory, with values for measurements. */
int feed_new(struct cuda_plan *p, struct err *e);
void feed_free(struct feed *feed);
/* What step `ticket` is fed, in front of it on the compute stream. */
int feed_step(struct cuda_plan *p, const struct step *step, uint64_t ticket, struct err *e);

#endif
