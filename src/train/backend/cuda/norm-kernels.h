/* norm-kernels.h - batch normalisation over rows of channels, and sums of columns.
 *
 * Tensors are rows x pitch, channels last.  Statistics are summed in two stages in a fixed
 * order: each block sums its rows, and the block that comes last to its channels adds up the
 * blocks.  `counters` tell which one that is: zero before the first launch, zero again after
 * each.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_NORM_KERNELS_H
#define TRAIN_BACKEND_CUDA_NORM_KERNELS_H

#include "train/backend/cuda/kernels.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

struct norm_shape {
    enum elem elem;
    int64_t rows;
    int channels, pitch;
    int multiprocessors;
    bool overlaps; /* the card can take a kernel while the one before it runs (Hopper and later)
                    */
};

/* What the two-stage sums need: floats of scratch, and counters. */
int64_t norm_parts(const struct norm_shape *shape);
int norm_counters(const struct norm_shape *shape);

enum norm_mask { /* of a relu, in its gradient */
                 NORM_MASK_NONE,
                 NORM_MASK_AGAIN, /* computed again from x */
                 NORM_MASK_BITS,  /* one bit for each element, kept by the forward pass */
};

struct norm_forward {
    struct norm_shape shape;
    const void *x, *add;   /* add may be NULL */
    const float *add_line; /* add is what goes into another norm with this line; or NULL */
    void *y;
    uint8_t *bits; /* rows pitch / 8: where y > 0; or NULL */
    const float *gamma, *beta;
    float *mean, *inv_std;             /* NULL: frozen, the running ones are used */
    float *running_mean, *running_var; /* NULL: left alone (a measurement) */
    const float *sum, *square;         /* of x, when something else made them */
    float *line;                       /* 3 pitch: scale, mean, beta of y */
    float *parts;
    unsigned *counters;
    float epsilon, decay;
    bool has_relu, is_unbiased;
};

/* Statistics of x: mean, inv_std, line; moves the running ones. */
void norm_statistics(const struct norm_forward *f, cudaStream_t stream);
/* The same from f->sum and f->square. */
void norm_finish(const struct norm_forward *f, cudaStream_t stream);
/* line from the running ones. */
void norm_freeze(const struct norm_forward *f, cudaStream_t stream);
/* y = (x - mean) scale + beta as line says, + add, relu. */
void norm_apply(const struct norm_forward *f, cudaStream_t stream);

struct norm_backward {
    struct norm_shape shape;
    enum norm_mask mask;
    const void *dy, *dy2, *x; /* dy2 may be NULL: added to dy; only with dadd */
    const uint8_t *bits;
    void *dx, *dadd; /* dadd may be NULL: dy behind the mask */
    const float *inv_std;
    const float *line; /* the forward pass's */
    float *dgamma, *dbeta;
    bool adds;        /* to dgamma and dbeta */
    float *grad_line; /* 2 pitch: b, c of dx = scale d + b (x - mean) + c */
    float *parts;
    unsigned *counters;
};

/* dgamma, dbeta, grad_line; dadd when there is one. */
void norm_sums(const struct norm_backward *b, cudaStream_t stream);
/* dx, from dadd when there is one, else from dy. */
void norm_grad(const struct norm_backward *b, cudaStream_t stream);

struct column_sums {
    struct norm_shape shape;
    const void *x;
    float *sums; /* pitch */
    bool adds;
    float *parts;
    unsigned *counters;
};
void norm_columns(const struct column_sums *c, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
