/* update-kernels.cu - see update-kernels.h.
 *
 * A block works on one chunk.  All the sums are made in double, by chunk and then in the order
 * of the chunks, so they have the same bits every time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/update-kernels.h"

#include "train/backend/cuda/device.cuh"

enum {
    THREADS = 256,
    EACH = 8,                    /* elements of a thread at a time */
    ROUND = THREADS * EACH,      /* ... of a block */
    MOST_BLOCKS = 1 << 14,       /* of loops over plain arrays */
};

static __global__ void begin_kernel(struct step_facts *facts,
                                    const float *scale,
                                    const struct update_rule rule)
{
    double t = (double)facts->number + 1;

    facts->scale = scale ? *scale : 1;
    facts->is_finite = 1;
    facts->norm = 0;
    facts->l2 = 0;
    facts->clip = 1;
    facts->grad_scale = (float)(1.0 / ((double)facts->scale * rule.divisor));
    facts->bias = 1;
    if (!rule.is_uncorrected &&
        (rule.kind == UPDATE_ADAM || rule.kind == UPDATE_ADAMW || rule.kind == UPDATE_LAMB))
        facts->bias = sqrt(1 - pow((double)rule.beta2, t)) / (1 - pow((double)rule.beta1, t));
}

void launch_begin(struct step_facts *facts,
                  const float *scale,
                  const struct update_rule *rule,
                  cudaStream_t stream)
{
    begin_kernel<<<1, 1, 0, stream>>>(facts, scale, *rule);
}

static __device__ double square_sum(const float *from, int count)
{
    double sum = 0;

    for (int i = threadIdx.x * EACH; i < count; i += ROUND) {
        float x[EACH];

        load8(from + i, x);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            sum += (double)x[j] * (double)x[j];
    }
    return block_sum(sum);
}

static __global__ __launch_bounds__(THREADS) void norm_kernel(const struct update_arrays a)
{
    struct update_chunk chunk = a.chunks[blockIdx.x];
    double sum = square_sum(a.grads + chunk.offset, chunk.count);

    if (threadIdx.x == 0)
        a.parts[2 * blockIdx.x + 1] = sum;
}

/* Half after an overflow, twice after enough good steps; takes effect with the next step. */
static __device__ void move_scale(const struct update_rule &rule,
                                  bool is_finite,
                                  float *scale,
                                  float *good)
{
    *good = is_finite ? *good + 1 : 0;
    if (!is_finite && *scale > 1)
        *scale /= 2;
    if (rule.scale_grows_after > 0 && *good >= (float)rule.scale_grows_after) {
        *scale *= 2;
        *good = 0;
    }
}

static __global__ __launch_bounds__(1024) void norm_end_kernel(const double *parts,
                                                               int count,
                                                               const struct update_rule rule,
                                                               struct step_facts *facts,
                                                               float *scale,
                                                               float *good)
{
    double sum = 0;

    for (int i = threadIdx.x; i < count; i += blockDim.x)
        sum += parts[2 * (size_t)i + 1];
    sum = block_sum(sum);
    if (threadIdx.x != 0)
        return;
    facts->is_finite = isfinite(sum) ? 1 : 0;
    facts->norm = sqrt(sum) * (double)facts->grad_scale;
    if (rule.clip_norm > 0 && facts->norm > (double)rule.clip_norm)
        facts->clip = (float)((double)rule.clip_norm / facts->norm);
    if (rule.has_dynamic_scale && scale && good)
        move_scale(rule, facts->is_finite != 0, scale, good);
}

void launch_norm(const struct update_arrays *a,
                 int chunk_count,
                 const struct update_rule *rule,
                 struct step_facts *facts,
                 float *scale,
                 float *good,
                 cudaStream_t stream)
{
    norm_kernel<<<chunk_count, THREADS, 0, stream>>>(*a);
    norm_end_kernel<<<1, 1024, 0, stream>>>(a->parts, chunk_count, *rule, facts, scale, good);
}

/* Numbers that are the same for all elements of a chunk. */
struct factors {
    float scale, decay, clip, rate, bias;
};

static __device__ struct factors factors_of(const struct update_chunk &chunk,
                                            const struct update_arrays &a,
                                            const struct update_rule &rule,
                                            const struct step_facts *facts)
{
    struct factors f;

    f.scale = facts->grad_scale * facts->clip;
    f.decay = chunk.decays ? rule.decay : 0;
    f.clip = rule.clip_value;
    f.rate = facts->lr;
    f.bias = (float)facts->bias;
    if (rule.kind == UPDATE_ADAM)
        f.rate = (float)((double)facts->lr * facts->bias);
    if ((rule.kind == UPDATE_LARS || rule.kind == UPDATE_LAMB) && chunk.decays)
        f.rate = facts->lr * a.trusts[chunk.param];
    return f;
}

