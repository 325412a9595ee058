/* stem.cuh - what the kernels of stem-kernels.h share: stem-forward.cu, stem-weights.cu.
 *
 * A block walks over tiles of y: some rows of some runs of 16 pixels, all of 64 channels.  The
 * part of x that a tile needs lies in shared memory with four channels (8 bytes) a pixel, and
 * the next tile's is on its way meanwhile.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_STEM_CUH
#define TRAIN_BACKEND_CUDA_STEM_CUH

#include "train/backend/cuda/device.cuh"
#include "train/backend/cuda/matrix.cuh"
#include "train/backend/cuda/stem-kernels.h"

namespace {

enum {
    THREADS = 128,
    WARPS = THREADS / 32,
    RUN = 16,                /* pixels that a product has */
    CHANNELS = 64,           /* of a block */
    DY_PITCH = CHANNELS + 8, /* in shared memory: eight rows lie in different banks */
};

/* How y is cut up. */
struct tiling {
    int rows, runs;      /* of a tile */
    int down, across;    /* tiles of a picture */
    int x_rows, x_width; /* of what a tile needs of x */
    int tiles;
};

/* Runs of pixels that a warp has at a time: more share the weights that were loaded, fewer let
 * more blocks in.  Small windows are mostly waiting for memory. */
__host__ __device__ constexpr int runs_of_warp(int parts)
{
    return parts > 1 ? 4 : 2;
}

int parts_of(const conv_direct &v)
{
    return (v.s + 3) / 4;
}

tiling tiling_of(const conv_direct &v)
{
    int parts = parts_of(v), room = WARPS * runs_of_warp(parts);
    int runs = (v.q + RUN - 1) / RUN;
    tiling t;

    t.across = (runs + room - 1) / room;
    t.runs = (runs + t.across - 1) / t.across;
    t.rows = room / t.runs < v.p ? room / t.runs : v.p;
    t.down = (v.p + t.rows - 1) / t.rows;
    t.x_rows = (t.rows - 1) * v.stride_h + v.r;
    t.x_width = ((t.runs * RUN - 1) * v.stride_w + parts * 4 + 1) & ~1;
    t.tiles = v.n * t.down * t.across;
    return t;
}

/* Bytes, or zeros. */
__device__ __forceinline__ void copy_8(void *to, const void *from, bool is_there)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    int bytes = is_there ? 8 : 0;

    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(at), "l"(from), "r"(bytes)
                 : "memory");
}

/* Where a tile lies. */
struct corner {
    int n, p, q;
};

__device__ __forceinline__ corner corner_of(const tiling &t, int tile)
{
    int row = tile / t.across, picture = row / t.down;
    corner c;

    c.q = (tile - row * t.across) * t.runs * RUN;
    c.p = (row - picture * t.down) * t.rows;
    c.n = picture;
    return c;
}

/* What a tile needs of x, from `shift` pixels further on. */
template <class T>
__device__ __forceinline__ void
fetch(const conv_direct &v, const tiling &t, const T *x, int tile, int shift, uint2 *to)
{
    corner at = corner_of(t, tile);
    int h0 = at.p * v.stride_h - v.top, w0 = at.q * v.stride_w - v.left + shift;

    for (int row = threadIdx.x / 32; row < t.x_rows; row += blockDim.x / 32) {
        bool is_row = h0 + row >= 0 && h0 + row < v.h;
        int64_t first = ((int64_t)at.n * v.h + h0 + row) * v.w;

        for (int i = threadIdx.x % 32; i < t.x_width; i += 32) {
            bool is_there = is_row && w0 + i >= 0 && w0 + i < v.w;

            copy_8(to + row * t.x_width + i, is_there ? x + (first + w0 + i) * v.x_pitch : x,
                   is_there);
        }
    }
}

/* For the gradient of weights.  Of x in shared memory, in pixels; half the banks from one copy
 * to the next. */
__host__ __device__ __forceinline__ int copy_room(const tiling &t)
{
    return (t.x_rows * t.x_width + 15) / 16 * 16 + 8;
}

/* x once or twice, and dy, of one tile. */
__host__ __device__ __forceinline__ int tile_bytes(const conv_direct &v, const tiling &t)
{
    int copies = v.stride_w == 1 ? 2 : 1;

    return copies * copy_room(t) * 8 + t.rows * t.runs * RUN * DY_PITCH * 2;
}

} // namespace

#endif
