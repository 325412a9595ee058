/* attention-joint.cu - attention's gradient in one kernel: see attention-joint.cuh.
 *
 * Each of the two groups makes half of the columns of a tile of dq.  Over the turns of keys dq
 * adds up in memory, where a thread finds again what it alone has put there: in shared memory
 * there would be room for one block on a multiprocessor, and it takes two that something is
 * always multiplied.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/attention-joint.cuh"

static_assert(ATTENTION_MOST_JOINT <= 32 * KEYS, "a turn of keys is a bit");

template <class T> struct joint_room {
    using tile = typename group<T>::tile;
    tile k[GROUPS], v[GROUPS];
    tile q[2], dy[2]; /* a tile of queries, and the next */
    tile ds[GROUPS];  /* (keys, queries) */
    struct kept_words bits[2];
    float delta[2][TILE], less[2][TILE];
    struct head_sums sums;
};

/* Of all rows of all heads dy . y, and behind them what their exponents are less. */
template <class T>
static __global__ void __launch_bounds__(JOINT_THREADS) attention_deltas(struct attention a)
{
    int64_t all = (int64_t)a.batch * a.heads * a.length;
    int64_t at = ((int64_t)blockIdx.x * JOINT_THREADS + threadIdx.x) / 8;
    /* Neighbours in memory are heads of a row. */
    int64_t row = at / a.heads, head = at % a.heads;
    int64_t to = (row / a.length * a.heads + head) * a.length + row % a.length;
    float delta;

    if (at >= all) /* whole warps: there are four rows in each */
        return;
    delta = dot_row<T>(a, row, head * a.width, threadIdx.x % 8);
    if (threadIdx.x % 8 == 0) {
        a.delta[to] = delta;
        a.delta[all + to] = exponent_of(a.saved[to]);
    }
}

/* Which turns of keys have any that is looked at: a bit each; the first when there is none, so
 * that everything is written. */
static __device__ __forceinline__ unsigned turns_seen(const struct attention &a, int64_t row)
{
    unsigned turns = 0;

    for (int b = 0; b < a.length / KEYS; b++) {
        bool is_seen = threadIdx.x < KEYS && a.mask[row + b * KEYS + threadIdx.x] != 0;

        turns |= (unsigned)(__syncthreads_or(is_seen) != 0) << b;
    }
    return turns ? turns : 1;
}

/* Keys that nobody looks at have no gradient. */
template <class T>
static __device__ __forceinline__ void
store_nothing(const struct attention &a, const struct spot &s, unsigned turns)
{
    for (int b = 0; b < a.length / KEYS; b++)
        for (int i = threadIdx.x; i < KEYS * 8 && !(turns >> b & 1); i += JOINT_THREADS) {
            T *dk = (T *)a.dqkv + (s.row + b * KEYS + i / 8) * a.pitch + s.d + s.column +
                    i % 8 * 8;

            *reinterpret_cast<uint4 *>(dk) = make_uint4(0, 0, 0, 0);
            *reinterpret_cast<uint4 *>(dk + s.d) = make_uint4(0, 0, 0, 0);
        }
}

/* Each group its keys and values. */
template <class T>
static __device__ __forceinline__ void
copy_own(joint_room<T> *sh, const struct attention &a, const struct spot &s, int turn)
{
    int g = group_of_warp();
    const T *k = (const T *)a.qkv + (s.row + turn * KEYS + g * TILE) * a.pitch + s.d + s.column;

    group<T>::copy(&sh->k[g], k, a.pitch);
    group<T>::copy(&sh->v[g], k + s.d, a.pitch);
    copies_end_group();
}

/* A tile of queries, its dy and what is known of its rows. */
template <class T, bool DROPS>
static __device__ __forceinline__ void copy_tile(
    joint_room<T> *sh, const struct attention &a, const struct spot &s, int turn, int block)
{
    int64_t row = s.row + block * TILE, of_head = s.head * a.length + block * TILE;
    int64_t all = (int64_t)a.batch * a.heads * a.length;
    int stage = block & 1, thread = threadIdx.x % THREADS, g = group_of_warp();

    if (g == 0) {
        group<T>::copy(&sh->q[stage], (const T *)a.qkv + row * a.pitch + s.column, a.pitch);
        if (thread < TILE / 4)
            copy_16(&sh->less[stage][thread * 4], a.delta + all + of_head + thread * 4);
    } else {
        group<T>::copy(&sh->dy[stage], (const T *)a.dy + row * a.y_pitch + s.column, a.y_pitch);
        if (thread < TILE / 4)
            copy_16(&sh->delta[stage][thread * 4], a.delta + of_head + thread * 4);
    }
    if (DROPS)
        copy_kept(&sh->bits[stage], a, s, turn, block);
    copies_end_group();
}

