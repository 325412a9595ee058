/* attention-kernels.cu - see attention-kernels.h; the fast kernels.
 *
 * In all three a warp owns 16 rows of one side (q, q, k), keeps them as the left operand in
 * registers, and the block goes over the other side in tiles of 64 rows in shared memory, two
 * of them so that the next is copied meanwhile.  What a product leaves in registers is, packed,
 * the left operand of the next: no tile of probabilities is ever stored.
 *
 * Exponents are of two: scale and the saved sums are multiplied by log2(e).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/attention-kernels.h"
#include "train/backend/cuda/attention-plain.h"
#include "train/backend/cuda/device.cuh"
#include "train/backend/cuda/matrix.cuh"

enum {
    TILE = 64,        /* rows of a tile in shared memory */
    MOST_WARPS = 8,   /* of a block: 128 rows of the owned side */
    CHUNK = 32,       /* columns at a time of the gradient's kernels */
    MOST_THREADS = MOST_WARPS * 32,
};

#define LOG2_E 1.44269504f
#define LN_2   0.69314718f

/* Rows in shared memory are 16 bytes longer than their elements, so that the 8 rows of a
 * matrix lie in different banks. */
template <class T, int E> struct tile {
    T row[TILE][E + 8];
};

template <class T, int E>
static __device__ __forceinline__ void
copy_tile(tile<T, E> *to, const T *from, int64_t pitch)
{
    for (int i = threadIdx.x; i < TILE * (E / 8); i += blockDim.x) {
        int r = i / (E / 8), c = i % (E / 8) * 8;

        copy_16(&to->row[r][c], from + r * pitch + c);
    }
}

/* 16 rows from `from` on as the left operand. */
template <class T, int E>
static __device__ __forceinline__ void
load_left(unsigned a[E / 16][4], const T *from, int64_t pitch, int lane)
{
    const T *first = from + lane / 4 * pitch + lane % 4 * 2, *second = first + 8 * pitch;

#pragma unroll
    for (int s = 0; s < E / 16; s++) {
        a[s][0] = *reinterpret_cast<const unsigned *>(first + s * 16);
        a[s][1] = *reinterpret_cast<const unsigned *>(second + s * 16);
        a[s][2] = *reinterpret_cast<const unsigned *>(first + s * 16 + 8);
        a[s][3] = *reinterpret_cast<const unsigned *>(second + s * 16 + 8);
    }
}

/* c (16, 8 N) = a (16, E) times rows from `row` on, turned. */
template <class T, int E, int N>
static __device__ __forceinline__ void times_rows(
    float c[N][4], const unsigned a[E / 16][4], const tile<T, E> *b, int row, int lane)
{
#pragma unroll
    for (int j = 0; j < N; j++) {
        c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
#pragma unroll
        for (int s = 0; s < E / 16; s += 2) {
            unsigned r[4];

            load_matrices(r, &b->row[row + j * 8 + lane % 8][s * 16 + lane / 8 * 8]);
            multiply_add<T>(c[j], a[s], r[0], r[1]);
            multiply_add<T>(c[j], a[s + 1], r[2], r[3]);
        }
    }
}

/* c (16, E) += a (16, 16 N) times the 16 N rows from `row` on. */
template <class T, int E, int N>
static __device__ __forceinline__ void times_columns(
    float c[E / 8][4], const unsigned a[N][4], const tile<T, E> *b, int row, int lane)
{
#pragma unroll
    for (int s = 0; s < N; s++)
#pragma unroll
        for (int j = 0; j < E / 8; j += 2) {
            unsigned r[4];

            load_matrices_turned(
                r, &b->row[row + s * 16 + lane % 16][j * 8 + lane / 16 * 8]);
            multiply_add<T>(c[j], a[s], r[0], r[1]);
            multiply_add<T>(c[j + 1], a[s], r[2], r[3]);
        }
}

/* Columns 16 s.. of what a product left, as a left operand. */
template <class T, int N>
static __device__ __forceinline__ void as_left(unsigned a[N / 2][4], const float c[N][4])
{
#pragma unroll
    for (int s = 0; s < N / 2; s++) {
        a[s][0] = pack<T>(c[2 * s][0], c[2 * s][1]);
        a[s][1] = pack<T>(c[2 * s][2], c[2 * s][3]);
        a[s][2] = pack<T>(c[2 * s + 1][0], c[2 * s + 1][1]);
        a[s][3] = pack<T>(c[2 * s + 1][2], c[2 * s + 1][3]);
    }
}

