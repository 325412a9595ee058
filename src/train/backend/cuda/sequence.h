/* sequence.h - what product.c, sequence.c and attention.c share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_SEQUENCE_H
#define TRAIN_BACKEND_CUDA_SEQUENCE_H

#include "train/backend/cuda/plan.h"
#include "train/backend/cuda/sequence-kernels.h"

/* Sums over runs of rows of what a LINEAR_WEIGHT_GRAD's dbias is the sum of, made by whoever
 * wrote its dy; in p->kept of that op. */
struct bias_parts {
    struct place *place; /* fp32; from `skip` on, splits times pitch */
    int64_t skip;
    int splits;
};

/* The op that reads tensor t when there is one alone, else -1. */
int only_reader(const struct cuda_plan *p, int t);
/* The LINEAR_WEIGHT_GRAD that has dbias from t, else -1. */
int bias_reader(const struct cuda_plan *p, int t);
/* Room for the parts, made at op n, of the bias gradient of op `reader`. */
struct place *
keep_bias_parts(struct cuda_plan *p, int n, int reader, int splits, int64_t pitch);

/* Behind LINEAR n: its DROPOUT with a residual and the LAYERNORM of that, when they follow, as
 * one kernel.  All tensors are written as the list says. */
int plan_joined_norm(struct cuda_plan *p, int n, struct err *e);

/* How a kernel draws op's dropout (DROPOUT or its gradient, ATTENTION). */
struct seq_dropout dropout_of(const struct cuda_plan *p, float rate, uint64_t stream);

#endif
