/* layers.h - the layers that networks are written in, with tf_cnn_benchmarks' defaults.
 *
 * Names are torchvision's.  A convolution begins with variance 1/fan_in, a linear layer with a
 * truncated normal of variance 2/fan_in (1/fan_in for the last one, which has no relu), biases
 * with 0.  Running variances are unbiased, as TensorFlow's fused batch norm gives them.
 *
 * All take and return tensors; -1 after an error (graph.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_MODEL_LAYERS_H
#define TRAIN_MODEL_LAYERS_H

#include "train/model/model.h"

enum pad {
    PAD_SAME,   /* TensorFlow's: by the size of the picture, the odd one at the bottom right */
    PAD_VALID,  /* none */
    PAD_RESNET, /* (kernel - 1)/2 on all sides, whatever the stride */
};

struct kernel {
    int64_t k; /* channels out; of a pool: 0 */
    int r, s, stride;
    enum pad pad;
};

struct bn_spec {
    float epsilon, decay;
};

/* Inputs "images" and "labels", and the picture as N C H W. */
int net_begin(struct graph *g, const struct model *model, const struct model_options *o);
/* The last layer, and the loss. */
void net_end(struct graph *g, const char *name, int x, const struct model_options *o);

int layer_conv(
    struct graph *g, const char *name, int x, const struct kernel *kernel, bool has_bias);
/* With bias and relu. */
int layer_conv_relu(struct graph *g, const char *name, int x, const struct kernel *kernel);
int layer_bn(struct graph *g, const char *name, int x, const struct bn_spec *bn, bool has_relu);
/* "<name>.conv" and "<name>.bn", relu. */
int layer_conv_bn(struct graph *g,
                  const char *name,
                  int x,
                  const struct kernel *kernel,
                  const struct bn_spec *bn);
int layer_max_pool(struct graph *g, int x, int size, int stride, enum pad pad);
int layer_avg_pool(struct graph *g, int x, int size, int stride, enum pad pad);
/* With bias; relu when asked. */
int layer_affine(struct graph *g, const char *name, int x, int64_t k, bool has_relu);

/* "a.b", kept by the graph. */
const char *name_in(struct graph *g, const char *scope, const char *name);
const char *name_number(struct graph *g, const char *scope, int number);
const char *layer_name(struct graph *g, int group, int block); /* "layer1.0" */

/* The families' build functions, for the table. */
void build_trivial(struct graph *g, const struct model *model, const struct model_options *o);
void build_lenet(struct graph *g, const struct model *model, const struct model_options *o);
void build_alexnet(struct graph *g, const struct model *model, const struct model_options *o);
void build_vgg(struct graph *g, const struct model *model, const struct model_options *o);
void build_googlenet(struct graph *g, const struct model *model, const struct model_options *o);
void build_inception3(struct graph *g,
                      const struct model *model,
                      const struct model_options *o);
void build_resnet(struct graph *g, const struct model *model, const struct model_options *o);
void build_resnet_cifar(struct graph *g,
                        const struct model *model,
                        const struct model_options *o);

#endif
