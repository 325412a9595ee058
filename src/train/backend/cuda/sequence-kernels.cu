/* sequence-kernels.cu - see sequence-kernels.h.
 *
 * Bound by memory: eight elements a thread and load, each matrix read and written once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/device.cuh"
#include "train/backend/cuda/sequence-kernels.h"

static int64_t blocks_for(int64_t count, int64_t each)
{
    return (count + each - 1) / each;
}

/* 1 + erf(z) and exp(-z^2) for z = x / sqrt(2).  For 16-bit results by Abramowitz and Stegun
 * 7.1.26, off by at most 1.5e-7; fp32 gets the library's. */
template <class T> struct erf_of {
    static __device__ __forceinline__ float plus_one(float x, float *ret_exp)
    {
        float t = fast_inverse(fmaf(0.23164189f, fabsf(x), 1.0f)); /* 0.3275911 / sqrt(2) */
        float e = fast_exp2(-0.72134752f * x * x);
        float s = fmaf(fmaf(fmaf(fmaf(1.061405429f, t, -1.453152027f), t, 1.421413741f), t,
                            -0.284496736f),
                       t, 0.254829592f) *
                  t * e;

        *ret_exp = e;
        return x < 0 ? s : 2.0f - s;
    }
};
template <> struct erf_of<float> {
    static __device__ __forceinline__ float plus_one(float x, float *ret_exp)
    {
        *ret_exp = expf(-0.5f * x * x);
        return 1.0f + erff(x * 0.707106781f);
    }
};

template <class T> __device__ __forceinline__ float gelu(float x)
{
    float e;

    return 0.5f * x * erf_of<T>::plus_one(x, &e);
}

template <class T> __device__ __forceinline__ float gelu_slope(float x)
{
    float e, half = 0.5f * erf_of<T>::plus_one(x, &e);

    return fmaf(x * 0.39894228f, e, half);
}

template <class T, bool IS_GELU>
__global__ void __launch_bounds__(256) act_kernel(const T *x, T *y, int64_t vectors)
{
    int64_t i = (int64_t)blockIdx.x * 512 + threadIdx.x;
    float v[2][8];

#pragma unroll
    for (int j = 0; j < 2; j++)
        if (i + j * 256 < vectors)
            load8(x + (i + j * 256) * 8, v[j]);
#pragma unroll
    for (int j = 0; j < 2; j++) {
        if (i + j * 256 >= vectors)
            break;
#pragma unroll
        for (int k = 0; k < 8; k++)
            v[j][k] = IS_GELU ? gelu<T>(v[j][k]) : tanhf(v[j][k]);
        store8(y + (i + j * 256) * 8, v[j]);
    }
}

void seq_act(
    cudaStream_t stream, enum elem elem, bool is_gelu, const void *x, void *y, int64_t count)
{
    unsigned grid = (unsigned)blocks_for(count / 8, 512);

    if (grid == 0)
        return;
    if (is_gelu)
        BY_ELEM(elem, T,
                (act_kernel<T, true><<<grid, 256, 0, stream>>>((const T *)x, (T *)y, count / 8)));
    else
        BY_ELEM(elem, T,
                (act_kernel<T, false><<<grid, 256, 0, stream>>>((const T *)x, (T *)y, count / 8)));
}

/* Sums over rows.  A block has 32 lanes of 8 columns and 8 warps that take rows in turn; block
 * (c, s) sums run s of columns 256 c.. */
enum {
    SUM_COLUMNS = 256,
    SUM_WARPS = 8,
};

int seq_splits(int64_t rows, int64_t pitch, int multiprocessors)
{
    int64_t across = blocks_for(pitch, SUM_COLUMNS);
    int64_t splits = blocks_for((int64_t)multiprocessors * 8, across);
    int64_t most = blocks_for(rows, 4 * SUM_WARPS);

    return (int)(splits < most ? splits : most > 0 ? most : 1);
}

/* The warps' sums of a block, added in order; warp 0 writes them. */
static __device__ __forceinline__ void
finish_parts(const float sum[8], float *parts, int64_t column, bool is_in)
{
    __shared__ __align__(16) float of_warp[SUM_WARPS][SUM_COLUMNS + 8];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    store8(&of_warp[warp][lane * 8], sum);
    __syncthreads();
    if (warp != 0 || !is_in)
        return;
    float all[8] = {0};
    for (int w = 0; w < SUM_WARPS; w++)
#pragma unroll
        for (int k = 0; k < 8; k++)
            all[k] += of_warp[w][lane * 8 + k];
    store8(parts + column, all);
}

