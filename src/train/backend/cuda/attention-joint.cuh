/* attention-joint.cuh - what the kernels that make all of attention's gradient share, for
 * Hopper: attention-whole.cu and attention-joint.cu.
 *
 * A block of two groups of four warps has a head: each group 64 keys at a time, over all queries
 * in tiles of 64.  Probabilities are made once for dq, dk and dv (the two kernels of
 * attention-backward.cu make them twice).  They lie turned, keys by queries, so that they are the
 * left operand of dv as they are; what dq is made of goes through shared memory, where both
 * groups read it.
 *
 * The block has all rows of its columns, so it sums them too, for the gradient of the bias.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_ATTENTION_JOINT_CUH
#define TRAIN_BACKEND_CUDA_ATTENTION_JOINT_CUH

#include "train/backend/cuda/attention-fast.h"
#include "train/backend/cuda/attention-tiles.cuh"

enum {
    GROUPS = 2,
    JOINT_THREADS = GROUPS * THREADS,
    KEYS = GROUPS * TILE, /* at a time */
    CHUNK = 32,           /* queries at a time */
    WIDTH = 64,
};

/* Of a tile of queries: what dropout kept. */
struct kept_words {
    unsigned word[KEYS / 32][TILE];
};

/* Sums of columns of dq, dk, dv, by warp. */
struct head_sums {
    float of[3][GROUPS * WARPS][WIDTH];
};

/* Which of the two groups a warp is of: the compiler sees that lanes agree. */
__device__ __forceinline__ int group_of_warp()
{
    return __shfl_sync(0xffffffffu, (int)threadIdx.x / THREADS, 0);
}

/* dy . y of a row of a head, by eight threads. */
template <class T>
__device__ __forceinline__ float
dot_row(const struct attention &a, int64_t row, int64_t column, int part)
{
    int64_t at = row * a.y_pitch + column + part * 8;
    float dy[8], y[8], sum = 0;

    load8((const T *)a.dy + at, dy);
    load8((const T *)a.y + at, y);
#pragma unroll
    for (int i = 0; i < 8; i++)
        sum = fmaf(dy[i], y[i], sum);
    sum = four_sum(sum);
    return sum + __shfl_xor_sync(0xffffffffu, sum, 4);
}

/* A word for each thread: of tile `block` of queries, and the keys of `turn`. */
__device__ __forceinline__ void copy_kept(
    struct kept_words *to, const struct attention &a, const struct spot &s, int turn, int block)
{
    constexpr int WORDS = KEYS / 32;
    int query = threadIdx.x / WORDS, word = threadIdx.x % WORDS;
    int64_t row = s.head * a.length + block * TILE + query;

    copy_4(&to->word[word][query], a.bits + row * (a.length / 32) + turn * WORDS + word);
}

/* A warp's 16 rows (of its group's 64) and 16 N columns into a tile, from column 8 c on. */
template <class T, int N>
__device__ __forceinline__ void
put_rows(typename group<T>::tile *to, const unsigned left[N][4], int c)
{
    int lane = threadIdx.x % 32;
    unsigned r = threadIdx.x % THREADS / 32 * 16 + lane % 16;

#pragma unroll
    for (int s = 0; s < N; s++)
        store_matrices(group<T>::at(to, r, c + 2 * s + lane / 16), left[s]);
}

/* The same through a tile to memory, 16 bytes a lane. */
template <class T, int N>
__device__ __forceinline__ void store_through(
    typename group<T>::tile *room, const float x[2 * N][4], T *to, int64_t pitch, int c)
{
    constexpr int LANES = 2 * N; /* of a row */
    unsigned left[N][4], first = threadIdx.x % THREADS / 32 * 16, lane = threadIdx.x % 32;

    as_left<T, 2 * N>(left, x);
    __syncwarp(); /* the room may have been used so before */
    put_rows<T, N>(room, left, c);
    __syncwarp();
#pragma unroll
    for (unsigned i = 0; i < 16 * LANES / 32; i++) {
        unsigned r = first + i * (32 / LANES) + lane / LANES, column = c + lane % LANES;

        *reinterpret_cast<uint4 *>(to + r * pitch + column * 8) =
            *reinterpret_cast<const uint4 *>(group<T>::at(room, r, column));
    }
}

/* Lanes that differ in `BIT` have the same 2 K columns: each keeps half of them. */
template <int K, int BIT> __device__ __forceinline__ void share_sums(float *v, int lane)
{
    bool is_upper = lane & BIT;

#pragma unroll
    for (int i = 0; i < K; i++) {
        float mine = is_upper ? v[i + K] : v[i], other = is_upper ? v[i] : v[i + K];

        v[i] = mine + __shfl_xor_sync(0xffffffffu, other, BIT);
    }
    if constexpr (K > 2)
        share_sums<K / 2, BIT / 2>(v, lane);
}

/* Add sums of the columns of 16 rows and 8 N columns to `to`, which is the warp's alone. */
template <int N> __device__ __forceinline__ void add_sums(float *to, const float x[N][4])
{
    int lane = threadIdx.x % 32, column = lane / (32 / N) * 8 + lane % 4 * 2;
    float v[2 * N];

#pragma unroll
    for (int j = 0; j < N; j++) {
        v[2 * j] = x[j][0] + x[j][2];
        v[2 * j + 1] = x[j][1] + x[j][3];
    }
    share_sums<N, 16>(v, lane);
#pragma unroll
    for (int bit = 16 / N; bit >= 4; bit /= 2) { /* lanes that have the same two */
        v[0] += __shfl_xor_sync(0xffffffffu, v[0], bit);
        v[1] += __shfl_xor_sync(0xffffffffu, v[1], bit);
    }
    if (lane % (32 / N) < 4) {
        to[column] += v[0];
        to[column + 1] += v[1];
    }
}

