/* resnet.c - ResNets for ImageNet: 18 and 34 of basic blocks, 50, 101 and 152 of bottlenecks.
 *
 * Version 1 has the stride on the first 1x1 of a bottleneck, 15 ("v1.5") on the 3x3, 2 is
 * pre-activation.  A basic block has its stride on the first 3x3 in all of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/graph/build.h"
#include "train/model/layers.h"

static const struct bn_spec norm = {.epsilon = 1e-5f, .decay = 0.9f};

static const struct shape {
    int depth;
    bool has_bottleneck;
    int blocks[4];
} shapes[] = {
    {18, false, {2, 2, 2, 2}},  {34, false, {3, 4, 6, 3}},  {50, true, {3, 4, 6, 3}},
    {101, true, {3, 4, 23, 3}}, {152, true, {3, 8, 36, 3}},
};

struct block {
    const char *name; /* "layer1.0" */
    int version;
    bool has_bottleneck;
    int64_t width; /* of the inner convolutions; a bottleneck ends in four times as many */
    int stride;
};

static int64_t depth_of(const struct block *b)
{
    return b->has_bottleneck ? 4 * b->width : b->width;
}

static int
conv(struct graph *g, const struct block *b, const char *name, int x, struct kernel k)
{
    return layer_conv(g, name_in(g, b->name, name), x, &k, false);
}

static int bn(struct graph *g, const struct block *b, const char *name, int x, bool has_relu)
{
    return layer_bn(g, name_in(g, b->name, name), x, &norm, has_relu);
}

/* x itself where it fits, else a 1x1 of it (pre-activation: without a norm of its own). */
static int shortcut(struct graph *g, const struct block *b, int x, int from)
{
    if (x < 0)
        return -1;
    if (g->tensors[x].dim[1] == depth_of(b) && b->stride == 1)
        return x;

    int y = conv(g, b, "downsample.0", from,
                 (struct kernel){depth_of(b), 1, 1, b->stride, PAD_RESNET});
    return b->version == 2 ? y : bn(g, b, "downsample.1", y, false);
}

static int block_v1(struct graph *g, const struct block *b, int x)
{
    bool is_first = b->version == 1; /* where the stride is */
    int side = shortcut(g, b, x, x), y = x;

    if (b->has_bottleneck) {
        y = conv(g, b, "conv1", y,
                 (struct kernel){b->width, 1, 1, is_first ? b->stride : 1, PAD_RESNET});
        y = bn(g, b, "bn1", y, true);
        y = conv(g, b, "conv2", y,
                 (struct kernel){b->width, 3, 3, is_first ? 1 : b->stride, PAD_RESNET});
        y = bn(g, b, "bn2", y, true);
        y = conv(g, b, "conv3", y, (struct kernel){depth_of(b), 1, 1, 1, PAD_RESNET});
        y = bn(g, b, "bn3", y, false);
    } else {
        y = conv(g, b, "conv1", y, (struct kernel){b->width, 3, 3, b->stride, PAD_RESNET});
        y = bn(g, b, "bn1", y, true);
        y = conv(g, b, "conv2", y, (struct kernel){b->width, 3, 3, 1, PAD_RESNET});
        y = bn(g, b, "bn2", y, false);
    }
    return graph_act(g, graph_add(g, side, y), ACT_RELU);
}

static int block_v2(struct graph *g, const struct block *b, int x)
{
    int before = bn(g, b, "bn1", x, true);
    int side = shortcut(g, b, x, before), y = before;

    if (b->has_bottleneck) {
        y = conv(g, b, "conv1", y, (struct kernel){b->width, 1, 1, b->stride, PAD_RESNET});
        y = bn(g, b, "bn2", y, true);
        y = conv(g, b, "conv2", y, (struct kernel){b->width, 3, 3, 1, PAD_RESNET});
        y = bn(g, b, "bn3", y, true);
        y = conv(g, b, "conv3", y, (struct kernel){depth_of(b), 1, 1, 1, PAD_RESNET});
    } else {
        y = conv(g, b, "conv1", y, (struct kernel){b->width, 3, 3, b->stride, PAD_RESNET});
        y = bn(g, b, "bn2", y, true);
        y = conv(g, b, "conv2", y, (struct kernel){b->width, 3, 3, 1, PAD_RESNET});
    }
    return graph_add(g, side, y);
}

static int
group(struct graph *g, const struct model *model, const struct shape *s, int number, int x)
{
    struct block b = {.version = model->version,
                      .has_bottleneck = s->has_bottleneck,
                      .width = 64 << (number - 1)};

    for (int i = 0; i < s->blocks[number - 1]; i++) {
        b.name = layer_name(g, number, i);
        b.stride = i == 0 && number > 1 ? 2 : 1;
        x = b.version == 2 ? block_v2(g, &b, x) : block_v1(g, &b, x);
    }
    return x;
}

void build_resnet(struct graph *g, const struct model *model, const struct model_options *o)
{
    const struct shape *s = shapes;
    int x = net_begin(g, model, o);

    while (s->depth != model->depth)
        s++;
    x = layer_conv(g, "conv1", x, &(struct kernel){64, 7, 7, 2, PAD_RESNET}, false);
    x = layer_bn(g, "bn1", x, &norm, true);
    x = layer_max_pool(g, x, 3, 2, PAD_SAME);
    for (int number = 1; number <= 4; number++)
        x = group(g, model, s, number, x);
    if (model->version == 2)
        x = layer_bn(g, "bn_last", x, &norm, true);
    net_end(g, "fc", graph_global_pool(g, x), o);
}
