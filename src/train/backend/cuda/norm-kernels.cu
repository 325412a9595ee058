/* norm-kernels.cu - see norm-kernels.h.
 *
 * A block has `across` threads along the channels, eight channels (16 bytes of 16-bit numbers)
 * each, and THREADS / across rows below each other; the grid has one column for each run of
 * across * 8 channels.  Eight across are a line of 128 bytes, and leave few enough blocks to a
 * run of channels that the last of them adds up the rest in about a microsecond.  What belongs
 * to a channel stays in registers while a thread walks down the rows, several loads ahead.
 *
 * Sums of statistics are taken around the first row's values, so that a mean that is large
 * beside the deviation costs no digits.  The passes that come second walk from the end: what
 * was read last may still be in L2.
 *
 * Small layers are over in a few microseconds, of which one or two pass from the end of one
 * kernel to the beginning of the next.  So the passes that come second may be sent to the card
 * while the first still runs (shape.overlaps), and wait there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/norm-kernels.h"

#include "train/backend/cuda/device.cuh"

namespace {

enum {
    SUM_THREADS = 512,  /* one block on a multiprocessor: 64 KiB of loads under way */
    EACH_THREADS = 256, /* of passes that write */
    EACH_BLOCKS = 3,    /* on a multiprocessor at the same time: as many as registers allow */
    WARPS = SUM_THREADS / 32,
};

struct geometry {
    int across, down, groups, blocks;
};

geometry geometry_of(const norm_shape &s, int threads, int per_multiprocessor)
{
    geometry g;
    int vectors = s.pitch / 8;

    g.across = vectors >= 8 ? 8 : vectors > 4 ? 8 : vectors > 2 ? 4 : vectors;
    g.down = threads / g.across;
    g.groups = (vectors + g.across - 1) / g.across;
    int64_t most = (s.rows + g.down - 1) / g.down;
    int64_t blocks = (int64_t)s.multiprocessors * per_multiprocessor / g.groups;
    blocks = blocks < 1 ? 1 : blocks > 65535 ? 65535 : blocks;
    g.blocks = (int)(blocks > most ? (most < 1 ? 1 : most) : blocks);
    return g;
}

/* In a pass that comes first: the next kernel may be sent. */
__device__ __forceinline__ void let_next_come()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/* In a pass that comes second: until all that the kernel before it wrote can be read. */
__device__ __forceinline__ void wait_for_last()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/* Behind the kernel before it, which may still run. */
template <class A>
void launch_second(void (*kernel)(A), dim3 grid, dim3 block, cudaStream_t stream, const A &args)
{
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute early = {};

    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = grid;
    config.blockDim = block;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = args.shape.overlaps ? 1 : 0;
    (void)cudaLaunchKernelEx(&config, kernel, args);
}

template <class T> __device__ __forceinline__ float part(const raw8<T> &p, int i)
{
    return to_float(reinterpret_cast<const T *>(&p)[i]);
}

/* Two sums of eight channels over the rows of a block: into parts, at [block][which][channel].
 * Returns whether this block is the last of its channels; then all parts can be read. */
__device__ bool sum_block(
    float first[8], float second[8], float *parts, unsigned *counters, int pitch)
{
    __shared__ float shared[WARPS * 8 * 16];
    __shared__ bool is_last;
    int across = blockDim.x, thread = threadIdx.y * across + threadIdx.x;
    int lane = thread % 32, warp = thread / 32;

#pragma unroll
    for (int i = 0; i < 8; i++)
        for (int step = across; step < 32; step *= 2) {
            first[i] += __shfl_xor_sync(0xffffffffu, first[i], step);
            second[i] += __shfl_xor_sync(0xffffffffu, second[i], step);
        }
    if (lane < across)
#pragma unroll
        for (int i = 0; i < 8; i++) {
            shared[(warp * 16 + i) * across + lane] = first[i];
            shared[(warp * 16 + 8 + i) * across + lane] = second[i];
        }
    __syncthreads();
    if (thread < across * 16) {
        int which = thread / (across * 8);
        int channel = (blockIdx.x * across + thread % across) * 8 + thread / across % 8;
        float sum = 0;

        for (int w = 0; w < WARPS; w++)
            sum += shared[w * 16 * across + thread];
        if (channel < pitch)
            parts[((int64_t)blockIdx.y * 2 + which) * pitch + channel] = sum;
        __threadfence();
    }
    __syncthreads();
    if (thread == 0)
        is_last = atomicInc(&counters[blockIdx.x], gridDim.y - 1) == gridDim.y - 1;
    __syncthreads();
    if (is_last)
        __threadfence();
    return is_last;
}

