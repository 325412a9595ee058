/* conv-kernels.cu - see conv-kernels.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/conv-kernels.h"

#include "train/backend/cuda/device.cuh"

namespace {

enum {
    THREADS = 256,
    MOST_BLOCKS = 132 * 16, /* loops over the rest: enough for any card of this size */
};

unsigned blocks_of(int64_t threads)
{
    return (unsigned)((threads + THREADS - 1) / THREADS);
}

unsigned loop_blocks(int64_t threads)
{
    unsigned blocks = blocks_of(threads);

    return blocks < MOST_BLOCKS ? blocks : (unsigned)MOST_BLOCKS;
}

template <class T>
__global__ void __launch_bounds__(THREADS) finish(
    T *y, const T *bias, const T *add, int64_t vectors, int across, bool has_relu)
{
    int64_t step = (int64_t)gridDim.x * THREADS;

    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < vectors; i += step) {
        float out[8], more[8];

        load8(y + i * 8, out);
        if (bias) {
            load8(bias + i % across * 8, more);
#pragma unroll
            for (int j = 0; j < 8; j++)
                out[j] += more[j];
        }
        if (add) {
            load8(add + i * 8, more);
#pragma unroll
            for (int j = 0; j < 8; j++)
                out[j] += more[j];
        }
#pragma unroll
        for (int j = 0; j < 8; j++)
            out[j] = has_relu && out[j] < 0 ? 0 : out[j];
        store8(y + i * 8, out);
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    into_grad(const T *from, float *to, int64_t count, bool adds)
{
    int64_t step = (int64_t)gridDim.x * THREADS, vectors = count / 8;

    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < vectors; i += step) {
        float now[8], old[8];

        load8(from + i * 8, now);
        if (adds) {
            load8(to + i * 8, old);
#pragma unroll
            for (int j = 0; j < 8; j++)
                now[j] += old[j];
        }
        store8(to + i * 8, now);
    }
    if (blockIdx.x == 0 && threadIdx.x < count % 8) {
        int64_t i = vectors * 8 + threadIdx.x;

        to[i] = (adds ? to[i] : 0) + to_float(from[i]);
    }
}

__device__ __forceinline__ int64_t
pixel_of(int64_t n, int row, int column, int rows, int columns)
{
    return (n * rows + row) * columns + column;
}

