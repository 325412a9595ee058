/* attention-tiles.cuh - what the fast kernels of attention share.
 *
 * A block of four warps owns 64 rows of one side (queries or keys), each warp 16, and goes over
 * the other side in tiles of 64 rows in shared memory, two of them so that the next is copied
 * meanwhile.  What a product leaves in registers is, packed, the left operand of the next: no tile
 * of probabilities is ever stored.
 *
 * Products are made by an engine, which says how tiles lie: each warp by itself (warps<T, E>
 * here, any card), or all four at once from shared memory (group<T>, attention-group.cuh), which
 * reads a tile once instead of four times.  Both leave the same layout in registers.
 *
 * Exponents are of two: scale and the saved sums are multiplied by log2(e).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_ATTENTION_TILES_CUH
#define TRAIN_BACKEND_CUDA_ATTENTION_TILES_CUH

#include "train/backend/cuda/attention-kernels.h"
#include "train/backend/cuda/device.cuh"
#include "train/backend/cuda/matrix.cuh"

#include <type_traits>

enum {
    TILE = ATTENTION_TILE, /* rows of a tile in shared memory, and those that a block owns */
    WARPS = 4,
    THREADS = WARPS * 32,
};

#define LOG2_E 1.44269504f
#define LN_2   0.69314718f

/* 16 rows from `from` on as the left operand. */
template <class T, int E>
__device__ __forceinline__ void
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

template <class T, int E> struct warps {
    using type = T;
    static constexpr int width = E;
    static constexpr int chunk = 32; /* columns at a time in the gradient's kernels */
    /* Rows are 16 bytes longer than their elements, so that the 8 rows of a matrix lie in
     * different banks. */
    struct tile {
        T row[TILE][E + 8];
    };

    static __device__ __forceinline__ void copy(tile *to, const T *from, int64_t pitch)
    {
#pragma unroll
        for (unsigned i = 0; i < TILE * (E / 8) / THREADS; i++) {
            unsigned at = threadIdx.x + i * THREADS, r = at / (E / 8), c = at % (E / 8) * 8;

            copy_16(&to->row[r][c], from + r * pitch + c);
        }
    }

    /* The block's own rows: each warp has its 16 in registers. */
    struct room {
    };
    struct owned {
        unsigned a[E / 16][4];
    };
    static __device__ __forceinline__ owned own(room *, const T *from, int64_t pitch)
    {
        owned rows;

        load_left<T, E>(rows.a, from + threadIdx.x / 32 * 16 * pitch, pitch, threadIdx.x % 32);
        return rows;
    }

    /* What was copied can be read by products behind the next barrier. */
    static __device__ __forceinline__ void arrived()
    {
    }

    /* Products are under way between begin() and end(): what they read and add to is settled
     * before, and their results behind. */
    static __device__ __forceinline__ void begin()
    {
    }
    static __device__ __forceinline__ void end()
    {
    }
    template <int N> static __device__ __forceinline__ void settle(float[N][4])
    {
    }
    template <int N> static __device__ __forceinline__ void settle(unsigned[N][4])
    {
    }

    /* c (16, 8 N) = own rows (16, E) times rows from `row` on, turned. */
    template <int N>
    static __device__ __forceinline__ void
    times_rows(float c[N][4], const owned &own, const tile *b, int row)
    {
        int lane = threadIdx.x % 32;

#pragma unroll
        for (int j = 0; j < N; j++) {
            c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
#pragma unroll
            for (int s = 0; s < E / 16; s += 2) {
                unsigned m[4];

                load_matrices(m, &b->row[row + j * 8 + lane % 8][s * 16 + lane / 8 * 8]);
                multiply_add<T>(c[j], own.a[s], m[0], m[1]);
                multiply_add<T>(c[j], own.a[s + 1], m[2], m[3]);
            }
        }
    }

    /* c (16, E) += a (16, 16 N) times the 16 N rows from `row` on. */
    template <int N>
    static __device__ __forceinline__ void
    times_columns(float c[E / 8][4], const unsigned a[N][4], const tile *b, int row)
    {
        int lane = threadIdx.x % 32;

#pragma unroll
        for (int s = 0; s < N; s++)
#pragma unroll
            for (int j = 0; j < E / 8; j += 2) {
                unsigned m[4];

                load_matrices_turned(
                    m, &b->row[row + s * 16 + lane % 16][j * 8 + lane / 16 * 8]);
                multiply_add<T>(c[j], a[s], m[0], m[1]);
                multiply_add<T>(c[j + 1], a[s], m[2], m[3]);
            }
    }
};

#include "train/backend/cuda/attention-group.cuh"

/* Columns 16 s.. of what a product left, as a left operand. */
template <class T, int N>
__device__ __forceinline__ void as_left(unsigned a[N / 2][4], const float c[N][4])
{
#pragma unroll
    for (int s = 0; s < N / 2; s++) {
        a[s][0] = pack2<T>(c[2 * s][0], c[2 * s][1]);
        a[s][1] = pack2<T>(c[2 * s][2], c[2 * s][3]);
        a[s][2] = pack2<T>(c[2 * s + 1][0], c[2 * s + 1][1]);
        a[s][3] = pack2<T>(c[2 * s + 1][2], c[2 * s + 1][3]);
    }
}

/* 16 rows to memory, rows g times `first` and g+8 times `second`. */
template <class T, int E>
__device__ __forceinline__ void store_rows(
    T *to, int64_t pitch, const float c[E / 8][4], float first, float second, int lane)
{
    T *at = to + lane / 4 * pitch + lane % 4 * 2;

#pragma unroll
    for (int j = 0; j < E / 8; j++) {
        *reinterpret_cast<unsigned *>(at + j * 8) = pack2<T>(c[j][0] * first, c[j][1] * first);
        *reinterpret_cast<unsigned *>(at + 8 * pitch + j * 8) =
            pack2<T>(c[j][2] * second, c[j][3] * second);
    }
}

