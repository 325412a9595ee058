/* op.h - the ops: their kinds, inputs, outputs and attributes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * An op is pure over its buffers: it reads `in`, writes all of `out` (never adds to it, except
 * where said), and keeps nothing.  Gradients are ops of their own kind whose `forward` names
 * the op they belong to, so that a backend can keep a workspace between the two.
 *
 * The table below is the definition; op_info() gives it to code.  [x] = optional, present when
 * its slot is not -1.  Letters: README.  "dy" is the gradient of the loss by y.
 *
 *  kind               in                                   out
 *  IMAGE              x (N H W C, u8 or f32)               y (N C H W) = x * scale[c] +
 * shift[c] CONV               x, w (K C/G R S), [bias K], [add]    y (N K P Q); relu last if
 * asked CONV_DATA_GRAD     dy, w                                dx CONV_WEIGHT_GRAD   dy, x dw,
 * [dbias] LINEAR             x (M D), w (K D), [bias K]           y (M K) = x w' + bias; act
 * last; [pre: before a fused GELU] LINEAR_DATA_GRAD   dy, w                                dx
 *  LINEAR_WEIGHT_GRAD dy, x                                dw, [dbias]
 *  BN                 x, gamma, beta, running_mean,        y, mean C, inv_std C; add then relu
 *                     running_var, [add]                   last if asked; running ones updated
 *  BN_GRAD            dy, x, gamma, mean, inv_std, [y]     dx, dgamma, dbeta, [dadd]
 *                     y is there when relu was fused: the mask is y > 0
 *  RELU, TANH, GELU   x                                    y
 *  .._GRAD            dy, y (RELU, TANH) or x (GELU)       dx
 *  ADD                a, b                                 y      (its gradient is dy for both)
 *  SUM                2..8 gradients                       their sum: where a value was used
 *                                                          more than once
 *  MAX_POOL           x                                    y      (argmax: the backend's own)
 *  MAX_POOL_GRAD      dy, x, y                             dx
 *  AVG_POOL           x                                    y      (window may be all of H W)
 *  AVG_POOL_GRAD      dy                                   dx
 *  CONCAT             2..8 x, along C                      y
 *  CONCAT_GRAD        dy                                   dx of each
 *  PAD_CHANNELS       x                                    y, zeros before and after in C
 *  PAD_CHANNELS_GRAD  dy                                   dx
 *  RESHAPE            x                                    y      (same elements in logical
 *                                                          order; its gradient is a RESHAPE)
 *  DROPOUT            x, [add]                             y = kept ? x / (1-rate) : 0, + add
 *  DROPOUT_GRAD       dy                                   dx     (mask drawn again: rng.h)
 *  XENT               logits (M V), labels (M, i32)        loss, top1, top5 (scalars),
 *                                                          probs (M V); labels < 0 do not count
 *  XENT_GRAD          probs, labels                        dlogits (may lie where probs lay)
 *  EMBED              ids, types (N T, i32), word (V D),   y (N*T D): sum of the three rows
 *                     position (T' D), type (2 D)
 *  EMBED_GRAD         dy, ids, types, [dword so far]       dword, dposition, dtype
 *  LAYERNORM          x (M D), gamma, beta, [add]          y, mean M, inv_std M, [x + add]
 *  LAYERNORM_GRAD     dy, x (+ add), gamma, mean, inv_std  dx (for x and for add), dgamma,
 * dbeta ATTENTION          qkv (N*T 3D), mask (N T, i32)        y (N*T D); saved row sums (N A
 * T) ATTENTION_GRAD     dy, qkv, mask, y, saved              dqkv GATHER_ROWS        x (M D),
 * rows (M', i32)              y (M' D) GATHER_ROWS_GRAD   dy, rows dx (M D), zero elsewhere
 *  WEIGHTED_SUM       scalars                              scalar: losses put together
 *  control, after the backward pass is under way (step.h):
 *  REDUCE_START       (attrs.bucket)                       hand the bucket to the reducer
 *  REDUCE_WAIT        (attrs.bucket)                       until it is summed
 *  GRAD_NORM          (every bucket)                       norm, finite (scalars)
 *  UPDATE             (attrs.bucket)                       params and slots of that bucket;
 *                                                          adds to VALUE_L2
 */
#ifndef TRAIN_GRAPH_OP_H
#define TRAIN_GRAPH_OP_H

#include <stdbool.h>
#include <stdint.h>

enum {
    OP_MOST_IN = 8,
    OP_MOST_OUT = 8,
    GRAD_UNWANTED = -2,
};

