/* pool.c - maximum and average over windows.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/ref/ref-internal.h"

#include <math.h>
#include <string.h>

/* The part of a window that lies inside the picture. */
struct patch {
    int64_t h0, h1, w0, w1;
};

static int64_t within(int64_t value, int64_t most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

static struct patch
patch_of(const struct window *win, const struct tensor *x, int64_t p, int64_t q)
{
    int64_t h = p * win->stride_h - win->top, w = q * win->stride_w - win->left;

    return (struct patch){within(h, x->dim[2]), within(h + win->r, x->dim[2]),
                          within(w, x->dim[3]), within(w + win->s, x->dim[3])};
}

/* The first of the largest, in order of rows. */
static int64_t
largest(const struct tensor *t, const float *x, int64_t n, int64_t c, struct patch in)
{
    int64_t best = -1;

    for (int64_t h = in.h0; h < in.h1; h++)
        for (int64_t w = in.w0; w < in.w1; w++) {
            int64_t at = ref_at(t, n, c, h, w);

            if (best < 0 || x[at] > x[best])
                best = at;
        }
    return best;
}

void ref_max_pool(const struct ref_args *a)
{
    const struct tensor *x = ref_in_shape(a, 0), *y = ref_out_shape(a, 0);
    int64_t i = 0;

    for (int64_t n = 0; n < y->dim[0]; n++)
        for (int64_t c = 0; c < y->dim[1]; c++)
            for (int64_t p = 0; p < y->dim[2]; p++)
                for (int64_t q = 0; q < y->dim[3]; q++) {
                    struct patch in = patch_of(&a->op->attrs.pool.window, x, p, q);
                    int64_t best = largest(x, ref_in(a, 0), n, c, in);

                    ref_out(a, 0)[i++] = best < 0 ? -INFINITY : ref_in(a, 0)[best];
                }
}

void ref_max_pool_grad(const struct ref_args *a)
{
    const struct tensor *y = ref_in_shape(a, 0), *x = ref_in_shape(a, 1);
    float *dx = ref_out(a, 0);
    int64_t i = 0;

    memset(dx, 0, (size_t)tensor_elements(x) * sizeof *dx);
    for (int64_t n = 0; n < y->dim[0]; n++)
        for (int64_t c = 0; c < y->dim[1]; c++)
            for (int64_t p = 0; p < y->dim[2]; p++)
                for (int64_t q = 0; q < y->dim[3]; q++, i++) {
                    struct patch in = patch_of(&a->op->attrs.pool.window, x, p, q);
                    int64_t best = largest(x, ref_in(a, 1), n, c, in);

                    if (best >= 0)
                        dx[best] += ref_in(a, 0)[i];
                }
}

static double divisor(const struct pool_attrs *pool, struct patch in)
{
    if (pool->counts_padding)
        return (double)pool->window.r * pool->window.s;
    return (double)((in.h1 - in.h0) * (in.w1 - in.w0));
}

void ref_avg_pool(const struct ref_args *a)
{
    const struct tensor *x = ref_in_shape(a, 0), *y = ref_out_shape(a, 0);
    const struct pool_attrs *pool = &a->op->attrs.pool;
    int64_t i = 0;

    for (int64_t n = 0; n < y->dim[0]; n++)
        for (int64_t c = 0; c < y->dim[1]; c++)
            for (int64_t p = 0; p < y->dim[2]; p++)
                for (int64_t q = 0; q < y->dim[3]; q++) {
                    struct patch in = patch_of(&pool->window, x, p, q);
                    double sum = 0;

                    for (int64_t h = in.h0; h < in.h1; h++)
                        for (int64_t w = in.w0; w < in.w1; w++)
                            sum += (double)ref_in(a, 0)[ref_at(x, n, c, h, w)];
                    ref_out(a, 0)[i++] = (float)(sum / divisor(pool, in));
                }
}

void ref_avg_pool_grad(const struct ref_args *a)
{
    const struct tensor *y = ref_in_shape(a, 0), *x = ref_out_shape(a, 0);
    const struct pool_attrs *pool = &a->op->attrs.pool;
    float *dx = ref_out(a, 0);
    int64_t i = 0;

    memset(dx, 0, (size_t)tensor_elements(x) * sizeof *dx);
    for (int64_t n = 0; n < y->dim[0]; n++)
        for (int64_t c = 0; c < y->dim[1]; c++)
            for (int64_t p = 0; p < y->dim[2]; p++)
                for (int64_t q = 0; q < y->dim[3]; q++, i++) {
                    struct patch in = patch_of(&pool->window, x, p, q);

                    for (int64_t h = in.h0; h < in.h1; h++)
                        for (int64_t w = in.w0; w < in.w1; w++)
                            dx[ref_at(x, n, c, h, w)] +=
                                (float)((double)ref_in(a, 0)[i] / divisor(pool, in));
                }
}
