/* attention-kernels.h - softmax(q k' scale) v for each head, and its gradient.
 *
 * The fast kernels are for 16-bit types, heads of 32, 64 or 128 and sequences of a multiple of
 * 64: tensor cores, a tile of the T T matrix at a time, never all of it; tiles whose keys are
 * all masked are passed over (128 keys at a time where one block has a head).  What dropout
 * keeps is drawn in the forward pass and kept as bits (one for each element of N A T T, in
 * order), so that the gradient need not draw it twice more.  The plain kernels do everything,
 * slowly.
 *
 * The gradient adds up in a fixed order: a block has a head and makes all of dq, dk and dv
 * (attention-joint.cu); or, where that cannot be, one kernel has rows of q and goes over the
 * keys, and writes dq and, for each row, delta = dy . y and the exponent of its sum; the other
 * has rows of k and goes over the queries, and writes dk and dv.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_ATTENTION_KERNELS_H
#define TRAIN_BACKEND_CUDA_ATTENTION_KERNELS_H

#include "train/backend/cuda/sequence-kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

struct attention {
    int batch, length, heads, width; /* N, T, A, D/A */
    int64_t pitch;                   /* of qkv and dqkv: N*T rows of q, k, v, D each */
    int64_t y_pitch;                 /* of y and dy */
    float scale;
    struct seq_dropout dropout;
    int multiprocessors; /* of the card */
    bool has_groups;     /* the card multiplies for four warps at once (Hopper) */
    const void *qkv;
    const int32_t *mask; /* N T: 0 = not to be looked at */
    void *y;
    float *saved;   /* N A T: log of the row's sum */
    uint32_t *bits; /* of the fast kernels, with dropout; else NULL */
    /* Of the gradient: */
    const void *dy;
    void *dqkv;
    float *delta; /* 2 N A T: of each row dy . y and its exponent's sum; not of
                     ATTENTION_WHOLE */
    float *dq;    /* N A T width, of those that attention_is_joint() and are longer than
                     ATTENTION_WHOLE; else NULL */
    float *parts; /* sums over each sequence of dqkv's columns, N of pitch; of those that
                     attention_is_joint(), or NULL */
};

enum {
    ATTENTION_TILE = 64, /* rows of a tile of the fast kernels: sequences are multiples of it */
};
bool attention_is_fast(enum elem elem, int length, int width);
/* Of fast ones: a block has a head and makes all of its gradient, and can sum columns too.  On
 * Hopper, heads of 64, sequences of a multiple of ATTENTION_WHOLE. */
enum {
    ATTENTION_WHOLE = 128,       /* all of a head at once */
    ATTENTION_MOST_JOINT = 4096, /* turns of keys are bits of a word */
};
bool attention_is_joint(const struct attention *args);
/* The most a plain kernel takes. */
enum {
    ATTENTION_MOST_LENGTH = 4096,
    ATTENTION_MOST_WIDTH = 512,
};

void attention_forward(cudaStream_t stream, enum elem elem, const struct attention *args);
void attention_backward(cudaStream_t stream, enum elem elem, const struct attention *args);

#ifdef __cplusplus
}
#endif

#endif
