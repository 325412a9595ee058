/* vgg.c - VGG 11, 16 and 19: five groups of 3x3 convolutions, a pool after each.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/graph/build.h"
#include "train/model/layers.h"

static const struct {
    int depth;
    int convs[5];
} depths[] = {
    {11, {1, 1, 2, 2, 2}},
    {16, {2, 2, 3, 3, 3}},
    {19, {2, 2, 4, 4, 4}},
};

static const int *convs_of(int depth)
{
    int i = 0;

    while (depths[i].depth != depth)
        i++;
    return depths[i].convs;
}

void build_vgg(struct graph *g, const struct model *model, const struct model_options *o)
{
    static const int64_t channels[5] = {64, 128, 256, 512, 512};
    const int *convs = convs_of(model->depth);
    int x = net_begin(g, model, o);
    int number = 0; /* torchvision counts convolutions, relus and pools in one list */

    for (int group = 0; group < 5; group++) {
        for (int i = 0; i < convs[group]; i++, number += 2)
            x = layer_conv_relu(g, name_number(g, "features", number), x,
                                &(struct kernel){channels[group], 3, 3, 1, PAD_SAME});
        x = layer_max_pool(g, x, 2, 2, PAD_VALID);
        number++;
    }
    x = layer_affine(g, "classifier.0", graph_flatten(g, x), 4096, true);
    x = graph_dropout(g, "classifier.2", x, 0.5f);
    x = layer_affine(g, "classifier.3", x, 4096, true);
    x = graph_dropout(g, "classifier.5", x, 0.5f);
    net_end(g, "classifier.6", x, o);
}
