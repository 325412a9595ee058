/* attention-plain.cu - see attention-plain.h: a block for each row of q, and of k for dk and dv.
 *
 * Right for every size rather than fast: fp32 and tf32, short sequences, odd heads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/attention-plain.h"
#include "train/backend/cuda/device.cuh"

enum {
    PLAIN_THREADS = 128,
};

/* The block's head: rows of q, k, v, dy and y of its sequence. */
template <class T> struct plain_head {
    const T *q, *k, *v, *dy;
    const int32_t *mask;
    int64_t head; /* n * heads + h */
    int64_t at;   /* of the head in a row of q */
    int64_t row;  /* of N*T: the sequence's first */
};

template <class T>
static __device__ __forceinline__ plain_head<T> head_of(const struct attention &a)
{
    plain_head<T> h;
    int64_t d = (int64_t)a.heads * a.width;

    h.row = (int64_t)blockIdx.z * a.length;
    h.at = (int64_t)blockIdx.y * a.width;
    h.head = (int64_t)blockIdx.z * a.heads + blockIdx.y;
    h.q = (const T *)a.qkv + h.row * a.pitch + h.at;
    h.k = h.q + d;
    h.v = h.k + d;
    h.dy = a.dy ? (const T *)a.dy + h.row * a.y_pitch + h.at : NULL;
    h.mask = a.mask + h.row;
    return h;
}

/* What dropout multiplies probability (i, j) of a head with. */
static __device__ __forceinline__ float
factor_of(const struct attention &a, int64_t head, int64_t i, int64_t j)
{
    uint64_t element = (uint64_t)((head * a.length + i) * a.length + j);

    if (a.dropout.limit == 0)
        return 1;
    uint4 w = dropout_draw(a.dropout.facts->seed ^ a.dropout.stream,
                           dropout_hi(a.dropout.facts), element / 8);
    return dropout_half(w, (int)(element % 8)) >= a.dropout.limit ? a.dropout.factor : 0;
}

template <class T> static __device__ __forceinline__ float dot(const float *x, const T *y, int e)
{
    float sum = 0;

    for (int i = 0; i < e; i++)
        sum = fmaf(x[i], to_float(y[i]), sum);
    return sum;
}

template <class T> static __device__ __forceinline__ void fetch(float *to, const T *from, int e)
{
    for (int i = threadIdx.x; i < e; i += blockDim.x)
        to[i] = to_float(from[i]);
}

/* Sum over j of weight[j] times row j. */
template <class T>
static __device__ __forceinline__ float
weigh(const float *weight, const T *rows, int64_t pitch, int length)
{
    float sum = 0;

    for (int j = 0; j < length; j++)
        sum = fmaf(weight[j], to_float(rows[j * pitch]), sum);
    return sum;
}

template <class T> __global__ void __launch_bounds__(PLAIN_THREADS) plain_rows(struct attention a)
{
    extern __shared__ float room[];
    float *p = room, *q = room + a.length, most = -INFINITY, sum = 0;
    plain_head<T> h = head_of<T>(a);
    int64_t i = blockIdx.x;

    fetch(q, h.q + i * a.pitch, a.width);
    __syncthreads();
    for (int j = threadIdx.x; j < a.length; j += blockDim.x) {
        p[j] = h.mask[j] ? dot(q, h.k + j * a.pitch, a.width) * a.scale : -INFINITY;
        most = fmaxf(most, p[j]);
    }
    most = block_most(most);
    for (int j = threadIdx.x; j < a.length; j += blockDim.x) {
        p[j] = most == -INFINITY ? 0 : expf(p[j] - most);
        sum += p[j];
    }
    sum = block_sum(sum);
    for (int j = threadIdx.x; j < a.length; j += blockDim.x)
        p[j] *= sum > 0 ? factor_of(a, h.head, i, j) / sum : 0;
    if (threadIdx.x == 0)
        a.saved[h.head * a.length + i] = most + logf(sum);
    __syncthreads();
    for (int x = threadIdx.x; x < a.width; x += blockDim.x)
        ((T *)a.y)[(h.row + i) * a.y_pitch + h.at + x] =
            from_float<T>(weigh(p, h.v + x, a.pitch, a.length));
}

/* Probability (i, j), given scaled q.k: 0 in rows that see nothing. */
static __device__ __forceinline__ float weight_of(float score, float saved)
{
    return saved == -INFINITY ? 0 : expf(score - saved);
}

