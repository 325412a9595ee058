/* layernorm-forward.cu - layer norm with dropout and residual before it: see
 * sequence-kernels.h, layernorm.cuh.  A row is kept in registers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/layernorm.cuh"

/* dropout(x) + add, as it is stored; returns its sum. */
template <class T>
static __device__ __forceinline__ float
join8(const struct seq_norm &a, const struct drop &d, int64_t row, int column, raw8<T> &x,
      const raw8<T> &add)
{
    float f[8], g[8], sum = 0;

    unpack_raw(x, f);
    if (a.dropout.limit) {
        drop8(d, (uint64_t)(row * a.cols + column), f);
#pragma unroll
        for (int k = 0; k < 8; k++)
            f[k] *= a.dropout.factor;
    }
    if (a.add) {
        unpack_raw(add, g);
#pragma unroll
        for (int k = 0; k < 8; k++)
            f[k] += g[k];
    }
    if (a.add || a.dropout.limit) {
        x = pack_raw<T>(f);
        unpack_raw(x, f);
    }
    if (a.sum)
        store_raw((T *)a.sum + row * a.pitch + column, x);
#pragma unroll
    for (int k = 0; k < 8; k++)
        sum += f[k];
    return sum;
}

/* Of squares about the mean. */
template <class T>
static __device__ __forceinline__ float squares8(const raw8<T> &x, float mean, int left)
{
    float f[8], sum = 0;

    unpack_raw(x, f);
    cut8(left, mean, f);
#pragma unroll
    for (int k = 0; k < 8; k++)
        sum = fmaf(f[k] - mean, f[k] - mean, sum);
    return sum;
}

/* gamma and beta are zero behind the last column. */
template <class T>
static __device__ __forceinline__ void write8(
    const struct seq_norm &a, int64_t row, int column, const raw8<T> &x, float mean, float inv)
{
    float f[8], gamma[8], beta[8];

    load8(a.gamma + column, gamma);
    load8(a.beta + column, beta);
    unpack_raw(x, f);
#pragma unroll
    for (int k = 0; k < 8; k++)
        f[k] = fmaf((f[k] - mean) * inv, gamma[k], beta[k]);
    store8((T *)a.y + row * a.pitch + column, f);
}

/* A warp has a row, a lane 8 columns of each 256.  In 16 bits a row is few registers, so that
 * many rows are under way on a multiprocessor. */
template <class T, int VECTORS>
__global__ void __launch_bounds__(128, sizeof(T) == 2 && VECTORS <= 4 ? 6 : 1)
    norm_rows(struct seq_norm a)
{
    int64_t row = (int64_t)blockIdx.x * 4 + threadIdx.x / 32;
    int lane = threadIdx.x % 32, cols = (int)a.cols, pitch = (int)a.pitch;
    raw8<T> x[VECTORS] = {}, add[VECTORS] = {};
    float mean = 0, var = 0;

    if (row >= a.rows)
        return;
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        int column = (v * 32 + lane) * 8;

        if (column >= pitch)
            continue;
        x[v] = load_raw((const T *)a.x + row * pitch + column);
        if (a.add)
            add[v] = load_raw((const T *)a.add + row * pitch + column);
    }
    const struct drop d = drop_of(a.dropout);
#pragma unroll
    for (int v = 0; v < VECTORS; v++)
        if ((v * 32 + lane) * 8 < pitch)
            mean += join8(a, d, row, (v * 32 + lane) * 8, x[v], add[v]);
    mean = warp_sum(mean) / (float)cols;
#pragma unroll
    for (int v = 0; v < VECTORS; v++)
        if ((v * 32 + lane) * 8 < pitch)
            var += squares8(x[v], mean, cols - (v * 32 + lane) * 8);
    float inv = rsqrtf(warp_sum(var) / (float)cols + a.epsilon);
    if (lane == 0) {
        a.mean[row] = mean;
        a.inv_std[row] = inv;
    }
#pragma unroll
    for (int v = 0; v < VECTORS; v++)
        if ((v * 32 + lane) * 8 < pitch)
            write8(a, row, (v * 32 + lane) * 8, x[v], mean, inv);
}

void seq_norm(cudaStream_t stream, enum elem elem, const struct seq_norm *args)
{
    unsigned grid = (unsigned)blocks_for(args->rows, 4);

    if (args->pitch > 1024)
        BY_ELEM(elem, T, (norm_rows<T, 8><<<grid, 128, 0, stream>>>(*args)));
    else
        BY_WIDTH(args->pitch, V,
                 BY_ELEM(elem, T, (norm_rows<T, V><<<grid, 128, 0, stream>>>(*args))));
}
