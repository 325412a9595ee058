/* loss-kernels.cu - see loss-kernels.h.
 *
 * A block for each row.  The first pass keeps the largest so far and the sum of exponentials by
 * it, thread by thread; then the threads' are put together, and the second pass writes.  The
 * sums over rows are made by one block in a fixed order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/loss-kernels.h"

#include "train/backend/cuda/device.cuh"

enum {
    THREADS = 256,
    EACH = 8,
    ROUND = THREADS * EACH,
};

/* What a thread knows of its part of a row. */
struct seen {
    float most, exps; /* sum of exp(x - most) */
    float sum;        /* of x */
    int above;        /* larger than the label's, or not a number */
};

/* exp(x - by).  For 16-bit results by the card's own instruction: off by some 1e-6. */
template <class T> static __device__ __forceinline__ float exp_of(float x, float by)
{
    if (sizeof(T) == 4)
        return expf(x - by);
    return fast_exp2((x - by) * 1.44269504f);
}

/* Eight of a row, of which `left` are left: the largest of them first, then one exponential
 * each. */
template <class T>
static __device__ __forceinline__ void
see(struct seen &s, const float x[EACH], int left, float of_label)
{
    float most = s.most;

#pragma unroll
    for (int j = 0; j < EACH; j++)
        most = j < left ? fmaxf(most, x[j]) : most;
    if (most > s.most)
        s.exps *= exp_of<T>(s.most, most);
    s.most = most;
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        s.exps += j < left ? exp_of<T>(x[j], most) : 0;
        s.sum += j < left ? x[j] : 0;
        s.above += j < left && !(x[j] <= of_label);
    }
}

template <class T>
static __global__ __launch_bounds__(THREADS) void xent_kernel(const struct xent_args a)
{
    const int64_t row = blockIdx.x;
    const T *x = (const T *)a.logits + row * a.pitch;
    T *probs = (T *)a.probs + row * a.pitch;
    const int label = a.labels[row];
    const bool counts = label >= 0 && label < a.classes;
    const float of_label = to_float(x[counts ? label : 0]);
    struct seen s = {-INFINITY, 0, 0, 0};

    for (int i = threadIdx.x * EACH; i < a.classes; i += ROUND) {
        float each[EACH];

        load8(x + i, each);
        if (i + EACH <= a.classes)
            see<T>(s, each, EACH, of_label);
        else
            see<T>(s, each, a.classes - i, of_label);
    }
    const float most = block_most(s.most);
    const float exps = block_sum(s.exps == 0 ? 0.0f : s.exps * expf(s.most - most));
    const float log_sum = most + logf(exps);
    const float sum = block_sum(s.sum);
    const int above = block_sum(s.above);

    /* All have read of_label by now (block_sum waits): the row may be overwritten. */
    for (int i = threadIdx.x * EACH; i < a.pitch; i += ROUND) {
        float each[EACH];

        load8(x + i, each);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            each[j] = i + j < a.classes ? exp_of<T>(each[j], log_sum) : 0;
        store8(probs + i, each);
    }
    if (threadIdx.x == 0) {
        float *part = a.parts + 4 * row;

        part[0] = counts ? (1 - a.smoothing) * (log_sum - of_label) +
                               a.smoothing * (log_sum - sum / (float)a.classes)
                         : 0;
        part[1] = counts && above < 1;
        part[2] = counts && above < 5;
        part[3] = counts;
    }
}

static __global__ __launch_bounds__(1024) void xent_end_kernel(const struct xent_args a)
{
    double loss = 0, top1 = 0, top5 = 0, counted = 0;

    for (int64_t i = threadIdx.x; i < a.rows; i += blockDim.x) {
        loss += (double)a.parts[4 * i];
        top1 += (double)a.parts[4 * i + 1];
        top5 += (double)a.parts[4 * i + 2];
        counted += (double)a.parts[4 * i + 3];
    }
    loss = block_sum(loss);
    top1 = block_sum(top1);
    top5 = block_sum(top5);
    counted = block_sum(counted);
    if (threadIdx.x != 0)
        return;
    counted = counted < 1 ? 1 : counted;
    *a.loss = (float)(loss / counted);
    *a.top1 = (float)top1;
    *a.top5 = (float)top5;
    *a.counted = (float)counted;
}

void launch_xent(const struct xent_args *a, cudaStream_t stream)
{
    BY_ELEM(a->elem, T, xent_kernel<T><<<(unsigned)a->rows, THREADS, 0, stream>>>(*a));
    xent_end_kernel<<<1, 1024, 0, stream>>>(*a);
}

template <class T>
static __global__ __launch_bounds__(THREADS) void
xent_grad_kernel(const struct xent_grad_args a, const struct step_facts *facts)
{
    const int groups = a.pitch / EACH;
    const float even = a.smoothing / (float)a.classes;
    const float scale =
        a.weight * (a.scales_by_loss ? facts->scale : 1) / *a.counted;

    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < a.rows * groups;
         i += (int64_t)gridDim.x * THREADS) {
        int64_t row = i / groups;
        int first = (int)(i - row * groups) * EACH, label = a.labels[row];
        bool counts = label >= 0 && label < a.classes;
        float x[EACH];

        load8((const T *)a.probs + i * EACH, x);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            float target = first + j < a.classes ? even : 0;

            target += first + j == label ? 1 - a.smoothing : 0;
            x[j] = counts ? (x[j] - target) * scale : 0;
        }
        store8((T *)a.to + i * EACH, x);
    }
}

void launch_xent_grad(const struct xent_grad_args *a,
                      const struct step_facts *facts,
                      cudaStream_t stream)
{
    int64_t blocks = (a->rows * (a->pitch / EACH) + THREADS - 1) / THREADS;

    if (blocks > 65536)
        blocks = 65536;
    BY_ELEM(a->elem, T, xent_grad_kernel<T><<<(unsigned)blocks, THREADS, 0, stream>>>(*a, facts));
}

static __global__ void weighted_kernel(const struct weighted_args a)
{
    double sum = 0;

    for (int i = 0; i < a.count; i++)
        sum += (double)a.weight[i] * (double)*a.from[i];
    *a.to = (float)sum;
}

void launch_weighted(const struct weighted_args *a, cudaStream_t stream)
{
    weighted_kernel<<<1, 1, 0, stream>>>(*a);
}