/* One output channel of one pixel; beyond k it is padding. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    direct_forward(conv_direct v, const T *x, const T *w, T *y)
{
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, pixel = at / v.y_pitch;
    int k = (int)(at % v.y_pitch), q = (int)(pixel % v.q), p = (int)(pixel / v.q % v.p);
    int64_t n = pixel / v.q / v.p;
    int of_group = v.c / v.groups, first = k / (v.k / v.groups) * of_group;
    float sum = 0;

    if (n >= v.n)
        return;
    for (int r = 0; r < v.r && k < v.k; r++)
        for (int s = 0; s < v.s; s++) {
            int h = p * v.stride_h - v.top + r * v.dilation_h;
            int j = q * v.stride_w - v.left + s * v.dilation_w;

            if (h < 0 || h >= v.h || j < 0 || j >= v.w)
                continue;
            const T *from = x + pixel_of(n, h, j, v.h, v.w) * v.x_pitch + first;
            const T *by = w + (((int64_t)k * v.r + r) * v.s + s) * v.w_pitch;

            for (int c = 0; c < of_group; c++)
                sum = fmaf(to_float(from[c]), to_float(by[c]), sum);
        }
    y[at] = from_float<T>(sum);
}

/* Which output an input meets through a tap: -1 = none. */
__device__ __forceinline__ int met(int at, int pad, int tap, int dilation, int stride, int outs)
{
    int from = at + pad - tap * dilation;

    return from < 0 || from % stride || from / stride >= outs ? -1 : from / stride;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    direct_data(conv_direct v, const T *dy, const T *w, T *dx)
{
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, pixel = at / v.x_pitch;
    int c = (int)(at % v.x_pitch), j = (int)(pixel % v.w), h = (int)(pixel / v.w % v.h);
    int64_t n = pixel / v.w / v.h;
    int of_group = v.c / v.groups, to_group = v.k / v.groups, first = c / of_group * to_group;
    float sum = 0;

    if (n >= v.n)
        return;
    for (int r = 0; r < v.r && c < v.c; r++)
        for (int s = 0; s < v.s; s++) {
            int p = met(h, v.top, r, v.dilation_h, v.stride_h, v.p);
            int q = met(j, v.left, s, v.dilation_w, v.stride_w, v.q);

            if (p < 0 || q < 0)
                continue;
            const T *from = dy + pixel_of(n, p, q, v.p, v.q) * v.y_pitch + first;

            for (int k = 0; k < to_group; k++)
                sum = fmaf(to_float(from[k]),
                           to_float(w[((((int64_t)first + k) * v.r + r) * v.s + s) * v.w_pitch +
                                      c % of_group]),
                           sum);
        }
    dx[at] = from_float<T>(sum);
}

/* One weight a block. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    direct_weights(conv_direct v, const T *dy, const T *x, float *dw, bool adds)
{
    int64_t at = blockIdx.x, pixels = (int64_t)v.n * v.p * v.q;
    int c = (int)(at % v.w_pitch), s = (int)(at / v.w_pitch % v.s);
    int r = (int)(at / v.w_pitch / v.s % v.r), k = (int)(at / v.w_pitch / v.s / v.r);
    int of_group = v.c / v.groups, channel = k / (v.k / v.groups) * of_group + c;
    float sum = 0;

    for (int64_t i = threadIdx.x; i < pixels && c < of_group && k < v.k; i += THREADS) {
        int q = (int)(i % v.q), p = (int)(i / v.q % v.p);
        int h = p * v.stride_h - v.top + r * v.dilation_h;
        int j = q * v.stride_w - v.left + s * v.dilation_w;

        if (h < 0 || h >= v.h || j < 0 || j >= v.w)
            continue;
        sum = fmaf(to_float(dy[i * v.y_pitch + k]),
                   to_float(x[pixel_of(i / v.q / v.p, h, j, v.h, v.w) * v.x_pitch + channel]),
                   sum);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        dw[at] = (adds ? dw[at] : 0) + sum;
}

__global__ void __launch_bounds__(THREADS)
    squares(const float *a, const float *b, int64_t count, float *ret)
{
    float apart = 0, whole = 0;

    for (int64_t i = threadIdx.x; i < count; i += THREADS) {
        apart = fmaf(a[i] - b[i], a[i] - b[i], apart);
        whole = fmaf(b[i], b[i], whole);
    }
    apart = block_sum(apart);
    whole = block_sum(whole);
    if (threadIdx.x == 0)
        ret[0] = apart, ret[1] = whole;
}

} // namespace

void conv_finish(enum elem elem,
                 void *y,
                 const void *bias,
                 const void *add,
                 int64_t rows,
                 int pitch,
                 bool has_relu,
                 cudaStream_t stream)
{
    int64_t vectors = rows * pitch / 8;

    BY_ELEM(elem, T,
            finish<<<loop_blocks(vectors), THREADS, 0, stream>>>(
                static_cast<T *>(y), static_cast<const T *>(bias), static_cast<const T *>(add),
                vectors, pitch / 8, has_relu));
}

void conv_into_grad(
    enum elem elem, const void *from, float *to, int64_t count, bool adds, cudaStream_t stream)
{
    BY_ELEM(elem, T,
            into_grad<<<loop_blocks(count / 8 + 1), THREADS, 0, stream>>>(
                static_cast<const T *>(from), to, count, adds));
}

void conv_squares(
    const float *a, const float *b, int64_t count, float *ret, cudaStream_t stream)
{
    squares<<<1, THREADS, 0, stream>>>(a, b, count, ret);
}

void conv_direct_forward(
    const conv_direct *v, const void *x, const void *w, void *y, cudaStream_t stream)
{
    int64_t threads = (int64_t)v->n * v->p * v->q * v->y_pitch;

    BY_ELEM(v->elem, T,
            direct_forward<<<blocks_of(threads), THREADS, 0, stream>>>(
                *v, static_cast<const T *>(x), static_cast<const T *>(w),
                static_cast<T *>(y)));
}

void conv_direct_data(
    const conv_direct *v, const void *dy, const void *w, void *dx, cudaStream_t stream)
{
    int64_t threads = (int64_t)v->n * v->h * v->w * v->x_pitch;

    BY_ELEM(v->elem, T,
            direct_data<<<blocks_of(threads), THREADS, 0, stream>>>(
                *v, static_cast<const T *>(dy), static_cast<const T *>(w),
                static_cast<T *>(dx)));
}

void conv_direct_weights(const conv_direct *v,
                         const void *dy,
                         const void *x,
                         float *dw,
                         int64_t weights,
                         bool adds,
                         cudaStream_t stream)
{
    BY_ELEM(v->elem, T,
            direct_weights<<<(unsigned)weights, THREADS, 0, stream>>>(
                *v, static_cast<const T *>(dy), static_cast<const T *>(x), dw, adds));
}
