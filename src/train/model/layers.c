/* layers.c - see layers.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/model/layers.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/graph/build.h"

const char *name_in(struct graph *g, const char *scope, const char *name)
{
    return arena_printf(g->arena, "%s.%s", scope, name);
}

const char *name_number(struct graph *g, const char *scope, int number)
{
    return arena_printf(g->arena, "%s.%d", scope, number);
}

const char *layer_name(struct graph *g, int group, int block)
{
    return arena_printf(g->arena, "layer%d.%d", group, block);
}

static int64_t own_channels(const struct model *model)
{
    return str_equal(model->dataset, "mnist") ? 1 : 3;
}

int net_begin(struct graph *g, const struct model *model, const struct model_options *o)
{
    int64_t height = o->height > 0 ? o->height : model->image_size;
    int64_t width = o->width > 0 ? o->width : model->image_size;
    int64_t channels = o->channels > 0 ? o->channels : own_channels(model);
    int images = graph_input(g, "images", o->image_type, 4,
                             (const int64_t[]){o->batch, height, width, channels});

    graph_input(g, "labels", DTYPE_I32, 1, (const int64_t[]){o->batch});
    return graph_image(g, images, o->image_scale, o->image_shift);
}

void net_end(struct graph *g, const char *name, int x, const struct model_options *o)
{
    int logits = layer_affine(g, name, x, o->classes, false);

    if (logits >= 0)
        graph_xent(g, logits, g->inputs[1], o->classes, o->label_smoothing);
}

static struct window window_of(const struct graph *g, int x, const struct kernel *kernel)
{
    struct window w = {.r = kernel->r,
                       .s = kernel->s,
                       .stride_h = kernel->stride,
                       .stride_w = kernel->stride,
                       .dilation_h = 1,
                       .dilation_w = 1};

    if (kernel->pad == PAD_RESNET) {
        w.top = (w.r - 1) / 2;
        w.bottom = w.r - 1 - w.top;
        w.left = (w.s - 1) / 2;
        w.right = w.s - 1 - w.left;
    }
    if (kernel->pad == PAD_SAME && x >= 0)
        window_pad_same(&w, g->tensors[x].dim[2], g->tensors[x].dim[3]);
    return w;
}

int layer_conv(
    struct graph *g, const char *name, int x, const struct kernel *kernel, bool has_bias)
{
    struct window window = window_of(g, x, kernel);

    if (x < 0)
        return -1;
    return graph_conv(g, name, x, kernel->k, &window, 1,
                      init_variance_scaling(g->tensors[x].dim[1] * kernel->r * kernel->s),
                      has_bias);
}

int layer_conv_relu(struct graph *g, const char *name, int x, const struct kernel *kernel)
{
    return graph_act(g, layer_conv(g, name, x, kernel, true), ACT_RELU);
}

int layer_bn(struct graph *g, const char *name, int x, const struct bn_spec *bn, bool has_relu)
{
    int y = graph_bn(g, name, x, bn->epsilon, bn->decay, true, 1);

    return has_relu ? graph_act(g, y, ACT_RELU) : y;
}

int layer_conv_bn(struct graph *g,
                  const char *name,
                  int x,
                  const struct kernel *kernel,
                  const struct bn_spec *bn)
{
    int y = layer_conv(g, name_in(g, name, "conv"), x, kernel, false);

    return layer_bn(g, name_in(g, name, "bn"), y, bn, true);
}

int layer_max_pool(struct graph *g, int x, int size, int stride, enum pad pad)
{
    struct window w = window_of(g, x, &(struct kernel){0, size, size, stride, pad});

    return graph_max_pool(g, x, &w);
}

int layer_avg_pool(struct graph *g, int x, int size, int stride, enum pad pad)
{
    struct window w = window_of(g, x, &(struct kernel){0, size, size, stride, pad});

    return graph_avg_pool(g, x, &w, false);
}

int layer_affine(struct graph *g, const char *name, int x, int64_t k, bool has_relu)
{
    if (x < 0)
        return -1;

    int64_t fan_in = g->tensors[x].dim[1];
    struct init init = init_he_normal(has_relu ? fan_in : 2 * fan_in);
    int y = graph_linear(g, name, x, k, init, true);
    return has_relu ? graph_act(g, y, ACT_RELU) : y;
}
