/* cases.h - small graphs, one for each kind of op and each of its attributes: what the oracle
 * is held against finite differences with, and the backends against the oracle.
 *
 * Every case ends in a cross-entropy of ten classes, so that all of it is one number with
 * gradients down to each parameter; what goes into the op under test is a parameter too, and
 * so its gradient is looked at as well.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_TEST_CASES_H
#define TRAIN_BACKEND_TEST_CASES_H

#include "base/mem.h"
#include "train/backend/backend.h"
#include "train/graph/build.h"
#include "train/graph/diff.h"
#include "train/graph/fuse.h"
#include "train/graph/step.h"
#include "train/num/rng.h"

#include <stddef.h>
#include <string.h>

enum {
    CASE_ROWS = 3,
    CASE_CLASSES = 10,
    CASE_T = 5, /* of sequences */
};

struct graph_case {
    const char *name;
    void (*build)(struct graph *g);
    unsigned fusions;
    bool has_kinks;        /* a relu or a maximum: finite differences are coarser */
    const char *must_have; /* a kind that must be in the graph when all is done */
};

/* N C H W of random numbers that can be trained. */
static int picture(struct graph *g, const char *name, int64_t c, int64_t h, int64_t w)
{
    const int64_t dim[] = {CASE_ROWS, c, h, w};
    int flat = graph_param(g, name, 4, dim, (struct init){INIT_NORMAL, 1}, false);

    return graph_reshape(g, flat, 4, dim);
}

static int matrix(struct graph *g, const char *name, int64_t rows, int64_t columns)
{
    const int64_t dim[] = {rows, columns};
    int flat = graph_param(g, name, 2, dim, (struct init){INIT_NORMAL, 1}, true);

    return graph_reshape(g, flat, 2, dim);
}

/* From whatever has CASE_ROWS rows to the loss. */
static void finish(struct graph *g, int x)
{
    int rows = g->error.code == ERR_NONE && x >= 0 && g->tensors[x].dims == 4
                   ? graph_flatten(g, x)
                   : x;
    int logits =
        graph_linear(g, "head", rows, CASE_CLASSES, (struct init){INIT_NORMAL, 0.2f}, true);

    graph_xent(g, logits, g->inputs[0], CASE_CLASSES, 0);
}

static void labels(struct graph *g)
{
    graph_input(g, "labels", DTYPE_I32, 1, (const int64_t[]){CASE_ROWS});
}

static struct window win(int r, int s, int stride, int top, int bottom, int left, int right)
{
    return (struct window){.r = r,
                           .s = s,
                           .stride_h = stride,
                           .stride_w = stride,
                           .dilation_h = 1,
                           .dilation_w = 1,
                           .top = top,
                           .bottom = bottom,
                           .left = left,
                           .right = right};
}

static int conv_of(struct graph *g,
                   const char *name,
                   int x,
                   int64_t k,
                   struct window w,
                   int groups,
                   bool has_bias)
{
    return graph_conv(g, name, x, k, &w, groups, (struct init){INIT_NORMAL, 0.2f}, has_bias);
}