/* 16 rows (times `first` and `second`) to memory. */
template <class T, int E>
static __device__ __forceinline__ void store_rows(
    T *to, int64_t pitch, const float c[E / 8][4], float first, float second, int lane)
{
    T *at = to + lane / 4 * pitch + lane % 4 * 2;

#pragma unroll
    for (int j = 0; j < E / 8; j++) {
        *reinterpret_cast<unsigned *>(at + j * 8) = pack<T>(c[j][0] * first, c[j][1] * first);
        *reinterpret_cast<unsigned *>(at + 8 * pitch + j * 8) =
            pack<T>(c[j][2] * second, c[j][3] * second);
    }
}

static __device__ __forceinline__ float four_sum(float x) /* over the lanes of a row */
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

static __device__ __forceinline__ float four_most(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/* Where the block's head and the warp's rows are. */
struct spot {
    int64_t head;   /* n * heads + h */
    int64_t row;    /* of N*T: the sequence's first */
    int first;      /* of the warp's 16 rows, in the sequence */
    int64_t column; /* of the head in q */
    int64_t d;      /* heads * width */
};

static __device__ __forceinline__ struct spot spot_of(const struct attention &a)
{
    struct spot s;

    s.head = (int64_t)blockIdx.z * a.heads + blockIdx.y;
    s.row = (int64_t)blockIdx.z * a.length;
    s.first = (int)(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * 16;
    s.column = (int64_t)blockIdx.y * a.width;
    s.d = (int64_t)a.heads * a.width;
    return s;
}

/* 32 bits of what is kept, from element 32 i on. */
static __device__ __forceinline__ unsigned
draw_word(uint64_t key, uint64_t hi, uint64_t i, unsigned limit)
{
    unsigned bits = 0;

    asm volatile("" : "+l"(key)); /* the ten round keys are not to be kept over the loop */
#pragma unroll
    for (int q = 0; q < 8; q++) {
        uint4 w = philox(key, hi, i * 8 + q);

        bits |= (w.x >= limit ? 1u : 0u) << (4 * q) | (w.y >= limit ? 1u : 0u) << (4 * q + 1) |
                (w.z >= limit ? 1u : 0u) << (4 * q + 2) |
                (w.w >= limit ? 1u : 0u) << (4 * q + 3);
    }
    return bits;
}

template <class T, int E> struct forward_shared {
    tile<T, E> k[2], v[2];
    int mask[2][TILE];
};

template <class T, int E>
static __device__ __forceinline__ void copy_keys(forward_shared<T, E> *sh,
                                                 const struct attention &a,
                                                 const struct spot &s,
                                                 int block)
{
    const T *k = (const T *)a.qkv + (s.row + block * TILE) * a.pitch + s.d + s.column;

    copy_tile(&sh->k[block & 1], k, a.pitch);
    copy_tile(&sh->v[block & 1], k + s.d, a.pitch);
    if (threadIdx.x < TILE)
        copy_4(&sh->mask[block & 1][threadIdx.x],
               a.mask + s.row + block * TILE + threadIdx.x);
    copies_end_group();
}

/* Draw the bits of the warp's 16 rows and 64 keys: lane t of a row's four draws one word of
 * rows g (t = 0, 1) and g+8 (t = 2, 3), stores it, and all four get all four. */
static __device__ __forceinline__ void draw_bits(unsigned word[4],
                                                 const struct attention &a,
                                                 const struct spot &s,
                                                 int block,
                                                 uint64_t key,
                                                 uint64_t hi,
                                                 int lane)
{
    int64_t row = s.first + lane / 4 + (lane & 2) * 4;
    int64_t i = ((s.head * a.length + row) * a.length + block * TILE) / 32 + (lane & 1);
    unsigned mine = draw_word(key, hi, (uint64_t)i, a.dropout.limit);

    a.bits[i] = mine;
#pragma unroll
    for (int k = 0; k < 4; k++)
        word[k] = __shfl_sync(0xffffffffu, mine, (lane & ~3) + k);
}

template <class T, int E, bool DROPS>
__global__ void __launch_bounds__(MOST_THREADS, E == 128 ? 1 : 2)
    attention_rows(struct attention a)
{
    extern __shared__ __align__(16) unsigned char room[];
    forward_shared<T, E> *sh = reinterpret_cast<forward_shared<T, E> *>(room);
    struct spot s = spot_of(a);
    int lane = threadIdx.x % 32, t = lane % 4, blocks = a.length / TILE;
    float scale = a.scale * LOG2_E, most[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    float o[E / 8][4] = {};
    unsigned q[E / 16][4];
    uint64_t key = 0, hi = 0;

    if (DROPS) {
        key = a.dropout.facts->seed ^ a.dropout.stream;
        hi = (uint64_t)a.dropout.facts->pass << 48 | a.dropout.facts->number;
    }
    copy_keys(sh, a, s, 0);
    load_left<T, E>(q, (const T *)a.qkv + (s.row + s.first) * a.pitch + s.column, a.pitch, lane);
    for (int b = 0; b < blocks; b++) {
        float p[TILE / 8][4], turn[2];
        unsigned word[4], left[TILE / 16][4];

        if (b + 1 < blocks) {
            copy_keys(sh, a, s, b + 1);
            copies_wait<1>();
        } else {
            copies_wait<0>();
        }
        __syncthreads();
        times_rows<T, E, TILE / 8>(p, q, &sh->k[b & 1], 0, lane);
        if (DROPS)
            draw_bits(word, a, s, b, key, hi, lane);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float now = most[r], from;

#pragma unroll
            for (int j = 0; j < TILE / 8; j++)
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    bool is_seen = sh->mask[b & 1][j * 8 + t * 2 + c] != 0;
                    float x = is_seen ? p[j][2 * r + c] * scale : -INFINITY;

                    p[j][2 * r + c] = x;
                    now = fmaxf(now, x);
                }
            now = four_most(now);
            from = now == -INFINITY ? 0 : now; /* nothing seen so far */
            turn[r] = two_to(most[r] - from);
            most[r] = now;
            sum[r] *= turn[r];
#pragma unroll
            for (int j = 0; j < TILE / 8; j++)
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    float x = two_to(p[j][2 * r + c] - from);

                    sum[r] += x;
                    if (DROPS && !(word[2 * r + j / 4] >> (j % 4 * 8 + t * 2 + c) & 1))
                        x = 0;
                    p[j][2 * r + c] = x;
                }
        }
#pragma unroll
        for (int j = 0; j < E / 8; j++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                o[j][c] *= turn[c / 2];
        as_left<T, TILE / 8>(left, p);
        times_columns<T, E, TILE / 16>(o, left, &sh->v[b & 1], 0, lane);
        __syncthreads();
    }
    float part[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int64_t row = s.head * a.length + s.first + lane / 4 + r * 8;

        sum[r] = four_sum(sum[r]);
        part[r] = sum[r] > 0 ? (DROPS ? a.dropout.factor : 1.0f) / sum[r] : 0;
        if (t == 0)
            a.saved[row] = (most[r] + log2f(sum[r])) * LN_2;
    }
    store_rows<T, E>((T *)a.y + (s.row + s.first) * a.y_pitch + s.column, a.y_pitch, o, part[0],
                     part[1], lane);
}

/* What is subtracted in the exponent: of a row that saw nothing all is 0. */
static __device__ __forceinline__ float exponent_of(float saved)
{
    return saved == -INFINITY ? INFINITY : saved * LOG2_E;
}

/* dy . y of the warp's rows g and g+8. */
template <class T, int E>
static __device__ __forceinline__ void
dot_rows(float delta[2], const unsigned dy[E / 16][4], const unsigned y[E / 16][4])
{
    delta[0] = delta[1] = 0;
#pragma unroll
    for (int s = 0; s < E / 16; s++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const T *u = reinterpret_cast<const T *>(&dy[s][i]);
            const T *v = reinterpret_cast<const T *>(&y[s][i]);

            delta[i & 1] += to_float(u[0]) * to_float(v[0]) + to_float(u[1]) * to_float(v[1]);
        }
    delta[0] = four_sum(delta[0]);
    delta[1] = four_sum(delta[1]);
}

template <class T, int E, bool DROPS>
__global__ void __launch_bounds__(MOST_THREADS, E == 128 ? 1 : 2)
    attention_grad_q(struct attention a)
{
    extern __shared__ __align__(16) unsigned char room[];
    forward_shared<T, E> *sh = reinterpret_cast<forward_shared<T, E> *>(room);
    struct spot s = spot_of(a);
    int lane = threadIdx.x % 32, t = lane % 4, blocks = a.length / TILE;
    int64_t at = (s.row + s.first) * a.y_pitch + s.column;
    int64_t row = s.head * a.length + s.first + lane / 4;
    float scale = a.scale * LOG2_E, delta[2], less[2];
    float dq[E / 8][4] = {};
    unsigned q[E / 16][4], dy[E / 16][4];

    copy_keys(sh, a, s, 0);
    load_left<T, E>(q, (const T *)a.y + at, a.y_pitch, lane);
    load_left<T, E>(dy, (const T *)a.dy + at, a.y_pitch, lane);
    dot_rows<T, E>(delta, dy, q);
    if (t == 0) {
        a.delta[row] = delta[0];
        a.delta[row + 8] = delta[1];
    }
    less[0] = exponent_of(a.saved[row]);
    less[1] = exponent_of(a.saved[row + 8]);
    load_left<T, E>(q, (const T *)a.qkv + (s.row + s.first) * a.pitch + s.column, a.pitch, lane);
    for (int b = 0; b < blocks; b++) {
        if (b + 1 < blocks) {
            copy_keys(sh, a, s, b + 1);
            copies_wait<1>();
        } else {
            copies_wait<0>();
        }
        __syncthreads();
#pragma unroll
        for (int half = 0; half < TILE / CHUNK; half++) {
            float p[CHUNK / 8][4], dp[CHUNK / 8][4];
            unsigned word[2] = {0, 0}, left[CHUNK / 16][4];

            if (DROPS) {
                word[0] = a.bits[(row * a.length + b * TILE) / 32 + half];
                word[1] = a.bits[((row + 8) * a.length + b * TILE) / 32 + half];
            }
            times_rows<T, E, CHUNK / 8>(p, q, &sh->k[b & 1], half * CHUNK, lane);
            times_rows<T, E, CHUNK / 8>(dp, dy, &sh->v[b & 1], half * CHUNK, lane);
#pragma unroll
            for (int j = 0; j < CHUNK / 8; j++)
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    int column = j * 8 + t * 2 + (c & 1), r = c / 2;
                    bool is_seen = sh->mask[b & 1][half * CHUNK + column] != 0;
                    float x = is_seen ? two_to(fmaf(p[j][c], scale, -less[r])) : 0;
                    float g = dp[j][c];

                    if (DROPS)
                        g = word[r] >> column & 1 ? g * a.dropout.factor : 0;
                    p[j][c] = x * (g - delta[r]);
                }
            as_left<T, CHUNK / 8>(left, p);
            times_columns<T, E, CHUNK / 16>(dq, left, &sh->k[b & 1], half * CHUNK, lane);
        }
        __syncthreads();
    }
    store_rows<T, E>((T *)a.dqkv + (s.row + s.first) * a.pitch + s.column, a.pitch, dq, a.scale,
                     a.scale, lane);
}

