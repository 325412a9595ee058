/* attention-backward.cu - the fast kernels of attention's gradient: see attention-tiles.cuh.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/attention-fast.h"
#include "train/backend/cuda/attention-tiles.cuh"

/* dy . y of rows g and g+8 of 16. */
template <class T, int E>
static __device__ __forceinline__ float2
dot_rows(const T *dy, const T *y, int64_t pitch, int lane)
{
    float delta[2] = {0, 0};
    unsigned u[E / 16][4], v[E / 16][4];

    load_left<T, E>(u, dy, pitch, lane);
    load_left<T, E>(v, y, pitch, lane);
#pragma unroll
    for (int s = 0; s < E / 16; s++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const T *a = reinterpret_cast<const T *>(&u[s][i]);
            const T *b = reinterpret_cast<const T *>(&v[s][i]);

            delta[i & 1] += to_float(a[0]) * to_float(b[0]) + to_float(a[1]) * to_float(b[1]);
        }
    return make_float2(four_sum(delta[0]), four_sum(delta[1]));
}

/* Of a row: dy . y, and what is subtracted in its exponents. */
static __device__ __forceinline__ float2 *turns_of(const struct attention &a)
{
    return reinterpret_cast<float2 *>(a.delta);
}

/* Words of rows g and g+8, from the lane's first column on. */
template <int N>
static __device__ __forceinline__ void
read_bits(unsigned word[2][N], const struct attention &a, int64_t at)
{
    const uint32_t *bits = a.bits + at;
    int shift = threadIdx.x % 4 * 2;

#pragma unroll
    for (int i = 0; i < N; i++) {
        word[0][i] = bits[i] >> shift;
        word[1][i] = bits[a.length / 4 + i] >> shift; /* eight rows on */
    }
}

template <class M> struct grad_q_tiles : key_tiles<M> {
    typename M::room dy;
};

template <class M, bool DROPS>
static __global__ void __launch_bounds__(THREADS, M::width == 128 ? 2 : 4)
    attention_grad_q(struct attention a)
{
    using T = typename M::type;
    constexpr int E = M::width, CHUNK = M::chunk;
    grad_q_tiles<M> *sh = shared_room<grad_q_tiles<M>>();
    struct spot s = spot_of(a);
    int lane = threadIdx.x % 32, blocks = a.length / TILE;
    int64_t at = (s.row + s.first) * a.y_pitch + s.column;
    int64_t block_at = (s.row + blockIdx.x * TILE) * a.y_pitch + s.column;
    int64_t row = s.head * a.length + s.first + lane / 4;
    float scale = a.scale * LOG2_E, factor = DROPS ? a.dropout.factor : 1;
    float dq[E / 8][4] = {};
    typename M::owned q = M::own(&sh->q, queries_of<T>(a, s), a.pitch);
    typename M::owned dy = M::own(&sh->dy, (const T *)a.dy + block_at, a.y_pitch);

    copy_keys(sh, a, s, 0);
    float2 delta = dot_rows<T, E>((const T *)a.dy + at, (const T *)a.y + at, a.y_pitch, lane);
    float2 less = make_float2(exponent_of(a.saved[row]), exponent_of(a.saved[row + 8]));
    if (lane % 4 < 2)
        turns_of(a)[row + lane % 4 * 8] =
            lane % 4 ? make_float2(delta.y, less.y) : make_float2(delta.x, less.x);
    for (int b = 0; b < blocks; b++) {
        struct seen seen;

        next_keys(sh, a, s, b, blocks);
        seen = seen_in(sh, b, lane);
#pragma unroll
        for (int half = 0; half < TILE / CHUNK; half++) {
            float p[CHUNK / 8][4], dp[CHUNK / 8][4];
            unsigned word[2][CHUNK / 32], left[CHUNK / 16][4];

            if ((seen.word[half * CHUNK / 32] | seen.word[half * CHUNK / 32 + CHUNK / 32 - 1]) == 0)
                continue;
            if (DROPS)
                read_bits<CHUNK / 32>(word, a, (row * a.length + b * TILE + half * CHUNK) / 32);
            M::begin();
            M::template times_rows<CHUNK / 8>(p, q, &sh->k[b & 1], half * CHUNK);
            M::template times_rows<CHUNK / 8>(dp, dy, &sh->v[b & 1], half * CHUNK);
            M::end();
            M::template settle<CHUNK / 8>(p);
            M::template settle<CHUNK / 8>(dp);
            cover<CHUNK / 8>(p, seen, half * CHUNK, lane);
#pragma unroll
            for (int j = 0; j < CHUNK / 8; j++)
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    float x = fast_exp2(fmaf(p[j][c], scale, c < 2 ? -less.x : -less.y));
                    float g = dp[j][c];

                    if (DROPS && !(word[c / 2][j / 4] >> (j % 4 * 8 + (c & 1)) & 1))
                        g = 0;
                    p[j][c] = x * fmaf(g, factor, c < 2 ? -delta.x : -delta.y);
                }
            as_left<T, CHUNK / 8>(left, p);
            M::template settle<CHUNK / 16>(left);
            M::template settle<E / 8>(dq);
            M::begin();
            M::template times_columns<CHUNK / 16>(dq, left, &sh->k[b & 1], half * CHUNK);
            M::end();
            M::template settle<E / 8>(dq);
        }
        __syncthreads();
    }
    store_rows<T, E>((T *)a.dqkv + (s.row + s.first) * a.pitch + s.column, a.pitch, dq, a.scale,
                     a.scale, lane);
}