static void case_conv_3x3(struct graph *g)
{
    labels(g);
    finish(g, conv_of(g, "conv", picture(g, "x", 16, 7, 6), 32, win(3, 3, 1, 1, 1, 1, 1), 1,
                      true));
}
static void case_conv_1x1_stride(struct graph *g)
{
    labels(g);
    finish(g, conv_of(g, "conv", picture(g, "x", 32, 7, 7), 16, win(1, 1, 2, 0, 0, 0, 0), 1,
                      false));
}
static void case_conv_odd_channels(struct graph *g)
{
    labels(g);
    int x =
        conv_of(g, "conv1", picture(g, "x", 5, 6, 9), 11, win(3, 3, 2, 0, 1, 0, 1), 1, true);
    finish(g, conv_of(g, "conv2", x, 19, win(2, 3, 1, 1, 0, 2, 1), 1, true));
}
static void case_conv_groups(struct graph *g)
{
    labels(g);
    finish(g, conv_of(g, "conv", picture(g, "x", 32, 6, 6), 32, win(3, 3, 1, 1, 1, 1, 1), 2,
                      true));
}
static void case_conv_dilated(struct graph *g)
{
    struct window w = win(3, 3, 1, 2, 2, 2, 2);

    w.dilation_h = w.dilation_w = 2;
    labels(g);
    finish(g, conv_of(g, "conv", picture(g, "x", 16, 8, 7), 16, w, 1, false));
}
static void case_conv_wide(struct graph *g)
{
    labels(g);
    int x =
        conv_of(g, "conv1", picture(g, "x", 16, 9, 8), 16, win(1, 7, 1, 0, 0, 3, 3), 1, false);
    finish(g, conv_of(g, "conv2", x, 16, win(7, 1, 1, 3, 3, 0, 0), 1, false));
}
static void case_conv_relu(struct graph *g)
{
    labels(g);
    int x =
        conv_of(g, "conv", picture(g, "x", 16, 6, 6), 24, win(3, 3, 1, 1, 1, 1, 1), 1, true);
    finish(g, graph_act(g, x, ACT_RELU));
}
static void case_conv_image(struct graph *g)
{
    static const float scale[4] = {0.5f, 2, 1, 1}, shift[4] = {1, -0.5f, 0.25f, 0};
    labels(g);
    int images =
        graph_input(g, "images", DTYPE_F32, 4, (const int64_t[]){CASE_ROWS, 12, 11, 3});
    int x = graph_image(g, images, scale, shift);
    finish(g, conv_of(g, "conv", x, 16, win(7, 7, 2, 3, 3, 3, 3), 1, false));
}
static int bn_of(struct graph *g, const char *name, int x)
{
    return graph_bn(g, name, x, 1e-3f, 0.9f, true, 1.5f);
}
/* How residual nets begin: the pool's gradient is a sum. */
static void case_stem_wide(struct graph *g)
{
    struct window pool = win(3, 3, 2, 1, 1, 1, 1), one = win(1, 1, 1, 0, 0, 0, 0);
    struct window w = win(7, 7, 2, 3, 3, 3, 3);
    labels(g);
    int x = picture(g, "x", 3, 11, 37);
    x = graph_conv(g, "conv1", x, 64, &w, 1, (struct init){INIT_NORMAL, 0.05f}, false);
    x = bn_of(g, "bn", x);
    x = graph_max_pool(g, graph_act(g, x, ACT_RELU), &pool);
    x = graph_add(g, conv_of(g, "conv2", x, 8, one, 1, false),
                  conv_of(g, "conv3", x, 8, one, 1, false));
    finish(g, graph_global_pool(g, x));
}
/* How plain nets go on: gradients of relus behind those of convolutions and of pools. */
static void case_stem_plain(struct graph *g)
{
    struct window two = win(2, 2, 2, 0, 0, 0, 0), three = win(3, 3, 2, 1, 0, 0, 1);
    struct window w = win(3, 3, 1, 1, 1, 1, 1);
    labels(g);
    int x = picture(g, "x", 3, 5, 35);
    x = graph_act(g, conv_of(g, "conv1", x, 64, w, 1, true), ACT_RELU);
    x = graph_act(g, conv_of(g, "conv2", x, 16, w, 1, true), ACT_RELU);
    x = graph_max_pool(g, x, &two);
    x = graph_act(g, conv_of(g, "conv3", x, 16, w, 1, true), ACT_RELU);
    finish(g, graph_max_pool(g, x, &three));
}
static void case_image_bytes(struct graph *g)
{
    static const float scale[4] = {1 / 255.0f, 1 / 255.0f, 1, 1}, shift[4] = {-0.5f, 0, 0, 0};
    labels(g);
    int images = graph_input(g, "images", DTYPE_U8, 4, (const int64_t[]){CASE_ROWS, 6, 5, 2});
    finish(g, graph_image(g, images, scale, shift));
}
static void case_bn(struct graph *g)
{
    labels(g);
    int x =
        conv_of(g, "conv", picture(g, "x", 8, 6, 5), 32, win(3, 3, 1, 1, 1, 1, 1), 1, false);
    finish(g, bn_of(g, "bn", x));
}
static void case_bn_odd_channels(struct graph *g)
{
    labels(g);
    int x =
        conv_of(g, "conv", picture(g, "x", 8, 5, 5), 21, win(3, 3, 1, 1, 1, 1, 1), 1, false);
    finish(g, graph_act(g, bn_of(g, "bn", x), ACT_RELU));
}
static void case_bn_dense(struct graph *g)
{
    labels(g);
    finish(g, graph_act(g, bn_of(g, "bn", picture(g, "x", 5, 4, 7)), ACT_RELU));
}
static void case_bn_add_relu(struct graph *g)
{
    labels(g);
    int x =
        conv_of(g, "conv0", picture(g, "x", 8, 6, 6), 16, win(1, 1, 1, 0, 0, 0, 0), 1, false);
    int y = bn_of(g, "bn", conv_of(g, "conv", x, 16, win(3, 3, 1, 1, 1, 1, 1), 1, false));
    finish(g, graph_act(g, graph_add(g, x, y), ACT_RELU));
}
/* Two residual blocks: a gradient that is a sum goes into a batch norm that has an add. */
static void case_residual(struct graph *g)
{
    labels(g);
    int x =
        conv_of(g, "conv0", picture(g, "x", 8, 5, 6), 16, win(1, 1, 1, 0, 0, 0, 0), 1, false);
    for (int i = 0; i < 2; i++) {
        const char *names[] = {"a", "b"};
        int side = i ? x
                     : bn_of(g, "side.bn",
                             conv_of(g, "side", x, 16, win(1, 1, 1, 0, 0, 0, 0), 1, false));
        int y = conv_of(g, names[i], x, 16, win(3, 3, 1, 1, 1, 1, 1), 1, false);
        y = bn_of(g, arena_printf(g->arena, "%s.bn", names[i]), y);
        x = graph_act(g, graph_add(g, side, y), ACT_RELU);
    }
    finish(g, x);
}
static void case_linear(struct graph *g)
{
    labels(g);
    finish(g, graph_linear(g, "fc", matrix(g, "x", CASE_ROWS, 37), 29,
                           (struct init){INIT_NORMAL, 0.3f}, true));
}
static void case_linear_relu(struct graph *g)
{
    labels(g);
    int x = graph_linear(g, "fc", matrix(g, "x", CASE_ROWS, 20), 33,
                         (struct init){INIT_NORMAL, 0.3f}, true);
    finish(g, graph_act(g, x, ACT_RELU));
}
static void case_linear_tanh(struct graph *g)
{
    labels(g);
    int x = graph_linear(g, "fc", matrix(g, "x", CASE_ROWS, 20), 16,
                         (struct init){INIT_NORMAL, 0.3f}, false);
    finish(g, graph_act(g, x, ACT_TANH));
}
static void case_linear_gelu(struct graph *g)
{
    labels(g);
    int x = graph_linear(g, "fc", matrix(g, "x", CASE_ROWS, 20), 16,
                         (struct init){INIT_NORMAL, 0.3f}, true);
    finish(g, graph_act(g, x, ACT_GELU));
}
static void case_linear_tied(struct graph *g)
{
    labels(g);
    int w = graph_param(g, "w", 2, (const int64_t[]){12, 12}, (struct init){INIT_NORMAL, 0.3f},
                        true);
    int x = graph_linear_tied(g, "one", matrix(g, "x", CASE_ROWS, 12), w, true);
    finish(g, graph_linear_tied(g, "two", graph_act(g, x, ACT_TANH), w, false));
}
static void case_acts(struct graph *g)
{
    labels(g);
    int x = picture(g, "x", 3, 4, 5);
    int a = graph_act(g, x, ACT_TANH), b = graph_act(g, x, ACT_GELU);
    finish(g, graph_add(g, a, graph_add(g, b, graph_act(g, x, ACT_RELU))));
}
static void case_max_pool(struct graph *g)
{
    struct window w = win(3, 3, 2, 0, 1, 0, 1);
    labels(g);
    int x =
        conv_of(g, "conv", picture(g, "x", 8, 8, 8), 16, win(3, 3, 1, 1, 1, 1, 1), 1, false);
    finish(g, graph_max_pool(g, x, &w));
}
static void case_max_pool_odd(struct graph *g)
{
    struct window w = win(3, 2, 1, 1, 1, 0, 1);
    labels(g);
    finish(g, graph_max_pool(g, picture(g, "x", 5, 6, 7), &w));
}
static void case_avg_pool(struct graph *g)
{
    struct window w = win(3, 3, 1, 1, 1, 1, 1);
    labels(g);
    int x =
        conv_of(g, "conv", picture(g, "x", 8, 6, 7), 16, win(1, 1, 1, 0, 0, 0, 0), 1, false);
    finish(g, graph_add(g, graph_avg_pool(g, x, &w, false), graph_avg_pool(g, x, &w, true)));
}
static void case_global_pool(struct graph *g)
{
    labels(g);
    int x =
        conv_of(g, "conv", picture(g, "x", 8, 6, 5), 20, win(1, 1, 1, 0, 0, 0, 0), 1, false);
    finish(g, graph_global_pool(g, x));
}
static void case_concat(struct graph *g)
{
    labels(g);
    int x = picture(g, "x", 8, 5, 5), y[3];
    y[0] = conv_of(g, "a", x, 16, win(1, 1, 1, 0, 0, 0, 0), 1, false);
    y[1] = conv_of(g, "b", x, 32, win(3, 3, 1, 1, 1, 1, 1), 1, false);
    y[2] = conv_of(g, "c", x, 7, win(1, 1, 1, 0, 0, 0, 0), 1, false);
    finish(g, conv_of(g, "d", graph_concat(g, y, 3), 16, win(3, 3, 1, 1, 1, 1, 1), 1, false));
}
static void case_concat_odd(struct graph *g)
{
    labels(g);
    int x = picture(g, "x", 8, 4, 4), y[3];
    y[0] = bn_of(g, "bn", conv_of(g, "a", x, 10, win(1, 1, 1, 0, 0, 0, 0), 1, false));
    y[1] = x;
    y[2] = conv_of(g, "c", x, 21, win(3, 3, 1, 1, 1, 1, 1), 1, false);
    finish(g, conv_of(g, "d", graph_concat(g, y, 3), 16, win(1, 1, 1, 0, 0, 0, 0), 1, false));
}
/* Batch norms that end in a concatenation, as Inception's do. */
static void case_concat_bn(struct graph *g)
{
    struct window w = win(3, 3, 1, 1, 1, 1, 1);
    labels(g);
    int x = conv_of(g, "x0", picture(g, "x", 8, 5, 6), 16, win(1, 1, 1, 0, 0, 0, 0), 1, false),
        y[4];
    y[0] = graph_act(g, bn_of(g, "a.bn", conv_of(g, "a", x, 32, w, 1, false)), ACT_RELU);
    y[1] = graph_max_pool(g, x, &w);
    y[2] = graph_act(g, bn_of(g, "b.bn", conv_of(g, "b", x, 16, w, 1, false)), ACT_RELU);
    y[3] = graph_act(g, bn_of(g, "c.bn", conv_of(g, "c", y[2], 16, w, 1, false)), ACT_RELU);
    finish(g, graph_act(
                  g, bn_of(g, "d.bn", conv_of(g, "d", graph_concat(g, y, 4), 16, w, 1, false)),
                  ACT_RELU));
}
static void case_pad_channels(struct graph *g)
{
    labels(g);
    int x =
        conv_of(g, "conv", picture(g, "x", 8, 5, 5), 16, win(1, 1, 1, 0, 0, 0, 0), 1, false);
    int y = graph_pad_channels(g, x, 8, 8);
    finish(g, graph_add(g, y, conv_of(g, "other", x, 32, win(1, 1, 1, 0, 0, 0, 0), 1, false)));
}
static void case_dropout(struct graph *g)
{
    labels(g);
    int x = graph_dropout(g, "drop", matrix(g, "x", CASE_ROWS, 41), 0.4f);
    finish(g, x);
}
static void case_smoothing(struct graph *g)
{
    labels(g);
    int logits = graph_linear(g, "head", matrix(g, "x", CASE_ROWS, 12), CASE_CLASSES + 6,
                              (struct init){INIT_NORMAL, 0.3f}, true);
    graph_xent(g, logits, g->inputs[0], CASE_CLASSES, 0.1f);
}
static void case_weighted(struct graph *g)
{
    labels(g);
    int x = matrix(g, "x", CASE_ROWS, 12), losses[2];
    for (int i = 0; i < 2; i++)
        losses[i] = graph_xent(g,
                               graph_linear(g, i ? "b" : "a", x, CASE_CLASSES,
                                            (struct init){INIT_NORMAL, 0.3f}, true),
                               g->inputs[0], CASE_CLASSES, 0);
    g->values[VALUE_LOSS] = graph_weighted_sum(g, losses, (const float[]){1, 0.4f}, 2);
}
/* A small BERT: everything that one has. */
static void case_transformer(struct graph *g)
{
    const int64_t tokens[] = {CASE_ROWS, CASE_T};
    labels(g);
    int ids = graph_input(g, "ids", DTYPE_I32, 2, tokens);
    int types = graph_input(g, "types", DTYPE_I32, 2, tokens);
    int mask = graph_input(g, "mask", DTYPE_I32, 2, tokens);
    int rows = graph_input(g, "rows", DTYPE_I32, 1, (const int64_t[]){CASE_ROWS});
    int x = graph_embed(g, "embed", ids, types, 9, CASE_T + 2, 12, 0.5f);
    x = graph_layernorm(g, "norm", x, 1e-5f);
    int y = graph_linear(g, "qkv", x, 36, (struct init){INIT_NORMAL, 0.4f}, true);
    y = graph_attention(g, "attention", y, mask, 3, 0.1f);
    y = graph_dropout(
        g, "drop", graph_linear(g, "out", y, 12, (struct init){INIT_NORMAL, 0.4f}, true), 0.2f);
    x = graph_layernorm(g, "norm2", graph_add(g, y, x), 1e-5f);
    y = graph_act(g, graph_linear(g, "up", x, 20, (struct init){INIT_NORMAL, 0.4f}, true),
                  ACT_GELU);
    y = graph_linear(g, "down", y, 12, (struct init){INIT_NORMAL, 0.4f}, true);
    x = graph_layernorm(g, "norm3", graph_add(g, y, x), 1e-5f);
    finish(g, graph_gather_rows(g, x, rows));
}

