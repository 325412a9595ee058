/* norm.h - what convolutions, batch norms and pools tell each other while a plan is made.
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

/* The one op that reads t, or -1. */
int sole_reader(const struct graph *graph, int t);

/* The op that masks gradient t, made behind the relu that gave y, when nobody else reads t; -1
 * when there is none, or when it is to stay by itself. */
int relu_behind(const struct cuda_plan *p, int t, int y);

/* Gradient t is about to be made: when it is one of two that are added up for a batch norm or a
 * maximum pool that could add them itself, the SUM is marked as done. */
void join_sum(struct cuda_plan *p, int t);
/* What gradient t is the sum of, when join_sum() left that to its reader: two tensors; else t
 * itself and -1. */
void parts_of_sum(const struct cuda_plan *p, int t, int ret_parts[2]);

#endif
