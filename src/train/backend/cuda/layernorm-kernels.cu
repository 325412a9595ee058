/* layernorm-kernels.cu - layer norm with dropout and residual before it, and its gradient: see
 * sequence-kernels.h.
 *
 * Bound by memory: eight elements a thread and load, each matrix read and written once, a row
 * kept in registers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/device.cuh"
#include "train/backend/cuda/sequence-kernels.h"

static int64_t blocks_for(int64_t count, int64_t each)
{
    return (count + each - 1) / each;
}

/* Which of elements first..first+7 are kept, as bits. */
static __device__ __forceinline__ unsigned
kept_bits(const struct seq_dropout &d, uint64_t key, uint64_t hi, uint64_t first)
{
    unsigned bits = 0, skip = (unsigned)(first & 3);

    asm volatile("" : "+l"(key)); /* the ten round keys are not to be kept over a loop */
#pragma unroll
    for (int i = 0; i < 3; i++) {
        if (i == 2 && skip == 0)
            break;
        uint4 w = philox(key, hi, first / 4 + i);
        unsigned four = (w.x >= d.limit) | (w.y >= d.limit) << 1 | (w.z >= d.limit) << 2 |
                        (w.w >= d.limit) << 3;

        bits |= four << (4 * i);
    }
    return bits >> skip;
}

/* Eight elements from `first`, kept or dropped. */
static __device__ __forceinline__ void
drop8(const struct seq_dropout &d, uint64_t key, uint64_t hi, uint64_t first, float x[8])
{
    unsigned bits = kept_bits(d, key, hi, first);

#pragma unroll
    for (int k = 0; k < 8; k++)
        x[k] = bits >> k & 1 ? x[k] * d.factor : 0;
}

template <class T> __device__ __forceinline__ void round8(float x[8])
{
#pragma unroll
    for (int k = 0; k < 8; k++)
        x[k] = to_float(from_float<T>(x[k]));
}

/* A warp has a row, a lane 8 columns of each 256. */
template <class T, int VECTORS>
__global__ void __launch_bounds__(128) norm_rows(struct seq_norm a)
{
    int64_t row = (int64_t)blockIdx.x * 4 + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    uint64_t key = 0, hi = 0;
    float x[VECTORS][8], add[VECTORS][8], mean = 0, var = 0;

    if (row >= a.rows)
        return;
    if (a.dropout.limit) {
        key = a.dropout.facts->seed ^ a.dropout.stream;
        hi = (uint64_t)a.dropout.facts->pass << 48 | a.dropout.facts->number;
    }
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        int column = (v * 32 + lane) * 8;

#pragma unroll
        for (int k = 0; k < 8; k++)
            x[v][k] = add[v][k] = 0;
        if (column >= a.pitch)
            continue;
        load8((const T *)a.x + row * a.pitch + column, x[v]);
        if (a.add)
            load8((const T *)a.add + row * a.pitch + column, add[v]);
    }
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        int column = (v * 32 + lane) * 8;

        if (column >= a.pitch)
            continue;
        if (a.dropout.limit)
            drop8(a.dropout, key, hi, (uint64_t)(row * a.cols + column), x[v]);
        if (a.sum) {
#pragma unroll
            for (int k = 0; k < 8; k++)
                x[v][k] += add[v][k];
            round8<T>(x[v]);
            store8((T *)a.sum + row * a.pitch + column, x[v]);
        }
#pragma unroll
        for (int k = 0; k < 8; k++)
            mean += x[v][k];
    }
    mean = warp_sum(mean) / (float)a.cols;
#pragma unroll
    for (int v = 0; v < VECTORS; v++)
#pragma unroll
        for (int k = 0; k < 8; k++) {
            float off = (v * 32 + lane) * 8 + k < a.cols ? x[v][k] - mean : 0;

            x[v][k] = off;
            var = fmaf(off, off, var);
        }
    float inv = rsqrtf(warp_sum(var) / (float)a.cols + a.epsilon);
    if (lane == 0) {
        a.mean[row] = mean;
        a.inv_std[row] = inv;
    }
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        int column = (v * 32 + lane) * 8;
        float gamma[8], beta[8];

        if (column >= a.pitch)
            continue;
        load8(a.gamma + column, gamma);
        load8(a.beta + column, beta);