/* The table of words is also what the last product multiplies with, as BERT's is. */
static void case_tied_table(struct graph *g)
{
    const int64_t tokens[] = {CASE_ROWS, CASE_T};
    labels(g);
    int ids = graph_input(g, "ids", DTYPE_I32, 2, tokens);
    int types = graph_input(g, "types", DTYPE_I32, 2, tokens);
    int rows = graph_input(g, "rows", DTYPE_I32, 1, (const int64_t[]){CASE_ROWS});
    int x = graph_embed(g, "embed", ids, types, CASE_CLASSES, CASE_T, 20, 0.5f);
    x = graph_gather_rows(g, graph_layernorm(g, "norm", x, 1e-5f), rows);
    x = graph_act(g, graph_linear(g, "fc", x, 20, (struct init){INIT_NORMAL, 0.4f}, true),
                  ACT_GELU);
    x = graph_linear_tied(g, "words", x, graph_find(g, "embed.word_embeddings.weight"), true);
    graph_xent(g, x, g->inputs[0], CASE_CLASSES, 0);
}

enum {
    CASE_FUSED = FUSE_BN_RELU | FUSE_BN_ADD_RELU | FUSE_CONV_RELU | FUSE_LINEAR_ACT,
    CASE_FUSED_MORE = FUSE_DROPOUT_ADD | FUSE_ADD_LAYERNORM | FUSE_LINEAR_ACT,
};