template <class T>
__global__ void __launch_bounds__(256)
    column_parts(const T *x, int64_t rows, int64_t pitch, float *parts, int64_t run)
{
    int64_t column = (int64_t)blockIdx.x * SUM_COLUMNS + threadIdx.x % 32 * 8;
    int64_t first = (int64_t)blockIdx.y * run + threadIdx.x / 32;
    int64_t end = min((int64_t)(blockIdx.y + 1) * run, rows);
    bool is_in = column < pitch;
    float sum[8] = {0};

    if (is_in)
#pragma unroll 4
        for (int64_t r = first; r < end; r += SUM_WARPS) {
            float v[8];

            load8(x + r * pitch + column, v);
#pragma unroll
            for (int k = 0; k < 8; k++)
                sum[k] += v[k];
        }
    finish_parts(sum, parts + (int64_t)blockIdx.y * pitch, column, is_in);
}

void seq_column_parts(cudaStream_t stream,
                      enum elem elem,
                      const void *x,
                      int64_t rows,
                      int64_t pitch,
                      float *parts,
                      int splits)
{
    dim3 grid((unsigned)blocks_for(pitch, SUM_COLUMNS), (unsigned)splits);

    BY_ELEM(elem, T,
            (column_parts<T><<<grid, 256, 0, stream>>>((const T *)x, rows, pitch, parts,
                                                       blocks_for(rows, splits))));
}

/* Four blocks on a multiprocessor: seq_splits() makes two whole rounds of that. */
template <class T>
__global__ void __launch_bounds__(256, 4) gelu_grad_parts(
    const T *dy, const T *pre, T *dx, int64_t rows, int64_t pitch, float *parts, int64_t run)
{
    int64_t column = (int64_t)blockIdx.x * SUM_COLUMNS + threadIdx.x % 32 * 8;
    int64_t first = (int64_t)blockIdx.y * run + threadIdx.x / 32;
    int64_t end = min((int64_t)(blockIdx.y + 1) * run, rows);
    constexpr int ahead = 8 / sizeof(T); /* rows that are asked for at a time */
    const int64_t apart = SUM_WARPS * pitch;
    bool is_in = column < pitch;
    float sum[8] = {0};

    for (int64_t r = first; is_in && r < end; r += ahead * SUM_WARPS) {
        const int64_t at = r * pitch + column;
        raw8<T> raw_dy[ahead], raw_pre[ahead];

#pragma unroll
        for (int j = 0; j < ahead; j++)
            if (r + j * SUM_WARPS < end) {
                raw_dy[j] = load_raw(dy + at + j * apart);
                raw_pre[j] = load_raw(pre + at + j * apart);
            }
#pragma unroll
        for (int j = 0; j < ahead; j++) {
            float g[8], x[8];

            if (r + j * SUM_WARPS >= end)
                break;
            unpack_raw(raw_dy[j], g);
            unpack_raw(raw_pre[j], x);
#pragma unroll
            for (int k = 0; k < 8; k++) {
                g[k] *= gelu_slope<T>(x[k]);
                sum[k] += g[k];
            }
            store8(dx + at + j * apart, g);
        }
    }
    finish_parts(sum, parts + (int64_t)blockIdx.y * pitch, column, is_in);
}

void seq_gelu_grad(cudaStream_t stream,
                   enum elem elem,
                   const void *dy,
                   const void *pre,
                   void *dx,
                   int64_t rows,
                   int64_t pitch,
                   float *parts,
                   int splits)
{
    dim3 grid((unsigned)blocks_for(pitch, SUM_COLUMNS), (unsigned)splits);

    BY_ELEM(elem, T,
            (gelu_grad_parts<T><<<grid, 256, 0, stream>>>(
                (const T *)dy, (const T *)pre, (T *)dx, rows, pitch, parts,
                blocks_for(rows, splits))));
}

/* Block (c, i): columns 32 c.. of sum i; 32 threads a column, each a run of the splits, so
 * that many loads are under way. */
__global__ void __launch_bounds__(1024) column_sums(struct seq_sums s)
{
    __shared__ float of_run[32][33];
    int lane = threadIdx.x % 32, run = threadIdx.x / 32, which = blockIdx.y;
    int64_t column = (int64_t)blockIdx.x * 32 + lane;
    const float *from = s.parts + (int64_t)which * s.splits * s.pitch;
    float sum = 0;

    if (column < s.pitch)
#pragma unroll 4
        for (int i = run; i < s.splits; i += 32)
            sum += from[(int64_t)i * s.pitch + column];
    of_run[run][lane] = sum;
    __syncthreads();
    sum = warp_sum(of_run[lane][run]);
    column = (int64_t)blockIdx.x * 32 + run;
    if (lane == 0 && column < s.pitch)
        s.to[which][column] = sum + (s.adds[which] ? s.to[which][column] : 0);
}