template <class T, int E> struct backward_shared {
    tile<T, E> q[2], dy[2];
    float saved[2][TILE], delta[2][TILE];
    unsigned bits[2][TILE][MOST_WARPS / 2]; /* of the block's keys, 32 a word */
};

template <class T, int E, bool DROPS>
static __device__ __forceinline__ void copy_queries(backward_shared<T, E> *sh,
                                                    const struct attention &a,
                                                    const struct spot &s,
                                                    int block)
{
    int words = blockDim.x / 64, first = blockIdx.x * words; /* of 32 keys */
    int64_t row = s.row + block * TILE, of_head = s.head * a.length + block * TILE;

    copy_tile(&sh->q[block & 1], (const T *)a.qkv + row * a.pitch + s.column, a.pitch);
    copy_tile(&sh->dy[block & 1], (const T *)a.dy + row * a.y_pitch + s.column, a.y_pitch);
    if (threadIdx.x < TILE) {
        copy_4(&sh->saved[block & 1][threadIdx.x], a.saved + of_head + threadIdx.x);
        copy_4(&sh->delta[block & 1][threadIdx.x], a.delta + of_head + threadIdx.x);
    }
    for (int i = threadIdx.x; DROPS && i < TILE * words; i += blockDim.x)
        copy_4(&sh->bits[block & 1][i / words][i % words],
               a.bits + (of_head + i / words) * (a.length / 32) + first + i % words);
    copies_end_group();
}

