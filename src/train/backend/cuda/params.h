/* params.h - masters, gradients, slots, 16-bit copies and states on the card, and the control
 * ops over them.
 *
 * Masters, gradients, each slot and the copies are flat arrays of one form: param i at
 * offset[i], in the layout that plan.h gives it, padded with zeros to whole lines of 64
 * elements.  So a bucket is one run of each, the reduction is one call, and the update is a
 * loop over plain floats.  With fp32 the copy is the master itself.
 *
 * A bucket is cut into chunks that never reach over the end of a param: a chunk is a block of
 * threads, and what is summed is summed by chunk and then over the chunks in order, so sums
 * have the same bits every time.
 *
 * An eval plan (options.shares) borrows masters, states and, when the precision is the same,
 * copies of the other plan; with another precision it has copies of its own, made anew before
 * a run when the other's version has moved.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_PARAMS_H
#define TRAIN_BACKEND_CUDA_PARAMS_H

#include "train/backend/cuda/plan.h"
#include "train/backend/cuda/update-kernels.h"

struct param {
    int tensor;
    size_t offset, count; /* elements; count without what pads it to a line */
    float *master, *grad, *slot[OPTIM_MOST_SLOTS];
    void *copy;
    struct place master_place;
};

struct params {
    struct param *all; /* in order of buckets; of an eval graph, of tensors */
    int count;
    int *of_tensor; /* of a param, its gradient or its slots: index into all, else -1 */
    size_t floats;  /* of each array */
    float *masters, *grads, *slots[OPTIM_MOST_SLOTS], *states;
    void *copies;
    size_t state_floats;
    float *scale_state, *good_state; /* on the card, or NULL: optimizer.loss_scale, ... */
    /* Chunks of all params in order, on the card. */
    struct update_chunk *chunks;
    struct update_span *spans; /* by param: its chunks */
    int chunk_count;
    int *first_chunk; /* by bucket, and the end */
    double *parts;    /* two for each chunk: sums */
    float *trusts;    /* by param */
    uint64_t version; /* grows when masters change from outside or in a step */
    uint64_t copied;  /* the version of the shared plan that our own copies show */
    bool owns_copies;
    struct reduce *reduce; /* reduce.c; NULL with one rank */
};

/* Before planning: where everything lies, without memory. */
int params_new(struct cuda_plan *p, struct err *e);
/* Memory, and the addresses of params, gradients and states in p->places. */
int params_lay_out(struct cuda_plan *p, struct err *e);
/* Small numbers everywhere, for measurements and the first run: quickly made, and never zero.
 */
int params_fill(struct cuda_plan *p, struct err *e);
/* Initial values of params and states into masters, slots, states and copies; gradients and
 * padding are zero then. */
int params_begin(struct cuda_plan *p, struct err *e);
void params_free(struct params *params);
/* An eval plan with copies of its own: make them anew if they are old. */
int params_refresh(struct cuda_plan *p, cudaStream_t stream, struct err *e);
/* How the numbers of an update follow from the optimiser and the graph. */
void params_rule(const struct cuda_plan *p, struct update_rule *ret_rule);
void params_memory(const struct params *params, struct plan_memory *memory);

/* Planners of the control ops: REDUCE_START, REDUCE_WAIT, GRAD_NORM, UPDATE. */
int plan_control(struct cuda_plan *p, int n, struct err *e);

/* A slot's array: the graph has those of a param in the optimiser's order. */
float *params_slot(const struct cuda_plan *p, int tensor);

/* reduce.c: several ranks, one card each. */
int reduce_new(struct cuda_plan *p, struct reduce **ret_reduce, struct err *e);
void reduce_free(struct reduce *reduce);
/* Hand a run of the gradients over, behind what is on `stream`; then wait for it there. */
int reduce_start(struct cuda_plan *p, int bucket, cudaStream_t stream, struct err *e);
int reduce_wait(struct cuda_plan *p, int bucket, cudaStream_t stream, struct err *e);

/* move.c: between the caller's dense arrays and the card. */
int cuda_plan_read(struct plan *plan, int tensor, void *values, size_t bytes, struct err *e);
int cuda_plan_write(
    struct plan *plan, int tensor, const void *values, size_t bytes, struct err *e);
/* As plan_write, for a float array that is not a tensor's own (initial values). */
int move_in(struct cuda_plan *p, int tensor, const float *values, struct err *e);

#endif