static const struct graph_case graph_cases[] = {
    {"conv 3x3", case_conv_3x3, 0, false, "conv_weight_grad"},
    {"conv 1x1 with stride", case_conv_1x1_stride, 0, false, NULL},
    {"conv, odd channels, uneven pads", case_conv_odd_channels, 0, false, NULL},
    {"conv, groups", case_conv_groups, 0, false, NULL},
    {"conv, dilated", case_conv_dilated, 0, false, NULL},
    {"conv 1x7 and 7x1", case_conv_wide, 0, false, NULL},
    {"conv, relu apart", case_conv_relu, 0, true, "relu"},
    {"conv, relu fused", case_conv_relu, CASE_FUSED, true, "relu_grad"},
    {"conv of an image", case_conv_image, 0, false, "image"},
    {"stem, 7x7 with stride", case_stem_wide, CASE_FUSED, true, "max_pool_grad"},
    {"stem, 3x3, relus and pools", case_stem_plain, CASE_FUSED, true, "relu_grad"},
    {"stem, relus apart", case_stem_plain, 0, true, "relu_grad"},
    {"image of bytes", case_image_bytes, 0, false, "image"},
    {"bn", case_bn, 0, false, "bn_grad"},
    {"bn, relu, odd channels", case_bn_odd_channels, CASE_FUSED, true, NULL},
    {"bn, relu, dense", case_bn_dense, CASE_FUSED, true, NULL},
    {"bn, add, relu apart", case_bn_add_relu, 0, true, "add"},
    {"bn, add, relu fused", case_bn_add_relu, CASE_FUSED, true, NULL},
    {"residual blocks apart", case_residual, 0, true, "sum"},
    {"residual blocks fused", case_residual, CASE_FUSED, true, "sum"},
    {"linear", case_linear, 0, false, "linear_data_grad"},
    {"linear, relu apart", case_linear_relu, 0, true, NULL},
    {"linear, relu fused", case_linear_relu, CASE_FUSED, true, NULL},
    {"linear, tanh fused", case_linear_tanh, CASE_FUSED, false, "tanh_grad"},
    {"linear, gelu apart", case_linear_gelu, 0, false, "gelu"},
    {"linear, gelu fused", case_linear_gelu, FUSE_LINEAR_ACT, false, "gelu_grad"},
    {"linear, tied weights", case_linear_tied, 0, false, "sum"},
    {"activations, added", case_acts, 0, true, "sum"},
    {"max pool", case_max_pool, 0, true, "max_pool_grad"},
    {"max pool, odd", case_max_pool_odd, 0, true, NULL},
    {"average pool, both ways", case_avg_pool, 0, false, "avg_pool_grad"},
    {"global pool", case_global_pool, 0, false, "reshape"},
    {"concat", case_concat, 0, false, "concat_grad"},
    {"concat, odd channels", case_concat_odd, 0, false, NULL},
    {"concat of batch norms", case_concat_bn, CASE_FUSED, true, NULL},
    {"pad channels", case_pad_channels, 0, false, "pad_channels_grad"},
    {"dropout", case_dropout, 0, false, "dropout_grad"},
    {"label smoothing, padded classes", case_smoothing, 0, false, NULL},
    {"two losses", case_weighted, 0, false, "weighted_sum"},
    {"transformer", case_transformer, 0, false, "attention_grad"},
    {"transformer, fused", case_transformer, CASE_FUSED_MORE, false, "layernorm_grad"},
    {"table of words, tied", case_tied_table, CASE_FUSED_MORE, false, "embed_grad"},
};

