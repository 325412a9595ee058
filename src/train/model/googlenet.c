/* googlenet.c - GoogLeNet (Inception v1), without batch norm and with the 5x5 branch, as
 * tf_cnn_benchmarks has it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/graph/build.h"
#include "train/model/layers.h"

static int one_by_one(struct graph *g, const char *scope, const char *name, int x, int64_t k)
{
    return layer_conv_relu(g, name_in(g, scope, name), x,
                           &(struct kernel){k, 1, 1, 1, PAD_SAME});
}

static int square(struct graph *g, const char *scope, const char *name, int x, int64_t k, int r)
{
    return layer_conv_relu(g, name_in(g, scope, name), x,
                           &(struct kernel){k, r, r, 1, PAD_SAME});
}

struct module {
    const char *name; /* NULL: a pool */
    int64_t k[6];     /* 1x1; 1x1, 3x3; 1x1, 5x5; after the pool */
};

static int module(struct graph *g, const struct module *m, int x)
{
    int y[4];

    y[0] = one_by_one(g, m->name, "branch1.conv", x, m->k[0]);
    y[1] = one_by_one(g, m->name, "branch2.0.conv", x, m->k[1]);
    y[1] = square(g, m->name, "branch2.1.conv", y[1], m->k[2], 3);
    y[2] = one_by_one(g, m->name, "branch3.0.conv", x, m->k[3]);
    y[2] = square(g, m->name, "branch3.1.conv", y[2], m->k[4], 5);
    y[3] = layer_max_pool(g, x, 3, 1, PAD_SAME);
    y[3] = one_by_one(g, m->name, "branch4.1.conv", y[3], m->k[5]);
    return graph_concat(g, y, 4);
}

static const struct module modules[] = {
    {"inception3a", {64, 96, 128, 16, 32, 32}},
    {"inception3b", {128, 128, 192, 32, 96, 64}},
    {NULL, {0}},
    {"inception4a", {192, 96, 208, 16, 48, 64}},
    {"inception4b", {160, 112, 224, 24, 64, 64}},
    {"inception4c", {128, 128, 256, 24, 64, 64}},
    {"inception4d", {112, 144, 288, 32, 64, 64}},
    {"inception4e", {256, 160, 320, 32, 128, 128}},
    {NULL, {0}},
    {"inception5a", {256, 160, 320, 32, 128, 128}},
    {"inception5b", {384, 192, 384, 48, 128, 128}},
};

void build_googlenet(struct graph *g, const struct model *model, const struct model_options *o)
{
    int x = net_begin(g, model, o);

    x = layer_conv_relu(g, "conv1.conv", x, &(struct kernel){64, 7, 7, 2, PAD_SAME});
    x = layer_max_pool(g, x, 3, 2, PAD_SAME);
    x = layer_conv_relu(g, "conv2.conv", x, &(struct kernel){64, 1, 1, 1, PAD_SAME});
    x = layer_conv_relu(g, "conv3.conv", x, &(struct kernel){192, 3, 3, 1, PAD_SAME});
    x = layer_max_pool(g, x, 3, 2, PAD_SAME);
    for (size_t i = 0; i < ARRAY_SIZE(modules); i++)
        x = modules[i].name ? module(g, &modules[i], x) : layer_max_pool(g, x, 3, 2, PAD_SAME);
    net_end(g, "fc", graph_global_pool(g, x), o);
}
