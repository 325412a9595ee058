/* build.c - the forward ops of networks of images: see build.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/graph/build.h"

#include "base/mem.h"
#include "train/graph/graph-internal.h"
#include "train/num/rng.h"

#include <math.h>

int graph_input(
    struct graph *g, const char *name, enum dtype dtype, int dims, const int64_t *dim)
{
    if (g->input_count == GRAPH_MOST_INPUTS)
        return graph_fail(g, ERR_INTERNAL, "more than %d inputs", GRAPH_MOST_INPUTS);

    int tensor = graph_add_tensor(g, name, ROLE_INPUT, dtype, dims, dim);
    if (tensor >= 0)
        g->inputs[g->input_count++] = tensor;
    return tensor;
}

static int add_kept(struct graph *g,
                    const char *name,
                    enum role role,
                    int dims,
                    const int64_t *dim,
                    struct init init)
{
    if (g->error.code == ERR_NONE && graph_find(g, name) >= 0)
        return graph_fail(g, ERR_INTERNAL, "two tensors are called \"%s\"", name);

    int tensor = graph_add_tensor(g, name, role, DTYPE_F32, dims, dim);
    if (tensor >= 0)
        g->tensors[tensor].init = init;
    return tensor;
}

int graph_param(struct graph *g,
                const char *name,
                int dims,
                const int64_t *dim,
                struct init init,
                bool decays)
{
    int tensor = add_kept(g, name, ROLE_PARAM, dims, dim, init);

    if (tensor >= 0)
        g->tensors[tensor].decays = decays;
    return tensor;
}

int graph_state(
    struct graph *g, const char *name, int dims, const int64_t *dim, struct init init)
{
    return add_kept(g, name, ROLE_STATE, dims, dim, init);
}

/* Append an op of a layer; its first output. */
static int layer(struct graph *g,
                 const char *name,
                 enum op_kind kind,
                 const union op_attrs *attrs,
                 const int *in,
                 int count)
{
    int op = graph_add_op(g, kind, attrs, in, count);

    if (op < 0)
        return -1;
    g->ops[op].name = arena_strdup(g->arena, name);
    return g->ops[op].out[0];
}

/* The dims of a tensor; none of a tensor that is not there, which the op will refuse. */
static struct tensor shape_of(const struct graph *g, int x)
{
    return x >= 0 && g->error.code == ERR_NONE ? g->tensors[x] : (struct tensor){0};
}

int graph_image(struct graph *g, int images, const float scale[4], const float shift[4])
{
    union op_attrs attrs = {0};

    for (int c = 0; c < 4; c++) {
        attrs.image.scale[c] = scale[c];
        attrs.image.shift[c] = shift[c];
    }
    return layer(g, "image", OP_IMAGE, &attrs, &images, 1);
}

static int layer_param(struct graph *g,
                       const char *name,
                       const char *part,
                       int dims,
                       const int64_t *dim,
                       struct init init,
                       bool decays)
{
    return graph_param(g, arena_printf(g->arena, "%s.%s", name, part), dims, dim, init, decays);
}

int graph_conv(struct graph *g,
               const char *name,
               int x,
               int64_t k,
               const struct window *window,
               int groups,
               struct init weight,
               bool has_bias)
{
    struct tensor of = shape_of(g, x);
    const int64_t dim[4] = {k, groups > 0 ? of.dim[1] / groups : 0, window->r, window->s};
    union op_attrs attrs = {.conv = {.window = *window, .groups = groups}};
    int in[3] = {x, -1, -1};

    if (x < 0)
        return -1;
    in[1] = layer_param(g, name, "weight", 4, dim, weight, true);
    if (has_bias)
        in[2] = layer_param(g, name, "bias", 1, &k, init_constant(0), true);
    return layer(g, name, OP_CONV, &attrs, in, has_bias ? 3 : 2);
}

int graph_linear_tied(struct graph *g, const char *name, int x, int w, bool has_bias)
{
    struct tensor of = shape_of(g, w);
    union op_attrs attrs = {.linear = {ACT_NONE}};
    int in[3] = {x, w, -1};

    if (x < 0 || w < 0)
        return -1;
    if (has_bias)
        in[2] = layer_param(g, name, "bias", 1, &of.dim[0], init_constant(0), true);
    return layer(g, name, OP_LINEAR, &attrs, in, has_bias ? 3 : 2);
}

int graph_linear(
    struct graph *g, const char *name, int x, int64_t k, struct init weight, bool has_bias)
{
    struct tensor of = shape_of(g, x);
    const int64_t dim[2] = {k, of.dim[1]};

    if (x < 0)
        return -1;
    return graph_linear_tied(g, name, x, layer_param(g, name, "weight", 2, dim, weight, true),
                             has_bias);
}