struct case_data { /* the host's side of a step */
    void *feed[GRAPH_MOST_INPUTS];
};

/* Labels and ids of 0..8, images of numbers; rows pick one token of each sequence. */
static inline void case_fill(const struct graph *g, struct case_data *data)
{
    struct rng rng;

    rng_init(&rng, 5, rng_stream("case"));
    for (int i = 0; i < g->input_count; i++) {
        const struct tensor *t = &g->tensors[g->inputs[i]];
        int64_t count = tensor_elements(t);

        data->feed[i] = xcalloc((size_t)count, 4);
        for (int64_t j = 0; j < count; j++) {
            if (t->dtype == DTYPE_F32)
                ((float *)data->feed[i])[j] = rng_normal(&rng);
            else if (t->dtype == DTYPE_U8)
                ((uint8_t *)data->feed[i])[j] = (uint8_t)rng_below(&rng, 256);
            else if (strcmp(t->name, "types") == 0)
                ((int32_t *)data->feed[i])[j] = (int32_t)rng_below(&rng, 2);
            else if (strcmp(t->name, "mask") == 0)
                ((int32_t *)data->feed[i])[j] = j % CASE_T < 4;
            else if (strcmp(t->name, "rows") == 0)
                ((int32_t *)data->feed[i])[j] = (int32_t)(j * CASE_T + j);
            else
                ((int32_t *)data->feed[i])[j] = (int32_t)rng_below(&rng, 9);
        }
    }
}

