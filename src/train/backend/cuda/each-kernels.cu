/* each-kernels.cu - see each-kernels.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/each-kernels.h"

#include "train/backend/cuda/device.cuh"

enum {
    THREADS = 256,
    EACH = 8,
    MOST_BLOCKS = 1 << 16,
};

static int blocks_for(int64_t items)
{
    int64_t blocks = (items + THREADS - 1) / THREADS;

    return (int)(blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks);
}

/* Loops over items: i from this thread's first, by the size of the grid. */
#define FOR_ITEMS(i, count)                                                                    \
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < (count);                 \
         i += (int64_t)gridDim.x * THREADS)

static __device__ __forceinline__ float gelu(float x)
{
    return 0.5f * x * (1 + erff(x * 0.70710678f));
}

static __device__ __forceinline__ float gelu_slope(float x)
{
    return 0.5f * (1 + erff(x * 0.70710678f)) + x * 0.39894228f * expf(-0.5f * x * x);
}

/* A NaN stays one through relu. */
template <int KIND> static __device__ __forceinline__ float one(float x, float second)
{
    switch (KIND) {
    case EACH_RELU:
        return x < 0 ? 0 : x;
    case EACH_TANH:
        return tanhf(x);
    case EACH_GELU:
        return gelu(x);
    case EACH_RELU_GRAD:
        return second > 0 ? x : 0;
    case EACH_TANH_GRAD:
        return x * (1 - second * second);
    case EACH_GELU_GRAD:
        return x * gelu_slope(second);
    default:
        return x + second;
    }
}

template <int KIND, class T>
static __global__ __launch_bounds__(THREADS) void each_kernel(const struct each_args a)
{
    constexpr bool has_second = KIND >= EACH_RELU_GRAD;

    FOR_ITEMS (i, a.count / EACH) {
        float x[EACH], y[EACH] = {};

        load8((const T *)a.from[0] + i * EACH, x);
        if (has_second)
            load8((const T *)a.from[1] + i * EACH, y);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            x[j] = one<KIND>(x[j], y[j]);
        if (KIND == EACH_SUM) { /* in the order of the inputs: it is part of the bits */
            for (int k = 2; k < a.inputs; k++) {
                load8((const T *)a.from[k] + i * EACH, y);
#pragma unroll
                for (int j = 0; j < EACH; j++)
                    x[j] += y[j];
            }
            if (a.adds) {
                load8((const T *)a.to + i * EACH, y);
#pragma unroll
                for (int j = 0; j < EACH; j++)
                    x[j] += y[j];
            }
        }
        store8((T *)a.to + i * EACH, x);
    }
}

template <class T> static void each_of(const struct each_args *a, cudaStream_t stream)
{
    int blocks = blocks_for(a->count / EACH);

#define KIND_OF(kind)                                                                          \
    case kind:                                                                                 \
        each_kernel<kind, T><<<blocks, THREADS, 0, stream>>>(*a);                              \
        break
    switch (a->kind) {
        KIND_OF(EACH_RELU);
        KIND_OF(EACH_TANH);
        KIND_OF(EACH_GELU);
        KIND_OF(EACH_RELU_GRAD);
        KIND_OF(EACH_TANH_GRAD);
        KIND_OF(EACH_GELU_GRAD);
        KIND_OF(EACH_SUM);
    }
#undef KIND_OF
}

void launch_each(const struct each_args *a, cudaStream_t stream)
{
    BY_ELEM(a->elem, T, each_of<T>(a, stream));
}

template <class T, class F>
static __global__ __launch_bounds__(THREADS) void image_kernel(const struct image_args a)
{
    FOR_ITEMS (i, a.pixels) {
        float x[EACH] = {};

#pragma unroll
        for (int c = 0; c < 4; c++)
            if (c < a.channels)
                x[c] = to_float(((const F *)a.from)[i * a.channels + c]) * a.scale[c] +
                       a.shift[c];
        store8((T *)a.to + i * EACH, x);
    }
}

void launch_image(const struct image_args *a, cudaStream_t stream)
{
    int blocks = blocks_for(a->pixels);

    if (a->from_elem == ELEM_U8)
        BY_ELEM(a->elem, T,
                image_kernel<T, unsigned char><<<blocks, THREADS, 0, stream>>>(*a));
    else
        BY_ELEM(a->elem, T, image_kernel<T, float><<<blocks, THREADS, 0, stream>>>(*a));
}

/* Eight channels of the output, from whichever inputs they come. */
template <class T>
static __device__ void
gather8(const struct channels_args &a, int64_t row, int first, T to[EACH])
{
    for (int k = 0; k < a.count; k++) {
        const struct channels_from &f = a.from[k];
        const T *from = (const T *)f.from + row * f.pitch + f.skip - f.at;

#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (first + j >= f.at && first + j < f.at + f.cols)
                to[j] = from[first + j];
    }
}

/* The input that has all eight, where eight are one load; or none. */
static __device__ int whole_input(const struct channels_args &a, int first)
{
    for (int k = 0; k < a.count; k++) {
        const struct channels_from &f = a.from[k];

        if (first >= f.at && first + EACH <= f.at + f.cols && (f.skip - f.at) % EACH == 0)
            return k;
    }
    return -1;
}