static __device__ __forceinline__ float clipped(float g, float most)
{
    return g > most ? most : g < -most ? -most : g;
}

static __device__ __forceinline__ void
moments(const struct update_rule &r, float g, float &m, float &v)
{
    m = r.beta1 * m + (1 - r.beta1) * g;
    v = r.beta2 * v + (1 - r.beta2) * g * g;
}

static __device__ __forceinline__ float
direction(const struct update_rule &r, const struct factors &f, float m, float v, float w)
{
    return f.bias * m / (sqrtf(v) + r.epsilon) + f.decay * w;
}

/* One element: w, and its slots a and b. */
template <int KIND>
static __device__ __forceinline__ void
step_of(const struct update_rule &r, const struct factors &f, float g, float &w, float &a, float &b)
{
    float with_decay = clipped(f.scale * g + f.decay * w, f.clip);

    if (KIND == UPDATE_SGD) {
        w -= f.rate * with_decay;
    } else if (KIND == UPDATE_MOMENTUM || KIND == UPDATE_LARS) {
        a = r.momentum * a + with_decay;
        w -= f.rate * (r.with_nesterov ? with_decay + r.momentum * a : a);
    } else if (KIND == UPDATE_RMSPROP) {
        a = r.rho * a + (1 - r.rho) * with_decay * with_decay;
        b = r.momentum * b + f.rate * with_decay / sqrtf(a + r.epsilon);
        w -= b;
    } else if (KIND == UPDATE_ADAM) {
        moments(r, with_decay, a, b);
        w -= f.rate * a / (sqrtf(b) + r.epsilon);
    } else if (KIND == UPDATE_ADAMW) {
        moments(r, clipped(f.scale * g, f.clip), a, b);
        w -= f.rate * direction(r, f, a, b, w);
    } else { /* lamb: its moments have moved already */
        w -= f.rate * direction(r, f, a, b, w);
    }
}

template <int KIND, class T>
static __global__ __launch_bounds__(THREADS) void update_kernel(const struct update_arrays a,
                                                                int first,
                                                                const struct update_rule rule,
                                                                const struct step_facts *facts)
{
    constexpr bool has_a = KIND != UPDATE_SGD;
    constexpr bool has_b = KIND == UPDATE_RMSPROP || KIND == UPDATE_ADAM ||
                           KIND == UPDATE_ADAMW || KIND == UPDATE_LAMB;
    constexpr bool sums = KIND != UPDATE_LARS && KIND != UPDATE_LAMB; /* those did it before */
    const size_t number = (size_t)first + blockIdx.x;

    if (!facts->is_finite)
        return;
    const struct update_chunk chunk = a.chunks[number];
    const struct factors f = factors_of(chunk, a, rule, facts);
    double sum = 0;

    for (int i = threadIdx.x * EACH; i < chunk.count; i += ROUND) {
        float w[EACH], g[EACH] = {}, s[EACH] = {}, t[EACH] = {};
        const int64_t at = chunk.offset + i;

        load8(a.masters + at, w);
        if (KIND != UPDATE_LAMB)
            load8(a.grads + at, g);
        if (has_a)
            load8(a.slot0 + at, s);
        if (has_b)
            load8(a.slot1 + at, t);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            if (sums)
                sum += (double)w[j] * (double)w[j];
            step_of<KIND>(rule, f, KIND != UPDATE_LAMB ? g[j] : 0, w[j], s[j], t[j]);
        }
        store8(a.masters + at, w);
        if (has_a && KIND != UPDATE_LAMB)
            store8(a.slot0 + at, s);
        if (has_b && KIND != UPDATE_LAMB)
            store8(a.slot1 + at, t);
        if (a.copies)
            store8(static_cast<T *>(a.copies) + at, w);
    }
    if (sums) {
        sum = block_sum(sum);
        if (threadIdx.x == 0)
            a.parts[2 * number] = chunk.decays ? sum : 0;
    }
}

/* lars: squares of weights and gradients.  lamb: the moments move; squares of weights and of
 * the direction. */