template <class T, int E, bool DROPS>
__global__ void __launch_bounds__(MOST_THREADS, 1) attention_grad_kv(struct attention a)
{
    extern __shared__ __align__(16) unsigned char room[];
    backward_shared<T, E> *sh = reinterpret_cast<backward_shared<T, E> *>(room);
    struct spot s = spot_of(a);
    int lane = threadIdx.x % 32, t = lane % 4, warp = threadIdx.x / 32;
    int blocks = a.length / TILE, shift = (warp & 1) * 16 + lane / 4;
    int64_t at = (s.row + s.first) * a.pitch + s.d + s.column;
    float scale = a.scale * LOG2_E;
    float dk[E / 8][4] = {}, dv[E / 8][4] = {};
    unsigned k[E / 16][4], v[E / 16][4];
    bool is_seen[2];

    copy_queries<T, E, DROPS>(sh, a, s, 0);
    load_left<T, E>(k, (const T *)a.qkv + at, a.pitch, lane);
    load_left<T, E>(v, (const T *)a.qkv + at + s.d, a.pitch, lane);
    is_seen[0] = a.mask[s.row + s.first + lane / 4] != 0;
    is_seen[1] = a.mask[s.row + s.first + lane / 4 + 8] != 0;
    for (int b = 0; b < blocks; b++) {
        if (b + 1 < blocks) {
            copy_queries<T, E, DROPS>(sh, a, s, b + 1);
            copies_wait<1>();
        } else {
            copies_wait<0>();
        }
        __syncthreads();
#pragma unroll
        for (int half = 0; half < TILE / CHUNK; half++) {
            float p[CHUNK / 8][4], dp[CHUNK / 8][4];
            unsigned left[CHUNK / 16][4];

            times_rows<T, E, CHUNK / 8>(p, k, &sh->q[b & 1], half * CHUNK, lane);
            times_rows<T, E, CHUNK / 8>(dp, v, &sh->dy[b & 1], half * CHUNK, lane);
#pragma unroll
            for (int j = 0; j < CHUNK / 8; j++)
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    int i = half * CHUNK + j * 8 + t * 2 + c;
                    float less = exponent_of(sh->saved[b & 1][i]);
                    float delta = sh->delta[b & 1][i];
                    unsigned bits = DROPS ? sh->bits[b & 1][i][warp / 2] >> shift : 0;

#pragma unroll
                    for (int r = 0; r < 2; r++) {
                        float x = p[j][2 * r + c], g = dp[j][2 * r + c];

                        x = is_seen[r] ? two_to(fmaf(x, scale, -less)) : 0;
                        if (DROPS)
                            g = bits >> (8 * r) & 1 ? g * a.dropout.factor : 0;
                        dp[j][2 * r + c] = x * (g - delta);
                        if (DROPS)
                            x = bits >> (8 * r) & 1 ? x * a.dropout.factor : 0;
                        p[j][2 * r + c] = x;
                    }
                }
            as_left<T, CHUNK / 8>(left, p);
            times_columns<T, E, CHUNK / 16>(dv, left, &sh->dy[b & 1], half * CHUNK, lane);
            as_left<T, CHUNK / 8>(left, dp);
            times_columns<T, E, CHUNK / 16>(dk, left, &sh->q[b & 1], half * CHUNK, lane);
        }
        __syncthreads();
    }
    store_rows<T, E>((T *)a.dqkv + at, a.pitch, dk, a.scale, a.scale, lane);
    store_rows<T, E>((T *)a.dqkv + at + s.d, a.pitch, dv, 1, 1, lane);
}

