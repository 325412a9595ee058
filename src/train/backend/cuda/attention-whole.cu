/* attention-whole.cu - attention's gradient in one kernel for sequences of 128: see
 * attention-joint.cuh.
 *
 * All of a head is in shared memory at once, and two blocks share a multiprocessor: one loads
 * while the other multiplies.  For their half of the registers only dv is summed in them on the
 * way; dk and dq are made at the end, from what all chunks left.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/attention-joint.cuh"

enum {
    LENGTH = ATTENTION_WHOLE,
    BLOCKS = LENGTH / TILE, /* tiles of queries */
};
static_assert(LENGTH == (int)KEYS, "all keys at once");

template <class T> struct whole_room {
    using tile = typename group<T>::tile;
    tile q[BLOCKS], k[GROUPS], v[GROUPS], dy[BLOCKS];
    tile ds[BLOCKS][GROUPS]; /* (keys, queries) */
    float delta[LENGTH], less[LENGTH]; /* of a row: dy . y, what its exponents are less */
    struct kept_words bits[BLOCKS];
    struct head_sums sums;
};

template <class T, bool DROPS>
static __device__ __forceinline__ void
copy_head(whole_room<T> *sh, const struct attention &a, const struct spot &s)
{
    using M = group<T>;
    int g = group_of_warp();
    int64_t row = s.row + g * TILE;
    const T *q = (const T *)a.qkv + row * a.pitch + s.column;

    M::copy(&sh->k[g], q + s.d, a.pitch);
    M::copy(&sh->q[g], q, a.pitch);
    M::copy(&sh->v[g], q + 2 * s.d, a.pitch);
    M::copy(&sh->dy[g], (const T *)a.dy + row * a.y_pitch + s.column, a.y_pitch);
    for (int b = 0; b < BLOCKS && DROPS; b++)
        copy_kept(&sh->bits[b], a, s, 0, b);
    copies_end_group();
}

template <class T>
static __device__ __forceinline__ void
find_deltas(whole_room<T> *sh, const struct attention &a, const struct spot &s)
{
    if (threadIdx.x < LENGTH)
        sh->less[threadIdx.x] = exponent_of(a.saved[s.head * LENGTH + threadIdx.x]);
#pragma unroll
    for (int i = 0; i < LENGTH / (JOINT_THREADS / 8); i++) {
        int row = i * (JOINT_THREADS / 8) + threadIdx.x / 8;

        sh->delta[row] = dot_row<T>(a, s.row + row, s.column, threadIdx.x % 8);
    }
}

/* A chunk's share of dv, and what it leaves for dk and dq. */
template <class T, bool DROPS>
static __device__ __forceinline__ void add_chunk(float dv[8][4],
                                                 whole_room<T> *sh,
                                                 const struct attention &a,
                                                 int g,
                                                 int i,
                                                 const bool is_seen[2])
{
    using M = group<T>;
    int block = i / (TILE / CHUNK), half = i % (TILE / CHUNK) * CHUNK;
    float p[CHUNK / 8][4], dp[CHUNK / 8][4];
    unsigned of_v[CHUNK / 16][4], left[CHUNK / 16][4], kept[CHUNK / 4];

    M::begin();
    M::template times_rows<CHUNK / 8>(p, {&sh->k[g]}, &sh->q[block], half);
    M::commit();
    M::template times_rows<CHUNK / 8>(dp, {&sh->v[g]}, &sh->dy[block], half);
    M::commit();
    if (DROPS)
        read_kept<CHUNK>(kept, &sh->bits[block], half);
    M::template wait<1>();
    M::template settle<CHUNK / 8>(p);
    soften_back<CHUNK>(p, sh->less + i * CHUNK, a, is_seen);
    keep_left<DROPS, CHUNK, T>(of_v, p, kept);
    M::template settle<CHUNK / 16>(of_v);
    M::begin();
    M::template times_columns<CHUNK / 16>(dv, of_v, &sh->dy[block], half);
    M::commit();
    M::template wait<1>();
    M::template settle<CHUNK / 8>(dp);
    turn_back<DROPS, CHUNK>(dp, p, kept, sh->delta + i * CHUNK, a);
    as_left<T, CHUNK / 8>(left, dp);
    put_rows<T, CHUNK / 16>(&sh->ds[block][g], left, half / 8);
    M::template wait<0>();
    M::template settle<CHUNK / 16>(of_v); /* not used again before */
    M::template settle<8>(dv);
}