void seq_column_sums(cudaStream_t stream, const struct seq_sums *sums)
{
    dim3 grid((unsigned)blocks_for(sums->pitch, 32), (unsigned)sums->count);

    column_sums<<<grid, 1024, 0, stream>>>(*sums);
}

template <class T> __global__ void __launch_bounds__(256) embed_rows(struct seq_embed a)
{
    int64_t vectors = a.pitch / 8, i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    int64_t row = i / vectors, column = i % vectors * 8;
    float word[8], position[8], type[8];

    if (row >= a.rows)
        return;
    load8((const T *)a.word + (int64_t)a.ids[row] * a.pitch + column, word);
    load8((const T *)a.position + row % a.length * a.pitch + column, position);
    load8((const T *)a.type + (int64_t)a.types[row] * a.pitch + column, type);
#pragma unroll
    for (int k = 0; k < 8; k++)
        word[k] += position[k] + type[k];
    store8((T *)a.y + row * a.pitch + column, word);
}

void seq_embed(cudaStream_t stream, enum elem elem, const struct seq_embed *args)
{
    unsigned grid = (unsigned)blocks_for(args->rows * (args->pitch / 8), 256);

    BY_ELEM(elem, T, (embed_rows<T><<<grid, 256, 0, stream>>>(*args)));
}

/* Block (r, c): row r of the result, columns 2048 c..  The block looks through all ids, a tile
 * at a time, and lists those that are r in order; then groups of threads add their rows, and
 * the groups are added in order.  A row with many hits has as many loads under way as there
 * are groups times the loop's unrolling. */
enum {
    SCATTER_THREADS = 256,
    SCATTER_TILE = 1024, /* ids: four a thread */
    SCATTER_COLUMNS = SCATTER_THREADS * 8,
};

/* Where in a tile ids are r: in order, into `list`; how many. */
static __device__ __forceinline__ int
list_hits(const int32_t *ids, int64_t first, int64_t count, int r, int list[SCATTER_TILE])
{
    __shared__ int of_warp[SCATTER_THREADS / 32];
    int64_t at = first + threadIdx.x * 4;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, mine = 0, before = 0, all = 0;
    int4 four = make_int4(-1, -1, -1, -1);

    if (at + 4 <= count)
        four = *reinterpret_cast<const int4 *>(ids + at);
    else if (at < count)
        four = make_int4(ids[at], at + 1 < count ? ids[at + 1] : -1,
                         at + 2 < count ? ids[at + 2] : -1, -1);
    bool hit[4] = {four.x == r, four.y == r, four.z == r, four.w == r};
    mine = hit[0] + hit[1] + hit[2] + hit[3];
    if (!__syncthreads_or(mine))
        return 0;
    int up_to = mine;
#pragma unroll
    for (int i = 1; i < 32; i *= 2) {
        int below = __shfl_up_sync(0xffffffffu, up_to, i);

        up_to += lane >= i ? below : 0;
    }
    if (lane == 31)
        of_warp[warp] = up_to;
    __syncthreads();
    for (int w = 0; w < SCATTER_THREADS / 32; w++) {
        before += w < warp ? of_warp[w] : 0;
        all += of_warp[w];
    }
    before += up_to - mine;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (hit[i])
            list[before++] = threadIdx.x * 4 + i;
    __syncthreads();
    return all;
}

template <class T, class TO>
__global__ void __launch_bounds__(SCATTER_THREADS) scatter_rows(struct seq_scatter a, int size)
{
    __shared__ int list[SCATTER_TILE];
    __shared__ float sums[SCATTER_COLUMNS];
    int64_t r = blockIdx.x, column;
    int group = threadIdx.x / size, groups = SCATTER_THREADS / size;
    float sum[8] = {0};

    column = (int64_t)blockIdx.y * SCATTER_COLUMNS + threadIdx.x % size * 8;
    bool is_in = column < a.pitch && group < groups;
    for (int64_t first = 0; first < a.count; first += SCATTER_TILE) {
        int hits = list_hits(a.ids, first, a.count, (int)r, list);

        if (is_in)
#pragma unroll 4
            for (int h = group; h < hits; h += groups) {
                float v[8];

                load8((const T *)a.x + (first + list[h]) * a.pitch + column, v);
#pragma unroll
                for (int k = 0; k < 8; k++)
                    sum[k] += v[k];
            }
    }
    for (int g = 0; g < groups; g++) {
        __syncthreads();
        if (g == group && is_in)
#pragma unroll
            for (int k = 0; k < 8; k++)
                sums[threadIdx.x % size * 8 + k] =
                    sum[k] + (g ? sums[threadIdx.x % size * 8 + k] : 0);
    }
    __syncthreads();
    if (group != 0 || !is_in)
        return;
    TO *to = (TO *)a.to + r * a.pitch + column;
    float more[8] = {0};
#pragma unroll
    for (int k = 0; k < 8; k++)
        sum[k] = sums[threadIdx.x % size * 8 + k];
    if (a.so_far) {
        load8(a.so_far + r * a.pitch + column, more);
#pragma unroll
        for (int k = 0; k < 8; k++)
            sum[k] += more[k];
    }
    if (a.adds) {
        load8(to, more);
#pragma unroll
        for (int k = 0; k < 8; k++)
            sum[k] += more[k];
    }
    store8(to, sum);
}