/* Queries for those who own keys. */
template <class M> struct query_tiles {
    typename M::tile q[2], dy[2];
    float2 turn[2][TILE];
    unsigned bits[2][TILE][TILE / 32]; /* of the block's keys */
    typename M::room k, v;
};

template <class M, bool DROPS>
static __device__ __forceinline__ void copy_queries(query_tiles<M> *sh,
                                                    const struct attention &a,
                                                    const struct spot &s,
                                                    int block)
{
    using T = typename M::type;
    int64_t row = s.row + block * TILE, of_head = s.head * a.length + block * TILE;
    int r = threadIdx.x / 2, word = threadIdx.x % 2; /* a word of bits for each thread */

    M::copy(&sh->q[block & 1], (const T *)a.qkv + row * a.pitch + s.column, a.pitch);
    M::copy(&sh->dy[block & 1], (const T *)a.dy + row * a.y_pitch + s.column, a.y_pitch);
    if (threadIdx.x < TILE / 2)
        copy_16(&sh->turn[block & 1][2 * threadIdx.x], turns_of(a) + of_head + 2 * threadIdx.x);
    if (DROPS)
        copy_4(&sh->bits[block & 1][r][word],
               a.bits + (of_head + r) * (a.length / 32) + blockIdx.x * 2 + word);
    copies_end_group();
}

