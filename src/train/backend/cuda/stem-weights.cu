/* stem-weights.cu - the gradient of weights of a picture's convolution, and of its bias: see
 * stem-kernels.h, stem.cuh.
 *
 * It is the product the other way, over pixels: a warp has one row of the window and all 64
 * channels, and walks over the runs of its tiles; what blocks have summed is added up in a
 * fixed order at the end.  Rows of 16 bytes, two taps, are loaded at once: where windows are
 * one pixel apart half of them begin at an odd one, and are taken from a second copy of x that
 * lies one pixel further on.  The fourth channel is free when pictures have three: set to one,
 * its product is the sum of dy, the gradient of the bias.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/stem.cuh"

namespace {

enum {
    SLICES = 16, /* of what blocks have summed, added up side by side */
};

/* Warps that share a row of the window: each has every other run. */
__host__ __device__ constexpr int sharers_of(int parts)
{
    return parts > 1 ? 1 : 2;
}

/* Bytes, or zeros. */
__device__ __forceinline__ void copy_16(void *to, const void *from, bool is_there)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    int bytes = is_there ? 16 : 0;

    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from),
                 "r"(bytes)
                 : "memory");
}

template <class T>
__device__ __forceinline__ void
fetch_dy(const conv_direct &v, const tiling &t, const T *dy, int tile, T *to)
{
    corner at = corner_of(t, tile);

    for (int i = threadIdx.x; i < t.rows * t.runs * RUN * 8; i += blockDim.x) {
        int pixel = i / 8, row = pixel / (t.runs * RUN), q = pixel - row * t.runs * RUN + at.q;
        bool is_there = at.p + row < v.p && q < v.q;
        const T *from = dy + (((int64_t)at.n * v.p + at.p + row) * v.q + q) * v.y_pitch;

        copy_16(to + pixel * DY_PITCH + i % 8 * 8,
                is_there ? from + blockIdx.y * CHANNELS + i % 8 * 8 : dy, is_there);
    }
}

/* Those pixels that this thread has fetched. */
template <class T> __device__ __forceinline__ void set_ones(const tiling &t, uint2 *x)
{
    for (int row = threadIdx.x / 32; row < t.x_rows; row += blockDim.x / 32)
        for (int i = threadIdx.x % 32; i < t.x_width; i += 32)
            reinterpret_cast<T *>(x + row * t.x_width + i)[3] = from_float<T>(1);
}

template <class T, int STEP, int PARTS>
__device__ __forceinline__ void add_products(const conv_direct &v,
                                             const tiling &t,
                                             const uint2 *x,
                                             const T *dy,
                                             float sum[4][PARTS * 2][4])
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, r = warp % v.r;
    int pixel = lane / 8 % 2 * 8 + lane % 8; /* of x's matrices */
    const uint2 *copy = x + (STEP == 1 ? pixel % 2 * (copy_room(t) - 1) : 0);

    dy += (lane / 16 * 8 + lane % 8) * DY_PITCH + lane / 8 % 2 * 8;
    for (int run = warp / v.r; run < t.rows * t.runs; run += sharers_of(PARTS)) {
        const uint2 *at = copy + (run / t.runs * v.stride_h + r) * t.x_width +
                          (run % t.runs * RUN + pixel) * STEP + lane / 16 * 2;
        unsigned a[4][4], b[4];

#pragma unroll
        for (int m = 0; m < 4; m++)
            load_matrices_turned(a[m], dy + run * RUN * DY_PITCH + m * 16);
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            load_matrices_turned(b, at + part * 4);
#pragma unroll
            for (int m = 0; m < 4; m++) {
                multiply_add<T>(sum[m][part * 2], a[m], b[0], b[1]);
                multiply_add<T>(sum[m][part * 2 + 1], a[m], b[2], b[3]);
            }
        }
    }
}