template <int KIND>
static __global__ __launch_bounds__(THREADS) void squares_kernel(const struct update_arrays a,
                                                                 int first,
                                                                 const struct update_rule rule,
                                                                 const struct step_facts *facts)
{
    const size_t number = (size_t)first + blockIdx.x;

    if (!facts->is_finite)
        return;
    const struct update_chunk chunk = a.chunks[number];
    double of_w = 0, of_g = 0;
    struct factors f;

    f.scale = facts->grad_scale * facts->clip;
    f.decay = chunk.decays ? rule.decay : 0;
    f.bias = (float)facts->bias;
    for (int i = threadIdx.x * EACH; i < chunk.count; i += ROUND) {
        float w[EACH], g[EACH], m[EACH] = {}, v[EACH] = {};
        const int64_t at = chunk.offset + i;

        load8(a.masters + at, w);
        load8(a.grads + at, g);
        if (KIND == UPDATE_LAMB) {
            load8(a.slot0 + at, m);
            load8(a.slot1 + at, v);
        }
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            float second = g[j];

            if (KIND == UPDATE_LAMB) {
                moments(rule, clipped(f.scale * g[j], rule.clip_value), m[j], v[j]);
                second = direction(rule, f, m[j], v[j], w[j]);
            }
            of_w += (double)w[j] * (double)w[j];
            of_g += (double)second * (double)second;
        }
        if (KIND == UPDATE_LAMB) {
            store8(a.slot0 + at, m);
            store8(a.slot1 + at, v);
        }
    }
    of_w = block_sum(of_w);
    of_g = block_sum(of_g);
    if (threadIdx.x == 0) {
        a.parts[2 * number] = chunk.decays ? of_w : 0;
        a.parts[2 * number + 1] = of_g;
    }
}

static __device__ double lamb_trust(const struct update_rule &rule, double of_w, double of_d)
{
    double trust = sqrt(of_w / of_d);

    if (rule.trust_least > 0 && trust < (double)rule.trust_least)
        return (double)rule.trust_least;
    if (rule.trust_most > 0 && trust > (double)rule.trust_most)
        return (double)rule.trust_most;
    return trust;
}

/* A warp for each param: its chunks' squares in order, then its trust. */
static __global__ __launch_bounds__(THREADS) void trust_kernel(const struct update_arrays a,
                                                               int first_param,
                                                               int param_count,
                                                               const struct update_rule rule,
                                                               const struct step_facts *facts)
{
    int warp = (int)(blockIdx.x * (THREADS / 32) + threadIdx.x / 32), lane = threadIdx.x % 32;
    double of_w = 0, of_g = 0, trust = 1;

    if (warp >= param_count || !facts->is_finite)
        return;
    const struct update_span span = a.spans[first_param + warp];
    for (int i = lane; i < span.count; i += 32) {
        of_w += a.parts[2 * ((size_t)span.first + i)];
        of_g += a.parts[2 * ((size_t)span.first + i) + 1];
    }
    of_w = warp_sum(of_w);
    of_g = warp_sum(of_g);
    if (lane != 0)
        return;
    if (span.decays && of_w > 0 && of_g > 0) {
        double w = sqrt(of_w);
        double g = sqrt(of_g) * fabs((double)(facts->grad_scale * facts->clip));

        if (rule.kind == UPDATE_LAMB)
            trust = lamb_trust(rule, of_w, of_g);
        else if (g > 0)
            trust = (double)rule.trust * w /
                    (g + (double)rule.decay * w + (double)rule.epsilon);
    }
    a.trusts[first_param + warp] = (float)trust;
}

template <class T>
static void launch_kind(const struct update_arrays *a,
                        int first,
                        int count,
                        const struct update_rule *rule,
                        const struct step_facts *facts,
                        cudaStream_t stream)
{
#define KIND_OF(kind)                                                                          \
    case kind:                                                                                 \
        update_kernel<kind, T><<<count, THREADS, 0, stream>>>(*a, first, *rule, facts);        \
        break

    switch (rule->kind) {
        KIND_OF(UPDATE_SGD);
        KIND_OF(UPDATE_MOMENTUM);
        KIND_OF(UPDATE_RMSPROP);
        KIND_OF(UPDATE_ADAM);
        KIND_OF(UPDATE_ADAMW);
        KIND_OF(UPDATE_LARS);
        KIND_OF(UPDATE_LAMB);
    }
#undef KIND_OF
}

