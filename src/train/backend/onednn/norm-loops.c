/* norm-loops.c - see norm-loops.h.
 *
 * The loops go over vectors of sixteen floats, which the compiler cuts to what the machine has:
 * a block of sixteen channels is one, of a block of eight it is two pixels (`wide` repeats what
 * belongs to channels, `fold` adds the two up).  Other blocks come from small or odd layers and
 * are done one by one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/norm-loops.h"

#include "train/backend/onednn/loops.h"
#include "train/backend/onednn/vec.h"

enum {
    NARROW = 8,
};

INLINE vec wide(const float *channels, int64_t block)
{
    vec v;

    for (int i = 0; i < WIDE; i++)
        v[i] = channels[i & (block - 1)];
    return v;
}

INLINE void fold(float *channels, vec v, int64_t block)
{
    for (int64_t i = 0; i < block; i++)
        channels[i] = block == WIDE ? v[i] : v[i] + v[i + NARROW];
}

/* Leaves a NaN a NaN, so that a loss shows it. */
INLINE vec relu(vec value)
{
    return only_where(value, ~(bits)(value < (vec){0}));
}

static bool is_vectors(const struct norm_plane *p)
{
    return p->block == WIDE || (p->block == NARROW && p->pixels % 2 == 0);
}

static int64_t floats_of(const struct norm_plane *p)
{
    return p->pixels * p->block;
}

/* Four sums side by side: an addition takes four cycles. */
INLINE vec sum_of(const float *x, int64_t floats)
{
    vec a = {0}, b = {0}, c = {0}, d = {0};
    int64_t i = 0;

    for (; i + 4 * WIDE <= floats; i += 4 * WIDE) {
        a += load(x + i);
        b += load(x + i + WIDE);
        c += load(x + i + 2 * WIDE);
        d += load(x + i + 3 * WIDE);
    }
    for (; i < floats; i += WIDE)
        a += load(x + i);
    return (a + b) + (c + d);
}

INLINE vec squares_of(const float *x, int64_t floats, vec mean)
{
    vec a = {0}, b = {0}, c = {0}, d = {0};
    int64_t i = 0;

    for (; i + 4 * WIDE <= floats; i += 4 * WIDE) {
        vec w = load(x + i) - mean, y = load(x + i + WIDE) - mean;
        vec z = load(x + i + 2 * WIDE) - mean, u = load(x + i + 3 * WIDE) - mean;

        a += w * w;
        b += y * y;
        c += z * z;
        d += u * u;
    }
    for (; i < floats; i += WIDE) {
        vec w = load(x + i) - mean;

        a += w * w;
    }
    return (a + b) + (c + d);
}

INLINE void moments(const struct norm_plane *p, int64_t block)
{
    fold(p->sum, sum_of(p->x, floats_of(p)), block);
    for (int64_t i = 0; i < block; i++)
        p->sum[i] /= (float)p->pixels;
    fold(p->square, squares_of(p->x, floats_of(p), wide(p->sum, block)), block);
}

static void moments_any(const struct norm_plane *p)
{
    for (int64_t i = 0; i < p->block; i++) {
        double sum = 0, square = 0;

        for (int64_t j = 0; j < p->pixels; j++)
            sum += (double)p->x[j * p->block + i];
        sum /= (double)p->pixels;
        for (int64_t j = 0; j < p->pixels; j++) {
            double away = (double)p->x[j * p->block + i] - sum;

            square += away * away;
        }
        p->sum[i] = (float)sum;
        p->square[i] = (float)square;
    }
}

void FOR_ISA(norm_moments)(const struct norm_plane *p)
{
    if (!is_vectors(p))
        moments_any(p);
    else if (p->block == WIDE)
        moments(p, WIDE);
    else
        moments(p, NARROW);
}

INLINE void
apply(const struct norm_plane *p, int64_t block, bool has_add, bool has_relu, bool is_far)
{
    vec scale = wide(p->scale, block), shift = wide(p->shift, block);
    const float *x = p->x, *add = p->add;
    float *y = p->to;

    for (int64_t i = 0; i < floats_of(p); i += WIDE) {
        vec value = load(x + i) * scale + shift;

        if (has_add)
            value += load(add + i);
        value = has_relu ? relu(value) : value;
        if (is_far)
            stream(y + i, value);
        else
            store(y + i, value);
    }
}

INLINE void apply_kind(const struct norm_plane *p, int64_t block, bool is_far)
{
    if (p->add && p->has_relu)
        apply(p, block, true, true, is_far);
    else if (p->add)
        apply(p, block, true, false, is_far);
    else if (p->has_relu)
        apply(p, block, false, true, is_far);
    else
        apply(p, block, false, false, is_far);
}

INLINE void apply_block(const struct norm_plane *p, int64_t block)
{
    if (p->is_far && (uintptr_t)p->to % sizeof(vec) == 0) {
        apply_kind(p, block, true);
        fence();
    } else {
        apply_kind(p, block, false);
    }
}

static void apply_any(const struct norm_plane *p)
{
    for (int64_t at = 0; at < floats_of(p); at++) {
        float value = p->x[at] * p->scale[at % p->block] + p->shift[at % p->block];

        if (p->add)
            value += p->add[at];
        p->to[at] = p->has_relu && value < 0 ? 0 : value;
    }
}

