/* norm-loops.c - see norm-loops.h.
 *
 * Each loop is written once with the block as a constant, so that the compiler keeps a block in
 * registers, and once for any block.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/norm-loops.h"

#include "train/backend/onednn/plan.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    WIDE = 16,  /* floats of a block with AVX-512 */
    NARROW = 8, /* ... with AVX2 */
    LANES = 4,  /* sums kept side by side: additions take four cycles */
};

INLINE void moments(const struct norm_plane *p, int64_t block)
{
    float sums[LANES][WIDE] = {{0}};
    float mean[WIDE];
    int64_t pixels = p->pixels;
    const float *x = p->x;

    for (int64_t j = 0; j + LANES <= pixels; j += LANES)
        for (int l = 0; l < LANES; l++)
            for (int64_t i = 0; i < block; i++)
                sums[l][i] += x[(j + l) * block + i];
    for (int64_t j = pixels / LANES * LANES; j < pixels; j++)
        for (int64_t i = 0; i < block; i++)
            sums[0][i] += x[j * block + i];
    for (int64_t i = 0; i < block; i++)
        mean[i] = ((sums[0][i] + sums[1][i]) + (sums[2][i] + sums[3][i])) / (float)pixels;
    for (int l = 0; l < LANES; l++)
        for (int64_t i = 0; i < block; i++)
            sums[l][i] = 0;
    for (int64_t j = 0; j + LANES <= pixels; j += LANES)
        for (int l = 0; l < LANES; l++)
            for (int64_t i = 0; i < block; i++) {
                float away = x[(j + l) * block + i] - mean[i];

                sums[l][i] += away * away;
            }
    for (int64_t j = pixels / LANES * LANES; j < pixels; j++)
        for (int64_t i = 0; i < block; i++) {
            float away = x[j * block + i] - mean[i];

            sums[0][i] += away * away;
        }
    for (int64_t i = 0; i < block; i++) {
        p->sum[i] = mean[i];
        p->square[i] = (sums[0][i] + sums[1][i]) + (sums[2][i] + sums[3][i]);
    }
}

/* Any block: channel by channel. */
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

CLONES void norm_moments(const struct norm_plane *p)
{
    if (p->block == WIDE)
        moments(p, WIDE);
    else if (p->block == NARROW)
        moments(p, NARROW);
    else
        moments_any(p);
}

INLINE void apply(const struct norm_plane *p, int64_t block, bool has_add, bool has_relu)
{
    const float *restrict x = p->x, *restrict add = p->add;
    const float *restrict scale = p->scale, *restrict shift = p->shift;
    float *restrict y = p->to;

    for (int64_t j = 0; j < p->pixels; j++)
        for (int64_t i = 0; i < block; i++) {
            float value = x[j * block + i] * scale[i] + shift[i];

            if (has_add)
                value += add[j * block + i];
            y[j * block + i] = has_relu && !(value > 0) ? 0 : value;
        }
}

INLINE void apply_block(const struct norm_plane *p, int64_t block)
{
    if (p->add && p->has_relu)
        apply(p, block, true, true);
    else if (p->add)
        apply(p, block, true, false);
    else if (p->has_relu)
        apply(p, block, false, true);
    else
        apply(p, block, false, false);
}

CLONES void norm_apply(const struct norm_plane *p)
{
    if (p->block == WIDE)
        apply_block(p, WIDE);
    else if (p->block == NARROW)
        apply_block(p, NARROW);
    else
        apply_block(p, p->block);
}

/* One pixel's gradient behind the mask. */
INLINE float masked(const struct norm_plane *p, enum norm_mask mask, float d, int64_t at, int64_t i)
{
    if (mask == NORM_MASK_AGAIN)
        return p->x[at] * p->scale[i] + p->shift[i] > 0 ? d : 0;
    if (mask == NORM_MASK_Y)
        return p->y[at] > 0 ? d : 0;
    return d;
}

INLINE void sums(
    const struct norm_plane *p, int64_t block, enum norm_mask mask, bool has_two, bool has_dadd)
{
    float sum[2][WIDE] = {{0}}, dot[2][WIDE] = {{0}};
    const float *x = p->x, *dy = p->dy, *dy2 = p->dy2;
    float *dadd = p->dadd;
    float mean[WIDE];

    for (int64_t i = 0; i < block; i++)
        mean[i] = p->mean[i];
    for (int64_t j = 0; j < p->pixels; j++)
#pragma GCC ivdep
        for (int64_t i = 0; i < block; i++) {
            int64_t at = j * block + i;
            float d = masked(p, mask, has_two ? dy[at] + dy2[at] : dy[at], at, i);

            if (has_dadd)
                dadd[at] = d;
            sum[0][i] += d;
            dot[0][i] += d * (x[at] - mean[i]);
        }
    for (int64_t i = 0; i < block; i++) {
        p->sum[i] = sum[0][i] + sum[1][i];
        p->square[i] = dot[0][i] + dot[1][i];
    }
}

INLINE void sums_block(const struct norm_plane *p, int64_t block)
{
    if (p->mask == NORM_MASK_AGAIN)
        sums(p, block, NORM_MASK_AGAIN, false, false);
    else if (p->mask == NORM_MASK_Y && p->dy2)
        sums(p, block, NORM_MASK_Y, true, true);
    else if (p->mask == NORM_MASK_Y)
        sums(p, block, NORM_MASK_Y, false, true);
    else
        sums(p, block, NORM_MASK_NONE, false, p->dadd != NULL);
}

static void sums_any(const struct norm_plane *p)
{
    for (int64_t i = 0; i < p->block; i++) {
        double sum = 0, dot = 0;

        for (int64_t j = 0; j < p->pixels; j++) {
            int64_t at = j * p->block + i;
            float d = masked(p, p->mask, p->dy2 ? p->dy[at] + p->dy2[at] : p->dy[at], at, i);

            if (p->dadd)
                p->dadd[at] = d;
            sum += (double)d;
            dot += (double)d * ((double)p->x[at] - (double)p->mean[i]);
        }
        p->sum[i] = (float)sum;
        p->square[i] = (float)dot;
    }
}

CLONES void norm_sums(const struct norm_plane *p)
{
    if (p->block == WIDE)
        sums_block(p, WIDE);
    else if (p->block == NARROW)
        sums_block(p, NARROW);
    else
        sums_any(p);
}

INLINE void grad(const struct norm_plane *p, int64_t block, enum norm_mask mask)
{
    const float *x = p->x, *dy = p->dy;
    const float *a = p->a, *b = p->b, *c = p->c;
    float *dx = p->to;

    for (int64_t j = 0; j < p->pixels; j++)
#pragma GCC ivdep
        for (int64_t i = 0; i < block; i++) {
            int64_t at = j * block + i;
            float d = masked(p, mask, dy[at], at, i);

            dx[at] = a[i] * d + (b[i] * x[at] + c[i]);
        }
}

INLINE void grad_block(const struct norm_plane *p, int64_t block)
{
    if (p->mask == NORM_MASK_AGAIN)
        grad(p, block, NORM_MASK_AGAIN);
    else
        grad(p, block, NORM_MASK_NONE);
}

CLONES void norm_grad(const struct norm_plane *p)
{
    if (p->block == WIDE)
        grad_block(p, WIDE);
    else if (p->block == NARROW)
        grad_block(p, NARROW);
    else
        grad_block(p, p->block);
}