void launch_update(const struct update_arrays *a,
                   int first,
                   int count,
                   int first_param,
                   int param_count,
                   const struct update_rule *rule,
                   const struct step_facts *facts,
                   cudaStream_t stream)
{
    if (rule->kind == UPDATE_LARS)
        squares_kernel<UPDATE_LARS><<<count, THREADS, 0, stream>>>(*a, first, *rule, facts);
    if (rule->kind == UPDATE_LAMB)
        squares_kernel<UPDATE_LAMB><<<count, THREADS, 0, stream>>>(*a, first, *rule, facts);
    if (rule->kind == UPDATE_LARS || rule->kind == UPDATE_LAMB)
        trust_kernel<<<(param_count + THREADS / 32 - 1) / (THREADS / 32), THREADS, 0, stream>>>(
            *a, first_param, param_count, *rule, facts);
    BY_ELEM(a->elem, T, launch_kind<T>(a, first, count, rule, facts, stream));
}

static __global__ __launch_bounds__(1024) void values_kernel(const struct value_table table,
                                                             const double *parts,
                                                             int chunk_count,
                                                             int has_update,
                                                             const struct step_facts *facts,
                                                             float *values)
{
    double l2 = 0;

    for (int i = threadIdx.x; has_update && facts->is_finite && i < chunk_count; i += blockDim.x)
        l2 += parts[2 * (size_t)i];
    l2 = block_sum(l2) / 2;
    if (threadIdx.x != 0)
        return;
    for (int i = 0; i < table.count; i++) {
        float value = __int_as_float(0x7fc00000); /* NaN */

        if (table.kind[i] == FROM_PLACE)
            value = *table.from[i];
        else if (table.kind[i] == FROM_L2)
            value = (float)l2;
        else if (table.kind[i] == FROM_NORM)
            value = (float)facts->norm;
        else if (table.kind[i] == FROM_FINITE)
            value = facts->is_finite ? 1 : 0;
        else if (table.kind[i] == FROM_SCALE)
            value = facts->scale;
        values[i] = value;
    }
}

void launch_values(const struct value_table *table,
                   const double *parts,
                   int chunk_count,
                   int has_update,
                   const struct step_facts *facts,
                   float *values,
                   cudaStream_t stream)
{
    values_kernel<<<1, 1024, 0, stream>>>(*table, parts, chunk_count, has_update, facts, values);
}

static int blocks_for(int64_t groups)
{
    int64_t blocks = (groups + THREADS - 1) / THREADS;

    return (int)(blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks);
}

template <class T>
static __global__ __launch_bounds__(THREADS) void cast_kernel(T *to,
                                                              const float *from,
                                                              int64_t groups)
{
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < groups;
         i += (int64_t)gridDim.x * THREADS) {
        float x[EACH];

        load8(from + i * EACH, x);
        store8(to + i * EACH, x);
    }
}

void launch_cast(void *to, enum elem elem, const float *from, int64_t count, cudaStream_t stream)
{
    int64_t groups = count / EACH;

    BY_ELEM(elem, T,
            cast_kernel<T><<<blocks_for(groups), THREADS, 0, stream>>>((T *)to, from, groups));
}

/* -0.5 .. 0.5 from a hash of the place. */
static __device__ float small_value(uint64_t seed, int64_t i)
{
    uint64_t x = (uint64_t)i * 0x9E3779B97F4A7C15u + seed;

    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return (float)(x >> 40) * 0x1p-24f - 0.5f;
}

template <class T>
static __global__ __launch_bounds__(THREADS) void fill_kernel(T *to, int64_t count, uint64_t seed)
{
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * THREADS)
        to[i] = from_float<T>(small_value(seed, i));
}

static __global__ __launch_bounds__(THREADS) void bytes_kernel(uint8_t *to,
                                                               int64_t count,
                                                               uint64_t seed)
{
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * THREADS)
        to[i] = (uint8_t)((small_value(seed, i) + 0.5f) * 255);
}

void launch_fill(void *to, enum elem elem, int64_t elements, uint64_t seed, cudaStream_t stream)
{
    int blocks = blocks_for(elements);

    if (elem == ELEM_I32) /* labels, ids: zero is always one */
        cudaMemsetAsync(to, 0, (size_t)elements * 4, stream);
    else if (elem == ELEM_U8)
        bytes_kernel<<<blocks, THREADS, 0, stream>>>((uint8_t *)to, elements, seed);
    else
        BY_ELEM(elem, T, fill_kernel<T><<<blocks, THREADS, 0, stream>>>((T *)to, elements, seed));
}
