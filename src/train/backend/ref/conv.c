/* conv.c - convolutions, forward and both gradients.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/ref/ref-internal.h"

/* x, w and y of one convolution, whichever of them is being computed. */
struct conv {
    const struct tensor *x, *w, *y;
    const struct window *win;
    int64_t of_group, to_group; /* channels in, out of one group */
};

static struct conv conv_of(const struct ref_args *a, int x, int w, int y)
{
    struct conv c = {.x = &a->graph->tensors[x],
                     .w = &a->graph->tensors[w],
                     .y = &a->graph->tensors[y],
                     .win = &a->op->attrs.conv.window};

    c.of_group = c.w->dim[1];
    c.to_group = c.w->dim[0] / a->op->attrs.conv.groups;
    return c;
}

/* The forward op of a gradient, for the shapes. */
static struct conv conv_of_forward(const struct ref_args *a)
{
    const struct op *forward = &a->graph->ops[a->op->forward];

    return conv_of(a, forward->in[0], forward->in[1], forward->out[0]);
}

static double one_output(const struct conv *v,
                         const float *x,
                         const float *w,
                         int64_t n,
                         int64_t k,
                         int64_t p,
                         int64_t q)
{
    int64_t first = k / v->to_group * v->of_group;
    double sum = 0;

    for (int64_t c = 0; c < v->of_group; c++)
        for (int r = 0; r < v->win->r; r++) {
            int64_t h = p * v->win->stride_h - v->win->top + (int64_t)r * v->win->dilation_h;

            if (h < 0 || h >= v->x->dim[2])
                continue;
            for (int s = 0; s < v->win->s; s++) {
                int64_t at =
                    q * v->win->stride_w - v->win->left + (int64_t)s * v->win->dilation_w;

                if (at >= 0 && at < v->x->dim[3])
                    sum += (double)x[ref_at(v->x, n, first + c, h, at)] *
                           (double)w[ref_at(v->w, k, c, r, s)];
            }
        }
    return sum;
}

void ref_conv(const struct ref_args *a)
{
    struct conv v = conv_of(a, a->op->in[0], a->op->in[1], a->op->out[0]);
    const float *x = ref_in(a, 0), *w = ref_in(a, 1), *bias = ref_in(a, 2), *add = ref_in(a, 3);
    float *y = ref_out(a, 0);
    int64_t i = 0;

    for (int64_t n = 0; n < v.y->dim[0]; n++)
        for (int64_t k = 0; k < v.y->dim[1]; k++)
            for (int64_t p = 0; p < v.y->dim[2]; p++)
                for (int64_t q = 0; q < v.y->dim[3]; q++, i++) {
                    double sum = one_output(&v, x, w, n, k, p, q);

                    sum += bias ? (double)bias[k] : 0;
                    sum += add ? (double)add[i] : 0;
                    y[i] = ref_act(a->op->attrs.conv.act, (float)sum);
                }
}

/* Which output row or column an input one meets through kernel row r: -1 = none. */
static int64_t met(int64_t at, int pad, int r, int dilation, int stride, int64_t outs)
{
    int64_t from = at + pad - (int64_t)r * dilation;

    if (from < 0 || from % stride || from / stride >= outs)
        return -1;
    return from / stride;
}

static double one_input(const struct conv *v,
                        const float *dy,
                        const float *w,
                        int64_t n,
                        int64_t c,
                        int64_t h,
                        int64_t x)
{
    int64_t first = c / v->of_group * v->to_group;
    double sum = 0;

    for (int r = 0; r < v->win->r; r++) {
        int64_t p = met(h, v->win->top, r, v->win->dilation_h, v->win->stride_h, v->y->dim[2]);

        for (int s = 0; p >= 0 && s < v->win->s; s++) {
            int64_t q =
                met(x, v->win->left, s, v->win->dilation_w, v->win->stride_w, v->y->dim[3]);

            for (int64_t k = 0; q >= 0 && k < v->to_group; k++)
                sum += (double)dy[ref_at(v->y, n, first + k, p, q)] *
                       (double)w[ref_at(v->w, first + k, c % v->of_group, r, s)];
        }
    }
    return sum;
}

void ref_conv_data_grad(const struct ref_args *a)
{
    struct conv v = conv_of_forward(a);
    const float *dy = ref_in(a, 0), *w = ref_in(a, 1);
    float *dx = ref_out(a, 0);
    int64_t i = 0;

    for (int64_t n = 0; n < v.x->dim[0]; n++)
        for (int64_t c = 0; c < v.x->dim[1]; c++)
            for (int64_t h = 0; h < v.x->dim[2]; h++)
                for (int64_t x = 0; x < v.x->dim[3]; x++)
                    dx[i++] = (float)one_input(&v, dy, w, n, c, h, x);
}

static double one_weight(
    const struct conv *v, const float *dy, const float *x, int64_t k, int64_t c, int r, int s)
{
    int64_t channel = k / v->to_group * v->of_group + c;
    double sum = 0;

    for (int64_t n = 0; n < v->y->dim[0]; n++)
        for (int64_t p = 0; p < v->y->dim[2]; p++) {
            int64_t h = p * v->win->stride_h - v->win->top + (int64_t)r * v->win->dilation_h;

            if (h < 0 || h >= v->x->dim[2])
                continue;
            for (int64_t q = 0; q < v->y->dim[3]; q++) {
                int64_t at =
                    q * v->win->stride_w - v->win->left + (int64_t)s * v->win->dilation_w;

                if (at >= 0 && at < v->x->dim[3])
                    sum += (double)dy[ref_at(v->y, n, k, p, q)] *
                           (double)x[ref_at(v->x, n, channel, h, at)];
            }
        }
    return sum;
}

static void bias_grad(const struct tensor *shape, const float *dy, float *dbias)
{
    int64_t plane = shape->dim[2] * shape->dim[3];

    for (int64_t k = 0; k < shape->dim[1]; k++) {
        double sum = 0;

        for (int64_t n = 0; n < shape->dim[0]; n++)
            for (int64_t i = 0; i < plane; i++)
                sum += (double)dy[(n * shape->dim[1] + k) * plane + i];
        dbias[k] = (float)sum;
    }
}

void ref_conv_weight_grad(const struct ref_args *a)
{
    struct conv v = conv_of_forward(a);
    const float *dy = ref_in(a, 0), *x = ref_in(a, 1);
    float *dw = ref_out(a, 0);
    int64_t i = 0;

    for (int64_t k = 0; k < v.w->dim[0]; k++)
        for (int64_t c = 0; c < v.w->dim[1]; c++)
            for (int r = 0; r < v.win->r; r++)
                for (int s = 0; s < v.win->s; s++)
                    dw[i++] = (float)one_weight(&v, dy, x, k, c, r, s);
    if (ref_out(a, 1))
        bias_grad(v.y, dy, ref_out(a, 1));
}