/* In the last block: the sums over all blocks, in a fixed order, for the channel that this
 * thread is to finish; -1 when it has none. */
__device__ int
gather_parts(const float *parts, int pitch, double *ret_first, double *ret_second)
{
    __shared__ double shared[2][SUM_THREADS];
    int across = blockDim.x, thread = threadIdx.y * across + threadIdx.x;
    int wide = across * 8, slices = SUM_THREADS / wide;
    int channel = blockIdx.x * wide + thread % wide, slice = thread / wide;
    double first = 0, second = 0;

    if (channel < pitch)
#pragma unroll 8
        for (int block = slice; block < (int)gridDim.y; block += slices) {
            const float *at = parts + (int64_t)block * 2 * pitch + channel;

            first += (double)__ldcg(at);
            second += (double)__ldcg(at + pitch);
        }
    shared[0][thread] = first;
    shared[1][thread] = second;
    __syncthreads();
    if (slice > 0 || channel >= pitch)
        return -1;
    first = second = 0;
    for (int i = 0; i < slices; i++) {
        first += shared[0][i * wide + thread];
        second += shared[1][i * wide + thread];
    }
    *ret_first = first;
    *ret_second = second;
    return channel;
}

__device__ void set_line(const norm_forward &f, int c, float mean, float inv)
{
    bool is_real = c < f.shape.channels;

    f.line[c] = is_real ? f.gamma[c] * inv : 0;
    f.line[f.shape.pitch + c] = is_real ? mean : 0;
    f.line[2 * f.shape.pitch + c] = is_real ? f.beta[c] : 0;
}

/* One channel's mean and variance are known. */
__device__ void learn(const norm_forward &f, int c, double mean, double var)
{
    bool is_real = c < f.shape.channels;
    double count = (double)f.shape.rows;
    double decay = (double)f.decay;
    float inv;

    var = var < 0 ? 0 : var; /* a NaN stays one */
    inv = (float)(1 / sqrt(var + (double)f.epsilon));
    set_line(f, c, (float)mean, inv);
    if (!is_real)
        return;
    f.mean[c] = (float)mean;
    f.inv_std[c] = inv;
    if (!f.running_mean)
        return;
    if (f.is_unbiased && count > 1)
        var *= count / (count - 1);
    f.running_mean[c] = (float)(decay * (double)f.running_mean[c] + (1 - decay) * mean);
    f.running_var[c] = (float)(decay * (double)f.running_var[c] + (1 - decay) * var);
}

