/* norm.h - what convolutions and batch norms tell each other while a plan is made.
 *
 * A convolution whose only use is a batch norm of this step may give the sums for its
 * statistics along: then the norm only applies them.  Whether it does is a measured choice, so
 * both ways are laid out, and the norm asks when it runs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_NORM_H
#define TRAIN_BACKEND_CUDA_NORM_H

#include "train/backend/cuda/plan.h"

/* Of a convolution whose output goes into a batch norm. */
struct conv_sums {
    struct place *sums; /* 2 pitch: of y, of its squares */
    bool is_made;       /* by the convolution; settled when choices are measured */
    /* The norm's statistics, from the sums or by a pass over y; changes no state. */
    int (*measure)(void *norm, bool has_sums, cudaStream_t stream);
    void *norm;
};
/* NULL when op n, a convolution, cannot. */
struct conv_sums *conv_sums_of(const struct cuda_plan *p, int n);

/* Counters on the card, zero, freed with the plan; NULL after an error. */
unsigned *zeroed_counters(struct cuda_plan *p, int count, struct err *e);

/* Gradient t is about to be made: when it is one of two that are added up for a batch norm
 * that could add them itself, the SUM is marked as done. */
void join_sum(struct cuda_plan *p, int t);

#endif
