/* layernorm-grad.cu - the gradient of layer norm and of the dropout before it: see
 * sequence-kernels.h, layernorm.cuh.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/layernorm.cuh"
#include "train/backend/cuda/matrix.cuh"

/* The gradient of a layer norm in 16 bits, of at most 1,024 columns.  A warp has a row, as in
 * norm_rows(), and keeps the sums over its rows in registers: no thread waits for another warp.
 * There is no room for rows beside them: those come into shared memory, where a lane writes
 * and reads what is its own, the next one on its way while this one is worked on. */
enum {
    WARP_ROWS = 4, /* of a block */
    WARP_COLUMNS = 1024,
    WARP_BLOCKS = 3, /* on a multiprocessor: what registers allow */
};

template <class T, int VECTORS> struct warp_rows {
    raw8<T> dy[VECTORS][32], x[VECTORS][32];
};

/* A group of copies, even where there is no such row. */
template <class T, int VECTORS>
static __device__ __forceinline__ void
ask_row(const struct seq_norm_grad &a, int64_t row, struct warp_rows<T, VECTORS> &to)
{
    int lane = threadIdx.x % 32;

#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        int64_t at = row * a.pitch + (v * 32 + lane) * 8;

        if (row >= a.rows || (v * 32 + lane) * 8 >= (int)a.pitch)
            continue;
        copy_16(&to.dy[v][lane], (const T *)a.dy + at);
        copy_16(&to.x[v][lane], (const T *)a.x + at);
    }
    copies_end_group();
}

/* Shared memory of a block, by lanes: no two of a warp meet in a bank. */
static __device__ __forceinline__ void from_lanes(const float4 *room, int v, float x[8])
{
    float4 a = room[v * 64 + threadIdx.x % 32], b = room[v * 64 + 32 + threadIdx.x % 32];

    x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
    x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
}
static __device__ __forceinline__ void to_lanes(float4 *room, int v, const float x[8])
{
    room[v * 64 + threadIdx.x % 32] = make_float4(x[0], x[1], x[2], x[3]);
    room[v * 64 + 32 + threadIdx.x % 32] = make_float4(x[4], x[5], x[6], x[7]);
}

/* dx = inv (dy gamma - sum - hat dot) = dy inv gamma + slope x + shift */
template <class T>
static __device__ __forceinline__ void grad8(const raw8<T> &raw_dy,
                                             const raw8<T> &raw_x,
                                             const float gamma[8],
                                             float inv,
                                             float slope,
                                             float shift,
                                             float dx[8])
{
    float x[8];

    unpack_raw(raw_dy, dx);
    unpack_raw(raw_x, x);
#pragma unroll
    for (int k = 0; k < 8; k++)
        dx[k] = fmaf(dx[k] * inv, gamma[k], fmaf(x[k], slope, shift));
}

/* Over the warps of a block in order; warp v writes vector v. */
template <int VECTORS>
static __device__ __forceinline__ void
write_block_parts(float4 *room, const float sum[VECTORS][8], int pitch, float *to)
{
    int warp = threadIdx.x / 32, column = (warp * 32 + threadIdx.x % 32) * 8;
    float x[8];

    for (int w = 0; w < WARP_ROWS; w++) {
        __syncthreads();
        if (w != warp)
            continue;
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            float so_far[8] = {0};

            if (w)
                from_lanes(room, v, so_far);
#pragma unroll
            for (int k = 0; k < 8; k++)
                so_far[k] += sum[v][k];
            to_lanes(room, v, so_far);
        }
    }
    __syncthreads();
    if (warp >= VECTORS || column >= pitch)
        return;
    from_lanes(room, warp, x);
    store8(to + column, x);
}

