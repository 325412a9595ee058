/* matrix.cuh - the instructions of tensor cores and of copies to shared memory that the
 * attention's, the first convolution's and layer norm's kernels use, each as a function.
 *
 * A warp multiplies 16 x 16 by 16 x 8.  With g = lane / 4 and t = lane % 4 a lane has
 *   a: rows g, g+8, g, g+8 at columns 2t,2t+1 (first two) and 2t+8,2t+9 (last two)
 *   b: rows 2t,2t+1 and 2t+8,2t+9 of column g
 *   c: row g columns 2t, 2t+1, then row g+8 the same
 * two elements of a and b in a word.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_MATRIX_CUH
#define TRAIN_BACKEND_CUDA_MATRIX_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T>
__device__ __forceinline__ void
multiply_add(float c[4], const unsigned a[4], unsigned b0, unsigned b1);

template <>
__device__ __forceinline__ void
multiply_add<__nv_bfloat16>(float c[4], const unsigned a[4], unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ __forceinline__ void
multiply_add<__half>(float c[4], const unsigned a[4], unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Four matrices of 8 x 8: lanes 8i..8i+7 name the rows of matrix i in shared memory; a lane
 * gets row g, columns 2t, 2t+1 of each. */
__device__ __forceinline__ void load_matrices(unsigned r[4], const void *row)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(row);

    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

/* ... and here rows 2t, 2t+1 of column g. */
__device__ __forceinline__ void load_matrices_turned(unsigned r[4], const void *row)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(row);

    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

/* The reverse of load_matrices(): Hopper and later. */
__device__ __forceinline__ void store_matrices(void *row, const unsigned r[4])
{
#if __CUDA_ARCH__ >= 900
    unsigned at = (unsigned)__cvta_generic_to_shared(row);

    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
#else
    (void)row;
    (void)r;
    __trap();
#endif
}

/* Copies to shared memory that go on meanwhile. */
__device__ __forceinline__ void copy_16(void *to, const void *from)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(to);

    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}
__device__ __forceinline__ void copy_4(void *to, const void *from)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(to);

    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
}
__device__ __forceinline__ void copies_end_group()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
/* Until at most `LEFT` groups are under way. */
template <int LEFT> __device__ __forceinline__ void copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

/* For the compiler: these registers are read and written here, so that nothing that reads or
 * writes them goes past. */
template <int N> __device__ __forceinline__ void hold(float c[N][4])
{
#pragma unroll
    for (int j = 0; j < N; j++)
        asm volatile("" : "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])::"memory");
}
template <int N> __device__ __forceinline__ void hold(unsigned a[N][4])
{
#pragma unroll
    for (int j = 0; j < N; j++)
        asm volatile("" : "+r"(a[j][0]), "+r"(a[j][1]), "+r"(a[j][2]), "+r"(a[j][3])::"memory");
}

#endif
