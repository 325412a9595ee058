/* layernorm.cuh - what layer norm and its gradient share: layernorm-forward.cu,
 * layernorm-grad.cu.
 *
 * Both are bound by memory: eight elements a thread and load, each matrix read and written
 * once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_LAYERNORM_CUH
#define TRAIN_BACKEND_CUDA_LAYERNORM_CUH

#include "train/backend/cuda/device.cuh"
#include "train/backend/cuda/sequence-kernels.h"

static int64_t blocks_for(int64_t count, int64_t each)
{
    return (count + each - 1) / each;
}

/* How a kernel draws its dropout. */
struct drop {
    uint64_t key, hi;
    unsigned above; /* 16 bits that are kept are more than this as the upper half of a word */
};

static __device__ __forceinline__ struct drop drop_of(const struct seq_dropout &d)
{
    struct drop drop = {};

    if (d.limit == 0)
        return drop;
    drop.key = d.facts->seed ^ d.stream;
    drop.hi = dropout_hi(d.facts);
    drop.above = (d.limit << 16) - 1;
    return drop;
}

/* Eight elements from `first`: those that are dropped become zero. */
static __device__ __forceinline__ void drop8(const struct drop &d, uint64_t first, float x[8])
{
    uint4 drawn = dropout_draw8(d.key, d.hi, first);
    const unsigned w[4] = {drawn.x, drawn.y, drawn.z, drawn.w};

#pragma unroll
    for (int k = 0; k < 8; k++)
        x[k] = (k % 2 ? w[k / 2] : w[k / 2] << 16) > d.above ? x[k] : 0;
}

/* Elements behind the last column become `fill`. */
static __device__ __forceinline__ void cut8(int left, float fill, float x[8])
{
    if (left >= 8)
        return;
#pragma unroll
    for (int k = 0; k < 8; k++)
        x[k] = k < left ? x[k] : fill;
}

/* Launchers pick how many vectors a lane has, up to 1,024 columns: BY_WIDTH(pitch, V,
 * kernel<T, V><<<...>>>(...)). */
#define BY_WIDTH(pitch, VECTORS, ...)                                                          \
    do {                                                                                       \
        if ((pitch) <= 256) {                                                                  \
            constexpr int VECTORS = 1;                                                         \
            __VA_ARGS__;                                                                       \
        } else if ((pitch) <= 512) {                                                           \
            constexpr int VECTORS = 2;                                                         \
            __VA_ARGS__;                                                                       \
        } else if ((pitch) <= 768) {                                                           \
            constexpr int VECTORS = 3;                                                         \
            __VA_ARGS__;                                                                       \
        } else {                                                                               \
            constexpr int VECTORS = 4;                                                         \
            __VA_ARGS__;                                                                       \
        }                                                                                      \
    } while (0)

#endif
