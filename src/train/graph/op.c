/* op.c - the table of the kinds of ops, and windows: see op.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/graph/op.h"

#include "train/graph/graph-internal.h"

/* name, inputs, shape, gradient, in place (out, in) */
static const struct op_info table[OP_KINDS] = {
    [OP_IMAGE] = {"image", 1, 1, infer_image, NULL, -1, -1},
    [OP_CONV] = {"conv", 2, 4, infer_conv, grad_conv, -1, -1},
    [OP_CONV_DATA_GRAD] = {"conv_data_grad", 2, 2, infer_data_grad, NULL, -1, -1},
    [OP_CONV_WEIGHT_GRAD] = {"conv_weight_grad", 2, 2, infer_weight_grad, NULL, -1, -1},
    [OP_LINEAR] = {"linear", 2, 3, infer_linear, grad_linear, -1, -1},
    [OP_LINEAR_DATA_GRAD] = {"linear_data_grad", 2, 2, infer_data_grad, NULL, -1, -1},
    [OP_LINEAR_WEIGHT_GRAD] = {"linear_weight_grad", 2, 2, infer_weight_grad, NULL, -1, -1},
    [OP_BN] = {"bn", 5, 6, infer_bn, grad_bn, -1, -1},
    [OP_BN_GRAD] = {"bn_grad", 5, 6, infer_bn_grad, NULL, 0, 0},
    [OP_RELU] = {"relu", 1, 1, infer_same, grad_act, 0, 0},
    [OP_RELU_GRAD] = {"relu_grad", 2, 2, infer_same, NULL, 0, 0},
    [OP_TANH] = {"tanh", 1, 1, infer_same, grad_act, 0, 0},
    [OP_TANH_GRAD] = {"tanh_grad", 2, 2, infer_same, NULL, 0, 0},
    [OP_GELU] = {"gelu", 1, 1, infer_same, grad_act, -1, -1},
    [OP_GELU_GRAD] = {"gelu_grad", 2, 2, infer_same, NULL, 0, 0},
    [OP_ADD] = {"add", 2, 2, infer_same, grad_add, 0, 0},
    [OP_SUM] = {"sum", 2, 8, infer_same, NULL, 0, 0},
    [OP_MAX_POOL] = {"max_pool", 1, 1, infer_pool, grad_max_pool, -1, -1},
    [OP_MAX_POOL_GRAD] = {"max_pool_grad", 3, 3, infer_data_grad, NULL, -1, -1},
    [OP_AVG_POOL] = {"avg_pool", 1, 1, infer_pool, grad_avg_pool, -1, -1},
    [OP_AVG_POOL_GRAD] = {"avg_pool_grad", 1, 1, infer_data_grad, NULL, -1, -1},
    [OP_CONCAT] = {"concat", 2, 8, infer_concat, grad_concat, -1, -1},
    [OP_CONCAT_GRAD] = {"concat_grad", 1, 1, infer_each_grad, NULL, -1, -1},
    [OP_PAD_CHANNELS] = {"pad_channels", 1, 1, infer_pad_channels, grad_pad_channels, -1, -1},
    [OP_PAD_CHANNELS_GRAD] = {"pad_channels_grad", 1, 1, infer_data_grad, NULL, -1, -1},
    [OP_RESHAPE] = {"reshape", 1, 1, infer_reshape, grad_reshape, 0, 0},
    [OP_DROPOUT] = {"dropout", 1, 2, infer_same, grad_dropout, 0, 0},
    [OP_DROPOUT_GRAD] = {"dropout_grad", 1, 1, infer_same, NULL, 0, 0},
    [OP_XENT] = {"xent", 2, 2, infer_xent, grad_xent, 3, 0},
    [OP_XENT_GRAD] = {"xent_grad", 2, 2, infer_same, NULL, 0, 0},
    [OP_EMBED] = {"embed", 5, 5, infer_embed, grad_embed, -1, -1},
    [OP_EMBED_GRAD] = {"embed_grad", 3, 4, infer_embed_grad, NULL, -1, -1},
    [OP_LAYERNORM] = {"layernorm", 3, 4, infer_layernorm, grad_layernorm, -1, -1},
    [OP_LAYERNORM_GRAD] = {"layernorm_grad", 5, 5, infer_layernorm_grad, NULL, 0, 0},
    [OP_ATTENTION] = {"attention", 2, 2, infer_attention, grad_attention, -1, -1},
    [OP_ATTENTION_GRAD] = {"attention_grad", 5, 5, infer_data_grad, NULL, -1, -1},
    [OP_GATHER_ROWS] = {"gather_rows", 2, 2, infer_gather_rows, grad_gather_rows, -1, -1},
    [OP_GATHER_ROWS_GRAD] = {"gather_rows_grad", 2, 2, infer_data_grad, NULL, -1, -1},
    [OP_WEIGHTED_SUM] = {"weighted_sum", 1, 8, infer_weighted_sum, NULL, -1, -1},
    [OP_REDUCE_START] = {"reduce_start", 0, 0, infer_nothing, NULL, -1, -1},
    [OP_REDUCE_WAIT] = {"reduce_wait", 0, 0, infer_nothing, NULL, -1, -1},
    [OP_GRAD_NORM] = {"grad_norm", 0, 0, infer_grad_norm, NULL, -1, -1},
    [OP_UPDATE] = {"update", 0, 0, infer_nothing, NULL, -1, -1},
};

const struct op_info *op_info(enum op_kind kind)
{
    return &table[kind];
}

/* What a kernel with holes covers. */
static int64_t reach(int kernel, int dilation)
{
    return (int64_t)(kernel - 1) * dilation + 1;
}

static int64_t windows(int64_t size, int before, int after, int64_t covers, int stride)
{
    int64_t room = size + before + after - covers;

    return room < 0 ? 0 : room / stride + 1;
}

int64_t window_out_h(const struct window *window, int64_t h)
{
    return windows(h, window->top, window->bottom, reach(window->r, window->dilation_h),
                   window->stride_h);
}

int64_t window_out_w(const struct window *window, int64_t w)
{
    return windows(w, window->left, window->right, reach(window->s, window->dilation_w),
                   window->stride_w);
}

static void pad_same(int64_t size, int64_t covers, int stride, int *ret_before, int *ret_after)
{
    int64_t out = (size + stride - 1) / stride;
    int64_t pad = (out - 1) * stride + covers - size;

    if (pad < 0)
        pad = 0;
    *ret_before = (int)(pad / 2);
    *ret_after = (int)(pad - pad / 2);
}

void window_pad_same(struct window *window, int64_t h, int64_t w)
{
    pad_same(h, reach(window->r, window->dilation_h), window->stride_h, &window->top,
             &window->bottom);
    pad_same(w, reach(window->s, window->dilation_w), window->stride_w, &window->left,
             &window->right);
}
