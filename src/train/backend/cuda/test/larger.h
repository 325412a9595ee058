/* larger.h - cases for the card beside those of cases.h: so large that the loops of kernels go
 * round more than once on a small card (card.h), and of sizes that kernels of their own take.
 *
 * Every element of what is looked at has a share of its own in the loss, so that no gradient is
 * the same in many places.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_TEST_LARGER_H
#define TRAIN_BACKEND_CUDA_TEST_LARGER_H

#include "../../test/cases.h"

#include <math.h>

enum {
    LARGER_ROWS = 100 * CASE_ROWS, /* of a layer norm: many for each warp of three blocks */
};

/* As finish() of cases.h; what is so wide must not make one class certain. */
static inline void larger_finish(struct graph *g, int x)
{
    int rows = g->tensors[x].dims == 4 ? graph_flatten(g, x) : x;
    float deviation = 1 / sqrtf((float)g->tensors[rows].dim[1]);
    int logits = graph_linear(g, "head", rows, CASE_CLASSES,
                              (struct init){INIT_NORMAL, deviation}, true);

    graph_xent(g, logits, g->inputs[0], CASE_CLASSES, 0);
}

/* Several tiles next to each other, and two runs of 64 channels: windows of eight taps in a
 * row, two pixels apart ... */
static inline void larger_stem_7x7(struct graph *g)
{
    struct window w = win(7, 7, 2, 3, 3, 3, 3);

    labels(g);
    int x = picture(g, "x", 3, 3, 529);
    x = graph_conv(g, "conv", x, 128, &w, 1, (struct init){INIT_NORMAL, 0.05f}, false);
    larger_finish(g, graph_act(g, bn_of(g, "bn", x), ACT_RELU));
}
/* ... and of four, one apart, with a bias. */
static inline void larger_stem_3x3(struct graph *g)
{
    labels(g);
    int x = picture(g, "x", 3, 4, 270);
    larger_finish(g, graph_act(g, conv_of(g, "conv", x, 128, win(3, 3, 1, 1, 1, 1, 1), 1, true),
                               ACT_RELU));
}
/* Windows of five taps one apart, of four two apart; no pads, four channels. */
static inline void larger_stem_5x5(struct graph *g)
{
    labels(g);
    larger_finish(g, conv_of(g, "conv", picture(g, "x", 1, 7, 150), 64,
                             win(5, 5, 1, 0, 0, 0, 0), 1, true));
}
static inline void larger_stem_2x4(struct graph *g)
{
    labels(g);
    larger_finish(g, conv_of(g, "conv", picture(g, "x", 4, 6, 281), 64,
                             win(2, 4, 2, 0, 0, 0, 1), 1, true));
}
/* Strides over an even size, as TensorFlow pads them: a row and a column behind, none before.
 */
static inline void larger_strides(struct graph *g)
{
    struct window w = win(3, 3, 2, 0, 1, 0, 1);

    labels(g);
    int x = conv_of(g, "conv0", picture(g, "x", 16, 32, 32), 32, w, 1, false);
    larger_finish(g, conv_of(g, "conv1", x, 64, w, 1, false));
}
/* Batch norms alone, with a relu, with something added. */
static inline void larger_bn(struct graph *g)
{
    struct window one = win(1, 1, 1, 0, 0, 0, 0);

    labels(g);
    int x = conv_of(g, "conv0", picture(g, "x", 8, 38, 41), 24, one, 1, false);
    int y = graph_act(g, bn_of(g, "bn0", x), ACT_RELU);
    int side = bn_of(g, "side.bn", conv_of(g, "side", y, 24, one, 1, false));
    y = bn_of(g, "bn1", conv_of(g, "conv1", y, 24, one, 1, false));
    larger_finish(g, graph_act(g, graph_add(g, side, y), ACT_RELU));
}
/* A layer, dropout, what is added, a layer norm of `width`, another layer with a gelu: what the
 * backend joins when it may. */
