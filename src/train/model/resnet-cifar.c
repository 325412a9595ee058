/* resnet-cifar.c - ResNets for CIFAR-10: 20, 32, 44, 56 and 110 layers, three groups of blocks.
 *
 * Where a block changes width the shortcut takes every second pixel and pads the channels with
 * zeros.  As in tf_cnn_benchmarks, version 1 has no relu after the first convolution.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/graph/build.h"
#include "train/model/layers.h"

static const struct bn_spec norm = {.epsilon = 1e-5f, .decay = 0.9f};

static int shortcut(struct graph *g, int x, int64_t width, int stride)
{
    if (x < 0 || g->tensors[x].dim[1] == width)
        return x;

    int pad = (int)(width - g->tensors[x].dim[1]) / 2;
    return graph_pad_channels(g, layer_avg_pool(g, x, 1, stride, PAD_VALID), pad, pad);
}

static int
conv(struct graph *g, const char *scope, const char *name, int x, int64_t k, int stride)
{
    return layer_conv(g, name_in(g, scope, name), x,
                      &(struct kernel){k, 3, 3, stride, PAD_SAME}, false);
}

static int bn(struct graph *g, const char *scope, const char *name, int x, bool has_relu)
{
    return layer_bn(g, name_in(g, scope, name), x, &norm, has_relu);
}

static int
block(struct graph *g, const char *scope, int x, int64_t width, int stride, bool is_v2)
{
    int side = shortcut(g, x, width, stride), y = x;

    if (is_v2) {
        y = conv(g, scope, "conv1", bn(g, scope, "bn1", y, true), width, stride);
        y = conv(g, scope, "conv2", bn(g, scope, "bn2", y, true), width, 1);
        return graph_add(g, side, y);
    }
    y = bn(g, scope, "bn1", conv(g, scope, "conv1", y, width, stride), true);
    y = bn(g, scope, "bn2", conv(g, scope, "conv2", y, width, 1), false);
    return graph_act(g, graph_add(g, side, y), ACT_RELU);
}

void build_resnet_cifar(struct graph *g,
                        const struct model *model,
                        const struct model_options *o)
{
    int blocks = (model->depth - 2) / 6; /* in each group, two convolutions a block */
    bool is_v2 = model->version == 2;
    int x = net_begin(g, model, o);

    x = layer_conv(g, "conv1", x, &(struct kernel){16, 3, 3, 1, PAD_SAME}, false);
    x = layer_bn(g, "bn1", x, &norm, is_v2);
    for (int number = 1; number <= 3; number++)
        for (int i = 0; i < blocks; i++)
            x = block(g, layer_name(g, number, i), x, 16 << (number - 1),
                      i == 0 && number > 1 ? 2 : 1, is_v2);
    if (is_v2)
        x = layer_bn(g, "bn_last", x, &norm, true);
    net_end(g, "fc", graph_global_pool(g, x), o);
}