enum op_kind {
    OP_IMAGE,
    OP_CONV,
    OP_CONV_DATA_GRAD,
    OP_CONV_WEIGHT_GRAD,
    OP_LINEAR,
    OP_LINEAR_DATA_GRAD,
    OP_LINEAR_WEIGHT_GRAD,
    OP_BN,
    OP_BN_GRAD,
    OP_RELU,
    OP_RELU_GRAD,
    OP_TANH,
    OP_TANH_GRAD,
    OP_GELU,
    OP_GELU_GRAD,
    OP_ADD,
    OP_SUM,
    OP_MAX_POOL,
    OP_MAX_POOL_GRAD,
    OP_AVG_POOL,
    OP_AVG_POOL_GRAD,
    OP_CONCAT,
    OP_CONCAT_GRAD,
    OP_PAD_CHANNELS,
    OP_PAD_CHANNELS_GRAD,
    OP_RESHAPE,
    OP_DROPOUT,
    OP_DROPOUT_GRAD,
    OP_XENT,
    OP_XENT_GRAD,
    OP_EMBED,
    OP_EMBED_GRAD,
    OP_LAYERNORM,
    OP_LAYERNORM_GRAD,
    OP_ATTENTION,
    OP_ATTENTION_GRAD,
    OP_GATHER_ROWS,
    OP_GATHER_ROWS_GRAD,
    OP_WEIGHTED_SUM,
    OP_REDUCE_START,
    OP_REDUCE_WAIT,
    OP_GRAD_NORM,
    OP_UPDATE,
    OP_KINDS,
};

enum act {
    ACT_NONE,
    ACT_RELU,
    ACT_GELU, /* by erf, as BERT's */
    ACT_TANH,
};

struct window { /* of convolutions and pools; pads may differ: TensorFlow's SAME */
    int r, s;   /* height and width of the kernel */
    int stride_h, stride_w;
    int dilation_h, dilation_w; /* 1 = none */
    int top, bottom, left, right;
};

struct image_attrs {
    float scale[4], shift[4]; /* by channel */
};
struct conv_attrs {
    struct window window;
    int groups;
    enum act act; /* ACT_NONE or ACT_RELU; set by graph_fuse */
};
struct pool_attrs {
    struct window window;
    bool counts_padding; /* average over the whole window, not over what is inside */
};
struct bn_attrs {
    float epsilon;
    float decay; /* running = decay * running + (1-decay) * batch's */
    bool has_relu;
    bool is_frozen;   /* eval: uses the running ones, saves and updates nothing */
    bool is_unbiased; /* running variance from the sample's variance (n-1), as PyTorch's */
};
struct linear_attrs {
    enum act act; /* set by graph_fuse */
};
struct pad_channels_attrs {
    int before, after;
};
struct dropout_attrs {
    float rate;
    uint64_t stream; /* what rng.h calls op: the same for DROPOUT and its gradient */
};
struct xent_attrs {
    float smoothing;     /* label: 1-smoothing + smoothing/V, the others smoothing/V */
    int64_t classes;     /* columns of logits beyond it are padding and do not count */
    bool scales_by_loss; /* of XENT_GRAD: times the step's loss scale */
    float weight;        /* of XENT_GRAD: how much this one counts in the whole loss */
};
struct layernorm_attrs {
    float epsilon;
};
struct attention_attrs {
    int heads;
    float scale;
    float dropout;
    uint64_t stream;
};
struct reshape_attrs {
    int dims;
    int64_t dim[4];
};
struct gather_attrs {
    int64_t rows; /* of the gradient's M */
};
struct weighted_attrs {
    float weight[8];
};

union op_attrs {
    struct image_attrs image;
    struct conv_attrs conv;
    struct pool_attrs pool;
    struct bn_attrs bn;
    struct linear_attrs linear;
    struct pad_channels_attrs pad;
    struct dropout_attrs dropout;
    struct xent_attrs xent;
    struct layernorm_attrs layernorm;
    struct attention_attrs attention;
    struct reshape_attrs reshape;
    struct gather_attrs gather;
    struct weighted_attrs weighted;
    int bucket;
};

struct op {
    enum op_kind kind;
    const char *name; /* of the layer: "layer1.0.conv1"; for profiles and traces */
    union op_attrs attrs;
    int in[OP_MOST_IN], in_count; /* -1 in a slot: the optional one is not there */
    int out[OP_MOST_OUT], out_count;
    int forward; /* of a gradient: the op it belongs to; else -1 */
};

struct graph;
struct err;

/* One row for each kind: the one place that knows a kind besides the backends. */
struct op_info {
    const char *name; /* "conv", "conv_data_grad" */
    int least_in, most_in;
    /* Dims of the outputs from inputs and attributes; makes the tensors.  Bad shapes are
     * reported through graph_fail (they can come from the user: image too small). */
    int (*infer)(struct graph *graph, struct op *op);
    /* Append the ops that compute the gradients of the inputs that want one.  dy[i] is the
     * gradient of out[i] or -1; sets ret_dx[i] for each in[i] that has one (on entry it is -1
     * where one is wanted, GRAD_UNWANTED where not).  NULL = the op has no gradient (IMAGE, and
     * every gradient and control op). */
    int (*differentiate)(struct graph *graph, int op, const int *dy, int *ret_dx);
    /* Which output may lie where which input lies, when nobody needs the input after: a pair
     * (out, in), or -1. */
    int in_place_out, in_place_in;
};
const struct op_info *op_info(enum op_kind kind); /* never NULL */

/* Sizes after a window: floor((size + pads - dilated kernel) / stride) + 1; 0 or less: too
 * small. */
int64_t window_out_h(const struct window *window, int64_t h);
int64_t window_out_w(const struct window *window, int64_t w);
/* TensorFlow's SAME padding for sizes h w: the odd one goes to the bottom and right. */
void window_pad_same(struct window *window, int64_t h, int64_t w);

#endif
