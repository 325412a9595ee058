/* store.h - what CPU backends share: where params, gradients and optimiser slots lie, and the
 * control ops over them.
 *
 * Masters, gradients and slots are arrays of one form: param i at offset[i], count[i] floats in
 * the backend's own order, padded with zeros to whole cache lines.  So a bucket is one run of
 * the gradient arena, and the update is a loop over floats that knows nothing of layouts.
 *
 * An eval plan borrows the masters and states of the plan it shares with.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_STORE_H
#define TRAIN_BACKEND_STORE_H

#include "train/backend/backend.h"

struct store_param {
    int tensor;
    size_t offset, count; /* in floats; count without what pads it to a line */
    float *master, *grad; /* grad: NULL in an eval graph */
    float *slot[OPTIM_MOST_SLOTS];
};

struct store {
    const struct graph *graph;
    struct reducer *reducer;
    struct store_param *params; /* in order of buckets; of an eval graph, of tensors */
    int param_count;
    int *of_tensor;   /* of a param, its gradient or its slots: index into params, else -1 */
    float **state;    /* by tensor: states that are no slots; else NULL */
    uint64_t version; /* grows when masters change: kernels' copies are then old */
    const struct store *shared; /* whose masters these are; NULL = own */
    /* Of the step that runs: */
    float scale; /* of the loss */
    bool is_finite;
    double norm, l2;
    /* Memory: */
    float *arena, *masters, *slots[OPTIM_MOST_SLOTS], *states;
    bool owns_arena;
    size_t arena_floats, state_floats;
};

/* counts[t]: floats of param t as the backend lays it out. */
int store_init(struct store *store,
               const struct graph *graph,
               const size_t *counts,
               const struct plan_options *options,
               const struct store *shared,
               struct err *e);
void store_done(struct store *store);

/* The array of an optimiser slot: the graph has those of a param in the optimiser's order. */
float *store_slot(const struct store *store, int tensor);

/* Before the ops of a pass. */
void store_begin(struct store *store);
/* REDUCE_START, REDUCE_WAIT, GRAD_NORM or UPDATE. */
int store_control(struct store *store,
                  const struct op *op,
                  const struct step *step,
                  struct err *e);
/* The values that come from here: L2, norm, finite, scale; leaves the others. */
void store_values(const struct store *store, struct step_values *values);
void store_memory(const struct store *store, struct plan_memory *memory);

/* Zeroed, aligned to 64 bytes, in huge pages when it is large; free() it. */
void *store_alloc(size_t bytes);

#endif
