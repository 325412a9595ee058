/* update-kernels.h - the optimisers over flat arrays, norms, the loss scale: control of a step
 * without a word from the host.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_UPDATE_KERNELS_H
#define TRAIN_BACKEND_CUDA_UPDATE_KERNELS_H

#include "train/backend/cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    UPDATE_CHUNK = 8192, /* elements: 256 threads, four rounds of eight each */
};

struct update_chunk { /* a piece of one param */
    int64_t offset;   /* elements, into every array; a multiple of 8 */
    int count;        /* 1..UPDATE_CHUNK */
    int param;        /* index */
    int decays;
};
struct update_span {  /* of one param */
    int first, count; /* chunks */
    int decays;
};

enum update_kind { /* as optim.h has them; C++ does not read that header */
                   UPDATE_SGD,
                   UPDATE_MOMENTUM,
                   UPDATE_RMSPROP,
                   UPDATE_ADAM,
                   UPDATE_ADAMW,
                   UPDATE_LARS,
                   UPDATE_LAMB,
};

struct update_rule {
    enum update_kind kind;
    int with_nesterov;
    float momentum, rho, beta1, beta2, epsilon, trust;
    int is_uncorrected;
    float trust_least, trust_most; /* lamb; 0 = no bound */
    float decay;                   /* of params that decay */
    float clip_value;              /* INFINITY = none */
    float clip_norm;               /* 0 = none */
    double divisor; /* passes, times ranks for a mean: grad_scale = 1 / (scale * divisor) */
    int has_dynamic_scale;
    int scale_grows_after;
};

struct update_arrays { /* bases of the flat arrays; slots NULL where there are none */
    float *masters, *slot0, *slot1;
    const float *grads;
    void *copies; /* NULL: the master is what kernels read */
    enum elem elem;
    const struct update_chunk *chunks;
    const struct update_span *spans;
    double *parts; /* 2 for each chunk */
    float *trusts; /* by param */
};

/* At the beginning of a pass: scale, grad_scale, finite, norm, l2, clip.  `scale` may be NULL:
 * 1. */
void launch_begin(struct step_facts *facts,
                  const float *scale,
                  const struct update_rule *rule,
                  cudaStream_t stream);

/* GRAD_NORM over all chunks: norm, finite, clip; then the dynamic scale moves (states may be
 * NULL).  Two launches. */
void launch_norm(const struct update_arrays *a,
                 int chunk_count,
                 const struct update_rule *rule,
                 struct step_facts *facts,
                 float *scale,
                 float *good,
                 cudaStream_t stream);

/* UPDATE of the chunks [first, first + count) and, for lars and lamb, of the params
 * [first_param, first_param + param_count).  Leaves sums of squares of what decays in
 * parts[chunk] (before the update); nothing moves unless facts say finite. */
void launch_update(const struct update_arrays *a,
                   int first,
                   int count,
                   int first_param,
                   int param_count,
                   const struct update_rule *rule,
                   const struct step_facts *facts,
                   cudaStream_t stream);

/* At the end of a pass: the values of the step, in the order of enum value; from[i] NULL where
 * a value is none of an op's.  kinds[i]: where value i comes from. */
enum value_from {
    FROM_NOWHERE, /* NaN */
    FROM_PLACE,
    FROM_L2, /* sum of parts of all chunks / 2 */
    FROM_NORM,
    FROM_FINITE,
    FROM_SCALE,
};
enum {
    MOST_VALUES = 16,
};
struct value_table {
    const float *from[MOST_VALUES];
    int kind[MOST_VALUES];
    int count;
};
void launch_values(const struct value_table *table,
                   const double *parts,
                   int chunk_count,
                   int has_update, /* this pass ran the updates */
                   const struct step_facts *facts,
                   float *values,
                   cudaStream_t stream);

/* Copies of `count` masters (a multiple of 8). */
void launch_cast(
    void *to, enum elem elem, const float *from, int64_t count, cudaStream_t stream);
/* Small values that are not zero, for measurements; `bytes` a multiple of 16. */
void launch_fill(
    void *to, enum elem elem, int64_t elements, uint64_t seed, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