int graph_bn(struct graph *g,
             const char *name,
             int x,
             float epsilon,
             float decay,
             bool is_unbiased,
             float gamma)
{
    const int64_t channels = shape_of(g, x).dim[1];
    union op_attrs attrs = {.bn = {.epsilon = epsilon,
                                   .decay = decay,
                                   .is_frozen = g->mode == GRAPH_EVAL,
                                   .is_unbiased = is_unbiased}};
    int in[5] = {x};

    if (x < 0)
        return -1;
    in[1] = layer_param(g, name, "weight", 1, &channels, init_constant(gamma), false);
    in[2] = layer_param(g, name, "bias", 1, &channels, init_constant(0), false);
    in[3] = graph_state(g, arena_printf(g->arena, "%s.running_mean", name), 1, &channels,
                        init_constant(0));
    in[4] = graph_state(g, arena_printf(g->arena, "%s.running_var", name), 1, &channels,
                        init_constant(1));
    return layer(g, name, OP_BN, &attrs, in, 5);
}

int graph_act(struct graph *g, int x, enum act act)
{
    switch (act) {
    case ACT_RELU:
        return layer(g, "relu", OP_RELU, NULL, &x, 1);
    case ACT_GELU:
        return layer(g, "gelu", OP_GELU, NULL, &x, 1);
    case ACT_TANH:
        return layer(g, "tanh", OP_TANH, NULL, &x, 1);
    case ACT_NONE:
        break;
    }
    return x;
}

int graph_add(struct graph *g, int a, int b)
{
    return layer(g, "add", OP_ADD, NULL, (const int[]){a, b}, 2);
}

int graph_max_pool(struct graph *g, int x, const struct window *window)
{
    union op_attrs attrs = {.pool = {.window = *window}};

    return layer(g, "max_pool", OP_MAX_POOL, &attrs, &x, 1);
}

int graph_avg_pool(struct graph *g, int x, const struct window *window, bool counts_padding)
{
    union op_attrs attrs = {.pool = {.window = *window, .counts_padding = counts_padding}};

    return layer(g, "avg_pool", OP_AVG_POOL, &attrs, &x, 1);
}

int graph_global_pool(struct graph *g, int x)
{
    struct tensor of = shape_of(g, x);
    struct window all = {.r = (int)of.dim[2],
                         .s = (int)of.dim[3],
                         .stride_h = 1,
                         .stride_w = 1,
                         .dilation_h = 1,
                         .dilation_w = 1};

    if (x < 0)
        return -1;
    return graph_flatten(g, graph_avg_pool(g, x, &all, false));
}

int graph_concat(struct graph *g, const int *x, int count)
{
    return layer(g, "concat", OP_CONCAT, NULL, x, count);
}

int graph_pad_channels(struct graph *g, int x, int before, int after)
{
    union op_attrs attrs = {.pad = {.before = before, .after = after}};

    return layer(g, "pad_channels", OP_PAD_CHANNELS, &attrs, &x, 1);
}

int graph_flatten(struct graph *g, int x)
{
    struct tensor of = shape_of(g, x);

    if (of.dim[0] < 1)
        return -1;
    return graph_reshape(g, x, 2,
                         (const int64_t[]){of.dim[0], tensor_elements(&of) / of.dim[0]});
}

int graph_reshape(struct graph *g, int x, int dims, const int64_t *dim)
{
    union op_attrs attrs = {.reshape = {.dims = dims}};

    for (int i = 0; i < dims; i++)
        attrs.reshape.dim[i] = dim[i];
    return layer(g, "reshape", OP_RESHAPE, &attrs, &x, 1);
}

int graph_dropout(struct graph *g, const char *name, int x, float rate)
{
    union op_attrs attrs = {.dropout = {.rate = rate}};

    if (g->mode == GRAPH_EVAL || rate <= 0)
        return x;
    attrs.dropout.stream = rng_stream(arena_printf(g->arena, "dropout/%s", name));
    return layer(g, name, OP_DROPOUT, &attrs, &x, 1);
}

static void set_value(struct graph *g, enum value value, int tensor)
{
    if (g->values[value] < 0)
        g->values[value] = tensor;
}

int graph_xent(struct graph *g, int logits, int labels, int64_t classes, float smoothing)
{
    union op_attrs attrs = {.xent = {.smoothing = smoothing, .classes = classes}};
    int loss = layer(g, "xent", OP_XENT, &attrs, (const int[]){logits, labels}, 2);

    if (loss < 0)
        return -1;
    const struct op *op = &g->ops[g->tensors[loss].producer];
    set_value(g, VALUE_LOSS, op->out[0]);
    set_value(g, VALUE_TOP1, op->out[1]);
    set_value(g, VALUE_TOP5, op->out[2]);
    return loss;
}

struct init init_constant(float value)
{
    return (struct init){INIT_CONSTANT, value};
}

struct init init_normal(float stddev)
{
    return (struct init){INIT_TRUNCATED_NORMAL, stddev};
}

struct init init_glorot_uniform(int64_t fan_in, int64_t fan_out)
{
    return (struct init){INIT_UNIFORM, sqrtf(6.0f / (float)(fan_in + fan_out))};
}

struct init init_he_normal(int64_t fan_in)
{
    return init_normal(sqrtf(2.0f / (float)fan_in));
}

struct init init_variance_scaling(int64_t fan_in)
{
    const float left_after_cut = 0.87962566f; /* stddev of a unit normal cut at two */

    return init_normal(sqrtf(1.0f / (float)fan_in) / left_after_cut);
}
