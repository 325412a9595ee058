/* make.h - how a plan comes about: ops in order, memory, choices, graphs; what core's files
 * share beside plan.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_MAKE_H
#define TRAIN_BACKEND_CUDA_MAKE_H

#include "train/backend/cuda/each-kernels.h"
#include "train/backend/cuda/plan.h"

struct tuning {
    tune_fn *fn;
    void *work;
};

/* place.c: type, rows and pitch of a tensor by plan.h's rules. */
void describe(const struct cuda_plan *p, int t, struct place *place);
/* The same as strides; p->places[t] is described. */
void shape_on_card(const struct cuda_plan *p, int t, struct shape_of *ret_shape);

/* make.c */
int make_plan(struct cuda_plan *p, struct err *e);
/* Bytes on the card, counted against what the device may take. */
int card_alloc(
    struct cuda_plan *p, size_t bytes, void **ret_data, const char *what, struct err *e);

#endif