bool attention_is_fast(enum elem elem, int length, int width)
{
    return (elem == ELEM_F16 || elem == ELEM_BF16) && length % TILE == 0 &&
           (width == 32 || width == 64 || width == 128);
}

/* Rows of a block: 128 where they fit. */
static int threads_of(const struct attention *args)
{
    return args->length % (MOST_WARPS * 16) == 0 ? MOST_THREADS : MOST_THREADS / 2;
}

static dim3 grid_of(const struct attention *args)
{
    int rows = threads_of(args) / 2;

    return dim3((unsigned)(args->length / rows), (unsigned)args->heads,
                (unsigned)args->batch);
}

template <class T, int E, bool DROPS> static cudaError_t prepare_one()
{
    cudaError_t status = cudaFuncSetAttribute(attention_rows<T, E, DROPS>,
                                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              (int)sizeof(forward_shared<T, E>));

    if (status == cudaSuccess)
        status = cudaFuncSetAttribute(attention_grad_q<T, E, DROPS>,
                                      cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      (int)sizeof(forward_shared<T, E>));
    if (status == cudaSuccess)
        status = cudaFuncSetAttribute(attention_grad_kv<T, E, DROPS>,
                                      cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      (int)sizeof(backward_shared<T, E>));
    return status;
}

template <class T, int E> static cudaError_t prepare_width()
{
    cudaError_t status = prepare_one<T, E, false>();

    return status == cudaSuccess ? prepare_one<T, E, true>() : status;
}

