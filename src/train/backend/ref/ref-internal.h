/* ref-internal.h - what the oracle's files share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_REF_REF_INTERNAL_H
#define TRAIN_BACKEND_REF_REF_INTERNAL_H

#include "train/backend/ref/ref.h"
#include "train/graph/graph.h"

struct ref_args {
    const struct graph *graph;
    const struct op *op;
    const struct ref_step *step;
    void *const *buffer;
};

/* NULL when the slot is empty. */
static inline void *ref_buffer(const struct ref_args *a, int tensor)
{
    return tensor < 0 ? NULL : a->buffer[tensor];
}

static inline const float *ref_in(const struct ref_args *a, int slot)
{
    return slot < a->op->in_count ? ref_buffer(a, a->op->in[slot]) : NULL;
}

/* One that is always there. */
static inline const float *ref_need(const struct ref_args *a, int slot)
{
    return a->buffer[a->op->in[slot]];
}

static inline const int32_t *ref_in_ints(const struct ref_args *a, int slot)
{
    return a->buffer[a->op->in[slot]];
}

static inline float *ref_out(const struct ref_args *a, int slot)
{
    return slot < a->op->out_count ? ref_buffer(a, a->op->out[slot]) : NULL;
}

static inline const struct tensor *ref_in_shape(const struct ref_args *a, int slot)
{
    return &a->graph->tensors[a->op->in[slot]];
}

static inline const struct tensor *ref_out_shape(const struct ref_args *a, int slot)
{
    return &a->graph->tensors[a->op->out[slot]];
}

/* N C H W: the place of one element. */
static inline int64_t ref_at(const struct tensor *t, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return ((n * t->dim[1] + c) * t->dim[2] + h) * t->dim[3] + w;
}

/* Is the element of a dropout's tensor kept? */
bool ref_keeps(const struct ref_step *step, uint64_t stream, float rate, uint64_t element);

typedef void ref_fn(const struct ref_args *a);

ref_fn ref_image, ref_conv, ref_conv_data_grad, ref_conv_weight_grad;
ref_fn ref_linear, ref_linear_data_grad, ref_linear_weight_grad;
ref_fn ref_bn, ref_bn_grad;
ref_fn ref_relu, ref_relu_grad, ref_tanh, ref_tanh_grad, ref_gelu, ref_gelu_grad, ref_sum;
ref_fn ref_max_pool, ref_max_pool_grad, ref_avg_pool, ref_avg_pool_grad;
ref_fn ref_concat, ref_concat_grad, ref_pad_channels, ref_pad_channels_grad, ref_reshape;
ref_fn ref_dropout, ref_dropout_grad;
ref_fn ref_xent, ref_xent_grad, ref_weighted_sum;
ref_fn ref_embed, ref_embed_grad, ref_layernorm, ref_layernorm_grad;
ref_fn ref_attention, ref_attention_grad, ref_gather_rows, ref_gather_rows_grad;

float ref_act(enum act act, float x);

#endif