static inline void larger_norm(struct graph *g, int64_t width)
{
    struct init init = {INIT_NORMAL, 0.2f};

    labels(g);
    int x = graph_linear(g, "out", matrix(g, "x", LARGER_ROWS, 16), width, init, true);
    x = graph_add(g, graph_dropout(g, "drop", x, 0.2f), matrix(g, "more", LARGER_ROWS, width));
    x = graph_layernorm(g, "norm", x, 1e-5f);
    int y = graph_act(g, graph_linear(g, "up", x, 24, init, true), ACT_GELU);
    y = graph_layernorm(g, "norm2", graph_linear(g, "down", y, 16, init, true), 1e-5f);
    larger_finish(
        g, graph_reshape(g, y, 2, (const int64_t[]){CASE_ROWS, LARGER_ROWS / CASE_ROWS * 16}));
}
/* Two heads of 64, and the bias of the layer before them. */
static inline void larger_attention(struct graph *g, int64_t length)
{
    struct init init = {INIT_NORMAL, 0.2f};
    int64_t rows = CASE_ROWS * length;

    labels(g);
    int mask = graph_input(g, "mask", DTYPE_I32, 2, (const int64_t[]){CASE_ROWS, length});
    int x = graph_linear(g, "qkv", matrix(g, "x", rows, 16), 384, init, true);
    x = graph_attention(g, "attention", x, mask, 2, 0.1f);
    x = graph_linear(g, "out", x, 16, init, true);
    larger_finish(g,
                  graph_reshape(g, x, 2, (const int64_t[]){CASE_ROWS, rows / CASE_ROWS * 16}));
}
static inline void larger_attention_128(struct graph *g)
{
    larger_attention(g, 128);
}
static inline void larger_attention_256(struct graph *g)
{
    larger_attention(g, 256);
}
static inline void larger_norm_20(struct graph *g)
{
    larger_norm(g, 20);
}
static inline void larger_norm_264(struct graph *g)
{
    larger_norm(g, 264);
}
static inline void larger_norm_768(struct graph *g)
{
    larger_norm(g, 768);
}
static inline void larger_norm_1024(struct graph *g)
{
    larger_norm(g, 1024);
}
static inline void larger_norm_1030(struct graph *g)
{
    larger_norm(g, 1030);
}
static inline void larger_norm_2048(struct graph *g)
{
    larger_norm(g, 2048);
}

static const struct graph_case larger_cases[] = {
    {"stem, 7x7 with stride, wide, 128 channels", larger_stem_7x7, CASE_FUSED, true, NULL},
    {"stem, 3x3, wide, 128 channels", larger_stem_3x3, CASE_FUSED, true, NULL},
    {"stem, 5x5, one channel", larger_stem_5x5, CASE_FUSED, false, NULL},
    {"stem, 2x4 with stride, four channels", larger_stem_2x4, CASE_FUSED, false, NULL},
    {"strides, padded behind", larger_strides, CASE_FUSED, false, NULL},
    {"bn, many rows", larger_bn, CASE_FUSED, true, NULL},
    {"attention over 128", larger_attention_128, CASE_FUSED_MORE, false, NULL},
    {"attention over 256", larger_attention_256, CASE_FUSED_MORE, false, NULL},
    {"rows of 20", larger_norm_20, CASE_FUSED_MORE, false, NULL},
    {"rows of 264", larger_norm_264, CASE_FUSED_MORE, false, NULL},
    {"rows of 264 apart", larger_norm_264, 0, false, NULL},
    {"rows of 768", larger_norm_768, CASE_FUSED_MORE, false, NULL},
    {"rows of 1024", larger_norm_1024, CASE_FUSED_MORE, false, NULL},
    {"rows of 1030", larger_norm_1030, CASE_FUSED_MORE, false, NULL},
    {"rows of 2048", larger_norm_2048, CASE_FUSED_MORE, false, NULL},
};

#endif
