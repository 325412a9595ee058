/* pool-kernels.h - maximum and average over windows, and their gradients, channels last.
 *
 * Gradients gather: each input looks at the windows that it lies in, so nothing is added by
 * several threads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_POOL_KERNELS_H
#define TRAIN_BACKEND_CUDA_POOL_KERNELS_H

#include "train/backend/cuda/kernels.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pool {
    enum elem elem;
    int n, h, w, p, q; /* pictures, rows and columns in, out */
    int channels, pitch;
    int r, s, stride_h, stride_w, top, left;
    bool counts_padding;
    /* What goes in comes out of a relu, whose gradient is done along: a maximum that is not
     * positive gets no place. */
    bool has_relu;
    /* The window's place of each maximum, r' * s + s', all bits set for none: of
     * pool_place_bytes().  N P Q pitch; NULL: not kept. */
    void *places;
};

static inline int pool_place_bytes(int r, int s)
{
    return r * s <= 255 ? 1 : 4;
}

void pool_max(const struct pool *pool, const void *x, void *y, cudaStream_t stream);
/* dy2 may be NULL: added to dy. */
void pool_max_grad(
    const struct pool *pool, const void *dy, const void *dy2, void *dx, cudaStream_t stream);
void pool_average(const struct pool *pool, const void *x, void *y, cudaStream_t stream);
void pool_average_grad(const struct pool *pool, const void *dy, void *dx, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
