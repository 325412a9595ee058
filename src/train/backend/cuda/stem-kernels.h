/* stem-kernels.h - convolutions of pictures: at most four channels in, 64 or a multiple out.
 *
 * General engines pad the channels of each tap and spend most of their time on that.  Here four
 * taps of a window's row with four channels each are one step of sixteen of a matrix product
 * over pixels, and what is left is mostly writing y.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_STEM_KERNELS_H
#define TRAIN_BACKEND_CUDA_STEM_KERNELS_H

#include "train/backend/cuda/conv-kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Can these kernels do it?  16-bit numbers, windows of at most 8 x 8 without dilation, steps of
 * one or two pixels. */
bool stem_fits(const struct conv_direct *v);

/* y = x * w + bias, relu. */
struct stem_arrays {
    const void *x, *w;
    const void *bias; /* may be NULL */
    bool has_relu;
    void *y;
};
void stem_forward(const struct conv_direct *v,
                  int multiprocessors,
                  const struct stem_arrays *a,
                  cudaStream_t stream);

struct stem_grads {
    float *dw;    /* all elements, padding too */
    float *dbias; /* may be NULL; only for pictures of at most three channels */
    bool adds;    /* to what is there */
    float *parts; /* scratch: stem_parts() */
};
int64_t stem_parts(const struct conv_direct *v, int multiprocessors);
/* The same bits every time. */
void stem_weights(const struct conv_direct *v,
                  int multiprocessors,
                  const void *dy,
                  const void *x,
                  const struct stem_grads *to,
                  cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