template <class T> __global__ void __launch_bounds__(SUM_THREADS) statistics(norm_forward f)
{
    enum { AHEAD = sizeof(T) == 2 ? 8 : 4 };
    const T *x = static_cast<const T *>(f.x);
    int pitch = f.shape.pitch, vector = blockIdx.x * blockDim.x + threadIdx.x;
    bool is_mine = vector * 8 < pitch;
    int64_t step = (int64_t)gridDim.y * blockDim.y, rows = is_mine ? f.shape.rows : 0;
    float pivot[8] = {}, sum[8] = {}, square[8] = {};

    let_next_come();
    x += vector * 8;
    if (is_mine)
        load8(x, pivot);
    for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < rows;
         r += AHEAD * step) {
        raw8<T> p[AHEAD];

#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (r + u * step < rows)
                p[u] = load_raw(x + (r + u * step) * pitch);
#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (r + u * step < rows)
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    float away = part(p[u], i) - pivot[i];

                    sum[i] += away;
                    square[i] = fmaf(away, away, square[i]);
                }
    }
    if (!sum_block(sum, square, f.parts, f.counters, pitch))
        return;

    double first, second;
    int c = gather_parts(f.parts, pitch, &first, &second);
    if (c < 0)
        return;
    double away = first / (double)f.shape.rows;
    double from = (double)to_float(static_cast<const T *>(f.x)[c]);
    learn(f, c, from + away, second / (double)f.shape.rows - away * away);
}

__global__ void finish_statistics(norm_forward f)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;

    if (c >= f.shape.pitch)
        return;
    double mean = (double)f.sum[c] / (double)f.shape.rows;
    learn(f, c, mean, (double)f.square[c] / (double)f.shape.rows - mean * mean);
}

__global__ void freeze(norm_forward f)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;

    if (c >= f.shape.pitch)
        return;
    bool is_real = c < f.shape.channels;
    double var = is_real ? (double)f.running_var[c] : 1;
    set_line(f, c, is_real ? f.running_mean[c] : 0,
             (float)(1 / sqrt(var + (double)f.epsilon)));
}

/* The same expression forward and in the mask that is computed again. */
__device__ __forceinline__ float normal(float x, float scale, float mean, float beta)
{
    return fmaf(x - mean, scale, beta);
}

enum addend {
    ADD_NONE,
    ADD_PLAIN,
    ADD_NORM, /* to be normalised itself */
};

template <class T, addend ADD>
__global__ void __launch_bounds__(EACH_THREADS, ADD == ADD_NORM ? 2 : EACH_BLOCKS)
    apply(norm_forward f)
{
    enum { AHEAD = sizeof(T) == 2 && ADD == ADD_NONE ? 4 : 2 };
    int pitch = f.shape.pitch, vector = blockIdx.x * blockDim.x + threadIdx.x;
    int64_t step = (int64_t)gridDim.y * blockDim.y, rows = f.shape.rows;
    const T *x = static_cast<const T *>(f.x) + vector * 8;
    const T *add = static_cast<const T *>(f.add) + (ADD ? vector * 8 : 0);
    T *y = static_cast<T *>(f.y) + vector * 8;
    float scale[8], mean[8], beta[8], scale2[8], mean2[8], beta2[8];

    wait_for_last();
    if (vector * 8 >= pitch)
        return;
    load8(f.line + vector * 8, scale);
    load8(f.line + pitch + vector * 8, mean);
    load8(f.line + 2 * pitch + vector * 8, beta);
    if (ADD == ADD_NORM) {
        load8(f.add_line + vector * 8, scale2);
        load8(f.add_line + pitch + vector * 8, mean2);
        load8(f.add_line + 2 * pitch + vector * 8, beta2);
    }
    for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < rows;
         r += AHEAD * step) {
        raw8<T> p[AHEAD], q[AHEAD];

#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (r + u * step < rows) {
                int64_t at = (rows - 1 - r - u * step) * pitch;

                p[u] = load_raw(x + at);
                if (ADD)
                    q[u] = load_raw(add + at);
            }
#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (r + u * step < rows) {
                int64_t row = rows - 1 - r - u * step;
                unsigned bits = 0;
                float out[8];

#pragma unroll
                for (int i = 0; i < 8; i++) {
                    out[i] = normal(part(p[u], i), scale[i], mean[i], beta[i]);
                    if (ADD == ADD_PLAIN)
                        out[i] += part(q[u], i);
                    if (ADD == ADD_NORM)
                        out[i] += normal(part(q[u], i), scale2[i], mean2[i], beta2[i]);
                    bits |= out[i] > 0 ? 1u << i : 0;
                    if (f.has_relu && out[i] < 0)
                        out[i] = 0; /* a NaN stays one */
                }
                store8(y + row * pitch, out);
                if (f.bits)
                    f.bits[row * (pitch / 8) + vector] = (uint8_t)bits;
            }
    }
}

