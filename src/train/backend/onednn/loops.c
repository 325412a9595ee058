/* loops.c - see loops.h.
 *
 * Rows may have any length: whole vectors first, then what is left through a small buffer, so
 * that both are the same arithmetic.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/loops.h"

#include "train/backend/onednn/attention-loops.h"
#include "train/backend/onednn/norm-loops.h"
#include "train/backend/onednn/vec.h"

#ifdef __AVX512F__
#include <immintrin.h>
#endif
#include <math.h>
#include <string.h>

/* Sixteen floats of a row of which `left` are left; beyond its end stands `fill`. */
INLINE vec take(const float *from, int64_t left, float fill)
{
    float room[WIDE];

    if (left >= WIDE)
        return load(from);
    for (int64_t i = 0; i < WIDE; i++)
        room[i] = i < left ? from[i] : fill;
    return load(room);
}

INLINE void give(float *to, vec value, int64_t left)
{
    float room[WIDE];

    if (left >= WIDE) {
        store(to, value);
        return;
    }
    store(room, value);
    for (int64_t i = 0; i < left; i++)
        to[i] = room[i];
}

static void loop_gelu(float *to, const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i += WIDE) {
        vec v = take(x + i, count - i, 0);

        give(to + i, v * vec_normal(v).below, count - i);
    }
}

static void loop_gelu_grad(float *to, const float *dy, const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i += WIDE) {
        vec v = take(x + i, count - i, 0);
        struct normal n = vec_normal(v);

        give(to + i, take(dy + i, count - i, 0) * (n.below + v * n.at), count - i);
    }
}

static void loop_add(float *to, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += from[i];
}

static void
loop_add_three(float *to, const float *a, const float *b, const float *c, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = a[i] + b[i] + c[i];
}

/* --- dropout: rng_dropout() of sixteen counters side by side ---------------------------------
 */

enum {
    DRAWN = 8 * WIDE, /* elements that sixteen counters are for */
};

typedef uint64_t longs __attribute__((vector_size(64)));
typedef uint16_t shorts __attribute__((vector_size(32), aligned(2), may_alias));

/* Products of the lower halves of eight longs. */
INLINE longs times(longs a, uint32_t by)
{
#ifdef __AVX512F__
    return (longs)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi32((int)by));
#else
    return (a & 0xFFFFFFFFu) * (uint64_t)by;
#endif
}

struct halves {
    words high, low;
};

INLINE struct halves multiply(words a, uint32_t by)
{
    const longs low = (longs){0} + 0xFFFFFFFFu;
    longs even = times((longs)a, by), odd = times((longs)a >> 32, by);

    return (struct halves){(words)(even >> 32 | (odd & ~low)),
                           (words)((even & low) | odd << 32)};
}

struct counters {
    words c[4];
};

INLINE void philox_round(struct counters *s, uint32_t k0, uint32_t k1)
{
    struct halves a = multiply(s->c[0], 0xD2511F53u), b = multiply(s->c[2], 0xCD9E8D57u);

    s->c[0] = b.high ^ s->c[1] ^ k0;
    s->c[1] = b.low;
    s->c[2] = a.high ^ s->c[3] ^ k1;
    s->c[3] = a.low;
}

/* Lane i has counter group + 4 (i % 4) + i / 4: then `in_order` needs no more than to
 * interleave. */
