/* pool-kernels.cu - see pool-kernels.h.  A thread has one pixel and eight channels.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/pool-kernels.h"

#include "train/backend/cuda/device.cuh"

namespace {

enum {
    THREADS = 256,
};

/* Which pixel and which channels a thread has. */
struct spot {
    int n, row, column, vector;
    bool is_mine;
};

__device__ __forceinline__ spot spot_of(int pictures, int rows, int columns, int vectors)
{
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    int64_t pixel = at / vectors;
    spot s;

    s.vector = (int)(at - pixel * vectors);
    s.column = (int)(pixel % columns);
    pixel /= columns;
    s.row = (int)(pixel % rows);
    pixel /= rows;
    s.n = (int)pixel;
    s.is_mine = pixel < pictures;
    return s;
}

__device__ __forceinline__ int64_t
offset_of(int n, int row, int column, int rows, int columns, int pitch, int vector)
{
    return (((int64_t)n * rows + row) * columns + column) * pitch + vector * 8;
}

/* The part of a window that lies inside the picture. */
struct patch {
    int h0, h1, w0, w1;
};

__device__ __forceinline__ patch patch_of(const pool &k, int p, int q)
{
    int h = p * k.stride_h - k.top, w = q * k.stride_w - k.left;
    patch in;

    in.h0 = h < 0 ? 0 : h > k.h ? k.h : h;
    in.h1 = h + k.r < 0 ? 0 : h + k.r > k.h ? k.h : h + k.r;
    in.w0 = w < 0 ? 0 : w > k.w ? k.w : w;
    in.w1 = w + k.s < 0 ? 0 : w + k.s > k.w ? k.w : w + k.s;
    return in;
}

/* The windows that an input row or column lies in: first..last, none when last < first. */
__device__ __forceinline__ void
windows_of(int at, int pad, int size, int stride, int outs, int *ret_first, int *ret_last)
{
    int past = at + pad - size + 1; /* the least beginning that still reaches it */

    *ret_first = past <= 0 ? 0 : (past + stride - 1) / stride;
    *ret_last = (at + pad) / stride < outs - 1 ? (at + pad) / stride : outs - 1;
}

__device__ __forceinline__ void store_places(uint8_t *to, const int places[8])
{
    union {
        uint2 words;
        uint8_t each[8];
    } u;

#pragma unroll
    for (int i = 0; i < 8; i++)
        u.each[i] = (uint8_t)places[i];
    *reinterpret_cast<uint2 *>(to) = u.words;
}
__device__ __forceinline__ void store_places(int32_t *to, const int places[8])
{
#pragma unroll
    for (int i = 0; i < 8; i++)
        to[i] = places[i];
}

__device__ __forceinline__ void load_places(const uint8_t *from, int places[8])
{
    union {
        uint2 words;
        uint8_t each[8];
    } u;

    u.words = *reinterpret_cast<const uint2 *>(from);
#pragma unroll
    for (int i = 0; i < 8; i++)
        places[i] = u.each[i];
}
__device__ __forceinline__ void load_places(const int32_t *from, int places[8])
{
#pragma unroll
    for (int i = 0; i < 8; i++)
        places[i] = from[i];
}

/* The first of the largest in order of rows, as the oracle has it. */
template <class T, class P>
__global__ void __launch_bounds__(THREADS) max_forward(pool k, const T *x, T *y, P *kept)
{
    spot at = spot_of(k.n, k.p, k.q, k.pitch / 8);
    float best[8], now[8];
    int places[8] = {};
    bool is_first = true;

    if (!at.is_mine)
        return;
    patch in = patch_of(k, at.row, at.column);
    int h = at.row * k.stride_h - k.top, w = at.column * k.stride_w - k.left;

#pragma unroll
    for (int i = 0; i < 8; i++)
        best[i] = at.vector * 8 + i < k.channels ? -INFINITY : 0;
    for (int i = in.h0; i < in.h1; i++)
        for (int j = in.w0; j < in.w1; j++) {
            load8(x + offset_of(at.n, i, j, k.h, k.w, k.pitch, at.vector), now);
#pragma unroll
            for (int c = 0; c < 8; c++)
                if (is_first || now[c] > best[c]) {
                    best[c] = now[c];
                    places[c] = (i - h) * k.s + j - w;
                }
            is_first = false;
        }

    int64_t to = offset_of(at.n, at.row, at.column, k.p, k.q, k.pitch, at.vector);
    store8(y + to, best);
    if (kept)
        store_places(kept + to, places);
}

template <class T, class P>
__global__ void __launch_bounds__(THREADS)
    max_backward(pool k, const T *dy, const P *kept, T *dx)
{
    spot at = spot_of(k.n, k.h, k.w, k.pitch / 8);
    float sum[8] = {}, now[8];
    int places[8], p0, p1, q0, q1;

    if (!at.is_mine)
        return;
    windows_of(at.row, k.top, k.r, k.stride_h, k.p, &p0, &p1);
    windows_of(at.column, k.left, k.s, k.stride_w, k.q, &q0, &q1);
    for (int p = p0; p <= p1; p++)
        for (int q = q0; q <= q1; q++) {
            int64_t from = offset_of(at.n, p, q, k.p, k.q, k.pitch, at.vector);
            int here = (at.row - p * k.stride_h + k.top) * k.s + at.column - q * k.stride_w +
                       k.left;

            load8(dy + from, now);
            load_places(kept + from, places);
#pragma unroll
            for (int c = 0; c < 8; c++)
                sum[c] += places[c] == here ? now[c] : 0;
        }
    store8(dx + offset_of(at.n, at.row, at.column, k.h, k.w, k.pitch, at.vector), sum);
}

