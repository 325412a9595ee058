/* dataset.h - where examples come from: which there are, and how to get one.
 *
 * Kinds, found by data_name and by what lies in the folder:
 *   synthetic   no folder: truncated normal (127, 60) images, uniform labels in
 *               [0, classes-1), made once from the seed, in f32, as tf_cnn_benchmarks does
 *   tfrecord    train-00000-of-01024, validation-...: ImageNet as TensorFlow's scripts write
 *               it (image/encoded JPEG, image/class/label from 1, image/object/bbox/..)
 *   folder      train/CLASS/NAME.jpg, val/CLASS/NAME.jpg (or .jpeg); classes in order of
 *               name, labels from 0
 *   cifar10     data_batch_1..5.bin, test_batch.bin (also within cifar-10-batches-bin/)
 *   mnist       train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-...
 * A kind is a `const struct dataset_ops`, one row in dataset.c.
 *
 * An example has a number, 0..count-1, in an order that depends on the folder's content alone.
 * Opening indexes: record files are walked by their lengths, not read; nothing is decoded.
 *
 * Threads: dataset_decode may be called by many threads at once on one dataset.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_DATA_DATASET_H
#define TRAIN_DATA_DATASET_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct dataset; /* opaque */

enum dataset_split {
    DATASET_TRAIN,
    DATASET_EVAL,
};

struct dataset_options {
    const char *folder; /* NULL = synthetic */
    const char *name;   /* "imagenet", "cifar10", "mnist"; NULL = what the folder looks like */
    enum dataset_split split;
    uint64_t seed;
};

struct dataset_facts {
    const char *name; /* "imagenet" */
    bool is_synthetic;
    int64_t count;         /* examples of this split; synthetic: of the real thing */
    int64_t classes;       /* records of ImageNet 1001 (0 is background), class folders as many
                              as there are, CIFAR 10, MNIST 10 */
    int64_t height, width; /* 0 = they differ */
    int64_t channels;
};

/* A missing folder, an empty one and one of another kind are told apart in the error. */
int dataset_open(const struct dataset_options *options,
                 struct dataset **ret_dataset,
                 struct err *e);
void dataset_free(struct dataset *dataset);
void dataset_facts(const struct dataset *dataset, struct dataset_facts *ret_facts);
uint64_t dataset_seed(const struct dataset *dataset);

enum resize {
    RESIZE_BILINEAR,
    RESIZE_NEAREST,
    RESIZE_BICUBIC,
    RESIZE_AREA,
    RESIZE_CROP,        /* not at all: a part of the network's size is cut out */
    RESIZE_ROUND_ROBIN, /* by example, as the original's flag means it */
};
int resize_parse(const char *text, enum resize *ret_resize, struct err *e);

struct decode_options { /* how an example becomes a tensor */
    int64_t height, width, channels;
    enum resize resize;
    bool is_training; /* random crop by bounding box and mirror; else the central 87.5 % */
    bool distorts;    /* also colours: brightness, saturation, hue, contrast */
    bool fuses_crop;  /* decode only what is cropped, scaled in the DCT where that is enough */
};

/* Example `number` into pixels (height*width*channels, u8, H W C) with randomness from
 * rng_init(seed, epoch and number): the same picture whoever decodes it.  A corrupt one is
 * ERR_INVALID with its name in the message ("train-00007-of-01024, record 312: ..."). */
int dataset_decode(const struct dataset *dataset,
                   int64_t number,
                   int64_t epoch,
                   const struct decode_options *options,
                   uint8_t *pixels,
                   int32_t *ret_label,
                   struct err *e);

#endif