void FOR_ISA(norm_apply)(const struct norm_plane *p)
{
    if (!is_vectors(p))
        apply_any(p);
    else if (p->block == WIDE)
        apply_block(p, WIDE);
    else
        apply_block(p, NARROW);
}

/* What is needed to mask a gradient, in registers. */
struct masking {
    enum norm_mask kind;
    vec scale, shift;
};

INLINE struct masking masking_of(const struct norm_plane *p, enum norm_mask kind, int64_t block)
{
    struct masking m = {.kind = kind};

    if (kind == NORM_MASK_AGAIN) {
        m.scale = wide(p->scale, block);
        m.shift = wide(p->shift, block);
    }
    return m;
}

INLINE vec masked(const struct masking *m, vec d, vec x, const float *y)
{
    if (m->kind == NORM_MASK_AGAIN)
        return only_where(d, (bits)(x * m->scale + m->shift > (vec){0}));
    if (m->kind == NORM_MASK_Y)
        return only_where(d, (bits)(load(y) > (vec){0}));
    return d;
}

INLINE void sums(
    const struct norm_plane *p, int64_t block, enum norm_mask kind, bool has_two, bool has_dadd)
{
    struct masking m = masking_of(p, kind, block);
    vec mean = wide(p->mean, block);
    vec sum = {0}, dot = {0};
    int64_t floats = floats_of(p);

    for (int64_t i = 0; i < floats; i += WIDE) {
        vec d = load(p->dy + i), x = load(p->x + i);

        if (has_two)
            d += load(p->dy2 + i);
        d = masked(&m, d, x, p->y + i);
        if (has_dadd)
            store(p->dadd + i, d);
        sum += d;
        dot += d * (x - mean);
    }
    fold(p->sum, sum, block);
    fold(p->square, dot, block);
}

INLINE void sums_block(const struct norm_plane *p, int64_t block)
{
    if (p->mask == NORM_MASK_AGAIN)
        sums(p, block, NORM_MASK_AGAIN, false, false);
    else if (p->mask == NORM_MASK_Y && p->dy2)
        sums(p, block, NORM_MASK_Y, true, true);
    else if (p->mask == NORM_MASK_Y)
        sums(p, block, NORM_MASK_Y, false, true);
    else if (p->dadd)
        sums(p, block, NORM_MASK_NONE, false, true);
    else
        sums(p, block, NORM_MASK_NONE, false, false);
}

static float masked_one(const struct norm_plane *p, float d, int64_t at)
{
    int64_t c = at % p->block;

    if (p->mask == NORM_MASK_AGAIN)
        return p->x[at] * p->scale[c] + p->shift[c] > 0 ? d : 0;
    if (p->mask == NORM_MASK_Y)
        return p->y[at] > 0 ? d : 0;
    return d;
}

static void sums_any(const struct norm_plane *p)
{
    for (int64_t i = 0; i < p->block; i++) {
        double sum = 0, dot = 0;

        for (int64_t j = 0; j < p->pixels; j++) {
            int64_t at = j * p->block + i;
            float d = masked_one(p, p->dy2 ? p->dy[at] + p->dy2[at] : p->dy[at], at);

            if (p->dadd)
                p->dadd[at] = d;
            sum += (double)d;
            dot += (double)d * ((double)p->x[at] - (double)p->mean[i]);
        }
        p->sum[i] = (float)sum;
        p->square[i] = (float)dot;
    }
}

void FOR_ISA(norm_sums)(const struct norm_plane *p)
{
    if (!is_vectors(p))
        sums_any(p);
    else if (p->block == WIDE)
        sums_block(p, WIDE);
    else
        sums_block(p, NARROW);
}

INLINE void grad(const struct norm_plane *p, int64_t block, enum norm_mask kind)
{
    struct masking m = masking_of(p, kind, block);
    vec a = wide(p->a, block), b = wide(p->b, block), c = wide(p->c, block);
    const float *dy = p->dy, *from = p->x;
    float *dx = p->to;

    for (int64_t i = 0; i < floats_of(p); i += WIDE) {
        vec x = load(from + i);
        vec d = masked(&m, load(dy + i), x, NULL);

        store(dx + i, a * d + (b * x + c));
    }
}

static void grad_any(const struct norm_plane *p)
{
    for (int64_t at = 0; at < floats_of(p); at++) {
        int64_t c = at % p->block;

        p->to[at] = p->a[c] * masked_one(p, p->dy[at], at) + (p->b[c] * p->x[at] + p->c[c]);
    }
}

INLINE void grad_block(const struct norm_plane *p, int64_t block)
{
    if (p->mask == NORM_MASK_AGAIN)
        grad(p, block, NORM_MASK_AGAIN);
    else
        grad(p, block, NORM_MASK_NONE);
}

void FOR_ISA(norm_grad)(const struct norm_plane *p)
{
    if (!is_vectors(p))
        grad_any(p);
    else if (p->block == WIDE)
        grad_block(p, WIDE);
    else
        grad_block(p, NARROW);
}