INLINE void philox(const struct keep *k, uint64_t group, struct counters *s)
{
    const words lanes = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    uint32_t k0 = (uint32_t)k->key, k1 = (uint32_t)(k->key >> 32);
    words none = {0};

    s->c[0] = lanes + (uint32_t)group;
    s->c[1] = (uint32_t)(group >> 32) - (words)(s->c[0] < lanes); /* carried */
    s->c[2] = none + (uint32_t)k->hi;
    s->c[3] = none + (uint32_t)(k->hi >> 32);
    for (int round = 0; round < 7; round++) {
        philox_round(s, k0, k1);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* Words 0..3 of all counters to words 0..63 as counters count them. */
INLINE void in_order(const struct counters *s, words to[4])
{
    words a = __builtin_shufflevector(s->c[0], s->c[1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9,
                                      25, 12, 28, 13, 29);
    words b = __builtin_shufflevector(s->c[2], s->c[3], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9,
                                      25, 12, 28, 13, 29);
    words c = __builtin_shufflevector(s->c[0], s->c[1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11,
                                      27, 14, 30, 15, 31);
    words d = __builtin_shufflevector(s->c[2], s->c[3], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11,
                                      27, 14, 30, 15, 31);

    to[0] =
        __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
    to[1] = __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15,
                                    30, 31);
    to[2] =
        __builtin_shufflevector(c, d, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
    to[3] = __builtin_shufflevector(c, d, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15,
                                    30, 31);
}

/* The factors of the DRAWN elements from counter `group` on. */
INLINE void keep_drawn(const struct keep *k, uint64_t group, float to[DRAWN])
{
    struct counters s;
    words drawn[4]; /* in memory the lower half of a word is first, as elements go */

    philox(k, group, &s);
    in_order(&s, drawn);
    for (int i = 0; i < DRAWN; i += WIDE) {
        words half =
            __builtin_convertvector(*(const shorts *)((const uint16_t *)drawn + i), words);

        store(to + i, only_where(splat(k->scale), (bits)(half >= k->limit)));
    }
}

/* Elements before the first and behind the last are drawn too where a counter has them. */
void FOR_ISA(loop_keep)(const struct keep *k, uint64_t first, int64_t count, float *to)
{
    for (int64_t i = -(int64_t)(first % 8); i < count; i += DRAWN) {
        uint64_t group = (first + (uint64_t)i) / 8;
        int64_t skip = i < 0 ? -i : 0, end = count - i < DRAWN ? count - i : DRAWN;
        float room[DRAWN];

        if (skip == 0 && end == DRAWN) {
            keep_drawn(k, group, to + i);
            continue;
        }
        keep_drawn(k, group, room);
        memcpy(to + i + skip, room + skip, (size_t)(end - skip) * sizeof *to);
    }
}

/* --- rows ----------------------------------------------------------------------------------
 */

static void
loop_scale_add(float *to, const float *x, const float *factor, const float *add, int64_t count)
{
    if (add)
        for (int64_t i = 0; i < count; i++)
            to[i] = x[i] * factor[i] + add[i];
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = x[i] * factor[i];
}

INLINE float sum_row(const float *x, int64_t d)
{
    vec a = {0}, b = {0}; /* an addition takes four cycles */
    int64_t i = 0;

    for (; i + 2 * WIDE <= d; i += 2 * WIDE) {
        a += load(x + i);
        b += load(x + i + WIDE);
    }
    for (; i < d; i += WIDE)
        a += take(x + i, d - i, 0);
    return sum_of_lanes(a + b);
}

/* Of squares about the mean. */
INLINE float squares_row(const float *x, int64_t d, float mean)
{
    vec a = {0}, b = {0};
    int64_t i = 0;

    for (; i + 2 * WIDE <= d; i += 2 * WIDE) {
        vec u = load(x + i) - splat(mean), v = load(x + i + WIDE) - splat(mean);

        a += u * u;
        b += v * v;
    }
    for (; i < d; i += WIDE) {
        vec u = take(x + i, d - i, mean) - splat(mean);

        a += u * u;
    }
    return sum_of_lanes(a + b);
}

/* The sum may lie where x lies. */
INLINE void add_rows(float *sum, const float *x, const float *add, int64_t d)
{
    for (int64_t i = 0; i < d; i += WIDE)
        give(sum + i, take(x + i, d - i, 0) + take(add + i, d - i, 0), d - i);
}

static void loop_norm_row(const struct norm_row *r)
{
    const float *x = r->add ? r->sum : r->x;
    int64_t d = r->d;
    float mean, inv;

    if (r->add)
        add_rows(r->sum, r->x, r->add, d);
    mean = sum_row(x, d) / (float)d;
    inv = 1 / sqrtf(squares_row(x, d, mean) / (float)d + r->epsilon);
    for (int64_t i = 0; i < d; i += WIDE) {
        vec hat = (take(x + i, d - i, 0) - splat(mean)) * splat(inv);

        give(r->y + i, hat * take(r->gamma + i, d - i, 0) + take(r->beta + i, d - i, 0), d - i);
    }
    *r->mean = mean;
    *r->inv_std = inv;
}

/* dx may lie where dy lies: an element is read before it is written. */
static void loop_norm_row_grad(const struct norm_row_grad *r)
{
    vec mean = splat(r->mean), inv = splat(r->inv_std), of_g = {0}, of_dot = {0};
    int64_t d = r->d;

    for (int64_t i = 0; i < d; i += WIDE) {
        vec g = take(r->dy + i, d - i, 0) * take(r->gamma + i, d - i, 0);

        of_g += g;
        of_dot += g * ((take(r->x + i, d - i, 0) - mean) * inv);
    }
    of_g = splat(sum_of_lanes(of_g) / (float)d);
    of_dot = splat(sum_of_lanes(of_dot) / (float)d);
    for (int64_t i = 0; i < d; i += WIDE) {
        vec dy = take(r->dy + i, d - i, 0), hat = (take(r->x + i, d - i, 0) - mean) * inv;
        vec g = dy * take(r->gamma + i, d - i, 0);

        give(r->dgamma + i, take(r->dgamma + i, d - i, 0) + dy * hat, d - i);
        give(r->dbeta + i, take(r->dbeta + i, d - i, 0) + dy, d - i);
        give(r->dx + i, inv * (g - of_g - hat * of_dot), d - i);
    }
}

static float loop_largest(const float *x, int64_t count)
{
    vec most = splat(-INFINITY);

    for (int64_t i = 0; i < count; i += WIDE)
        most = larger(most, take(x + i, count - i, -INFINITY));
    return largest_lane(most);
}

/* In double: where one term is nearly all of it, the rest is what the gradient consists of. */
static double loop_sum_exp(const float *x, float minus, int64_t count)
{
    doubles sums = {0};
    double sum = 0;

    for (int64_t i = 0; i < count; i += WIDE)
        sums += __builtin_convertvector(
            vec_exp(take(x + i, count - i, -INFINITY) - splat(minus)), doubles);
    for (int i = 0; i < WIDE; i++)
        sum += sums[i];
    return sum;
}

static void loop_exp(float *to, const float *x, float minus, float times, int64_t count)
{
    for (int64_t i = 0; i < count; i += WIDE)
        give(to + i, vec_exp(take(x + i, count - i, 0) - splat(minus)) * splat(times),
             count - i);
}

static int64_t loop_count_above(const float *x, float than, int64_t count)
{
    int32_t above = 0;

    for (int64_t i = 0; i < count; i++)
        above += !(x[i] <= than);
    return above;
}

const struct loops FOR_ISA(loops) = {
    .gelu = loop_gelu,
    .gelu_grad = loop_gelu_grad,
    .add = loop_add,
    .add_three = loop_add_three,
    .keep = FOR_ISA(loop_keep),
    .scale_add = loop_scale_add,
    .norm_row = loop_norm_row,
    .norm_row_grad = loop_norm_row_grad,
    .largest = loop_largest,
    .sum_exp = loop_sum_exp,
    .exp = loop_exp,
    .count_above = loop_count_above,
    .attention_forward = FOR_ISA(attention_forward),
    .attention_backward = FOR_ISA(attention_backward),
    .norm_moments = FOR_ISA(norm_moments),
    .norm_apply = FOR_ISA(norm_apply),
    .norm_sums = FOR_ISA(norm_sums),
    .norm_grad = FOR_ISA(norm_grad),
};