#pragma unroll
        for (int k = 0; k < 8; k++)
            x[v][k] = fmaf(x[v][k] * inv, gamma[k], beta[k]);
        store8((T *)a.y + row * a.pitch + column, x[v]);
    }
}

void seq_norm(cudaStream_t stream, enum elem elem, const struct seq_norm *args)
{
    unsigned grid = (unsigned)blocks_for(args->rows, 4);

    if (args->pitch <= 256)
        BY_ELEM(elem, T, (norm_rows<T, 1><<<grid, 128, 0, stream>>>(*args)));
    else if (args->pitch <= 512)
        BY_ELEM(elem, T, (norm_rows<T, 2><<<grid, 128, 0, stream>>>(*args)));
    else if (args->pitch <= 768)
        BY_ELEM(elem, T, (norm_rows<T, 3><<<grid, 128, 0, stream>>>(*args)));
    else if (args->pitch <= 1024)
        BY_ELEM(elem, T, (norm_rows<T, 4><<<grid, 128, 0, stream>>>(*args)));
    else
        BY_ELEM(elem, T, (norm_rows<T, 8><<<grid, 128, 0, stream>>>(*args)));
}

/* The gradient of a layer norm.  A block has groups of whole warps, a thread 8 columns; each
 * group takes a row in turn and keeps the sums over its rows in registers.  The next row is
 * asked for before this one is summed up. */
enum {
    NORM_THREADS = SEQ_MOST_WIDTH / 8,
    NORM_BLOCKS = 3, /* on a multiprocessor: enough rows asked for at a time */
};

static int64_t group_of(int64_t pitch) /* threads */
{
    return blocks_for(pitch / 8, 32) * 32;
}

int seq_norm_splits(int64_t rows, int64_t pitch, int multiprocessors)
{
    int64_t groups = NORM_THREADS / group_of(pitch);
    int64_t most = blocks_for(rows, groups), want = (int64_t)multiprocessors * NORM_BLOCKS;

    return (int)(most < want ? most > 0 ? most : 1 : want);
}

/* Sums of `a` and `b` over the warps of a group, by way of one of two sets of parts in turn. */
static __device__ __forceinline__ void
group_sums(float2 parts[32], int warps, float *a, float *b)
{
    int warp = threadIdx.x / 32, first = warp / warps * warps;
    float2 mine = make_float2(warp_sum(*a), warp_sum(*b));

    if (threadIdx.x % 32 == 0)
        parts[warp] = mine;
    __syncthreads();
    *a = *b = 0;
    for (int w = 0; w < warps; w++) {
        *a += parts[first + w].x;
        *b += parts[first + w].y;
    }
}

/* Over the groups of a block in order, by way of shared memory; group 0 writes. */
static __device__ __forceinline__ void write_group_parts(float *of_groups,
                                                         const float sum[8],
                                                         int group,
                                                         int groups,
                                                         int column,
                                                         bool is_in,
                                                         float *to)
{
    for (int g = 0; g < groups; g++) {
        __syncthreads();
        if (g != group || !is_in)
            continue;
#pragma unroll
        for (int k = 0; k < 8; k++)
            of_groups[column + k] = sum[k] + (g ? of_groups[column + k] : 0);
    }
    __syncthreads();
    if (group != 0 || !is_in)
        return;
#pragma unroll
    for (int k = 0; k < 8; k++)
        to[column + k] = of_groups[column + k];
}

template <class T> struct raw8 { /* eight elements as loaded */
    uint4 words[sizeof(T) / 2];
};

template <class T> __device__ __forceinline__ raw8<T> load_raw(const T *from)
{
    raw8<T> r;

#pragma unroll
    for (int i = 0; i < (int)(sizeof(T) / 2); i++)
        r.words[i] = reinterpret_cast<const uint4 *>(from)[i];
    return r;
}

template <class T> __device__ __forceinline__ void unpack(const raw8<T> &r, float x[8])
{
    const T *each = reinterpret_cast<const T *>(&r);

#pragma unroll
    for (int k = 0; k < 8; k++)
        x[k] = to_float(each[k]);
}

