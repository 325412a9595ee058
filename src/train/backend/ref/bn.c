/* bn.c - batch normalisation, with an addend and relu when they were fused in.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/ref/ref-internal.h"

#include <math.h>

/* Mean and variance (of the population) of channel c. */
static void
moments(const struct tensor *t, const float *x, int64_t c, double *ret_mean, double *ret_var)
{
    int64_t plane = t->dim[2] * t->dim[3], count = t->dim[0] * plane;
    double sum = 0, square = 0;

    for (int64_t n = 0; n < t->dim[0]; n++)
        for (int64_t i = 0; i < plane; i++)
            sum += (double)x[(n * t->dim[1] + c) * plane + i];
    *ret_mean = sum / (double)count;
    for (int64_t n = 0; n < t->dim[0]; n++)
        for (int64_t i = 0; i < plane; i++) {
            double away = (double)x[(n * t->dim[1] + c) * plane + i] - *ret_mean;

            square += away * away;
        }
    *ret_var = square / (double)count;
}

static void move(float *running, double value, float decay)
{
    *running = (float)((double)decay * (double)*running + (1 - (double)decay) * value);
}

static void statistics(const struct ref_args *a, int64_t c, double *ret_mean, double *ret_inv)
{
    const struct tensor *t = ref_in_shape(a, 0);
    const struct bn_attrs *bn = &a->op->attrs.bn;
    float *running_mean = ref_buffer(a, a->op->in[3]),
          *running_var = ref_buffer(a, a->op->in[4]);
    double count = (double)(t->dim[0] * t->dim[2] * t->dim[3]), var;

    if (bn->is_frozen) {
        *ret_mean = (double)running_mean[c];
        *ret_inv = 1 / sqrt((double)running_var[c] + (double)bn->epsilon);
        return;
    }
    moments(t, ref_in(a, 0), c, ret_mean, &var);
    *ret_inv = 1 / sqrt(var + (double)bn->epsilon);
    ref_out(a, 1)[c] = (float)*ret_mean;
    ref_out(a, 2)[c] = (float)*ret_inv;
    move(&running_mean[c], *ret_mean, bn->decay);
    if (bn->is_unbiased && count > 1)
        var *= count / (count - 1);
    move(&running_var[c], var, bn->decay);
}

void ref_bn(const struct ref_args *a)
{
    const struct tensor *t = ref_in_shape(a, 0);
    const float *x = ref_in(a, 0), *gamma = ref_in(a, 1), *beta = ref_in(a, 2);
    const float *add = ref_in(a, 5);
    float *y = ref_out(a, 0);
    int64_t plane = t->dim[2] * t->dim[3];

    for (int64_t c = 0; c < t->dim[1]; c++) {
        double mean, inv;

        statistics(a, c, &mean, &inv);
        for (int64_t n = 0; n < t->dim[0]; n++)
            for (int64_t j = 0; j < plane; j++) {
                int64_t i = (n * t->dim[1] + c) * plane + j;
                double value = ((double)x[i] - mean) * inv * (double)gamma[c] + (double)beta[c];

                value += add ? (double)add[i] : 0;
                y[i] = a->op->attrs.bn.has_relu && value < 0 ? 0 : (float)value;
            }
    }
}

/* dx = gamma inv (dy - mean(dy) - xhat mean(dy xhat)). */
void ref_bn_grad(const struct ref_args *a)
{
    const struct tensor *t = ref_in_shape(a, 1);
    const float *dy = ref_in(a, 0), *x = ref_in(a, 1), *gamma = ref_in(a, 2);
    const float *mean = ref_in(a, 3), *inv = ref_in(a, 4), *y = ref_in(a, 5);
    float *dx = ref_out(a, 0), *dadd = ref_out(a, 3);
    int64_t plane = t->dim[2] * t->dim[3];
    double count = (double)(t->dim[0] * plane);

    for (int64_t c = 0; c < t->dim[1]; c++) {
        double sum = 0, dot = 0;

        for (int64_t n = 0; n < t->dim[0]; n++)
            for (int64_t j = 0; j < plane; j++) {
                int64_t i = (n * t->dim[1] + c) * plane + j;
                double d = y && !(y[i] > 0) ? 0 : (double)dy[i];

                if (dadd)
                    dadd[i] = (float)d;
                sum += d;
                dot += d * ((double)x[i] - (double)mean[c]) * (double)inv[c];
            }
        ref_out(a, 1)[c] = (float)dot;
        ref_out(a, 2)[c] = (float)sum;
        for (int64_t n = 0; n < t->dim[0]; n++)
            for (int64_t j = 0; j < plane; j++) {
                int64_t i = (n * t->dim[1] + c) * plane + j;
                double d = y && !(y[i] > 0) ? 0 : (double)dy[i];
                double hat = ((double)x[i] - (double)mean[c]) * (double)inv[c];

                dx[i] = (float)((double)gamma[c] * (double)inv[c] *
                                (d - sum / count - hat * dot / count));
            }
    }
}
