/* attention-group.cuh - the engine of four warps together, for Hopper (sm_90a): heads of 64.
 *
 * Operands are read from shared memory by the tensor cores themselves, through descriptors:
 * address, the distance of groups of eight rows (1024 bytes) and the swizzle.  Rows are 128
 * bytes; 16 bytes c of row r lie at c ^ r % 8.  Turned or not is a flag of the instruction: the
 * tile is the same.  Only what products left is multiplied from registers; the block's own rows
 * are not, since the compiler (13.0) was seen to use registers again that the next turn of a
 * loop multiplies from.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_ATTENTION_GROUP_CUH
#define TRAIN_BACKEND_CUDA_ATTENTION_GROUP_CUH

/* Every register of a result is an operand. */
#define GROUP_C4(c, j) "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
#define GROUP_C16(c, j) GROUP_C4(c, j), GROUP_C4(c, j + 1), GROUP_C4(c, j + 2), GROUP_C4(c, j + 3)

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define GROUP_TILES_64(type, ta, tb)                                                          \
    asm volatile(                                                                             \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                          \
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                           \
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "             \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "              \
        "%30, %31},"                                                                          \
        " %32, %33, p, 1, 1, %35, %36;\n}"                                                    \
        : GROUP_C16(c, 0), GROUP_C16(c, 4)                                                    \
        : "l"(a), "l"(b), "r"(adds), "n"(ta), "n"(tb))
#define GROUP_TILES_32(type, turned)                                                          \
    asm volatile(                                                                             \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"                                          \
        "wgmma.mma_async.sync.aligned.m64n32k16.f32." type "." type                           \
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15},"             \
        " %16, %17, p, 1, 1, %19, %19;\n}"                                                    \
        : GROUP_C16(c, 0)                                                                     \
        : "l"(a), "l"(b), "r"(adds), "n"(turned))
#define GROUP_TURNED_64(type)                                                                 \
    asm volatile(                                                                             \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                          \
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                           \
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "             \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "              \
        "%30, %31},"                                                                          \
        " {%32, %33, %34, %35}, %36, p, 1, 1, %38;\n}"                                        \
        : GROUP_C16(c, 0), GROUP_C16(c, 4)                                                    \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds), "n"(1))
#else /* never launched elsewhere */
#define GROUP_TILES_64(type, ta, tb) __trap()
#define GROUP_TILES_32(type, turned) __trap()
#define GROUP_TURNED_64(type)        __trap()
#endif

template <class T> struct group {
    using type = T;
    static constexpr int width = 64;
    static constexpr int chunk = 64;
    static constexpr int row_bytes = 128;
    static constexpr bool is_half = std::is_same<T, __half>::value;
    struct __align__(1024) tile {
        unsigned char bytes[TILE * row_bytes];
    };

    /* 16 bytes c of row r. */
    static __device__ __forceinline__ unsigned char *at(tile *tile, unsigned r, unsigned c)
    {
        return tile->bytes + r * row_bytes + (c ^ (r & 7)) * 16;
    }

    /* By four warps. */
    static __device__ __forceinline__ void copy(tile *to, const T *from, int64_t pitch)
    {
        unsigned thread = threadIdx.x % THREADS;

#pragma unroll
        for (unsigned i = 0; i < TILE * 8 / THREADS; i++) {
            unsigned r = (thread + i * THREADS) / 8, c = thread % 8;

            copy_16(at(to, r, c), from + r * pitch + c * 8);
        }
    }

    struct room {
        tile rows;
    };
    struct owned {
        const tile *rows;
    };
    static __device__ __forceinline__ owned own(room *room, const T *from, int64_t pitch)
    {
        copy(&room->rows, from, pitch);
        return owned{&room->rows};
    }

    /* The tensor cores read by another way than threads write. */
    static __device__ __forceinline__ void arrived()
    {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    }

    static __device__ __forceinline__ void begin()
    {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
    }

    static __device__ __forceinline__ void end()
    {
        commit();
        wait<0>();
    }

    /* end() in two: until at most `LEFT` groups of products are under way. */
    static __device__ __forceinline__ void commit()
    {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
    }
    template <int LEFT> static __device__ __forceinline__ void wait()
    {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
        asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
#endif
    }

    /* The compiler does not know that results come later than the instruction. */
    template <int N> static __device__ __forceinline__ void settle(float c[N][4])
    {
        hold<N>(c);
    }
    template <int N> static __device__ __forceinline__ void settle(unsigned a[N][4])
    {
        hold<N>(a);
    }

    /* The offset only moves the address, in the lower half: the rest is made once for a tile. */
    static __device__ __forceinline__ uint64_t descriptor(const tile *b, int offset)
    {
        const unsigned by_eight_rows = 1024 >> 4, swizzle_128 = 1u << 30;
        unsigned at = (unsigned)__cvta_generic_to_shared(b->bytes) >> 4 | 1u << 16;

        return (uint64_t)(swizzle_128 | by_eight_rows) << 32 | (at + (unsigned)(offset >> 4));
    }

    /* c (64, 64) = or += 16 columns of a times 16 columns of b, turned.  TA, TB: of 16 rows of
     * a, turned; times 16 rows of b. */
    template <bool TA = false, bool TB = false>
    static __device__ __forceinline__ void
    multiply(float c[8][4], uint64_t a, uint64_t b, int adds)
    {
        if constexpr (is_half)
            GROUP_TILES_64("f16", TA, TB);
        else
            GROUP_TILES_64("bf16", TA, TB);
    }

    /* c (64, 32) likewise, with neither or both. */
    template <bool TURNED>
    static __device__ __forceinline__ void
    multiply_half(float c[4][4], uint64_t a, uint64_t b, int adds)
    {
        if constexpr (is_half)
            GROUP_TILES_32("f16", TURNED);
        else
            GROUP_TILES_32("bf16", TURNED);
    }

    /* c (64, 64) += a (64, 16) in registers times 16 rows of b. */
    static __device__ __forceinline__ void
    multiply_rows(float c[8][4], const unsigned a[4], uint64_t b)
    {
        [[maybe_unused]] const int adds = 1;

        if constexpr (is_half)
            GROUP_TURNED_64("f16");
        else
            GROUP_TURNED_64("bf16");
    }

    template <int N>
    static __device__ __forceinline__ void
    times_rows(float c[N][4], const owned &own, const tile *b, int row)
    {
        static_assert(N == 8 || N == 4, "tiles or halves of them");
#pragma unroll
        for (int s = 0; s < 4; s++) {
            uint64_t left = descriptor(own.rows, s * 32);
            uint64_t right = descriptor(b, row * row_bytes + s * 32);

            if constexpr (N == 8)
                multiply(c, left, right, s > 0);
            else
                multiply_half<false>(c, left, right, s > 0);
        }
    }

    template <int N>
    static __device__ __forceinline__ void
    times_columns(float c[8][4], const unsigned a[N][4], const tile *b, int row)
    {
#pragma unroll
        for (int s = 0; s < N; s++)
            multiply_rows(c, a[s], descriptor(b, (row + s * 16) * row_bytes));
    }
};

#endif
