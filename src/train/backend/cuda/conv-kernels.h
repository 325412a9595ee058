/* conv-kernels.h - what stands beside cuDNN's convolutions: bias, relu and addend for engines
 * that do not have them inside, gradients into fp32, and convolutions by the definition for
 * shapes that no engine takes (groups of few channels).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_CONV_KERNELS_H
#define TRAIN_BACKEND_CUDA_CONV_KERNELS_H

#include "train/backend/cuda/kernels.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y = relu(y + bias + add) over rows x pitch; bias and add may be NULL. */
void conv_finish(enum elem elem,
                 void *y,
                 const void *bias,
                 const void *add,
                 int64_t rows,
                 int pitch,
                 bool has_relu,
                 cudaStream_t stream);
/* to = from, or to += from. */
void conv_into_grad(
    enum elem elem, const void *from, float *to, int64_t count, bool adds, cudaStream_t stream);

/* ret[0] = sum of (a - b)^2, ret[1] = sum of b^2. */
void conv_squares(
    const float *a, const float *b, int64_t count, float *ret, cudaStream_t stream);

/* Letters: N C H W in, K P Q out; pitches are from pixel to pixel, and from tap to tap of w. */
struct conv_direct {
    enum elem elem;
    int n, c, h, w, k, p, q;
    int x_pitch, w_pitch, y_pitch;
    int groups, r, s, stride_h, stride_w, dilation_h, dilation_w, top, left;
};
void conv_direct_forward(
    const struct conv_direct *v, const void *x, const void *w, void *y, cudaStream_t stream);
void conv_direct_data(
    const struct conv_direct *v, const void *dy, const void *w, void *dx, cudaStream_t stream);
/* All `weights` elements of dw, fp32, padding too; added to what is there when `adds`. */
void conv_direct_weights(const struct conv_direct *v,
                         const void *dy,
                         const void *x,
                         float *dw,
                         int64_t weights,
                         bool adds,
                         cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