template <int N> __device__ __forceinline__ void scale_by(float x[N][4], float factor)
{
#pragma unroll
    for (int j = 0; j < N; j++)
#pragma unroll
        for (int c = 0; c < 4; c++)
            x[j][c] *= factor;
}

/* Products of (64 keys, N queries) become probabilities; rows of keys that are not looked at are
 * none.  `less` is of the first query. */
template <int N>
__device__ __forceinline__ void soften_back(float p[N / 8][4],
                                            const float *less,
                                            const struct attention &a,
                                            const bool is_seen[2])
{
    float scale = a.scale * LOG2_E;

#pragma unroll
    for (int j = 0; j < N / 8; j++) {
        float2 by = *reinterpret_cast<const float2 *>(less + j * 8 + threadIdx.x % 4 * 2);

#pragma unroll
        for (int c = 0; c < 4; c++)
            p[j][c] = fast_exp2(fmaf(p[j][c], scale, c % 2 ? -by.y : -by.x));
    }
    if (__all_sync(0xffffffffu, is_seen[0] && is_seen[1]))
        return;
#pragma unroll
    for (int j = 0; j < N / 8; j++)
#pragma unroll
        for (int c = 0; c < 4; c++)
            p[j][c] = is_seen[c / 2] ? p[j][c] : 0;
}

/* What dropout kept of a thread's elements, from query `first` of the tile on: bit 8 r of word
 * 2 j + c. */
template <int N>
__device__ __forceinline__ void
read_kept(unsigned kept[N / 4], const struct kept_words *bits, int first)
{
    int lane = threadIdx.x % 32, shift = (threadIdx.x / 32 & 1) * 16 + lane / 4;
    const unsigned *from = bits->word[threadIdx.x / 64] + first + lane % 4 * 2;

#pragma unroll
    for (int j = 0; j < N / 8; j++) {
        uint2 two = *reinterpret_cast<const uint2 *>(from + j * 8);

        kept[2 * j] = two.x >> shift;
        kept[2 * j + 1] = two.y >> shift;
    }
}

/* The left operand of dv: probabilities, what was dropped is none. */
template <bool DROPS, int N, class T>
__device__ __forceinline__ void
keep_left(unsigned left[N / 16][4], const float p[N / 8][4], const unsigned kept[N / 4])
{
    float x[N / 8][4];

#pragma unroll
    for (int j = 0; j < N / 8; j++)
#pragma unroll
        for (int c = 0; c < 4; c++)
            x[j][c] = !DROPS || (kept[2 * j + c % 2] >> (c / 2 * 8) & 1) ? p[j][c] : 0;
    as_left<T, N / 8>(left, x);
}

/* dp becomes what dk and dq are made of.  `delta` is of the first query. */
template <bool DROPS, int N>
__device__ __forceinline__ void turn_back(float dp[N / 8][4],
                                          const float p[N / 8][4],
                                          const unsigned kept[N / 4],
                                          const float *delta,
                                          const struct attention &a)
{
    float factor = DROPS ? a.dropout.factor : 1;

#pragma unroll
    for (int j = 0; j < N / 8; j++) {
        float2 by = *reinterpret_cast<const float2 *>(delta + j * 8 + threadIdx.x % 4 * 2);

#pragma unroll
        for (int c = 0; c < 4; c++) {
            float g = !DROPS || (kept[2 * j + c % 2] >> (c / 2 * 8) & 1) ? dp[j][c] : 0;

            dp[j][c] = p[j][c] * fmaf(g, factor, c % 2 ? -by.y : -by.x);
        }
    }
}

/* By all threads, before a barrier. */
__device__ __forceinline__ void clear_sums(struct head_sums *sums)
{
    for (int i = threadIdx.x; i < 3 * GROUPS * WARPS * WIDTH; i += JOINT_THREADS)
        sums->of[0][0][i] = 0;
}

/* All warps' together. */
__device__ __forceinline__ void
store_sums(const struct head_sums *sums, const struct attention &a, const struct spot &s)
{
    int which = threadIdx.x / WIDTH, column = threadIdx.x % WIDTH;
    float sum = 0;

    __syncthreads();
    if (which >= 3)
        return;
    for (int w = 0; w < GROUPS * WARPS; w++)
        sum += sums->of[which][w][column];
    a.parts[blockIdx.z * a.pitch + which * s.d + s.column + column] = sum;
}

/* A block for each head. */
template <class K>
void launch_heads(K kernel, size_t bytes, cudaStream_t stream, const struct attention *args)
{
    dim3 grid(1, (unsigned)args->heads, (unsigned)args->batch);

    (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    kernel<<<grid, JOINT_THREADS, bytes, stream>>>(*args);
}

/* Calls with the types of a shape that attention_is_joint(): call(engine, drops). */
template <class F> void by_joint(enum elem elem, const struct attention *args, F call)
{
    if (elem == ELEM_BF16)
        by_dropout<group<__nv_bfloat16>>(args, call);
    else
        by_dropout<group<__half>>(args, call);
}

#endif
