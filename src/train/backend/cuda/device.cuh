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

/* Two at a time is one instruction. */
template <class T> __device__ __forceinline__ unsigned pack2(float low, float high);
template <> __device__ __forceinline__ unsigned pack2<__half>(float low, float high)
{
    __half2 two = __floats2half2_rn(low, high);

    return *reinterpret_cast<unsigned *>(&two);
}
template <> __device__ __forceinline__ unsigned pack2<__nv_bfloat16>(float low, float high)
{
    __nv_bfloat162 two = __floats2bfloat162_rn(low, high);

    return *reinterpret_cast<unsigned *>(&two);
}

__device__ __forceinline__ void store8(float *to, const float x[8])
{
    reinterpret_cast<float4 *>(to)[0] = make_float4(x[0], x[1], x[2], x[3]);
    reinterpret_cast<float4 *>(to)[1] = make_float4(x[4], x[5], x[6], x[7]);
}
template <class T> __device__ __forceinline__ void store8(T *to, const float x[8])
{
    *reinterpret_cast<uint4 *>(to) = make_uint4(pack2<T>(x[0], x[1]), pack2<T>(x[2], x[3]),
                                                pack2<T>(x[4], x[5]), pack2<T>(x[6], x[7]));
}

/* Eight elements as they lie in memory: for what is loaded long before it is used, as 16 bits
 * take half the registers.  (Where a kernel writes in place, the compiler moves no load over a
 * store: all loads have to stand first.) */
template <class T> struct raw8 {
    uint4 words[sizeof(T) / 2];
};
template <class T> __device__ __forceinline__ raw8<T> load_raw(const T *from)
{
    raw8<T> r;

#pragma unroll
    for (int i = 0; i < (int)(sizeof(T) / 2); i++)
        r.words[i] = reinterpret_cast<const uint4 *>(from)[i];
    return r;
}
template <class T> __device__ __forceinline__ void unpack_raw(const raw8<T> &r, float x[8])
{
    load8(reinterpret_cast<const T *>(&r), x);
}
template <class T> __device__ __forceinline__ raw8<T> pack_raw(const float x[8])
{
    raw8<T> r;

    store8(reinterpret_cast<T *>(&r), x);
    return r;
}
template <class T> __device__ __forceinline__ void store_raw(T *to, const raw8<T> &r)
{
#pragma unroll
    for (int i = 0; i < (int)(sizeof(T) / 2); i++)
        reinterpret_cast<uint4 *>(to)[i] = r.words[i];
}

/* 1 / x and 2^x within two units of the last place, for results that are rounded to 16 bits:
 * one instruction each; what is too small for a normal number is zero. */
__device__ __forceinline__ float fast_inverse(float x)
{
    float y;

    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ float fast_exp2(float x)
{
    float y;

    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
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

/* Of rng_dropout(key, hi, lo), Philox with seven rounds: for elements 8 lo .. 8 lo + 7. */
__device__ __forceinline__ uint4 dropout_draw(uint64_t key, uint64_t hi, uint64_t lo)
{
    uint4 c = make_uint4((unsigned)lo, (unsigned)(lo >> 32), (unsigned)hi, (unsigned)(hi >> 32));
    unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);

#pragma unroll
    for (int round = 0; round < 7; round++) {
        unsigned a_hi = __umulhi(0xD2511F53u, c.x), a_lo = 0xD2511F53u * c.x;
        unsigned b_hi = __umulhi(0xCD9E8D57u, c.z), b_lo = 0xCD9E8D57u * c.z;

        c = make_uint4(b_hi ^ c.y ^ k0, b_lo, a_hi ^ c.w ^ k1, a_lo);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

/* rng_dropout_half(): kept when >= the limit of rng_dropout_limit(rate). */
__device__ __forceinline__ unsigned dropout_half(uint4 w, int i)
{
    unsigned word = i / 2 == 0 ? w.x : i / 2 == 1 ? w.y : i / 2 == 2 ? w.z : w.w;

    return i % 2 ? word >> 16 : word & 0xFFFFu;
}

/* The words for elements first .. first + 7, wherever they begin. */
__device__ __forceinline__ uint4 dropout_draw8(uint64_t key, uint64_t hi, uint64_t first)
{
    unsigned skip = (unsigned)(first & 7);
    uint4 w = dropout_draw(key, hi, first / 8), n;

    if (skip == 0)
        return w;
    n = dropout_draw(key, hi, first / 8 + 1);
    if (skip & 4)
        w = make_uint4(w.z, w.w, n.x, n.y), n = make_uint4(n.z, n.w, 0, 0);
    if (skip & 2)
        w = make_uint4(w.y, w.z, w.w, n.x), n.x = n.y;
    if (skip & 1)
        w = make_uint4(__funnelshift_r(w.x, w.y, 16), __funnelshift_r(w.y, w.z, 16),
                       __funnelshift_r(w.z, w.w, 16), __funnelshift_r(w.w, n.x, 16));
    return w;
}

/* A dropout's counter in this step. */
__device__ __forceinline__ uint64_t dropout_hi(const struct step_facts *facts)
{
    return (uint64_t)facts->pass << 48 | facts->number;
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
