/* shape.c - ops that move elements: images, concatenation, padding, reshaping, dropout.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/ref/ref-internal.h"
#include "train/num/rng.h"

#include <string.h>

void ref_image(const struct ref_args *a)
{
    const struct tensor *x = ref_in_shape(a, 0), *y = ref_out_shape(a, 0);
    const struct image_attrs *image = &a->op->attrs.image;
    const uint8_t *bytes = ref_buffer(a, a->op->in[0]);
    int64_t i = 0;

    for (int64_t n = 0; n < y->dim[0]; n++)
        for (int64_t h = 0; h < y->dim[2]; h++)
            for (int64_t w = 0; w < y->dim[3]; w++)
                for (int64_t c = 0; c < y->dim[1]; c++, i++) {
                    float value = x->dtype == DTYPE_U8 ? (float)bytes[i] : ref_in(a, 0)[i];

                    ref_out(a, 0)[ref_at(y, n, c, h, w)] =
                        value * image->scale[c] + image->shift[c];
                }
}

/* Copy `count` channels of every picture. */
static void copy_channels(float *to,
                          const struct tensor *to_shape,
                          int64_t to_first,
                          const float *from,
                          const struct tensor *from_shape,
                          int64_t from_first,
                          int64_t count)
{
    int64_t plane = to_shape->dim[2] * to_shape->dim[3];

    for (int64_t n = 0; n < to_shape->dim[0]; n++)
        memcpy(to + (n * to_shape->dim[1] + to_first) * plane,
               from + (n * from_shape->dim[1] + from_first) * plane,
               (size_t)(count * plane) * sizeof *to);
}

void ref_concat(const struct ref_args *a)
{
    int64_t at = 0;

    for (int i = 0; i < a->op->in_count; i++) {
        const struct tensor *x = ref_in_shape(a, i);

        copy_channels(ref_out(a, 0), ref_out_shape(a, 0), at, ref_in(a, i), x, 0, x->dim[1]);
        at += x->dim[1];
    }
}

void ref_concat_grad(const struct ref_args *a)
{
    int64_t at = 0;

    for (int i = 0; i < a->op->out_count; i++) {
        const struct tensor *dx = ref_out_shape(a, i);

        copy_channels(ref_out(a, i), dx, 0, ref_in(a, 0), ref_in_shape(a, 0), at, dx->dim[1]);
        at += dx->dim[1];
    }
}

void ref_pad_channels(const struct ref_args *a)
{
    const struct tensor *x = ref_in_shape(a, 0), *y = ref_out_shape(a, 0);

    memset(ref_out(a, 0), 0, (size_t)tensor_elements(y) * sizeof(float));
    copy_channels(ref_out(a, 0), y, a->op->attrs.pad.before, ref_in(a, 0), x, 0, x->dim[1]);
}

void ref_pad_channels_grad(const struct ref_args *a)
{
    const struct tensor *dy = ref_in_shape(a, 0), *dx = ref_out_shape(a, 0);

    copy_channels(ref_out(a, 0), dx, 0, ref_in(a, 0), dy, a->op->attrs.pad.before, dx->dim[1]);
}

void ref_reshape(const struct ref_args *a)
{
    memcpy(ref_out(a, 0), ref_in(a, 0),
           (size_t)tensor_elements(ref_out_shape(a, 0)) * sizeof(float));
}

bool ref_keeps(const struct ref_step *step, uint64_t stream, float rate, uint64_t element)
{
    uint32_t words[4];

    rng_dropout(step->seed ^ stream, (uint64_t)step->pass << 48 | step->number, element / 8,
                words);
    return rng_dropout_half(words, element) >= rng_dropout_limit(rate);
}

static void drop(const struct ref_args *a, const float *add)
{
    const struct dropout_attrs *d = &a->op->attrs.dropout;

    for (int64_t i = 0; i < tensor_elements(ref_out_shape(a, 0)); i++) {
        bool is_kept = ref_keeps(a->step, d->stream, d->rate, (uint64_t)i);

        ref_out(a, 0)[i] = (is_kept ? ref_in(a, 0)[i] / (1 - d->rate) : 0) + (add ? add[i] : 0);
    }
}

void ref_dropout(const struct ref_args *a)
{
    drop(a, ref_in(a, 1));
}

void ref_dropout_grad(const struct ref_args *a)
{
    drop(a, NULL);
}
