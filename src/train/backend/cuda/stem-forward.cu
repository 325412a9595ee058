/* stem-forward.cu - y of a picture: see stem-kernels.h, stem.cuh.
 *
 * The weights lie in shared memory in the order in which lanes take them.
 *
 * With matrix.cuh's letters a lane needs of x, for four taps from `tap` on, channels
 * 2 (t % 2), + 1 of taps t / 2 and t / 2 + 2 of pixels g and g + 8: words at t and t + 4 from
 * where pixel g's window begins, so that a warp reads 128 bytes in a row when windows are two
 * pixels apart, and fewer when they overlap more.
 *
 * Which channel of y stands in which column of a product is free.  Here it is such that a lane
 * ends with eight channels in a row twice, 16 bytes each, and four lanes with 64 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/stem.cuh"

namespace {

enum {
    COLUMNS = CHANNELS / 8,
    MOST_SHARED = 112 << 10, /* two blocks on a multiprocessor of Hopper; where a block may not have so much it is
                                not chosen */
};

size_t weight_bytes(const conv_direct &v)
{
    return (size_t)v.r * parts_of(v) * COLUMNS * 32 * sizeof(uint2);
}

size_t shared_bytes(const conv_direct &v, const tiling &t)
{
    return weight_bytes(v) + 2 * (size_t)t.x_rows * t.x_width * sizeof(uint2);
}

/* The channel that column n of product `column` stands for. */
__device__ __forceinline__ int channel_of(int column, int n)
{
    return column / 4 * 32 + n / 2 * 8 + column % 4 * 2 + n % 2;
}

template <class T>
__device__ void load_weights(const conv_direct &v, int parts, const T *w, uint2 *to)
{
    for (int i = threadIdx.x; i < v.r * parts * COLUMNS * 32; i += THREADS) {
        int lane = i % 32, g = lane / 4, t = lane % 4, step = i / (COLUMNS * 32);
        int k = blockIdx.y * CHANNELS + channel_of(i / 32 % COLUMNS, g);
        int r = step / parts, s = step % parts * 4 + t / 2;
        const T *from = w + ((int64_t)(k * v.r + r) * v.s + s) * v.w_pitch + t % 2 * 2;
        uint2 two = make_uint2(0, 0);

        if (s < v.s)
            two.x = *reinterpret_cast<const unsigned *>(from);
        if (s + 2 < v.s)
            two.y = *reinterpret_cast<const unsigned *>(from + 2 * v.w_pitch);
        to[i] = two;
    }
}

/* The sums of a warp's runs: sum[run][column]. */
template <class T, int STEP, int PARTS, int RUNS>
__device__ __forceinline__ void multiply(const conv_direct &v,
                                         const tiling &t,
                                         const unsigned *x,
                                         const uint2 *weights,
                                         float sum[RUNS][COLUMNS][4])
{
    int lane = threadIdx.x % 32, most = t.rows * t.runs - 1;
    int from[RUNS];

#pragma unroll
    for (int u = 0; u < RUNS; u++) {
        int run = (int)threadIdx.x / 32 + u * WARPS;

        run = run < most ? run : most;
        from[u] =
            (run / t.runs * v.stride_h * t.x_width + (run % t.runs * RUN + lane / 4) * STEP) *
                2 +
            lane % 4;
    }
    for (int r = 0; r < v.r; r++)
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            uint2 b[COLUMNS];

#pragma unroll
            for (int j = 0; j < COLUMNS; j++)
                b[j] = weights[((r * PARTS + part) * COLUMNS + j) * 32 + lane];
#pragma unroll
            for (int u = 0; u < RUNS; u++) {
                const unsigned *at = x + from[u] + r * t.x_width * 2 + part * 8;
                unsigned a[4] = {at[0], at[16 * STEP], at[4], at[16 * STEP + 4]};

#pragma unroll
                for (int j = 0; j < COLUMNS; j++)
                    multiply_add<T>(sum[u][j], a, b[j].x, b[j].y);
            }
        }
}

/* Pixel g or g + 8 of one run: two pieces of eight channels. */
template <class T>
__device__ __forceinline__ void
finish(const float sum[COLUMNS][4], int half, const T *bias, bool has_relu, T *y)
{
#pragma unroll
    for (int piece = 0; piece < 2; piece++) {
        float out[8], more[8] = {};

        if (bias)
            load8(bias + piece * 32, more);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            out[i] = sum[piece * 4 + i / 2][half * 2 + i % 2] + more[i];
            out[i] = has_relu && out[i] < 0 ? 0 : out[i]; /* a NaN stays one */
        }
        store8(y + piece * 32, out);
    }
}

