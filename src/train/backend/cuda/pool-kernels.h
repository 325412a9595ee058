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
    /* The window's place of each maximum, r' * s + s': u8 when r s <= 256, else i32.  N P Q
     * pitch; NULL: not kept. */
    void *places;
};

void pool_max(const struct pool *pool, const void *x, void *y, cudaStream_t stream);
void pool_max_grad(const struct pool *pool, const void *dy, void *dx, cudaStream_t stream);
void pool_average(const struct pool *pool, const void *x, void *y, cudaStream_t stream);
void pool_average_grad(const struct pool *pool, const void *dy, void *dx, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