__device__ __forceinline__ float four_sum(float x) /* over the lanes of a row */
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

__device__ __forceinline__ float four_most(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/* Where the block's head and the warp's rows are. */
struct spot {
    int64_t head;   /* n * heads + h */
    int64_t row;    /* of N*T: the sequence's first */
    int first;      /* of the warp's rows, in the sequence */
    int64_t column; /* of the head in q */
    int64_t d;      /* heads * width */
};

__device__ __forceinline__ struct spot spot_of(const struct attention &a)
{
    struct spot s;

    s.head = (int64_t)blockIdx.z * a.heads + blockIdx.y;
    s.row = (int64_t)blockIdx.z * a.length;
    s.first = (int)(blockIdx.x * TILE + threadIdx.x / 32 * 16);
    s.column = (int64_t)blockIdx.y * a.width;
    s.d = (int64_t)a.heads * a.width;
    return s;
}

/* The block's first query. */
template <class T>
__device__ __forceinline__ const T *queries_of(const struct attention &a, const struct spot &s)
{
    return (const T *)a.qkv + (s.row + blockIdx.x * TILE) * a.pitch + s.column;
}

/* Keys and values for those who own queries. */
template <class M> struct key_tiles {
    typename M::tile k[2], v[2];
    int mask[2][TILE];
    typename M::room q;
};

template <class M>
__device__ __forceinline__ void
copy_keys(key_tiles<M> *sh, const struct attention &a, const struct spot &s, int block)
{
    using T = typename M::type;
    const T *k = (const T *)a.qkv + (s.row + block * TILE) * a.pitch + s.d + s.column;

    M::copy(&sh->k[block & 1], k, a.pitch);
    M::copy(&sh->v[block & 1], k + s.d, a.pitch);
    if (threadIdx.x < TILE)
        copy_4(&sh->mask[block & 1][threadIdx.x],
               a.mask + s.row + block * TILE + threadIdx.x);
    copies_end_group();
}

/* Wait for tile b, with the next one on its way; all may read it then. */
template <class M>
__device__ __forceinline__ void
next_keys(key_tiles<M> *sh, const struct attention &a, const struct spot &s, int b, int blocks)
{
    if (b + 1 < blocks) {
        copy_keys(sh, a, s, b + 1);
        copies_wait<1>();
    } else {
        copies_wait<0>();
    }
    M::arrived();
    __syncthreads();
}

/* Which keys of a tile are looked at: a bit each, the same in all lanes. */
struct seen {
    unsigned word[2];
};

template <class M>
__device__ __forceinline__ struct seen seen_in(const key_tiles<M> *sh, int b, int lane)
{
    struct seen seen;

    seen.word[0] = __ballot_sync(0xffffffffu, sh->mask[b & 1][lane] != 0);
    seen.word[1] = __ballot_sync(0xffffffffu, sh->mask[b & 1][lane + 32] != 0);
    return seen;
}

__device__ __forceinline__ bool is_none(const struct seen &seen)
{
    return (seen.word[0] | seen.word[1]) == 0;
}

/* Products with keys that are not looked at, N of 8 columns from `first` on: none. */
template <int N>
__device__ __forceinline__ void cover(float p[N][4], const struct seen &seen, int first, int lane)
{
    if ((seen.word[0] & seen.word[1]) == 0xffffffffu)
        return;
#pragma unroll
    for (int j = 0; j < N; j++) {
        unsigned two = seen.word[(first + j * 8) / 32] >> ((first + j * 8) % 32 + lane % 4 * 2);

#pragma unroll
        for (int c = 0; c < 4; c++)
            p[j][c] = two >> (c & 1) & 1 ? p[j][c] : -INFINITY;
    }
}

/* What is subtracted in the exponent: of a row that saw nothing all is 0. */
__device__ __forceinline__ float exponent_of(float saved)
{
    return saved == -INFINITY ? INFINITY : saved * LOG2_E;
}

/* Shared memory of a block: products of the group want tiles at multiples of 1024 bytes. */
template <class S> __device__ __forceinline__ S *shared_room()
{
    extern __shared__ __align__(1024) unsigned char room[];

    return reinterpret_cast<S *>(room);
}

/* Launchers. */
template <class K>
void launch_tiles(K kernel, size_t bytes, cudaStream_t stream, const struct attention *args)
{
    dim3 grid((unsigned)(args->length / TILE), (unsigned)args->heads, (unsigned)args->batch);

    /* More shared memory than a kernel gets unasked. */
    (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    kernel<<<grid, THREADS, bytes, stream>>>(*args);
}

/* Calls with the types of a shape: call(engine, drops). */
template <class M, class F> void by_dropout(const struct attention *args, F call)
{
    if (args->dropout.limit != 0)
        call(M(), std::true_type());
    else
        call(M(), std::false_type());
}

template <class T, class F> void by_width(const struct attention *args, F call)
{
    if (args->width == 32)
        by_dropout<warps<T, 32>>(args, call);
    else if (args->width == 64 && args->has_groups)
        by_dropout<group<T>>(args, call);
    else if (args->width == 64)
        by_dropout<warps<T, 64>>(args, call);
    else
        by_dropout<warps<T, 128>>(args, call);
}

template <class F> void by_shape(enum elem elem, const struct attention *args, F call)
{
    if (elem == ELEM_BF16)
        by_width<__nv_bfloat16>(args, call);
    else
        by_width<__half>(args, call);
}

#endif
