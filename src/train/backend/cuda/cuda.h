/* cuda.h - NVIDIA cards: cuDNN, cuBLASLt, NCCL and small kernels of our own.
 *
 * How a plan is made: plan.h.  In short: NHWC and rows padded to eight everywhere; masters,
 * slots and gradients as flat fp32 arrays in one order; one planned block; choices among
 * library kernels measured once and kept on disk; the whole step, reduction included, captured
 * as a CUDA graph for each combination of STEP_ flags.  plan_run() copies the facts of the step
 * and launches; plan_wait() waits for an event and reads the values from pinned memory.
 *
 * fp32 (exact), tf32, bf16, fp16.  Steps are repeatable bit by bit when options.is_repeatable
 * asks for it.
 *
 * Built when nvcc, cuDNN and cuBLASLt are found, as yardbench-cuda.so, which the program loads
 * when it is asked for a card.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_CUDA_H
#define TRAIN_BACKEND_CUDA_CUDA_H

struct backend_ops;

extern const struct backend_ops backend_cuda;

/* How many cards there are that could be used; 0 also without a driver. */
int cuda_cards(void);

#endif
