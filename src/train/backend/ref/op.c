/* op.c - which function does which kind.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/ref/ref-internal.h"

static ref_fn *const table[OP_KINDS] = {
    [OP_IMAGE] = ref_image,
    [OP_CONV] = ref_conv,
    [OP_CONV_DATA_GRAD] = ref_conv_data_grad,
    [OP_CONV_WEIGHT_GRAD] = ref_conv_weight_grad,
    [OP_LINEAR] = ref_linear,
    [OP_LINEAR_DATA_GRAD] = ref_linear_data_grad,
    [OP_LINEAR_WEIGHT_GRAD] = ref_linear_weight_grad,
    [OP_BN] = ref_bn,
    [OP_BN_GRAD] = ref_bn_grad,
    [OP_RELU] = ref_relu,
    [OP_RELU_GRAD] = ref_relu_grad,
    [OP_TANH] = ref_tanh,
    [OP_TANH_GRAD] = ref_tanh_grad,
    [OP_GELU] = ref_gelu,
    [OP_GELU_GRAD] = ref_gelu_grad,
    [OP_ADD] = ref_sum,
    [OP_SUM] = ref_sum,
    [OP_MAX_POOL] = ref_max_pool,
    [OP_MAX_POOL_GRAD] = ref_max_pool_grad,
    [OP_AVG_POOL] = ref_avg_pool,
    [OP_AVG_POOL_GRAD] = ref_avg_pool_grad,
    [OP_CONCAT] = ref_concat,
    [OP_CONCAT_GRAD] = ref_concat_grad,
    [OP_PAD_CHANNELS] = ref_pad_channels,
    [OP_PAD_CHANNELS_GRAD] = ref_pad_channels_grad,
    [OP_RESHAPE] = ref_reshape,
    [OP_DROPOUT] = ref_dropout,
    [OP_DROPOUT_GRAD] = ref_dropout_grad,
    [OP_XENT] = ref_xent,
    [OP_XENT_GRAD] = ref_xent_grad,
    [OP_EMBED] = ref_embed,
    [OP_EMBED_GRAD] = ref_embed_grad,
    [OP_LAYERNORM] = ref_layernorm,
    [OP_LAYERNORM_GRAD] = ref_layernorm_grad,
    [OP_ATTENTION] = ref_attention,
    [OP_ATTENTION_GRAD] = ref_attention_grad,
    [OP_GATHER_ROWS] = ref_gather_rows,
    [OP_GATHER_ROWS_GRAD] = ref_gather_rows_grad,
    [OP_WEIGHTED_SUM] = ref_weighted_sum,
};

void ref_op(const struct graph *graph,
            const struct op *op,
            const struct ref_step *step,
            void *const *buffer)
{
    table[op->kind](&(struct ref_args){graph, op, step, buffer});
}