template <class T, int VECTORS, bool DROPS>
__global__ void __launch_bounds__(WARP_ROWS * 32, WARP_BLOCKS)
    norm_grad_warps(struct seq_norm_grad a)
{
    __shared__ float4 room[VECTORS * 64]; /* gamma */
    __shared__ struct warp_rows<T, VECTORS> rows[WARP_ROWS][2];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, cols = (int)a.cols;
    int64_t row = (int64_t)blockIdx.x * WARP_ROWS + warp, step = (int64_t)gridDim.x * WARP_ROWS;
    float dgamma[VECTORS][8] = {}, dbeta[VECTORS][8] = {}, dbias[VECTORS][8] = {};
    float next_mean = 0, next_inv = 0;
    struct drop d = drop_of(a.dropout);

    ask_row<T, VECTORS>(a, row, rows[warp][0]);
    if (row < a.rows) {
        next_mean = a.mean[row];
        next_inv = a.inv_std[row];
    }
    if (warp < VECTORS) {
        float gamma[8] = {};

        if ((int)threadIdx.x * 8 < (int)a.pitch)
            load8(a.gamma + threadIdx.x * 8, gamma);
        to_lanes(room, warp, gamma);
    }
    __syncthreads();
    for (int turn = 0; row < a.rows; row += step, turn ^= 1) {
        const struct warp_rows<T, VECTORS> &r = rows[warp][turn];
        const float inv = next_inv, shift = -next_mean * inv;
        float sum = 0, dot = 0;

        ask_row<T, VECTORS>(a, row + step, rows[warp][turn ^ 1]);
        if (row + step < a.rows) {
            next_mean = a.mean[row + step];
            next_inv = a.inv_std[row + step];
        }
        copies_wait<1>();
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            float dy[8], x[8], gamma[8];

            if ((v * 32 + lane) * 8 >= (int)a.pitch)
                continue;
            unpack_raw(r.dy[v][lane], dy); /* zero behind the last column */
            unpack_raw(r.x[v][lane], x);
            from_lanes(room, v, gamma);
#pragma unroll
            for (int k = 0; k < 8; k++) {
                float hat = fmaf(x[k], inv, shift);

                dgamma[v][k] = fmaf(dy[k], hat, dgamma[v][k]);
                dbeta[v][k] += dy[k];
                sum = fmaf(dy[k], gamma[k], sum);
                dot = fmaf(dy[k] * gamma[k], hat, dot);
            }
        }
        sum = warp_sum(sum) / (float)cols;
        dot = warp_sum(dot) / (float)cols;
        asm volatile("" : "+l"(d.key)); /* the round keys are not to be kept over the loop */
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            int column = (v * 32 + lane) * 8;
            float dx[8], gamma[8];

            if (column >= (int)a.pitch)
                continue;
            from_lanes(room, v, gamma);
            grad8<T>(r.dy[v][lane], r.x[v][lane], gamma, inv, -inv * inv * dot,
                     -inv * fmaf(shift, dot, sum), dx);
            cut8(cols - column, 0, dx);
            store8((T *)a.dx + row * a.pitch + column, dx);
            if (!DROPS)
                continue;
            if (a.dropout.limit) {
                drop8(d, (uint64_t)(row * cols + column), dx);
#pragma unroll
                for (int k = 0; k < 8; k++)
                    dx[k] *= a.dropout.factor;
            }
            store8((T *)a.dropped + row * a.pitch + column, dx);
#pragma unroll
            for (int k = 0; k < 8; k++)
                dbias[v][k] += dx[k];
        }
    }
    float *to = a.parts + (int64_t)blockIdx.x * a.pitch;
    int64_t apart = (int64_t)gridDim.x * a.pitch;
    write_block_parts<VECTORS>(room, dgamma, (int)a.pitch, to);
    write_block_parts<VECTORS>(room, dbeta, (int)a.pitch, to + apart);
    if (DROPS)
        write_block_parts<VECTORS>(room, dbias, (int)a.pitch, to + 2 * apart);
}

/* In fp32, and wider ones.  A block has groups of whole warps, a thread 8 columns; each
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

static bool is_by_warps(enum elem elem, int64_t pitch)
{
    return elem_bytes(elem) == 2 && pitch <= WARP_COLUMNS;
}

int seq_norm_splits(enum elem elem, int64_t rows, int64_t pitch, int multiprocessors)
{
    bool by_warps = is_by_warps(elem, pitch);
    int64_t most = blocks_for(rows, by_warps ? WARP_ROWS : NORM_THREADS / group_of(pitch));
    int64_t want = multiprocessors * (int64_t)(by_warps ? +WARP_BLOCKS : +NORM_BLOCKS);

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
    struct drop d = drop_of(a.dropout);
    raw8<T> next_dy = {}, next_x = {};

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

        unpack_raw(next_dy, dy);
        unpack_raw(next_x, hat);
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
        asm volatile("" : "+l"(d.key)); /* the seven round keys are not to be kept over a loop */
        if (a.dropout.limit) {
            drop8(d, (uint64_t)((int64_t)row * cols + column), dy);
#pragma unroll
            for (int k = 0; k < 8; k++)
                dy[k] *= a.dropout.factor;
        }
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

static void
launch_groups(cudaStream_t stream, enum elem elem, const struct seq_norm_grad *args)
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

template <class T>
static void launch_warps(cudaStream_t stream, const struct seq_norm_grad *a)
{
    unsigned grid = (unsigned)a->splits;

    if (a->dropped)
        BY_WIDTH(a->pitch, V,
                 (norm_grad_warps<T, V, true><<<grid, WARP_ROWS * 32, 0, stream>>>(*a)));
    else
        BY_WIDTH(a->pitch, V,
                 (norm_grad_warps<T, V, false><<<grid, WARP_ROWS * 32, 0, stream>>>(*a)));
}

void seq_norm_grad(cudaStream_t stream, enum elem elem, const struct seq_norm_grad *args)
{
    if (!is_by_warps(elem, args->pitch))
        launch_groups(stream, elem, args);
    else if (elem == ELEM_BF16)
        launch_warps<__nv_bfloat16>(stream, args);
    else
        launch_warps<__half>(stream, args);
}
