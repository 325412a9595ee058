/* inception.c - Inception v3, without the auxiliary head, as tf_cnn_benchmarks trains it.
 *
 * tf_cnn_benchmarks' batch norm here has no scale; ours has one that begins at 1, so that
 * torchvision's weights fit.  Averages leave out the padding and the pool of Mixed_7c is a
 * maximum: tf_cnn_benchmarks', not torchvision's.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/graph/build.h"
#include "train/model/layers.h"

static const struct bn_spec norm = {.epsilon = 1e-3f, .decay = 0.999f};

/* A branch of a module is a row of convolutions. */
struct link {
    const char *name;
    int64_t k;
    int r, s, stride; /* a stride above 1 goes with no padding */
};

static int link_conv(struct graph *g, const char *scope, const struct link *l, int x)
{
    struct kernel kernel = {l->k, l->r, l->s, l->stride, l->stride > 1 ? PAD_VALID : PAD_SAME};

    return layer_conv_bn(g, name_in(g, scope, l->name), x, &kernel, &norm);
}

static int chain(struct graph *g, const char *scope, const struct link *links, int count, int x)
{
    for (int i = 0; i < count; i++)
        x = link_conv(g, scope, &links[i], x);
    return x;
}

#define CHAIN(g, scope, x, ...)                                                                \
    chain(g, scope, (const struct link[]){__VA_ARGS__},                                        \
          (int)ARRAY_SIZE(((const struct link[]){__VA_ARGS__})), x)

static int pooled(struct graph *g, const char *scope, int x, int64_t k)
{
    int y = layer_avg_pool(g, x, 3, 1, PAD_SAME);

    return CHAIN(g, scope, y, {"branch_pool", k, 1, 1, 1});
}

static int module_a(struct graph *g, const char *scope, int x, int64_t pool)
{
    int y[4];

    y[0] = CHAIN(g, scope, x, {"branch1x1", 64, 1, 1, 1});
    y[1] = CHAIN(g, scope, x, {"branch5x5_1", 48, 1, 1, 1}, {"branch5x5_2", 64, 5, 5, 1});
    y[2] = CHAIN(g, scope, x, {"branch3x3dbl_1", 64, 1, 1, 1}, {"branch3x3dbl_2", 96, 3, 3, 1},
                 {"branch3x3dbl_3", 96, 3, 3, 1});
    y[3] = pooled(g, scope, x, pool);
    return graph_concat(g, y, 4);
}

static int module_b(struct graph *g, const char *scope, int x)
{
    int y[3];

    y[0] = CHAIN(g, scope, x, {"branch3x3", 384, 3, 3, 2});
    y[1] = CHAIN(g, scope, x, {"branch3x3dbl_1", 64, 1, 1, 1}, {"branch3x3dbl_2", 96, 3, 3, 1},
                 {"branch3x3dbl_3", 96, 3, 3, 2});
    y[2] = layer_max_pool(g, x, 3, 2, PAD_VALID);
    return graph_concat(g, y, 3);
}

static int module_c(struct graph *g, const char *scope, int x, int64_t n)
{
    int y[4];

    y[0] = CHAIN(g, scope, x, {"branch1x1", 192, 1, 1, 1});
    y[1] = CHAIN(g, scope, x, {"branch7x7_1", n, 1, 1, 1}, {"branch7x7_2", n, 1, 7, 1},
                 {"branch7x7_3", 192, 7, 1, 1});
    y[2] = CHAIN(g, scope, x, {"branch7x7dbl_1", n, 1, 1, 1}, {"branch7x7dbl_2", n, 7, 1, 1},
                 {"branch7x7dbl_3", n, 1, 7, 1}, {"branch7x7dbl_4", n, 7, 1, 1},
                 {"branch7x7dbl_5", 192, 1, 7, 1});
    y[3] = pooled(g, scope, x, 192);
    return graph_concat(g, y, 4);
}

static int module_d(struct graph *g, const char *scope, int x)
{
    int y[3];

    y[0] = CHAIN(g, scope, x, {"branch3x3_1", 192, 1, 1, 1}, {"branch3x3_2", 320, 3, 3, 2});
    y[1] = CHAIN(g, scope, x, {"branch7x7x3_1", 192, 1, 1, 1}, {"branch7x7x3_2", 192, 1, 7, 1},
                 {"branch7x7x3_3", 192, 7, 1, 1}, {"branch7x7x3_4", 192, 3, 3, 2});
    y[2] = layer_max_pool(g, x, 3, 2, PAD_VALID);
    return graph_concat(g, y, 3);
}

static int module_e(struct graph *g, const char *scope, int x, bool pools_max)
{
    int y[6], stem;

    y[0] = CHAIN(g, scope, x, {"branch1x1", 320, 1, 1, 1});
    stem = CHAIN(g, scope, x, {"branch3x3_1", 384, 1, 1, 1});
    y[1] = CHAIN(g, scope, stem, {"branch3x3_2a", 384, 1, 3, 1});
    y[2] = CHAIN(g, scope, stem, {"branch3x3_2b", 384, 3, 1, 1});
    stem =
        CHAIN(g, scope, x, {"branch3x3dbl_1", 448, 1, 1, 1}, {"branch3x3dbl_2", 384, 3, 3, 1});
    y[3] = CHAIN(g, scope, stem, {"branch3x3dbl_3a", 384, 1, 3, 1});
    y[4] = CHAIN(g, scope, stem, {"branch3x3dbl_3b", 384, 3, 1, 1});
    stem =
        pools_max ? layer_max_pool(g, x, 3, 1, PAD_SAME) : layer_avg_pool(g, x, 3, 1, PAD_SAME);
    y[5] = CHAIN(g, scope, stem, {"branch_pool", 192, 1, 1, 1});
    return graph_concat(g, y, 6);
}

static int stem(struct graph *g, int x)
{
    struct kernel first = {32, 3, 3, 2, PAD_VALID}, second = {32, 3, 3, 1, PAD_VALID},
                  third = {64, 3, 3, 1, PAD_SAME}, fourth = {80, 1, 1, 1, PAD_VALID},
                  fifth = {192, 3, 3, 1, PAD_VALID};

    x = layer_conv_bn(g, "Conv2d_1a_3x3", x, &first, &norm);
    x = layer_conv_bn(g, "Conv2d_2a_3x3", x, &second, &norm);
    x = layer_conv_bn(g, "Conv2d_2b_3x3", x, &third, &norm);
    x = layer_max_pool(g, x, 3, 2, PAD_VALID);
    x = layer_conv_bn(g, "Conv2d_3b_1x1", x, &fourth, &norm);
    x = layer_conv_bn(g, "Conv2d_4a_3x3", x, &fifth, &norm);
    return layer_max_pool(g, x, 3, 2, PAD_VALID);
}

void build_inception3(struct graph *g, const struct model *model, const struct model_options *o)
{
    int x = stem(g, net_begin(g, model, o));

    x = module_a(g, "Mixed_5b", x, 32);
    x = module_a(g, "Mixed_5c", x, 64);
    x = module_a(g, "Mixed_5d", x, 64);
    x = module_b(g, "Mixed_6a", x);
    x = module_c(g, "Mixed_6b", x, 128);
    x = module_c(g, "Mixed_6c", x, 160);
    x = module_c(g, "Mixed_6d", x, 160);
    x = module_c(g, "Mixed_6e", x, 192);
    x = module_d(g, "Mixed_7a", x);
    x = module_e(g, "Mixed_7b", x, false);
    x = module_e(g, "Mixed_7c", x, true);
    net_end(g, "fc", graph_global_pool(g, x), o);
}