/* Tile `ahead` of a turn, or of the next one when it has no more. */
template <class T, bool DROPS>
static __device__ __forceinline__ void copy_ahead(joint_room<T> *sh,
                                                  const struct attention &a,
                                                  const struct spot &s,
                                                  int turn,
                                                  int next,
                                                  int ahead)
{
    int blocks = a.length / TILE;

    if (ahead < blocks)
        copy_tile<T, DROPS>(sh, a, s, turn, ahead);
    else if (next >= 0)
        copy_tile<T, DROPS>(sh, a, s, next, ahead - blocks);
}

/* What a group has in registers during a turn. */
struct joint_work {
    float dk[8][4], dv[8][4];
    int g, turn;
    bool is_seen[2], is_first, is_last;
};

/* CHUNK queries' share of dk and dv, and what they leave for dq. */
template <class T, bool DROPS>
static __device__ __forceinline__ void add_chunk(
    struct joint_work &w, joint_room<T> *sh, const struct attention &a, int stage, int half)
{
    using M = group<T>;
    float p[CHUNK / 8][4], dp[CHUNK / 8][4];
    unsigned of_v[CHUNK / 16][4], of_k[CHUNK / 16][4], kept[CHUNK / 4];

    M::begin();
    M::template times_rows<CHUNK / 8>(p, {&sh->k[w.g]}, &sh->q[stage], half);
    M::template times_rows<CHUNK / 8>(dp, {&sh->v[w.g]}, &sh->dy[stage], half);
    M::end();
    M::template settle<CHUNK / 8>(p);
    M::template settle<CHUNK / 8>(dp);
    if (DROPS)
        read_kept<CHUNK>(kept, &sh->bits[stage], half);
    soften_back<CHUNK>(p, sh->less[stage] + half, a, w.is_seen);
    turn_back<DROPS, CHUNK>(dp, p, kept, sh->delta[stage] + half, a);
    keep_left<DROPS, CHUNK, T>(of_v, p, kept);
    as_left<T, CHUNK / 8>(of_k, dp);
    M::template settle<CHUNK / 16>(of_v);
    M::template settle<CHUNK / 16>(of_k);
    M::template settle<8>(w.dv);
    M::template settle<8>(w.dk);
    put_rows<T, CHUNK / 16>(&sh->ds[w.g], of_k, half / 8);
    M::begin();
    M::template times_columns<CHUNK / 16>(w.dv, of_v, &sh->dy[stage], half);
    M::template times_columns<CHUNK / 16>(w.dk, of_k, &sh->q[stage], half);
    M::end();
    M::template settle<8>(w.dv);
    M::template settle<8>(w.dk);
}

/* Half of the columns of a tile of dq, from all keys of the turn. */
template <class T>
static __device__ __forceinline__ void make_dq(float dq[4][4], joint_room<T> *sh, int g)
{
    using M = group<T>;

    M::begin();
#pragma unroll
    for (int b = 0; b < GROUPS; b++)
#pragma unroll
        for (int s = 0; s < TILE / 16; s++) {
            int row = s * 16 * M::row_bytes;

            M::template multiply_half<true>(dq, M::descriptor(&sh->ds[b], row),
                                            M::descriptor(&sh->k[b], row + g * 64),
                                            b > 0 || s > 0);
        }
    M::end();
    M::template settle<4>(dq);
}

/* Add to what the thread alone adds to: in the order of its turns, and nothing is waited for. */
static __device__ __forceinline__ void add_four(float4 *to, const float x[4])
{
#if __CUDA_ARCH__ >= 900
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x[0]), "f"(x[1]),
                 "f"(x[2]), "f"(x[3])
                 : "memory");
#else
    (void)to;
    (void)x;
    __trap();
#endif
}

/* The first turn leaves a tile of dq, others add to it, and the last one adds it and stores the
 * sum. */
template <class T>
static __device__ __forceinline__ void add_dq(const struct joint_work &w,
                                              joint_room<T> *sh,
                                              const struct attention &a,
                                              const struct spot &s,
                                              int block)
{
    float4 *kept = reinterpret_cast<float4 *>(a.dq) +
                   (s.head * (a.length / TILE) + block) * (4 * JOINT_THREADS) + threadIdx.x;
    float4 before[4] = {};
    float dq[4][4];

#pragma unroll
    for (int j = 0; j < 4; j++)
        if (w.is_last && !w.is_first)
            before[j] = kept[j * JOINT_THREADS];
    make_dq(dq, sh, w.g);
    if (!w.is_last) {
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (w.is_first)
                kept[j * JOINT_THREADS] = make_float4(dq[j][0], dq[j][1], dq[j][2], dq[j][3]);
            else
                add_four(&kept[j * JOINT_THREADS], dq[j]);
        return;
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
        dq[j][0] += before[j].x, dq[j][1] += before[j].y;
        dq[j][2] += before[j].z, dq[j][3] += before[j].w;
    }
    scale_by<4>(dq, a.scale);
    if (a.parts)
        add_sums<4>(sh->sums.of[0][threadIdx.x / 32] + w.g * 32, dq);
    /* The tile of queries has been read. */
    store_through<T, 2>(&sh->q[block & 1], dq,
                        (T *)a.dqkv + (s.row + block * TILE) * a.pitch + s.column, a.pitch,
                        w.g * 4);
}

