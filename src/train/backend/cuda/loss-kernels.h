/* loss-kernels.h - softmax with cross-entropy over rows, its gradient, and losses put together.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_LOSS_KERNELS_H
#define TRAIN_BACKEND_CUDA_LOSS_KERNELS_H

#include "train/backend/cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A label below 0 or beyond the classes does not count. */
struct xent_args {
    enum elem elem;
    const void *logits;
    void *probs; /* may lie where the logits lie */
    const int32_t *labels;
    float *loss, *top1, *top5;
    float *parts;   /* 4 for each row: loss, top1, top5, does it count */
    float *counted; /* how many rows count, at least 1 */
    int64_t rows;
    int pitch, classes;
    float smoothing;
};
void launch_xent(const struct xent_args *a, cudaStream_t stream);

struct xent_grad_args {
    enum elem elem;
    const void *probs;
    void *to; /* may lie where probs lie */
    const int32_t *labels;
    const float *counted;
    int64_t rows;
    int pitch, classes;
    float smoothing, weight;
    int scales_by_loss;
};
void launch_xent_grad(const struct xent_grad_args *a,
                      const struct step_facts *facts,
                      cudaStream_t stream);

struct weighted_args {
    const float *from[8];
    float weight[8];
    int count;
    float *to;
};
void launch_weighted(const struct weighted_args *a, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