/* Threads for the columns of a row, 8 each: a power of two. */
static int scatter_size(int64_t pitch)
{
    int size = 1;

    while (size < SCATTER_THREADS && size * 8 < pitch)
        size *= 2;
    return size;
}

void seq_scatter(cudaStream_t stream, enum elem elem, const struct seq_scatter *args)
{
    dim3 grid((unsigned)args->to_rows, (unsigned)blocks_for(args->pitch, SCATTER_COLUMNS));
    int size = scatter_size(args->pitch);

    if (args->to_elem == ELEM_F32)
        BY_ELEM(elem, T,
                (scatter_rows<T, float><<<grid, SCATTER_THREADS, 0, stream>>>(*args, size)));
    else
        BY_ELEM(elem, T,
                (scatter_rows<T, T><<<grid, SCATTER_THREADS, 0, stream>>>(*args, size)));
}

/* Block (t, c): position t, columns 256 c..; each of eight warps takes every eighth sequence. */
enum {
    POSITION_LANES = 32,
    POSITION_GROUPS = 8,
};

template <class T> __global__ void __launch_bounds__(256) position_rows(struct seq_position a)
{
    __shared__ __align__(16) float sums[2][POSITION_GROUPS][POSITION_LANES * 8 + 8];
    int64_t t = blockIdx.x;
    int lane = threadIdx.x % POSITION_LANES, group = threadIdx.x / POSITION_LANES;
    int64_t column = (int64_t)blockIdx.y * POSITION_LANES * 8 + lane * 8;
    bool is_in = column < a.pitch;
    float first[8] = {0}, second[8] = {0};

    if (is_in && t < a.length)
#pragma unroll 4
        for (int64_t n = group; n < a.batch; n += POSITION_GROUPS) {
            int64_t row = n * a.length + t;
            bool is_second = a.types[row] != 0;
            float v[8];

            load8((const T *)a.dy + row * a.pitch + column, v);
#pragma unroll
            for (int k = 0; k < 8; k++) {
                first[k] += is_second ? 0 : v[k];
                second[k] += is_second ? v[k] : 0;
            }
        }
    store8(&sums[0][group][lane * 8], first);
    store8(&sums[1][group][lane * 8], second);
    __syncthreads();
    if (group != 0 || !is_in)
        return;
    for (int k = 0; k < 8; k++) {
        float of_first = 0, of_second = 0;
        float *to = a.dposition + t * a.pitch + column + k;

        for (int g = 0; g < POSITION_GROUPS; g++) {
            of_first += sums[0][g][lane * 8 + k];
            of_second += sums[1][g][lane * 8 + k];
        }
        *to = of_first + of_second + (a.adds ? *to : 0);
        if (t >= a.length)
            continue;
        a.parts[t * a.pitch + column + k] = of_first;
        a.parts[(a.length + t) * a.pitch + column + k] = of_second;
    }
}

void seq_position_grad(cudaStream_t stream, enum elem elem, const struct seq_position *args)
{
    dim3 grid((unsigned)args->to_rows,
              (unsigned)blocks_for(args->pitch, POSITION_LANES * 8));

    BY_ELEM(elem, T, (position_rows<T><<<grid, 256, 0, stream>>>(*args)));
}

template <class T>
__global__ void __launch_bounds__(256)
    gather_rows(const T *x, const int32_t *rows, int64_t count, int64_t pitch, T *y)
{
    int64_t vectors = pitch / 8, i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    int64_t row = i / vectors, column = i % vectors * 8;
    float v[8];

    if (row >= count)
        return;
    load8(x + (int64_t)rows[row] * pitch + column, v);
    store8(y + row * pitch + column, v);
}

void seq_gather(cudaStream_t stream,
                enum elem elem,
                const void *x,
                const int32_t *rows,
                int64_t count,
                int64_t pitch,
                void *y)
{
    unsigned grid = (unsigned)blocks_for(count * (pitch / 8), 256);

    BY_ELEM(elem, T,
            (gather_rows<T><<<grid, 256, 0, stream>>>((const T *)x, rows, count, pitch,
                                                      (T *)y)));
}