/* 64 rows of dk (of the group's keys) or dq (of the group's queries). */
template <bool IS_DQ, class T>
static __device__ __forceinline__ void make_rows(float d[8][4], const whole_room<T> *sh, int g)
{
    using M = group<T>;

    M::begin();
#pragma unroll
    for (int b = 0; b < 2; b++)
#pragma unroll
        for (int s = 0; s < TILE / 16; s++) {
            int row = s * 16 * M::row_bytes;

            if (IS_DQ)
                M::template multiply<true, true>(d, M::descriptor(&sh->ds[g][b], row),
                                                 M::descriptor(&sh->k[b], row), b > 0 || s > 0);
            else
                M::template multiply<false, true>(d, M::descriptor(&sh->ds[b][g], s * 32),
                                                  M::descriptor(&sh->q[b], row),
                                                  b > 0 || s > 0);
        }
    M::end();
    M::template settle<8>(d);
}

/* 64 rows of dq, dk or dv (`which`) to memory, through a tile that nobody needs any more. */
template <class T>
static __device__ __forceinline__ void store_part(float d[8][4],
                                                  int which,
                                                  float factor,
                                                  typename group<T>::tile *room,
                                                  whole_room<T> *sh,
                                                  const struct attention &a,
                                                  const struct spot &s,
                                                  int g)
{
    int64_t row = s.row + g * TILE;

    scale_by<8>(d, factor);
    if (a.parts)
        add_sums<8>(sh->sums.of[which][threadIdx.x / 32], d);
    store_through<T, 4>(room, d, (T *)a.dqkv + row * a.pitch + which * s.d + s.column, a.pitch,
                        0);
}

template <class T, bool DROPS>
static __global__ void __launch_bounds__(JOINT_THREADS, 2) attention_grad_whole(struct attention a)
{
    whole_room<T> *sh = shared_room<whole_room<T>>();
    struct spot s = spot_of(a);
    int g = group_of_warp();
    int64_t row = s.row + s.first + threadIdx.x % 32 / 4;
    bool is_seen[2];
    float d[8][4] = {};

    copy_head<T, DROPS>(sh, a, s);
    clear_sums(&sh->sums);
    is_seen[0] = a.mask[row] != 0;
    is_seen[1] = a.mask[row + 8] != 0;
    find_deltas(sh, a, s);
    copies_wait<0>();
    group<T>::arrived();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < LENGTH / CHUNK; i++)
        add_chunk<T, DROPS>(d, sh, a, g, i, is_seen);
    group<T>::arrived();
    __syncthreads();
    store_part<T>(d, 2, DROPS ? a.dropout.factor : 1, &sh->v[g], sh, a, s, g);
    make_rows<false>(d, sh, g);
    store_part<T>(d, 1, a.scale, &sh->dy[g], sh, a, s, g);
    make_rows<true>(d, sh, g);
    store_part<T>(d, 0, a.scale, &sh->v[g], sh, a, s, g);
    if (a.parts)
        store_sums(&sh->sums, a, s);
}

void attention_fast_grad_whole(cudaStream_t stream, enum elem elem, const struct attention *args)
{
    by_joint(elem, args, [&](auto engine, auto drops) {
        using T = typename decltype(engine)::type;

        launch_heads(attention_grad_whole<T, decltype(drops)::value>, sizeof(whole_room<T>),
                     stream, args);
    });
}