template <class T> static cudaError_t prepare_type()
{
    cudaError_t status = prepare_width<T, 32>();

    if (status == cudaSuccess)
        status = prepare_width<T, 64>();
    return status == cudaSuccess ? prepare_width<T, 128>() : status;
}

cudaError_t attention_prepare(void)
{
    cudaError_t status = prepare_type<__nv_bfloat16>();

    return status == cudaSuccess ? prepare_type<__half>() : status;
}

template <class T, int E, bool DROPS>
static void forward_one(cudaStream_t stream, const struct attention *args)
{
    attention_rows<T, E, DROPS>
        <<<grid_of(args), threads_of(args), sizeof(forward_shared<T, E>), stream>>>(*args);
}

template <class T, int E, bool DROPS>
static void backward_one(cudaStream_t stream, const struct attention *args)
{
    attention_grad_q<T, E, DROPS>
        <<<grid_of(args), threads_of(args), sizeof(forward_shared<T, E>), stream>>>(*args);
    attention_grad_kv<T, E, DROPS>
        <<<grid_of(args), threads_of(args), sizeof(backward_shared<T, E>), stream>>>(*args);
}

template <class T, int E>
static void one_of(cudaStream_t stream, const struct attention *args, bool is_forward)
{
    bool drops = args->dropout.limit != 0;

    if (is_forward && drops)
        forward_one<T, E, true>(stream, args);
    else if (is_forward)
        forward_one<T, E, false>(stream, args);
    else if (drops)
        backward_one<T, E, true>(stream, args);
    else
        backward_one<T, E, false>(stream, args);
}

template <class T>
static void by_width(cudaStream_t stream, const struct attention *args, bool is_forward)
{
    if (args->width == 32)
        one_of<T, 32>(stream, args, is_forward);
    else if (args->width == 64)
        one_of<T, 64>(stream, args, is_forward);
    else
        one_of<T, 128>(stream, args, is_forward);
}

static bool fast(cudaStream_t stream, enum elem elem, const struct attention *args, bool is_forward)
{
    if (!attention_is_fast(elem, args->length, args->width))
        return false;
    if (elem == ELEM_BF16)
        by_width<__nv_bfloat16>(stream, args, is_forward);
    else
        by_width<__half>(stream, args, is_forward);
    return true;
}

void attention_forward(cudaStream_t stream, enum elem elem, const struct attention *args)
{
    if (!fast(stream, elem, args, true))
        attention_plain_forward(stream, elem, args);
}

void attention_backward(cudaStream_t stream, enum elem elem, const struct attention *args)
{
    if (!fast(stream, elem, args, false))
        attention_plain_backward(stream, elem, args);
}