/* dy behind the relu. */
template <norm_mask MASK>
__device__ __forceinline__ float
behind(float d, float x, unsigned bits, int i, float scale, float mean, float beta)
{
    if (MASK == NORM_MASK_AGAIN)
        return normal(x, scale, mean, beta) > 0 ? d : 0;
    if (MASK == NORM_MASK_BITS)
        return bits >> i & 1 ? d : 0;
    return d;
}

__device__ void finish_sums(const norm_backward &b, int c, double sum, double dot)
{
    bool is_real = c < b.shape.channels;
    int pitch = b.shape.pitch;
    double count = (double)b.shape.rows;
    double inv = is_real ? (double)b.inv_std[c] : 0;
    double scale = (double)b.line[c];

    b.grad_line[c] = (float)(-scale * inv * inv * dot / count);
    b.grad_line[pitch + c] = (float)(-scale * sum / count);
    b.dgamma[c] = is_real ? (b.adds ? b.dgamma[c] : 0) + (float)(dot * inv) : 0;
    b.dbeta[c] = is_real ? (b.adds ? b.dbeta[c] : 0) + (float)sum : 0;
}

template <class T, norm_mask MASK, bool HAS_DY2>
__global__ void __launch_bounds__(SUM_THREADS) sums(norm_backward b)
{
    enum { AHEAD = sizeof(T) == 2 ? 4 : 2 };
    int pitch = b.shape.pitch, vector = blockIdx.x * blockDim.x + threadIdx.x;
    bool is_mine = vector * 8 < pitch;
    int64_t step = (int64_t)gridDim.y * blockDim.y, rows = is_mine ? b.shape.rows : 0;
    const T *dy = static_cast<const T *>(b.dy) + vector * 8;
    const T *dy2 = static_cast<const T *>(b.dy2) + (HAS_DY2 ? vector * 8 : 0);
    const T *x = static_cast<const T *>(b.x) + vector * 8;
    T *dadd = static_cast<T *>(b.dadd) + (b.dadd ? vector * 8 : 0);
    float scale[8] = {}, mean[8] = {}, beta[8] = {}, sum[8] = {}, dot[8] = {};

    let_next_come();
    if (is_mine) {
        load8(b.line + pitch + vector * 8, mean);
        if (MASK == NORM_MASK_AGAIN) {
            load8(b.line + vector * 8, scale);
            load8(b.line + 2 * pitch + vector * 8, beta);
        }
    }
    for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < rows;
         r += AHEAD * step) {
        raw8<T> d[AHEAD], d2[AHEAD], p[AHEAD];
        unsigned bits[AHEAD];

#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (r + u * step < rows) {
                int64_t row = r + u * step;

                d[u] = load_raw(dy + row * pitch);
                p[u] = load_raw(x + row * pitch);
                if (HAS_DY2)
                    d2[u] = load_raw(dy2 + row * pitch);
                bits[u] = MASK == NORM_MASK_BITS ? b.bits[row * (pitch / 8) + vector] : 0;
            }
#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (r + u * step < rows) {
                float out[8];

#pragma unroll
                for (int i = 0; i < 8; i++) {
                    float at = part(p[u], i), g = part(d[u], i);

                    if (HAS_DY2)
                        g += part(d2[u], i);
                    out[i] = behind<MASK>(g, at, bits[u], i, scale[i], mean[i], beta[i]);
                    sum[i] += out[i];
                    dot[i] = fmaf(out[i], at - mean[i], dot[i]);
                }
                if (b.dadd)
                    store8(dadd + (r + u * step) * pitch, out);
            }
    }
    if (!sum_block(sum, dot, b.parts, b.counters, pitch))
        return;

    double first, second;
    int c = gather_parts(b.parts, pitch, &first, &second);
    if (c >= 0)
        finish_sums(b, c, first, second);
}