/* sums: [64 channels of y][block and sharer][channel][row of the window][tap][4]. */
template <class T, int STEP, int PARTS>
__global__ void __launch_bounds__(PARTS > 1 ? 256 : 512) weights_of_blocks(
    conv_direct v, tiling t, const T *dy, const T *x, bool has_ones, float *sums)
{
    extern __shared__ __align__(16) uint2 shared[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, turn = 0;
    int room = tile_bytes(v, t) / 8, copies = STEP == 1 ? 2 : 1;
    float sum[4][PARTS * 2][4] = {};

    for (int tile = (int)blockIdx.x - (int)gridDim.x; tile < t.tiles;
         tile += gridDim.x, turn ^= 1) {
        uint2 *now = shared + turn * room, *next = shared + (turn ^ 1) * room;

        if (tile + (int)gridDim.x < t.tiles) {
            for (int i = 0; i < copies; i++)
                fetch(v, t, x, tile + gridDim.x, i, next + i * copy_room(t));
            fetch_dy(v, t, dy, tile + gridDim.x,
                     reinterpret_cast<T *>(next + copies * copy_room(t)));
        }
        copies_end_group();
        copies_wait<1>();
        if (tile < 0) /* only the first one's were sent for */
            continue;
        for (int i = 0; has_ones && i < copies; i++)
            set_ones<T>(t, now + i * copy_room(t));
        __syncthreads();
        add_products<T, STEP, PARTS>(
            v, t, now, reinterpret_cast<const T *>(now + copies * copy_room(t)), sum);
        __syncthreads();
    }
    sums += ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * sharers_of(PARTS) * CHANNELS *
            v.r * PARTS * 16;
#pragma unroll
    for (int m = 0; m < 4; m++)
#pragma unroll
        for (int j = 0; j < PARTS * 2; j++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int k = warp / v.r * CHANNELS + m * 16 + lane / 4 + half * 8;
                float *to = sums + ((int64_t)k * v.r + warp % v.r) * PARTS * 16 + j * 8;

                *reinterpret_cast<float2 *>(to + lane % 4 * 2) =
                    make_float2(sum[m][j][half * 2], sum[m][j][half * 2 + 1]);
            }
}

/* One of `wide` sums a thread column, SLICES of the blocks below each other. */
__global__ void __launch_bounds__(32 * SLICES) weights_of_all(
    conv_direct v, int parts, int blocks, const float *sums, float *dw, float *dbias, bool adds)
{
    __shared__ float shared[SLICES][32];
    int wide = CHANNELS * v.r * parts * 16, i = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;

    sums += (int64_t)blockIdx.y * blocks * wide + i;
#pragma unroll 8
    for (int block = threadIdx.y; block < blocks; block += SLICES)
        sum += sums[(int64_t)block * wide];
    shared[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0)
        return;
    for (int slice = 1; slice < SLICES; slice++)
        sum += shared[slice][threadIdx.x];

    int c = i % 4, s = i / 4 % (parts * 4), r = i / (parts * 16) % v.r;
    int k = blockIdx.y * CHANNELS + i / (parts * 16) / v.r;
    float *to = dw + ((int64_t)(k * v.r + r) * v.s + s) * v.w_pitch + c;

    if (dbias && c == 3 && r == 0 && s == 0)
        dbias[k] = (adds ? dbias[k] : 0) + sum;
    if (s >= v.s)
        return;
    to[0] = c < v.c ? (adds ? to[0] : 0) + sum : 0;
    to[4] = 0;
}

int weight_blocks(const conv_direct &v, const tiling &t, int multiprocessors)
{
    int blocks = multiprocessors * (parts_of(v) > 1 ? 2 : 4);

    return blocks < t.tiles ? blocks : t.tiles;
}

template <class T, int STEP, int PARTS>
void launch_weights(const conv_direct &v,
                    int multiprocessors,
                    const void *dy,
                    const void *x,
                    const stem_grads &to,
                    cudaStream_t stream)
{
    tiling t = tiling_of(v);
    int blocks = weight_blocks(v, t, multiprocessors), wide = CHANNELS * v.r * PARTS * 16;
    dim3 grid(blocks, v.y_pitch / CHANNELS), rest(wide / 32, v.y_pitch / CHANNELS);
    size_t bytes = 2 * (size_t)tile_bytes(v, t);

    if (bytes > 48 << 10)
        (void)cudaFuncSetAttribute(weights_of_blocks<T, STEP, PARTS>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    weights_of_blocks<T, STEP, PARTS><<<grid, 32 * v.r * sharers_of(PARTS), bytes, stream>>>(
        v, t, static_cast<const T *>(dy), static_cast<const T *>(x), to.dbias != nullptr,
        to.parts);
    weights_of_all<<<rest, dim3(32, SLICES), 0, stream>>>(v, PARTS, blocks * sharers_of(PARTS),
                                                          to.parts, to.dw, to.dbias, to.adds);
}

template <class T>
void launch_any_weights(const conv_direct &v,
                        int multiprocessors,
                        const void *dy,
                        const void *x,
                        const stem_grads &to,
                        cudaStream_t stream)
{
    int parts = parts_of(v);

    if (v.stride_w == 1 && parts == 1)
        launch_weights<T, 1, 1>(v, multiprocessors, dy, x, to, stream);
    else if (v.stride_w == 1)
        launch_weights<T, 1, 2>(v, multiprocessors, dy, x, to, stream);
    else if (parts == 1)
        launch_weights<T, 2, 1>(v, multiprocessors, dy, x, to, stream);
    else
        launch_weights<T, 2, 2>(v, multiprocessors, dy, x, to, stream);
}

} // namespace

int64_t stem_parts(const conv_direct *v, int multiprocessors)
{
    int parts = parts_of(*v), blocks = weight_blocks(*v, tiling_of(*v), multiprocessors);

    return (int64_t)blocks * sharers_of(parts) * v->y_pitch * v->r * parts * 16;
}

void stem_weights(const conv_direct *v,
                  int multiprocessors,
                  const void *dy,
                  const void *x,
                  const stem_grads *to,
                  cudaStream_t stream)
{
    if (v->elem == ELEM_BF16)
        launch_any_weights<__nv_bfloat16>(*v, multiprocessors, dy, x, *to, stream);
    else
        launch_any_weights<__half>(*v, multiprocessors, dy, x, *to, stream);
}