template <class T, int STEP, int PARTS>
__global__ void __launch_bounds__(THREADS, PARTS > 1 ? 2 : 4)
    forward(conv_direct v, tiling t, const T *x, const T *w, const T *bias, bool has_relu, T *y)
{
    enum { RUNS = runs_of_warp(PARTS) };
    extern __shared__ __align__(16) uint2 shared[];
    int lane = threadIdx.x % 32, channel = blockIdx.y * CHANNELS + lane % 4 * 8;
    uint2 *weights = shared, *parts = shared + v.r * PARTS * COLUMNS * 32;
    int room = t.x_rows * t.x_width, turn = 0;

    if ((int)blockIdx.x < t.tiles)
        fetch(v, t, x, blockIdx.x, 0, parts);
    copies_end_group();
    load_weights(v, PARTS, w, weights);
    for (int tile = blockIdx.x; tile < t.tiles; tile += gridDim.x, turn ^= 1) {
        float sum[RUNS][COLUMNS][4] = {};
        corner at = corner_of(t, tile);

        if (tile + (int)gridDim.x < t.tiles)
            fetch(v, t, x, tile + gridDim.x, 0, parts + (turn ^ 1) * room);
        copies_end_group();
        copies_wait<1>();
        __syncthreads();
        multiply<T, STEP, PARTS, RUNS>(
            v, t, reinterpret_cast<const unsigned *>(parts + turn * room), weights, sum);
#pragma unroll
        for (int u = 0; u < RUNS; u++) {
            int run = (int)threadIdx.x / 32 + u * WARPS, p = at.p + run / t.runs;

#pragma unroll
            for (int half = 0; half < 2; half++) {
                int q = at.q + run % t.runs * RUN + lane / 4 + half * 8;

                if (run < t.rows * t.runs && p < v.p && q < v.q)
                    finish(sum[u], half, bias ? bias + channel : nullptr, has_relu,
                           y + (((int64_t)at.n * v.p + p) * v.q + q) * v.y_pitch + channel);
            }
        }
        __syncthreads();
    }
}

template <class T, int STEP, int PARTS>
void launch(const conv_direct &v, int multiprocessors, const stem_arrays &a, cudaStream_t stream)
{
    tiling t = tiling_of(v);
    int blocks = multiprocessors * (PARTS > 1 ? 2 : 4);
    size_t bytes = shared_bytes(v, t);
    dim3 grid(blocks < t.tiles ? blocks : t.tiles, v.y_pitch / CHANNELS);

    if (bytes > 48 << 10)
        (void)cudaFuncSetAttribute(forward<T, STEP, PARTS>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    forward<T, STEP, PARTS><<<grid, THREADS, bytes, stream>>>(
        v, t, static_cast<const T *>(a.x), static_cast<const T *>(a.w),
        static_cast<const T *>(a.bias), a.has_relu, static_cast<T *>(a.y));
}

template <class T>
void launch_any(const conv_direct &v,
                int multiprocessors,
                const stem_arrays &a,
                cudaStream_t stream)
{
    int parts = parts_of(v);

    if (v.stride_w == 1 && parts == 1)
        launch<T, 1, 1>(v, multiprocessors, a, stream);
    else if (v.stride_w == 1)
        launch<T, 1, 2>(v, multiprocessors, a, stream);
    else if (parts == 1)
        launch<T, 2, 1>(v, multiprocessors, a, stream);
    else
        launch<T, 2, 2>(v, multiprocessors, a, stream);
}

} // namespace

bool stem_fits(const conv_direct *v)
{
    bool is_small = v->c <= 4 && v->x_pitch == 8 && v->w_pitch == 8 && v->groups == 1 &&
                    v->y_pitch == v->k && v->k % CHANNELS == 0 && v->r <= 8 && v->s <= 8 &&
                    v->dilation_h == 1 && v->dilation_w == 1 && v->stride_h <= 2 &&
                    v->stride_w <= 2;

    if (!is_small || (v->elem != ELEM_BF16 && v->elem != ELEM_F16) ||
        (int64_t)v->n * v->p * v->q > INT32_MAX)
        return false;
    tiling t = tiling_of(*v);
    return shared_bytes(*v, t) <= MOST_SHARED && 2 * tile_bytes(*v, t) <= MOST_SHARED;
}

void stem_forward(const conv_direct *v,
                  int multiprocessors,
                  const stem_arrays *a,
                  cudaStream_t stream)
{
    if (v->elem == ELEM_BF16)
        launch_any<__nv_bfloat16>(*v, multiprocessors, *a, stream);
    else
        launch_any<__half>(*v, multiprocessors, *a, stream);
}