template <class T> __global__ void __launch_bounds__(PLAIN_THREADS) plain_grad_q(struct attention a)
{
    extern __shared__ float room[];
    float *ds = room, *p = ds + a.length, *q = p + a.length, *dy = q + a.width, delta = 0;
    plain_head<T> h = head_of<T>(a);
    int64_t i = blockIdx.x;
    float saved = a.saved[h.head * a.length + i];

    fetch(q, h.q + i * a.pitch, a.width);
    fetch(dy, h.dy + i * a.y_pitch, a.width);
    __syncthreads();
    for (int j = threadIdx.x; j < a.length; j += blockDim.x) {
        float score = dot(q, h.k + j * a.pitch, a.width) * a.scale;

        p[j] = h.mask[j] ? weight_of(score, saved) : 0;
        ds[j] = dot(dy, h.v + j * a.pitch, a.width) * factor_of(a, h.head, i, j);
        delta = fmaf(p[j], ds[j], delta);
    }
    delta = block_sum(delta);
    for (int j = threadIdx.x; j < a.length; j += blockDim.x)
        ds[j] = p[j] * (ds[j] - delta) * a.scale;
    if (threadIdx.x == 0)
        a.delta[h.head * a.length + i] = delta;
    __syncthreads();
    for (int x = threadIdx.x; x < a.width; x += blockDim.x)
        ((T *)a.dqkv)[(h.row + i) * a.pitch + h.at + x] =
            from_float<T>(weigh(ds, h.k + x, a.pitch, a.length));
}

template <class T>
__global__ void __launch_bounds__(PLAIN_THREADS) plain_grad_kv(struct attention a)
{
    extern __shared__ float room[];
    float *ds = room, *p = ds + a.length, *k = p + a.length, *v = k + a.width;
    plain_head<T> h = head_of<T>(a);
    int64_t j = blockIdx.x, d = (int64_t)a.heads * a.width;
    bool is_seen = h.mask[j] != 0;

    fetch(k, h.k + j * a.pitch, a.width);
    fetch(v, h.v + j * a.pitch, a.width);
    __syncthreads();
    for (int i = threadIdx.x; i < a.length; i += blockDim.x) {
        float score = dot(k, h.q + i * a.pitch, a.width) * a.scale;
        float factor = factor_of(a, h.head, i, j);
        float of = is_seen ? weight_of(score, a.saved[h.head * a.length + i]) : 0;
        float dp = dot(v, h.dy + i * a.y_pitch, a.width) * factor;

        p[i] = of * factor;
        ds[i] = of * (dp - a.delta[h.head * a.length + i]) * a.scale;
    }
    __syncthreads();
    T *to = (T *)a.dqkv + (h.row + j) * a.pitch + d + h.at;
    for (int x = threadIdx.x; x < a.width; x += blockDim.x) {
        to[x] = from_float<T>(weigh(ds, h.q + x, a.pitch, a.length));
        to[d + x] = from_float<T>(weigh(p, h.dy + x, a.y_pitch, a.length));
    }
}

/* Columns of padding, which no row above writes. */
static void clear(cudaStream_t stream, enum elem elem, void *to, int64_t rows, int64_t pitch, int64_t used)
{
    if (pitch > used)
        (void)cudaMemsetAsync(to, 0, (size_t)(rows * pitch) * elem_bytes(elem), stream);
}

static dim3 plain_grid(const struct attention *args)
{
    return dim3((unsigned)args->length, (unsigned)args->heads, (unsigned)args->batch);
}

void attention_plain_forward(cudaStream_t stream, enum elem elem, const struct attention *args)
{
    size_t shared = (size_t)(args->length + args->width) * sizeof(float);
    int64_t rows = (int64_t)args->batch * args->length;

    clear(stream, elem, args->y, rows, args->y_pitch, (int64_t)args->heads * args->width);
    BY_ELEM(elem, T,
            (plain_rows<T><<<plain_grid(args), PLAIN_THREADS, shared, stream>>>(*args)));
}

void attention_plain_backward(cudaStream_t stream,
                              enum elem elem,
                              const struct attention *args)
{
    size_t shared = (size_t)(args->length + args->width) * 2 * sizeof(float);
    int64_t rows = (int64_t)args->batch * args->length;

    clear(stream, elem, args->dqkv, rows, args->pitch, 3 * (int64_t)args->heads * args->width);
    BY_ELEM(elem, T,
            (plain_grad_q<T><<<plain_grid(args), PLAIN_THREADS, shared, stream>>>(*args)));
    BY_ELEM(elem, T,
            (plain_grad_kv<T><<<plain_grid(args), PLAIN_THREADS, shared, stream>>>(*args)));
}
