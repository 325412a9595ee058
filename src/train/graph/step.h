/* step.h - what makes a pass over the data a training step: buckets, reductions, updates.
 *
 * Buckets are filled with gradients in the order in which the backward pass finishes them (so,
 * reverse order of the layers) until the next one would pass `fusion_bytes`; one gradient
 * alone may be larger.  0 means a bucket for each gradient.
 *
 * The program then is, for each bucket b in order:
 *   REDUCE_START b   right behind the op that finishes its last gradient     (several ranks)
 *   REDUCE_WAIT b    behind the backward pass                                (several ranks)
 *   GRAD_NORM        once, when clip_norm or a loss scale asks for it, behind all waits
 *   UPDATE b
 * With one rank and nothing that needs all gradients first, UPDATE b comes where REDUCE_START
 * would: the gradient is still in the cache.
 *
 * Optimiser slots become ROLE_STATE tensors called "optimizer.<slot>.<param>", so checkpoints
 * and backends need no word about them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_GRAPH_STEP_H
#define TRAIN_GRAPH_STEP_H

#include "train/optim/optim.h"

#include <stdint.h>

struct graph;
struct err;

struct step_spec {
    struct optim_spec optim;
    int64_t fusion_bytes;
    int64_t ranks;      /* 1 = no reductions */
    bool is_mean;       /* divide by ranks (replicated); false = sum (horovod) */
    bool updates_early; /* may updates stand inside the backward pass? */
    int64_t passes;     /* over which gradients accumulate; above 1: no update inside the
                           backward pass */
};

int graph_finish_step(struct graph *graph, const struct step_spec *spec, struct err *e);

#endif