static inline void case_empty(struct case_data *data)
{
    for (int i = 0; i < GRAPH_MOST_INPUTS; i++)
        free(data->feed[i]);
}

static inline void case_spec(struct step_spec *spec)
{
    *spec = (struct step_spec){
        .fusion_bytes = 1 << 12, .ranks = 1, .updates_early = true, .passes = 1};
    optim_defaults(&spec->optim, OPTIM_MOMENTUM);
    spec->optim.loss_scale = 1;
}

/* The training's forward pass alone. */
static inline int
case_forward(const struct graph_case *c, struct graph **ret_graph, struct err *e)
{
    struct graph *g = graph_new(c->name, GRAPH_TRAIN, CASE_ROWS);

    c->build(g);
    graph_fuse(g, c->fusions);
    *ret_graph = g;
    return graph_check(g, e);
}

static inline int case_graph_with(const struct graph_case *c,
                                  const struct step_spec *spec,
                                  struct graph **ret_graph,
                                  struct err *e)
{
    struct graph *g = graph_new(c->name, spec ? GRAPH_TRAIN : GRAPH_EVAL, CASE_ROWS);

    c->build(g);
    graph_fuse(g, c->fusions);
    *ret_graph = g;
    if (graph_check(g, e) < 0)
        return -1;
    if (!spec)
        return 0;
    if (graph_differentiate(g, e) < 0)
        return -1;
    return graph_finish_step(g, spec, e);
}

static inline int case_graph(const struct graph_case *c,
                             enum graph_mode mode,
                             struct graph **ret_graph,
                             struct err *e)
{
    struct step_spec spec;

    case_spec(&spec);
    return case_graph_with(c, mode == GRAPH_TRAIN ? &spec : NULL, ret_graph, e);
}

#endif
