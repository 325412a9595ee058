/* attention-forward.cu - the fast kernel of attention: see attention-tiles.cuh.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/attention-fast.h"
#include "train/backend/cuda/attention-tiles.cuh"

/* 32 bits of what is kept, from element 32 i on. */
static __device__ __forceinline__ unsigned
draw_word(uint64_t key, uint64_t hi, uint64_t i, unsigned limit)
{
    unsigned bits = 0, least = limit << 16;

    asm volatile("" : "+l"(key)); /* the round keys are not to be kept over the loop */
#pragma unroll
    for (int q = 0; q < 4; q++) {
        uint4 w = dropout_draw(key, hi, i * 4 + q);
        const unsigned word[4] = {w.x, w.y, w.z, w.w};

#pragma unroll
        for (int j = 0; j < 4; j++)
            bits |= (word[j] << 16 >= least ? 1u : 0u) << (8 * q + 2 * j) |
                    (word[j] >= least ? 2u : 0u) << (8 * q + 2 * j);
    }
    return bits;
}

/* Draw the bits of 16 rows and 64 keys: lane t of a row's four draws one word of rows g
 * (t = 0, 1) and g+8 (t = 2, 3), stores it, and all four get all four, from their first column
 * on. */
static __device__ __forceinline__ void draw_bits(unsigned word[4],
                                                 const struct attention &a,
                                                 int64_t first_row,
                                                 int block,
                                                 uint64_t key,
                                                 uint64_t hi,
                                                 int lane)
{
    int64_t row = first_row + lane / 4 + (lane & 2) * 4;
    int64_t i = (row * a.length + block * TILE) / 32 + (lane & 1);
    unsigned mine = draw_word(key, hi, (uint64_t)i, a.dropout.limit);

    a.bits[i] = mine;
#pragma unroll
    for (int k = 0; k < 4; k++)
        word[k] = __shfl_sync(0xffffffffu, mine, (lane & ~3) + k) >> lane % 4 * 2;
}

/* Exponents of 16 rows of a tile in place, the rows' largest and sums so far.  Returns by what
 * the rows so far are to be multiplied. */
static __device__ __forceinline__ float2
soften(float p[TILE / 8][4], float most[2], float sum[2], float scale)
{
    float turn[2];

#pragma unroll
    for (int r = 0; r < 2; r++) {
        float now = most[r], from;

#pragma unroll
        for (int j = 0; j < TILE / 8; j++)
            now = fmaxf(now, fmaxf(p[j][2 * r], p[j][2 * r + 1]));
        now = four_most(now);
        from = now == -INFINITY ? 0 : now * scale; /* nothing seen so far */
        turn[r] = fast_exp2(fmaf(most[r], scale, -from));
        most[r] = now;
        sum[r] *= turn[r];
#pragma unroll
        for (int j = 0; j < TILE / 8; j++)
#pragma unroll
            for (int c = 0; c < 2; c++) {
                p[j][2 * r + c] = fast_exp2(fmaf(p[j][2 * r + c], scale, -from));
                sum[r] += p[j][2 * r + c];
            }
    }
    return make_float2(turn[0], turn[1]);
}

static __device__ __forceinline__ void drop(float p[TILE / 8][4], const unsigned word[4])
{
#pragma unroll
    for (int j = 0; j < TILE / 8; j++)
#pragma unroll
        for (int c = 0; c < 4; c++)
            if (!(word[c / 2 * 2 + j / 4] >> (j % 4 * 8 + (c & 1)) & 1))
                p[j][c] = 0;
}

template <class M, bool DROPS>
static __global__ void __launch_bounds__(THREADS, M::width == 128 ? 2 : 4)
    attention_rows(struct attention a)
{
    using T = typename M::type;
    constexpr int E = M::width;
    key_tiles<M> *sh = shared_room<key_tiles<M>>();
    struct spot s = spot_of(a);
    int lane = threadIdx.x % 32, blocks = a.length / TILE;
    int64_t of_head = s.head * a.length + s.first;
    float scale = a.scale * LOG2_E, most[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, part[2];
    float o[E / 8][4] = {};
    uint64_t key = 0, hi = 0;

    if (DROPS) {
        key = a.dropout.facts->seed ^ a.dropout.stream;
        hi = dropout_hi(a.dropout.facts);
    }
    typename M::owned q = M::own(&sh->q, queries_of<T>(a, s), a.pitch);
    copy_keys(sh, a, s, 0);
    for (int b = 0; b < blocks; b++) {
        float p[TILE / 8][4];
        unsigned left[TILE / 16][4];
        struct seen seen;

        next_keys(sh, a, s, b, blocks);
        seen = seen_in(sh, b, lane);
        if (!is_none(seen)) {
            M::begin();
            M::template times_rows<TILE / 8>(p, q, &sh->k[b & 1], 0);
            M::end();
            M::template settle<TILE / 8>(p);
            cover<TILE / 8>(p, seen, 0, lane);
            float2 turn = soften(p, most, sum, scale);

            if (__any_sync(0xffffffffu, turn.x != 1 || turn.y != 1)) /* seldom, later on */
#pragma unroll
                for (int j = 0; j < E / 8; j++)
#pragma unroll
                    for (int c = 0; c < 4; c++)
                        o[j][c] *= c < 2 ? turn.x : turn.y;
            if (DROPS) {
                unsigned word[4];

                draw_bits(word, a, of_head, b, key, hi, lane);
                drop(p, word);
            }
            as_left<T, TILE / 8>(left, p);
            M::template settle<TILE / 16>(left);
            M::template settle<E / 8>(o);
            M::begin();
            M::template times_columns<TILE / 16>(o, left, &sh->v[b & 1], 0);
            M::end();
            M::template settle<E / 8>(o);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        sum[i] = four_sum(sum[i]);
        part[i] = sum[i] > 0 ? (DROPS ? a.dropout.factor : 1.0f) / sum[i] : 0;
        if (lane % 4 == 0)
            a.saved[of_head + lane / 4 + i * 8] = (most[i] * scale + log2f(sum[i])) * LN_2;
    }
    store_rows<T, E>((T *)a.y + (s.row + s.first) * a.y_pitch + s.column, a.y_pitch, o, part[0],
                     part[1], lane);
}

void attention_fast_forward(cudaStream_t stream, enum elem elem, const struct attention *args)
{
    by_shape(elem, args, [&](auto engine, auto drops) {
        using M = decltype(engine);

        launch_tiles(attention_rows<M, decltype(drops)::value>, sizeof(key_tiles<M>), stream,
                     args);
    });
}
