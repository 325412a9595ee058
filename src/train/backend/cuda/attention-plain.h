/* attention-plain.h - attention of any type and size (attention-kernels.h), row by row in fp32.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_ATTENTION_PLAIN_H
#define TRAIN_BACKEND_CUDA_ATTENTION_PLAIN_H

#include "train/backend/cuda/attention-kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

void attention_plain_forward(cudaStream_t stream, enum elem elem, const struct attention *args);
void attention_plain_backward(cudaStream_t stream,
                              enum elem elem,
                              const struct attention *args);

#ifdef __cplusplus
}
#endif

#endif
