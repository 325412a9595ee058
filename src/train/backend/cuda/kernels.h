/* kernels.h - what host code and kernels share: element types and the facts of a step.
 *
 * Each .cu file offers C functions that launch its kernels on a stream; they are declared in a
 * header of their own (norm-kernels.h, ...) that includes this one.  Plain C, no CUDA types but
 * the stream.  What kernels share among themselves is in device.cuh.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_KERNELS_H
#define TRAIN_BACKEND_CUDA_KERNELS_H

#include <driver_types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum elem {
    ELEM_F32,
    ELEM_F16,
    ELEM_BF16,
    ELEM_I32,
    ELEM_U8,
};

enum {
    PITCH = 8, /* elements: rows begin at multiples of it */
};

static inline int64_t pitch_of(int64_t elements)
{
    return (elements + PITCH - 1) / PITCH * PITCH;
}

static inline size_t elem_bytes(enum elem elem)
{
    return elem == ELEM_U8 ? 1 : elem == ELEM_F16 || elem == ELEM_BF16 ? 2 : 4;
}

/* What changes from step to step; lies on the card. */
struct step_facts {
    uint64_t number; /* as in struct step */
    uint64_t seed;   /* of dropout: options.seed */
    float lr;
    int pass;
    /* Above: written by the host before the launch.  Below: by kernels. */
    float scale; /* of the loss, in this step; 1 without one */
    int is_finite;
    double norm; /* of all gradients, scaled */
    double l2;
    float clip;       /* factor from the norm */
    float grad_scale; /* 1 / (scale * passes * ranks): what gradients are multiplied by */
    double bias;      /* Adam's correction for the steps so far */
};

#ifdef __cplusplus
}
#endif

#endif