__device__ __forceinline__ float share_of(const pool &k, const patch &in)
{
    int count = k.counts_padding ? k.r * k.s : (in.h1 - in.h0) * (in.w1 - in.w0);

    return 1 / (float)count;
}

template <class T>
__global__ void __launch_bounds__(THREADS) average_forward(pool k, const T *x, T *y)
{
    spot at = spot_of(k.n, k.p, k.q, k.pitch / 8);
    float sum[8] = {}, now[8];

    if (!at.is_mine)
        return;
    patch in = patch_of(k, at.row, at.column);
    for (int i = in.h0; i < in.h1; i++)
        for (int j = in.w0; j < in.w1; j++) {
            load8(x + offset_of(at.n, i, j, k.h, k.w, k.pitch, at.vector), now);
#pragma unroll
            for (int c = 0; c < 8; c++)
                sum[c] += now[c];
        }

    float share = share_of(k, in);
#pragma unroll
    for (int c = 0; c < 8; c++)
        sum[c] = at.vector * 8 + c < k.channels ? sum[c] * share : 0;
    store8(y + offset_of(at.n, at.row, at.column, k.p, k.q, k.pitch, at.vector), sum);
}

template <class T>
__global__ void __launch_bounds__(THREADS) average_backward(pool k, const T *dy, T *dx)
{
    spot at = spot_of(k.n, k.h, k.w, k.pitch / 8);
    float sum[8] = {}, now[8];
    int p0, p1, q0, q1;

    if (!at.is_mine)
        return;
    windows_of(at.row, k.top, k.r, k.stride_h, k.p, &p0, &p1);
    windows_of(at.column, k.left, k.s, k.stride_w, k.q, &q0, &q1);
    for (int p = p0; p <= p1; p++)
        for (int q = q0; q <= q1; q++) {
            float share = share_of(k, patch_of(k, p, q));

            load8(dy + offset_of(at.n, p, q, k.p, k.q, k.pitch, at.vector), now);
#pragma unroll
            for (int c = 0; c < 8; c++)
                sum[c] = fmaf(now[c], share, sum[c]);
        }
    store8(dx + offset_of(at.n, at.row, at.column, k.h, k.w, k.pitch, at.vector), sum);
}

unsigned blocks_of(const pool &k, int rows, int columns)
{
    int64_t threads = (int64_t)k.n * rows * columns * (k.pitch / 8);

    return (unsigned)((threads + THREADS - 1) / THREADS);
}

template <class T>
void launch_max(const pool &k, const void *x, void *y, cudaStream_t stream)
{
    unsigned blocks = blocks_of(k, k.p, k.q);
    const T *from = static_cast<const T *>(x);
    T *to = static_cast<T *>(y);

    if (k.r * k.s <= 256)
        max_forward<<<blocks, THREADS, 0, stream>>>(k, from, to,
                                                    static_cast<uint8_t *>(k.places));
    else
        max_forward<<<blocks, THREADS, 0, stream>>>(k, from, to,
                                                    static_cast<int32_t *>(k.places));
}

template <class T>
void launch_max_grad(const pool &k, const void *dy, void *dx, cudaStream_t stream)
{
    unsigned blocks = blocks_of(k, k.h, k.w);
    const T *from = static_cast<const T *>(dy);
    T *to = static_cast<T *>(dx);

    if (k.r * k.s <= 256)
        max_backward<<<blocks, THREADS, 0, stream>>>(
            k, from, static_cast<const uint8_t *>(k.places), to);
    else
        max_backward<<<blocks, THREADS, 0, stream>>>(
            k, from, static_cast<const int32_t *>(k.places), to);
}

} // namespace

void pool_max(const pool *k, const void *x, void *y, cudaStream_t stream)
{
    BY_ELEM(k->elem, T, launch_max<T>(*k, x, y, stream));
}

void pool_max_grad(const pool *k, const void *dy, void *dx, cudaStream_t stream)
{
    BY_ELEM(k->elem, T, launch_max_grad<T>(*k, dy, dx, stream));
}

void pool_average(const pool *k, const void *x, void *y, cudaStream_t stream)
{
    unsigned blocks = blocks_of(*k, k->p, k->q);

    BY_ELEM(k->elem, T,
            average_forward<<<blocks, THREADS, 0, stream>>>(*k, static_cast<const T *>(x),
                                                            static_cast<T *>(y)));
}

void pool_average_grad(const pool *k, const void *dy, void *dx, cudaStream_t stream)
{
    unsigned blocks = blocks_of(*k, k->h, k->w);

    BY_ELEM(k->elem, T,
            average_backward<<<blocks, THREADS, 0, stream>>>(*k, static_cast<const T *>(dy),
                                                             static_cast<T *>(dx)));
}
