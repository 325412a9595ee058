/* model.h - the networks by name, and what a recipe leaves to them: image size, batch, rates.
 *
 * One table, in model.c, one file per family: trivial.c lenet.c alexnet.c vgg.c googlenet.c
 * inception.c resnet.c (ImageNet: 18 34 50 101 152, v1, v1.5, v2) resnet-cifar.c (20..110);
 * BERT is apart (bert.h).  Layers, sizes, initial values, batch norm (decay 0.9, epsilon 1e-5
 * in ResNet) and the order of tensors are tf_cnn_benchmarks'; the names of parameters are
 * torchvision's where torchvision has the network (layer1.0.conv1.weight, features.0.weight,
 * fc.bias), so that weights travel both ways.
 *
 * `resnet50` is v1 (stride on the first 1x1 of a block), `resnet50_v1.5` on the 3x3,
 * `resnet50_v2` is pre-activation; `resnet18` and `resnet34` too, as the official_ names do.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_MODEL_MODEL_H
#define TRAIN_MODEL_MODEL_H

#include "base/err.h"
#include "train/graph/graph.h"

struct model_options {
    int64_t batch;
    int64_t classes; /* width of the last layer; ImageNet: 1001, as the original has it */
    int64_t height, width, channels;      /* of the images; 0 = the model's own size */
    enum dtype image_type;                /* u8 or f32, as the loader gives them */
    float image_scale[4], image_shift[4]; /* by channel */
    float label_smoothing;
    bool is_frozen; /* --freeze_when_forward_only: as eval */
};

struct model {
    const char *name;
    const char *dataset; /* "imagenet", "cifar10", "mnist": for which it is meant; several
                            rows may have one name (alexnet, trivial) */
    const char *summary; /* for --help */
    int64_t image_size;
    int64_t default_batch;
    double default_rate; /* when rate_by_batch: for a batch of 256 */
    bool rate_by_batch;  /* ResNet: grows with the batch, with its own steps and warm-up */
    /* Build the forward pass.  Inputs: "images" (N H W C), "labels" (N).  Sets the values. */
    void (*build)(struct graph *graph,
                  const struct model *model,
                  const struct model_options *o);
    int depth, version; /* for the family's build function */
};

/* The error names the nearest model and, for a dataset that has none of it, those it has. */
int model_find(const char *name,
               const char *dataset,
               const struct model **ret_model,
               struct err *e);
/* Every model, ended by a row without a name. */
const struct model *model_table(void);

/* A graph of mode and options, forward only, checked.  The caller frees it. */
int model_graph(const struct model *model,
                enum graph_mode mode,
                const struct model_options *options,
                struct graph **ret_graph,
                struct err *e);

#endif
