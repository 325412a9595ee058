/* attention-fast.h - the fast kernels of attention (attention-kernels.h): attention-forward.cu,
 * attention-backward.cu, attention-joint.cu, attention-whole.cu.  The shape must be one of
 * attention_is_fast().
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_ATTENTION_FAST_H
#define TRAIN_BACKEND_CUDA_ATTENTION_FAST_H

#include "train/backend/cuda/attention-kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

void attention_fast_forward(cudaStream_t stream, enum elem elem, const struct attention *args);
/* dq, dk, dv and the parts; of those that attention_is_joint(), ATTENTION_WHOLE long ... */
void attention_fast_grad_whole(cudaStream_t stream,
                               enum elem elem,
                               const struct attention *args);
/* ... and longer. */
void attention_fast_grad_joint(cudaStream_t stream,
                               enum elem elem,
                               const struct attention *args);
/* dq, and delta and exponents of all rows for the other. */
void attention_fast_grad_q(cudaStream_t stream, enum elem elem, const struct attention *args);
/* dk and dv; behind it. */
void attention_fast_grad_kv(cudaStream_t stream, enum elem elem, const struct attention *args);

#ifdef __cplusplus
}
#endif

#endif
