/* small.c - trivial, LeNet and AlexNet.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/graph/build.h"
#include "train/model/layers.h"

void build_trivial(struct graph *g, const struct model *model, const struct model_options *o)
{
    int x = graph_flatten(g, net_begin(g, model, o));

    x = layer_affine(g, "fc1", x, 1, true);
    x = layer_affine(g, "fc2", x, 4096, true);
    net_end(g, "fc3", x, o);
}

void build_lenet(struct graph *g, const struct model *model, const struct model_options *o)
{
    int x = net_begin(g, model, o);

    x = layer_conv_relu(g, "conv1", x, &(struct kernel){32, 5, 5, 1, PAD_SAME});
    x = layer_max_pool(g, x, 2, 2, PAD_VALID);
    x = layer_conv_relu(g, "conv2", x, &(struct kernel){64, 5, 5, 1, PAD_SAME});
    x = layer_max_pool(g, x, 2, 2, PAD_VALID);
    x = layer_affine(g, "fc1", graph_flatten(g, x), 512, true);
    net_end(g, "fc2", x, o);
}

/* The two wide layers that AlexNet and VGG end in are in each one's file: they differ in
 * names. */
void build_alexnet(struct graph *g, const struct model *model, const struct model_options *o)
{
    int x = net_begin(g, model, o);

    x = layer_conv_relu(g, "features.0", x, &(struct kernel){64, 11, 11, 4, PAD_VALID});
    x = layer_max_pool(g, x, 3, 2, PAD_VALID);
    x = layer_conv_relu(g, "features.3", x, &(struct kernel){192, 5, 5, 1, PAD_SAME});
    x = layer_max_pool(g, x, 3, 2, PAD_VALID);
    x = layer_conv_relu(g, "features.6", x, &(struct kernel){384, 3, 3, 1, PAD_SAME});
    x = layer_conv_relu(g, "features.8", x, &(struct kernel){384, 3, 3, 1, PAD_SAME});
    x = layer_conv_relu(g, "features.10", x, &(struct kernel){256, 3, 3, 1, PAD_SAME});
    x = layer_max_pool(g, x, 3, 2, PAD_VALID);
    x = layer_affine(g, "classifier.1", graph_flatten(g, x), 4096, true);
    x = graph_dropout(g, "classifier.2", x, 0.5f);
    x = layer_affine(g, "classifier.4", x, 4096, true);
    x = graph_dropout(g, "classifier.5", x, 0.5f);
    net_end(g, "classifier.6", x, o);
}
