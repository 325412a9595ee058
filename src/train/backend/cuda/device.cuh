/* device.cuh - what kernels share: numbers of the three types, eight at a time; sums over warps
 * and blocks; Philox as rng.h has it.
 *
 * Kernels compute in float whatever they read and write.  Rows begin at multiples of eight
 * elements, so eight of them are one load of 16 bytes (two for fp32).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_DEVICE_CUH
#define TRAIN_BACKEND_CUDA_DEVICE_CUH

#include "train/backend/cuda/kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float to_float(unsigned char x) { return (float)x; }

template <class T> __device__ __forceinline__ T from_float(float x);
template <> __device__ __forceinline__ float from_float<float>(float x) { return x; }
template <> __device__ __forceinline__ __half from_float<__half>(float x)
{
    return __float2half_rn(x);
}
template <> __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x)
{
    return __float2bfloat16_rn(x);
}

/* Eight elements from an address that is a multiple of eight of them. */
__device__ __forceinline__ void load8(const float *from, float x[8])
{
    float4 a = reinterpret_cast<const float4 *>(from)[0];
    float4 b = reinterpret_cast<const float4 *>(from)[1];

    x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
    x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
}
template <class T> __device__ __forceinline__ void load8(const T *from, float x[8])
{
    union {
        uint4 words;
        T each[8];
    } u;

    u.words = *reinterpret_cast<const uint4 *>(from);
#pragma unroll
    for (int i = 0; i < 8; i++)
        x[i] = to_float(u.each[i]);
}

__device__ __forceinline__ void store8(float *to, const float x[8])
{
    reinterpret_cast<float4 *>(to)[0] = make_float4(x[0], x[1], x[2], x[3]);
    reinterpret_cast<float4 *>(to)[1] = make_float4(x[4], x[5], x[6], x[7]);
}
template <class T> __device__ __forceinline__ void store8(T *to, const float x[8])
{
    union {
        uint4 words;
        T each[8];
    } u;

#pragma unroll
    for (int i = 0; i < 8; i++)
        u.each[i] = from_float<T>(x[i]);
    *reinterpret_cast<uint4 *>(to) = u.words;
}

template <class T> __device__ __forceinline__ T warp_sum(T x)
{
#pragma unroll
    for (int i = 16; i > 0; i /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, i);
    return x;
}
__device__ __forceinline__ float warp_most(float x)
{
#pragma unroll
    for (int i = 16; i > 0; i /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, i));
    return x;
}

/* Over the whole block (whole warps, at most 1024 threads), the same bits in every thread; the
 * order is fixed.  All threads call it; may be called again at once. */
template <class T> __device__ __forceinline__ T block_sum(T x)
{
    __shared__ T parts[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;

    x = warp_sum(x);
    __syncthreads();
    if (lane == 0)
        parts[warp] = x;
    __syncthreads();
    return warp_sum(lane < warps ? parts[lane] : (T)0);
}
__device__ __forceinline__ float block_most(float x)
{
    __shared__ float parts[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;

    x = warp_most(x);
    __syncthreads();
    if (lane == 0)
        parts[warp] = x;
    __syncthreads();
    return warp_most(lane < warps ? parts[lane] : -INFINITY);
}

/* Philox4x32-10: the four words of rng_philox(key, hi, lo). */
__device__ __forceinline__ uint4 philox(uint64_t key, uint64_t hi, uint64_t lo)
{
    uint4 c = make_uint4((unsigned)lo, (unsigned)(lo >> 32), (unsigned)hi, (unsigned)(hi >> 32));
    unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);

#pragma unroll
    for (int round = 0; round < 10; round++) {
        unsigned a_hi = __umulhi(0xD2511F53u, c.x), a_lo = 0xD2511F53u * c.x;
        unsigned b_hi = __umulhi(0xCD9E8D57u, c.z), b_lo = 0xCD9E8D57u * c.z;

        c = make_uint4(b_hi ^ c.y ^ k0, b_lo, a_hi ^ c.w ^ k1, a_lo);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

/* The words for elements 4i..4i+3 of a dropout in this step: kept when >= the limit of
 * rng_dropout_limit(rate). */
__device__ __forceinline__ uint4 dropout_words(const struct step_facts *facts,
                                               uint64_t stream,
                                               uint64_t i)
{
    return philox(facts->seed ^ stream, (uint64_t)facts->pass << 48 | facts->number, i);
}

/* Launchers pick the type: BY_ELEM(elem, T, kernel<T><<<...>>>(...)). */
#define BY_ELEM(elem, T, ...)                                                                  \
    do {                                                                                       \
        if ((elem) == ELEM_BF16) {                                                             \
            typedef __nv_bfloat16 T;                                                           \
            __VA_ARGS__;                                                                       \
        } else if ((elem) == ELEM_F16) {                                                       \
            typedef __half T;                                                                  \
            __VA_ARGS__;                                                                       \
        } else {                                                                               \
            typedef float T;                                                                   \
            __VA_ARGS__;                                                                       \
        }                                                                                      \
    } while (0)

#endif
