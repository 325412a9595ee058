/* dense.c - matrix products, activations and sums.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/ref/ref-internal.h"

#include <math.h>

static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x / sqrt(2)));
}

static double gelu_slope(double x)
{
    const double root_two_pi = 2.5066282746310002;

    return 0.5 * (1 + erf(x / sqrt(2))) + x * exp(-x * x / 2) / root_two_pi;
}

float ref_act(enum act act, float x)
{
    switch (act) {
    case ACT_RELU:
        return x < 0 ? 0 : x;
    case ACT_GELU:
        return (float)gelu((double)x);
    case ACT_TANH:
        return (float)tanh((double)x);
    case ACT_NONE:
        break;
    }
    return x;
}

static double dot(const float *a, int64_t a_step, const float *b, int64_t b_step, int64_t count)
{
    double sum = 0;

    for (int64_t i = 0; i < count; i++)
        sum += (double)a[i * a_step] * (double)b[i * b_step];
    return sum;
}

void ref_linear(const struct ref_args *a)
{
    int64_t m = ref_out_shape(a, 0)->dim[0], k = ref_out_shape(a, 0)->dim[1];
    int64_t d = ref_in_shape(a, 0)->dim[1];
    const float *x = ref_in(a, 0), *w = ref_in(a, 1), *bias = ref_in(a, 2);
    float *pre = ref_out(a, 1);

    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < k; j++) {
            double sum = dot(x + i * d, 1, w + j * d, 1, d) + (bias ? (double)bias[j] : 0);

            if (pre)
                pre[i * k + j] = (float)sum;
            ref_out(a, 0)[i * k + j] = ref_act(a->op->attrs.linear.act, (float)sum);
        }
}

void ref_linear_data_grad(const struct ref_args *a)
{
    int64_t m = ref_in_shape(a, 0)->dim[0], k = ref_in_shape(a, 0)->dim[1];
    int64_t d = ref_out_shape(a, 0)->dim[1];
    const float *dy = ref_in(a, 0), *w = ref_in(a, 1);

    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < d; j++)
            ref_out(a, 0)[i * d + j] = (float)dot(dy + i * k, 1, w + j, d, k);
}

void ref_linear_weight_grad(const struct ref_args *a)
{
    int64_t m = ref_in_shape(a, 0)->dim[0], k = ref_in_shape(a, 0)->dim[1];
    int64_t d = ref_in_shape(a, 1)->dim[1];
    const float *dy = ref_in(a, 0), *x = ref_in(a, 1);
    float *dbias = ref_out(a, 1);

    for (int64_t j = 0; j < k; j++) {
        double sum = 0;

        for (int64_t i = 0; i < d; i++)
            ref_out(a, 0)[j * d + i] = (float)dot(dy + j, k, x + i, d, m);
        for (int64_t i = 0; dbias && i < m; i++)
            sum += (double)dy[i * k + j];
        if (dbias)
            dbias[j] = (float)sum;
    }
}

static int64_t elements(const struct ref_args *a)
{
    return tensor_elements(ref_out_shape(a, 0));
}

static void each(const struct ref_args *a, enum act act)
{
    for (int64_t i = 0; i < elements(a); i++)
        ref_out(a, 0)[i] = ref_act(act, ref_in(a, 0)[i]);
}

void ref_relu(const struct ref_args *a)
{
    each(a, ACT_RELU);
}

void ref_tanh(const struct ref_args *a)
{
    each(a, ACT_TANH);
}

void ref_gelu(const struct ref_args *a)
{
    each(a, ACT_GELU);
}

void ref_relu_grad(const struct ref_args *a)
{
    for (int64_t i = 0; i < elements(a); i++)
        ref_out(a, 0)[i] = ref_in(a, 1)[i] > 0 ? ref_in(a, 0)[i] : 0;
}

void ref_tanh_grad(const struct ref_args *a)
{
    for (int64_t i = 0; i < elements(a); i++) {
        double y = (double)ref_in(a, 1)[i];

        ref_out(a, 0)[i] = (float)((double)ref_in(a, 0)[i] * (1 - y * y));
    }
}

void ref_gelu_grad(const struct ref_args *a)
{
    for (int64_t i = 0; i < elements(a); i++)
        ref_out(a, 0)[i] =
            (float)((double)ref_in(a, 0)[i] * gelu_slope((double)ref_in(a, 1)[i]));
}

/* ADD as well: it is a SUM of two. */
void ref_sum(const struct ref_args *a)
{
    for (int64_t i = 0; i < elements(a); i++) {
        double sum = 0;

        for (int j = 0; j < a->op->in_count; j++)
            sum += (double)ref_in(a, j)[i];
        ref_out(a, 0)[i] = (float)sum;
    }
}
