/* each-kernels.h - element by element: activations, sums, images, channels moved, reshaping,
 * dropout, gradients into the arena.
 *
 * Tensors of one shape are equal in memory place by place, padding included, so the plain loops
 * do not look at layouts; zeros give zeros in all of them, so padding stays zero.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_EACH_KERNELS_H
#define TRAIN_BACKEND_CUDA_EACH_KERNELS_H

#include "train/backend/cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum each_kind {
    EACH_RELU,
    EACH_TANH,
    EACH_GELU,
    EACH_RELU_GRAD, /* dy, y */
    EACH_TANH_GRAD, /* dy, y */
    EACH_GELU_GRAD, /* dy, x */
    EACH_SUM,       /* 2..8 */
};

enum {
    EACH_MOST_IN = 8,
};

struct each_args {
    enum each_kind kind;
    enum elem elem; /* of all of them */
    void *to;
    const void *from[EACH_MOST_IN];
    int inputs;
    int64_t count; /* elements, padding included: a multiple of 8 */
    int adds;      /* SUM: to what is there (gradients of several passes) */
};
void launch_each(const struct each_args *a, cudaStream_t stream);

/* Dense N H W C of bytes or floats (C <= 4) to N H W 8. */
struct image_args {
    enum elem from_elem, elem;
    const void *from;
    void *to;
    int64_t pixels;
    int channels;
    float scale[4], shift[4];
};
void launch_image(const struct image_args *a, cudaStream_t stream);

/* Channels `skip`.. of an input become channels at..at+cols-1 of the output; those of no input
 * are zero.  Concatenation, padding, and cutting a piece out. */
struct channels_from {
    const void *from;
    int pitch, at, cols, skip;
};
struct channels_args {
    enum elem elem;
    void *to;
    int64_t rows;
    int pitch; /* of the output */
    int count;
    struct channels_from from[EACH_MOST_IN];
};
void launch_channels(const struct channels_args *a, cudaStream_t stream);

/* Where the element of a logical index lies: dims in logical order with the card's strides;
 * unused ones are 1 and 0. */
struct shape_of {
    int64_t dim[4], stride[4];
};
/* Same elements in logical order under another shape.  `to` is all of its memory (a multiple
 * of 8 elements) with its layout as rows of `pitch`; padding becomes zero.  to_elem may be fp32
 * where from is not; adds: to what is there. */
struct reshape_args {
    enum elem from_elem, to_elem;
    const void *from;
    void *to;
    struct shape_of from_shape, to_shape;
    int64_t elements; /* logical */
    int64_t room;     /* elements of `to`, padding included */
    int adds;
};
void launch_reshape(const struct reshape_args *a, cudaStream_t stream);

/* y = kept ? x / (1 - rate) : 0, + add.  Rows of cols in pitch; plane > 0: four dims, rows are
 * N times `plane` (H W) and the logical order is N C H W. */
struct dropout_args {
    enum elem elem;
    void *to;
    const void *from, *add; /* add may be NULL */
    int64_t rows, plane;
    int cols, pitch;
    float keep_scale; /* 1 / (1 - rate) */
    uint32_t limit;   /* rng_dropout_limit(rate) */
    uint64_t stream;
};
void launch_dropout(const struct dropout_args *a,
                    const struct step_facts *facts,
                    cudaStream_t stream);

/* Into a gradient: `to` fp32, `from` of any type, the same layout; count a multiple of 8. */
void launch_grad(float *to,
                 const void *from,
                 enum elem from_elem,
                 int64_t count,
                 int adds,
                 cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