template <class T>
static __global__ __launch_bounds__(THREADS) void channels_kernel(const struct channels_args a)
{
    const int groups = a.pitch / EACH;

    FOR_ITEMS (i, a.rows * groups) {
        int64_t row = i / groups;
        int first = (int)(i - row * groups) * EACH, k = whole_input(a, first);
        float x[EACH];
        T each[EACH];

        if (k >= 0) {
            const struct channels_from &f = a.from[k];

            load8((const T *)f.from + row * f.pitch + f.skip - f.at + first, x);
        } else {
            for (int j = 0; j < EACH; j++)
                each[j] = from_float<T>(0);
            gather8(a, row, first, each);
            for (int j = 0; j < EACH; j++)
                x[j] = to_float(each[j]);
        }
        store8((T *)a.to + row * a.pitch + first, x);
    }
}

void launch_channels(const struct channels_args *a, cudaStream_t stream)
{
    int blocks = blocks_for(a->rows * (a->pitch / EACH));

    BY_ELEM(a->elem, T, channels_kernel<T><<<blocks, THREADS, 0, stream>>>(*a));
}

static __device__ int64_t place_of(const struct shape_of &s, int64_t i)
{
    int64_t at = 0;

#pragma unroll
    for (int d = 3; d >= 0; d--) {
        at += i % s.dim[d] * s.stride[d];
        i /= s.dim[d];
    }
    return at;
}

template <class T, class F>
static __global__ __launch_bounds__(THREADS) void reshape_kernel(const struct reshape_args a)
{
    FOR_ITEMS (i, a.elements) {
        float x = to_float(((const F *)a.from)[place_of(a.from_shape, i)]);
        T *to = (T *)a.to + place_of(a.to_shape, i);

        *to = from_float<T>(a.adds ? to_float(*to) + x : x);
    }
}

template <class F> static void reshape_from(const struct reshape_args *a, cudaStream_t stream)
{
    int blocks = blocks_for(a->elements);

    BY_ELEM(a->to_elem, T, reshape_kernel<T, F><<<blocks, THREADS, 0, stream>>>(*a));
}

/* Padding first, all of it: where several passes add up it is zero already. */
void launch_reshape(const struct reshape_args *a, cudaStream_t stream)
{
    if (!a->adds && a->room != a->elements)
        cudaMemsetAsync(a->to, 0, (size_t)a->room * elem_bytes(a->to_elem), stream);
    BY_ELEM(a->from_elem, T, reshape_from<T>(a, stream));
}

/* Logical index of an element: rows are N, or N H W with channels outside of H W. */
static __device__ __forceinline__ uint64_t index_of(const struct dropout_args &a, int64_t row, int c)
{
    if (a.plane == 0)
        return (uint64_t)(row * a.cols + c);
    int64_t n = row / a.plane;
    return (uint64_t)((n * a.cols + c) * a.plane + (row - n * a.plane));
}

/* Which of the eight are kept, as bits. */
static __device__ unsigned
kept_bits(const struct dropout_args &a, const struct step_facts *facts, int64_t row, int first)
{
    uint64_t key = facts->seed ^ a.stream, hi = dropout_hi(facts);
    unsigned bits = 0;

    if (a.plane == 0) {
        uint4 w = dropout_draw8(key, hi, index_of(a, row, first));

#pragma unroll
        for (int j = 0; j < EACH; j++)
            bits |= (unsigned)(dropout_half(w, j) >= a.limit) << j;
        return bits;
    }
    for (int j = 0; j < EACH && first + j < a.cols; j++) {
        uint64_t i = index_of(a, row, first + j);
        uint4 w = dropout_draw(key, hi, i / 8);

        bits |= (unsigned)(dropout_half(w, (int)(i % 8)) >= a.limit) << j;
    }
    return bits;
}

template <class T>
static __global__ __launch_bounds__(THREADS) void dropout_kernel(const struct dropout_args a,
                                                                 const struct step_facts *facts)
{
    const int groups = a.pitch / EACH;

    FOR_ITEMS (i, a.rows * groups) {
        int64_t row = i / groups;
        int first = (int)(i - row * groups) * EACH;
        unsigned bits = kept_bits(a, facts, row, first);
        float x[EACH], add[EACH] = {};

        load8((const T *)a.from + i * EACH, x);
        if (a.add)
            load8((const T *)a.add + i * EACH, add);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            x[j] = (bits >> j & 1 ? x[j] * a.keep_scale : 0) + add[j];
        store8((T *)a.to + i * EACH, x);
    }
}

void launch_dropout(const struct dropout_args *a,
                    const struct step_facts *facts,
                    cudaStream_t stream)
{
    int blocks = blocks_for(a->rows * (a->pitch / EACH));

    BY_ELEM(a->elem, T, dropout_kernel<T><<<blocks, THREADS, 0, stream>>>(*a, facts));
}

template <class F>
static __global__ __launch_bounds__(THREADS) void grad_kernel(float *to,
                                                              const F *from,
                                                              int64_t groups,
                                                              int adds)
{
    FOR_ITEMS (i, groups) {
        float x[EACH], y[EACH];

        load8(from + i * EACH, x);
        if (adds) {
            load8(to + i * EACH, y);
#pragma unroll
            for (int j = 0; j < EACH; j++)
                x[j] += y[j];
        }
        store8(to + i * EACH, x);
    }
}

void launch_grad(float *to,
                 const void *from,
                 enum elem from_elem,
                 int64_t count,
                 int adds,
                 cudaStream_t stream)
{
    int64_t groups = count / EACH;
    int blocks = blocks_for(groups);

    BY_ELEM(from_elem, T,
            grad_kernel<T><<<blocks, THREADS, 0, stream>>>(to, (const T *)from, groups, adds));
}