/* Keys that are not looked at have no gradient, whatever the products of theirs were. */
template <class T, int E>
static __device__ __forceinline__ void store_seen(
    T *to, int64_t pitch, float c[E / 8][4], const bool is_seen[2], float factor, int lane)
{
#pragma unroll
    for (int j = 0; j < E / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            c[j][i] = is_seen[i / 2] ? c[j][i] : 0;
    store_rows<T, E>(to, pitch, c, factor, factor, lane);
}

template <class M, bool DROPS>
static __global__ void __launch_bounds__(THREADS, M::width == 128 ? 2 : 3)
    attention_grad_kv(struct attention a)
{
    using T = typename M::type;
    constexpr int E = M::width, CHUNK = M::chunk;
    query_tiles<M> *sh = shared_room<query_tiles<M>>();
    struct spot s = spot_of(a);
    int lane = threadIdx.x % 32, t = lane % 4, warp = threadIdx.x / 32;
    int blocks = a.length / TILE, shift = (warp & 1) * 16 + lane / 4;
    int64_t at = (s.row + s.first) * a.pitch + s.d + s.column;
    float scale = a.scale * LOG2_E, factor = DROPS ? a.dropout.factor : 1;
    float dk[E / 8][4] = {}, dv[E / 8][4] = {};
    typename M::owned k = M::own(&sh->k, queries_of<T>(a, s) + s.d, a.pitch);
    typename M::owned v = M::own(&sh->v, queries_of<T>(a, s) + 2 * s.d, a.pitch);
    bool is_seen[2] = {a.mask[s.row + s.first + lane / 4] != 0,
                       a.mask[s.row + s.first + lane / 4 + 8] != 0};

    if (!__syncthreads_or(is_seen[0] || is_seen[1]))
        blocks = 0;
    if (blocks)
        copy_queries<M, DROPS>(sh, a, s, 0);
    for (int b = 0; b < blocks; b++) {
        if (b + 1 < blocks) {
            copy_queries<M, DROPS>(sh, a, s, b + 1);
            copies_wait<1>();
        } else {
            copies_wait<0>();
        }
        M::arrived();
        __syncthreads();
#pragma unroll 1
        for (int half = 0; half < TILE; half += CHUNK) {
            float p[CHUNK / 8][4], dp[CHUNK / 8][4];
            unsigned left[CHUNK / 16][4], left_too[CHUNK / 16][4];

            M::begin();
            M::template times_rows<CHUNK / 8>(p, k, &sh->q[b & 1], half);
            M::template times_rows<CHUNK / 8>(dp, v, &sh->dy[b & 1], half);
            M::end();
            M::template settle<CHUNK / 8>(p);
            M::template settle<CHUNK / 8>(dp);
#pragma unroll
            for (int j = 0; j < CHUNK / 8; j++)
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    int i = half + j * 8 + t * 2 + c;
                    float2 turn = sh->turn[b & 1][i];
                    unsigned bits = DROPS ? sh->bits[b & 1][i][warp / 2] >> shift : 0;

#pragma unroll
                    for (int r = 0; r < 2; r++) {
                        float x = fast_exp2(fmaf(p[j][2 * r + c], scale, -turn.y));
                        float g = dp[j][2 * r + c];
                        bool is_kept = !DROPS || (bits >> (8 * r) & 1);

                        dp[j][2 * r + c] = x * fmaf(is_kept ? g : 0, factor, -turn.x);
                        p[j][2 * r + c] = is_kept ? x : 0;
                    }
                }
            as_left<T, CHUNK / 8>(left, p);
            as_left<T, CHUNK / 8>(left_too, dp);
            M::template settle<CHUNK / 16>(left);
            M::template settle<CHUNK / 16>(left_too);
            M::template settle<E / 8>(dv);
            M::template settle<E / 8>(dk);
            M::begin();
            M::template times_columns<CHUNK / 16>(dv, left, &sh->dy[b & 1], half);
            M::template times_columns<CHUNK / 16>(dk, left_too, &sh->q[b & 1], half);
            M::end();
            M::template settle<E / 8>(dv);
            M::template settle<E / 8>(dk);
        }
        __syncthreads();
    }
    store_seen<T, E>((T *)a.dqkv + at, a.pitch, dk, is_seen, a.scale, lane);
    store_seen<T, E>((T *)a.dqkv + at + s.d, a.pitch, dv, is_seen, factor, lane);
}

void attention_fast_grad_q(cudaStream_t stream, enum elem elem, const struct attention *args)
{
    by_shape(elem, args, [&](auto engine, auto drops) {
        using M = decltype(engine);

        launch_tiles(attention_grad_q<M, decltype(drops)::value>, sizeof(grad_q_tiles<M>),
                     stream, args);
    });
}

void attention_fast_grad_kv(cudaStream_t stream, enum elem elem, const struct attention *args)
{
    by_shape(elem, args, [&](auto engine, auto drops) {
        using M = decltype(engine);

        launch_tiles(attention_grad_kv<M, decltype(drops)::value>, sizeof(query_tiles<M>),
                     stream, args);
    });
}