/* dk and dv, through the group's ds. */
template <class T>
static __device__ __forceinline__ void store_own(struct joint_work &w,
                                                 joint_room<T> *sh,
                                                 const struct attention &a,
                                                 const struct spot &s,
                                                 float factor)
{
    T *to = (T *)a.dqkv + (s.row + w.turn * KEYS + w.g * TILE) * a.pitch + s.d + s.column;

    scale_by<8>(w.dk, a.scale);
    scale_by<8>(w.dv, factor);
    if (a.parts) {
        add_sums<8>(sh->sums.of[1][threadIdx.x / 32], w.dk);
        add_sums<8>(sh->sums.of[2][threadIdx.x / 32], w.dv);
    }
    store_through<T, 4>(&sh->ds[w.g], w.dk, to, a.pitch, 0);
    store_through<T, 4>(&sh->ds[w.g], w.dv, to + s.d, a.pitch, 0);
}

/* Keys and values, and the first tile of queries, are on their way. */
template <class T, bool DROPS>
static __device__ __forceinline__ void take_turn(joint_room<T> *sh,
                                                 const struct attention &a,
                                                 const struct spot &s,
                                                 int turn,
                                                 int next,
                                                 bool is_first)
{
    int64_t row = s.row + turn * KEYS + s.first + threadIdx.x % 32 / 4;
    struct joint_work w = {};

    w.g = group_of_warp();
    w.turn = turn;
    w.is_seen[0] = a.mask[row] != 0;
    w.is_seen[1] = a.mask[row + 8] != 0;
    w.is_first = is_first;
    w.is_last = next < 0;
#pragma unroll 1
    for (int b = 0; b < a.length / TILE; b++) {
        copies_wait<0>();
        group<T>::arrived();
        __syncthreads();
        copy_ahead<T, DROPS>(sh, a, s, turn, next, b + 1);
#pragma unroll 1
        for (int half = 0; half < TILE; half += CHUNK)
            add_chunk<T, DROPS>(w, sh, a, b & 1, half);
        group<T>::arrived();
        __syncthreads();
        add_dq(w, sh, a, s, b);
    }
    __syncthreads();
    if (next >= 0)
        copy_own(sh, a, s, next);
    store_own(w, sh, a, s, DROPS ? a.dropout.factor : 1);
}

template <class T, bool DROPS>
static __global__ void __launch_bounds__(JOINT_THREADS, 2) attention_grad_joint(struct attention a)
{
    joint_room<T> *sh = shared_room<joint_room<T>>();
    struct spot s = spot_of(a);
    unsigned turns = turns_seen(a, s.row);
    const int first = __ffs(turns) - 1;

    copy_own(sh, a, s, first);
    copy_tile<T, DROPS>(sh, a, s, first, 0);
    clear_sums(&sh->sums);
    store_nothing<T>(a, s, turns);
#pragma unroll 1
    for (unsigned left = turns; left; left &= left - 1) {
        int turn = __ffs(left) - 1;

        take_turn<T, DROPS>(sh, a, s, turn, __ffs(left & (left - 1)) - 1, turn == first);
    }
    if (a.parts)
        store_sums(&sh->sums, a, s);
}

/* Few heads leave most of the card idle: longer sequences are then better parted by tiles. */
bool attention_is_joint(const struct attention *args)
{
    return args->has_groups && args->width == WIDTH && args->length % KEYS == 0 &&
           args->length <= ATTENTION_MOST_JOINT &&
           (args->length == ATTENTION_WHOLE ||
            (int64_t)args->batch * args->heads >= args->multiprocessors);
}

void attention_fast_grad_joint(cudaStream_t stream, enum elem elem, const struct attention *args)
{
    int64_t threads = (int64_t)args->batch * args->heads * args->length * 8;
    unsigned blocks = (unsigned)((threads + JOINT_THREADS - 1) / JOINT_THREADS);

    by_joint(elem, args, [&](auto engine, auto drops) {
        using T = typename decltype(engine)::type;

        attention_deltas<T><<<blocks, JOINT_THREADS, 0, stream>>>(*args);
        launch_heads(attention_grad_joint<T, decltype(drops)::value>, sizeof(joint_room<T>),
                     stream, args);
    });
}