template <class T, norm_mask MASK>
__global__ void __launch_bounds__(EACH_THREADS, sizeof(T) == 2 ? EACH_BLOCKS : 2)
    grad(norm_backward b)
{
    enum { AHEAD = 2 };
    int pitch = b.shape.pitch, vector = blockIdx.x * blockDim.x + threadIdx.x;
    int64_t step = (int64_t)gridDim.y * blockDim.y, rows = b.shape.rows;
    const T *dy = static_cast<const T *>(b.dadd ? b.dadd : b.dy) + vector * 8;
    const T *x = static_cast<const T *>(b.x) + vector * 8;
    T *dx = static_cast<T *>(b.dx) + vector * 8;
    float scale[8], mean[8], beta[8] = {}, by_x[8], rest[8];

    wait_for_last();
    if (vector * 8 >= pitch)
        return;
    load8(b.grad_line + vector * 8, by_x);
    load8(b.grad_line + pitch + vector * 8, rest);
    load8(b.line + vector * 8, scale);
    load8(b.line + pitch + vector * 8, mean);
    if (MASK == NORM_MASK_AGAIN)
        load8(b.line + 2 * pitch + vector * 8, beta);
    for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < rows;
         r += AHEAD * step) {
        raw8<T> d[AHEAD], p[AHEAD];
        unsigned bits[AHEAD];

#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (r + u * step < rows) {
                int64_t row = rows - 1 - r - u * step;

                d[u] = load_raw(dy + row * pitch);
                p[u] = load_raw(x + row * pitch);
                bits[u] = MASK == NORM_MASK_BITS ? b.bits[row * (pitch / 8) + vector] : 0;
            }
#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (r + u * step < rows) {
                float out[8];

#pragma unroll
                for (int i = 0; i < 8; i++) {
                    float at = part(p[u], i);
                    float g = behind<MASK>(part(d[u], i), at, bits[u], i, scale[i], mean[i],
                                           beta[i]);

                    out[i] = fmaf(g, scale[i], fmaf(at - mean[i], by_x[i], rest[i]));
                }
                store8(dx + (rows - 1 - r - u * step) * pitch, out);
            }
    }
}

template <class T> __global__ void __launch_bounds__(SUM_THREADS) columns(column_sums k)
{
    enum { AHEAD = sizeof(T) == 2 ? 8 : 4 };
    int pitch = k.shape.pitch, vector = blockIdx.x * blockDim.x + threadIdx.x;
    bool is_mine = vector * 8 < pitch;
    int64_t step = (int64_t)gridDim.y * blockDim.y, rows = is_mine ? k.shape.rows : 0;
    const T *x = static_cast<const T *>(k.x) + vector * 8;
    float sum[8] = {}, none[8] = {};

    for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < rows;
         r += AHEAD * step) {
        raw8<T> p[AHEAD];

#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (r + u * step < rows)
                p[u] = load_raw(x + (r + u * step) * pitch);
#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (r + u * step < rows)
#pragma unroll
                for (int i = 0; i < 8; i++)
                    sum[i] += part(p[u], i);
    }
    if (!sum_block(sum, none, k.parts, k.counters, pitch))
        return;

    double first, second;
    int c = gather_parts(k.parts, pitch, &first, &second);
    if (c >= 0)
        k.sums[c] = c < k.shape.channels ? (k.adds ? k.sums[c] : 0) + (float)first : 0;
}