template <class T, bool DROPS>
__global__ void __launch_bounds__(NORM_THREADS, NORM_BLOCKS)
    norm_grad_rows(struct seq_norm_grad a, int size)
{
    extern __shared__ __align__(16) float of_groups[]; /* and gamma behind */
    __shared__ float2 parts[2][32];
    int group = threadIdx.x / size, groups = blockDim.x / size;
    int column = threadIdx.x % size * 8, pitch = (int)a.pitch, cols = (int)a.cols;
    int rows = (int)a.rows, step = (int)gridDim.x * groups, row = blockIdx.x * groups + group;
    bool is_in = column < pitch;
    float dgamma[8] = {0}, dbeta[8] = {0}, dbias[8] = {0}, next_mean = 0, next_inv = 0;
    float *gamma = of_groups + pitch + column;
    uint64_t key = 0, hi = 0;
    raw8<T> next_dy = {}, next_x = {};

    if (DROPS && a.dropout.limit) {
        key = a.dropout.facts->seed ^ a.dropout.stream;
        hi = (uint64_t)a.dropout.facts->pass << 48 | a.dropout.facts->number;
    }
    if (is_in && row < rows) {
        next_dy = load_raw((const T *)a.dy + (int64_t)row * pitch + column);
        next_x = load_raw((const T *)a.x + (int64_t)row * pitch + column);
        next_mean = a.mean[row];
        next_inv = a.inv_std[row];
    }
    if (is_in && group == 0) {
        float v[8];

        load8(a.gamma + column, v);
        store8(gamma, v);
    }
    __syncthreads();
    /* All groups go round as often: group_sums() has a barrier. */
    for (int base = blockIdx.x * groups, turn = 0; base < rows;
         base += step, row += step, turn ^= 1) {
        float dy[8], hat[8], mean = next_mean, inv = next_inv, sum = 0, dot = 0;
        int64_t at = (int64_t)row * pitch + column;
        bool is_row = row < rows && is_in;

        unpack(next_dy, dy);
        unpack(next_x, hat);
        if (is_in && row + step < rows) {
            next_dy = load_raw((const T *)a.dy + at + (int64_t)step * pitch);
            next_x = load_raw((const T *)a.x + at + (int64_t)step * pitch);
            next_mean = a.mean[row + step];
            next_inv = a.inv_std[row + step];
        }
        float scale[8];
        if (is_row)
            load8(gamma, scale);
#pragma unroll
        for (int k = 0; k < 8; k++) {
            hat[k] = is_row && column + k < cols ? (hat[k] - mean) * inv : 0;
            dy[k] = is_row ? dy[k] : 0;
            dgamma[k] = fmaf(dy[k], hat[k], dgamma[k]);
            dbeta[k] += dy[k];
            dy[k] = is_row ? dy[k] * scale[k] : 0;
            sum += dy[k];
            dot = fmaf(dy[k], hat[k], dot);
        }
        group_sums(parts[turn], size / 32, &sum, &dot);
        if (!is_row)
            continue;
        sum /= (float)cols;
        dot /= (float)cols;
#pragma unroll
        for (int k = 0; k < 8; k++)
            dy[k] = column + k < cols ? inv * (dy[k] - sum - hat[k] * dot) : 0;
        store8((T *)a.dx + at, dy);
        if (!DROPS)
            continue;
        if (a.dropout.limit)
            drop8(a.dropout, key, hi, (uint64_t)((int64_t)row * cols + column), dy);
        store8((T *)a.dropped + at, dy);
#pragma unroll
        for (int k = 0; k < 8; k++)
            dbias[k] += dy[k];
    }
    float *to = a.parts + (int64_t)blockIdx.x * pitch;
    int64_t apart = (int64_t)gridDim.x * pitch;
    write_group_parts(of_groups, dgamma, group, groups, column, is_in, to);
    write_group_parts(of_groups, dbeta, group, groups, column, is_in, to + apart);
    if (DROPS)
        write_group_parts(of_groups, dbias, group, groups, column, is_in, to + 2 * apart);
}

void seq_norm_grad(cudaStream_t stream, enum elem elem, const struct seq_norm_grad *args)
{
    int size = (int)group_of(args->pitch);
    int threads = NORM_THREADS / size * size;
    size_t shared = (size_t)args->pitch * 2 * sizeof(float);

    if (args->dropped)
        BY_ELEM(elem, T,
                (norm_grad_rows<T, true>
                     <<<(unsigned)args->splits, threads, shared, stream>>>(*args, size)));
    else
        BY_ELEM(elem, T,
                (norm_grad_rows<T, false>
                     <<<(unsigned)args->splits, threads, shared, stream>>>(*args, size)));
}
