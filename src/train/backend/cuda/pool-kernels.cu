/* pool-kernels.cu - see pool-kernels.h.  A thread has one pixel and eight channels; in the
 * gradient of a maximum it has as many pixels of the input as windows step over, so that each
 * window is read by few threads.  The sizes that networks use are known when it is compiled:
 * then all loads of a thread are under way at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/pool-kernels.h"

#include "train/backend/cuda/device.cuh"

namespace {

enum {
    THREADS = 256,
};

/* Which pixel (or tile of them) and which channels a thread has.  A block has pixels of one
 * picture, so that all but its number fits 32 bits. */
struct spot {
    int n, row, column, vector;
    bool is_mine;
};

__device__ __forceinline__ spot spot_of(int rows, int columns, int vectors)
{
    unsigned all = (unsigned)rows * columns * vectors, chunks = (all + THREADS - 1) / THREADS;
    unsigned picture = blockIdx.x / chunks;
    unsigned at = (blockIdx.x - picture * chunks) * THREADS + threadIdx.x;
    unsigned pixel = at / vectors, row = pixel / columns;
    spot s;

    s.n = (int)picture;
    s.vector = (int)(at - pixel * vectors);
    s.column = (int)(pixel - row * columns);
    s.row = (int)row;
    s.is_mine = at < all;
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

__device__ __forceinline__ bool is_inside(const pool &k, int h, int w)
{
    return h >= 0 && h < k.h && w >= 0 && w < k.w;
}

/* Tiles that cover a side of the input; the first begins where the first window does. */
__host__ __device__ __forceinline__ int tiles_of(int side, int pad, int step)
{
    return (side + pad + step - 1) / step;
}

/* Eight places: bytes, or words for windows of more than 255. */
template <class P> union places8 {
    uint4 words[2];
    uint2 half;
    P each[8];
};

__device__ __forceinline__ void store_places(uint8_t *to, const places8<uint8_t> &places)
{
    *reinterpret_cast<uint2 *>(to) = places.half;
}
__device__ __forceinline__ void store_places(uint32_t *to, const places8<uint32_t> &places)
{
    reinterpret_cast<uint4 *>(to)[0] = places.words[0];
    reinterpret_cast<uint4 *>(to)[1] = places.words[1];
}

__device__ __forceinline__ void load_places(const uint8_t *from, places8<uint8_t> &places)
{
    places.half = *reinterpret_cast<const uint2 *>(from);
}
__device__ __forceinline__ void load_places(const uint32_t *from, places8<uint32_t> &places)
{
    places.words[0] = reinterpret_cast<const uint4 *>(from)[0];
    places.words[1] = reinterpret_cast<const uint4 *>(from)[1];
}

/* The largest so far of eight channels: the first in order of rows, as the oracle has it. */
template <class P> struct largest {
    float best[8];
    P places[8];
    bool is_first;

    __device__ __forceinline__ void begin(const pool &k, int vector)
    {
#pragma unroll
        for (int c = 0; c < 8; c++) {
            best[c] = vector * 8 + c < k.channels ? -INFINITY : 0;
            places[c] = 0;
        }
        is_first = true;
    }
    __device__ __forceinline__ void meet(const float now[8], int place)
    {
#pragma unroll
        for (int c = 0; c < 8; c++)
            if (is_first || now[c] > best[c]) {
                best[c] = now[c];
                places[c] = (P)place;
            }
        is_first = false;
    }
    template <class T>
    __device__ __forceinline__ void end(const pool &k, T *y, P *kept, int64_t to) const
    {
        places8<P> out;

        store8(y + to, best);
        if (!kept)
            return;
#pragma unroll
        for (int c = 0; c < 8; c++)
            out.each[c] = k.has_relu && !(best[c] > 0) ? (P)-1 : places[c];
        store_places(kept + to, out);
    }
};

template <class T, class P>
__global__ void __launch_bounds__(THREADS) max_forward(pool k, const T *x, T *y, P *kept)
{
    spot at = spot_of(k.p, k.q, k.pitch / 8);
    largest<P> most;
    float now[8];

    if (!at.is_mine)
        return;
    patch in = patch_of(k, at.row, at.column);
    int h = at.row * k.stride_h - k.top, w = at.column * k.stride_w - k.left;

    most.begin(k, at.vector);
    for (int i = in.h0; i < in.h1; i++)
        for (int j = in.w0; j < in.w1; j++) {
            load8(x + offset_of(at.n, i, j, k.h, k.w, k.pitch, at.vector), now);
            most.meet(now, (i - h) * k.s + j - w);
        }
    most.end(k, y, kept, offset_of(at.n, at.row, at.column, k.p, k.q, k.pitch, at.vector));
}

/* The same for windows of R x S. */
template <class T, int R, int S>
__global__ void __launch_bounds__(THREADS)
    max_forward_of(pool k, const T *x, T *y, uint8_t *kept)
{
    spot at = spot_of(k.p, k.q, k.pitch / 8);
    largest<uint8_t> most;
    raw8<T> all[R * S];
    float now[8];

    if (!at.is_mine)
        return;
    int h = at.row * k.stride_h - k.top, w = at.column * k.stride_w - k.left;
    const T *from = x + offset_of(at.n, h, w, k.h, k.w, k.pitch, at.vector);

#pragma unroll
    for (int i = 0; i < R * S; i++)
        if (is_inside(k, h + i / S, w + i % S))
            all[i] = load_raw(from + ((int64_t)(i / S) * k.w + i % S) * k.pitch);
    most.begin(k, at.vector);
#pragma unroll
    for (int i = 0; i < R * S; i++)
        if (is_inside(k, h + i / S, w + i % S)) {
            unpack_raw(all[i], now);
            most.meet(now, i);
        }
    most.end(k, y, kept, offset_of(at.n, at.row, at.column, k.p, k.q, k.pitch, at.vector));
}

/* dy, or the sum of two. */
template <class T>
__device__ __forceinline__ void load_dy(const T *dy, const T *dy2, int64_t from, float now[8])
{
    float more[8];

    load8(dy + from, now);
    if (!dy2)
        return;
    load8(dy2 + from, more);
#pragma unroll
    for (int c = 0; c < 8; c++)
        now[c] += more[c];
}

template <class T, class P>
__global__ void __launch_bounds__(THREADS)
    max_backward(pool k, const T *dy, const T *dy2, const P *kept, T *dx)
{
    spot at = spot_of(k.h, k.w, k.pitch / 8);
    float sum[8] = {}, now[8];
    places8<P> places;
    int p0, p1, q0, q1;

    if (!at.is_mine)
        return;
    windows_of(at.row, k.top, k.r, k.stride_h, k.p, &p0, &p1);
    windows_of(at.column, k.left, k.s, k.stride_w, k.q, &q0, &q1);
    for (int p = p0; p <= p1; p++)
        for (int q = q0; q <= q1; q++) {
            int64_t from = offset_of(at.n, p, q, k.p, k.q, k.pitch, at.vector);
            int here =
                (at.row - p * k.stride_h + k.top) * k.s + at.column - q * k.stride_w + k.left;

            load_dy(dy, dy2, from, now);
            load_places(kept + from, places);
#pragma unroll
            for (int c = 0; c < 8; c++)
                sum[c] += places.each[c] == (P)here ? now[c] : 0;
        }
    store8(dx + offset_of(at.n, at.row, at.column, k.h, k.w, k.pitch, at.vector), sum);
}

/* The same for windows of R x R with steps of STEP.  A thread has STEP x STEP inputs, those
 * that window (row, column) begins with; windows before it reach into them too. */
template <class T, int R, int STEP>
__global__ void __launch_bounds__(THREADS)
    max_backward_of(pool k, const T *dy, const T *dy2, const uint8_t *kept, T *dx)
{
    enum { SIDE = (R - 1) / STEP + 1 }; /* windows that meet the tile, in each direction */
    spot at = spot_of(tiles_of(k.h, k.top, STEP), tiles_of(k.w, k.left, STEP), k.pitch / 8);
    float now[SIDE * SIDE][8];
    places8<uint8_t> places[SIDE * SIDE];

    if (!at.is_mine)
        return;
#pragma unroll
    for (int i = 0; i < SIDE * SIDE; i++) {
        int p = at.row - SIDE + 1 + i / SIDE, q = at.column - SIDE + 1 + i % SIDE;
        int64_t from = offset_of(at.n, p, q, k.p, k.q, k.pitch, at.vector);

        places[i].half = make_uint2(~0u, ~0u);
        if (p >= 0 && p < k.p && q >= 0 && q < k.q) {
            load_places(kept + from, places[i]);
            load_dy(dy, dy2, from, now[i]);
        }
    }
#pragma unroll
    for (int a = 0; a < STEP * STEP; a++) {
        int h = at.row * STEP - k.top + a / STEP, w = at.column * STEP - k.left + a % STEP;
        float sum[8] = {};

#pragma unroll
        for (int i = 0; i < SIDE * SIDE; i++) {
            int r = a / STEP + (SIDE - 1 - i / SIDE) * STEP;
            int s = a % STEP + (SIDE - 1 - i % SIDE) * STEP;

            if (r < R && s < R)
#pragma unroll
                for (int c = 0; c < 8; c++)
                    sum[c] += places[i].each[c] == r * R + s ? now[i][c] : 0;
        }
        if (is_inside(k, h, w))
            store8(dx + offset_of(at.n, h, w, k.h, k.w, k.pitch, at.vector), sum);
    }
}

__device__ __forceinline__ float share_of(const pool &k, const patch &in)
{
    int count = k.counts_padding ? k.r * k.s : (in.h1 - in.h0) * (in.w1 - in.w0);

    return 1 / (float)count;
}

template <class T>
__global__ void __launch_bounds__(THREADS) average_forward(pool k, const T *x, T *y)
{
    spot at = spot_of(k.p, k.q, k.pitch / 8);
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
    spot at = spot_of(k.h, k.w, k.pitch / 8);
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
    int64_t all = (int64_t)rows * columns * (k.pitch / 8);

    return (unsigned)(k.n * ((all + THREADS - 1) / THREADS));
}

template <class T> void launch_max(const pool &k, const void *x, void *y, cudaStream_t stream)
{
    unsigned blocks = blocks_of(k, k.p, k.q);
    const T *from = static_cast<const T *>(x);
    T *to = static_cast<T *>(y);
    uint8_t *kept = static_cast<uint8_t *>(k.places);

    if (k.r == 2 && k.s == 2)
        max_forward_of<T, 2, 2><<<blocks, THREADS, 0, stream>>>(k, from, to, kept);
    else if (k.r == 3 && k.s == 3)
        max_forward_of<T, 3, 3><<<blocks, THREADS, 0, stream>>>(k, from, to, kept);
    else if (pool_place_bytes(k.r, k.s) == 1)
        max_forward<<<blocks, THREADS, 0, stream>>>(k, from, to, kept);
    else
        max_forward<<<blocks, THREADS, 0, stream>>>(k, from, to,
                                                    static_cast<uint32_t *>(k.places));
}

bool is_square(const pool &k, int size, int step)
{
    return k.r == size && k.s == size && k.stride_h == step && k.stride_w == step;
}

template <class T>
void launch_max_grad(
    const pool &k, const void *dy, const void *dy2, void *dx, cudaStream_t stream)
{
    unsigned blocks = blocks_of(k, k.h, k.w);
    unsigned tiles = blocks_of(k, tiles_of(k.h, k.top, 2), tiles_of(k.w, k.left, 2));
    const T *from = static_cast<const T *>(dy), *more = static_cast<const T *>(dy2);
    const uint8_t *kept = static_cast<const uint8_t *>(k.places);
    T *to = static_cast<T *>(dx);

    if (is_square(k, 2, 2))
        max_backward_of<T, 2, 2><<<tiles, THREADS, 0, stream>>>(k, from, more, kept, to);
    else if (is_square(k, 3, 2))
        max_backward_of<T, 3, 2><<<tiles, THREADS, 0, stream>>>(k, from, more, kept, to);
    else if (pool_place_bytes(k.r, k.s) == 1)
        max_backward<<<blocks, THREADS, 0, stream>>>(k, from, more, kept, to);
    else
        max_backward<<<blocks, THREADS, 0, stream>>>(
            k, from, more, static_cast<const uint32_t *>(k.places), to);
}

} // namespace

void pool_max(const pool *k, const void *x, void *y, cudaStream_t stream)
{
    BY_ELEM(k->elem, T, launch_max<T>(*k, x, y, stream));
}

void pool_max_grad(
    const pool *k, const void *dy, const void *dy2, void *dx, cudaStream_t stream)
{
    BY_ELEM(k->elem, T, launch_max_grad<T>(*k, dy, dy2, dx, stream));
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