template <class T> void launch_sums(const norm_backward &b, cudaStream_t stream)
{
    geometry g = geometry_of(b.shape, SUM_THREADS, 1);
    dim3 grid(g.groups, g.blocks), block(g.across, g.down);

    if (b.mask == NORM_MASK_BITS && b.dy2)
        sums<T, NORM_MASK_BITS, true><<<grid, block, 0, stream>>>(b);
    else if (b.mask == NORM_MASK_BITS)
        sums<T, NORM_MASK_BITS, false><<<grid, block, 0, stream>>>(b);
    else if (b.mask == NORM_MASK_AGAIN)
        sums<T, NORM_MASK_AGAIN, false><<<grid, block, 0, stream>>>(b);
    else if (b.dy2)
        sums<T, NORM_MASK_NONE, true><<<grid, block, 0, stream>>>(b);
    else
        sums<T, NORM_MASK_NONE, false><<<grid, block, 0, stream>>>(b);
}

/* dadd is behind the mask already. */
template <class T> void launch_grad(const norm_backward &b, cudaStream_t stream)
{
    geometry g = geometry_of(b.shape, EACH_THREADS, sizeof(T) == 2 ? EACH_BLOCKS : 2);
    dim3 grid(g.groups, g.blocks), block(g.across, g.down);

    if (b.mask == NORM_MASK_AGAIN && !b.dadd)
        launch_second(grad<T, NORM_MASK_AGAIN>, grid, block, stream, b);
    else if (b.mask == NORM_MASK_BITS && !b.dadd)
        launch_second(grad<T, NORM_MASK_BITS>, grid, block, stream, b);
    else
        launch_second(grad<T, NORM_MASK_NONE>, grid, block, stream, b);
}

} // namespace

int64_t norm_parts(const norm_shape *shape)
{
    return (int64_t)geometry_of(*shape, SUM_THREADS, 1).blocks * 2 * shape->pitch;
}

int norm_counters(const norm_shape *shape)
{
    return geometry_of(*shape, SUM_THREADS, 1).groups;
}

void norm_statistics(const norm_forward *f, cudaStream_t stream)
{
    geometry g = geometry_of(f->shape, SUM_THREADS, 1);
    dim3 grid(g.groups, g.blocks), block(g.across, g.down);

    BY_ELEM(f->shape.elem, T, statistics<T><<<grid, block, 0, stream>>>(*f));
}

void norm_finish(const norm_forward *f, cudaStream_t stream)
{
    finish_statistics<<<(f->shape.pitch + 127) / 128, 128, 0, stream>>>(*f);
}

void norm_freeze(const norm_forward *f, cudaStream_t stream)
{
    freeze<<<(f->shape.pitch + 127) / 128, 128, 0, stream>>>(*f);
}

void norm_apply(const norm_forward *f, cudaStream_t stream)
{
    geometry g = geometry_of(f->shape, EACH_THREADS, f->add_line ? 2 : EACH_BLOCKS);
    dim3 grid(g.groups, g.blocks), block(g.across, g.down);

    if (f->add_line)
        BY_ELEM(f->shape.elem, T, launch_second(apply<T, ADD_NORM>, grid, block, stream, *f));
    else if (f->add)
        BY_ELEM(f->shape.elem, T, launch_second(apply<T, ADD_PLAIN>, grid, block, stream, *f));
    else
        BY_ELEM(f->shape.elem, T, launch_second(apply<T, ADD_NONE>, grid, block, stream, *f));
}

void norm_sums(const norm_backward *b, cudaStream_t stream)
{
    BY_ELEM(b->shape.elem, T, launch_sums<T>(*b, stream));
}

void norm_grad(const norm_backward *b, cudaStream_t stream)
{
    BY_ELEM(b->shape.elem, T, launch_grad<T>(*b, stream));
}

void norm_columns(const column_sums *k, cudaStream_t stream)
{
    geometry g = geometry_of(k->shape, SUM_THREADS, 1);
    dim3 grid(g.groups, g.blocks), block(g.across, g.down);

    BY_ELEM(k->shape.elem, T, columns<T><<<grid, block, 0, stream>>>(*k));
}
