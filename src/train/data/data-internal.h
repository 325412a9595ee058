/* data-internal.h - what the kinds of datasets share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_DATA_DATA_INTERNAL_H
#define TRAIN_DATA_DATA_INTERNAL_H

#include "base/mem.h"
#include "base/str.h"
#include "train/data/dataset.h"
#include "train/num/permute.h"
#include "train/num/rng.h"

/* --- files, mapped (mapping.c) --- */
struct mapping {
    const uint8_t *bytes;
    size_t len;
};
/* An empty file is a mapping of no bytes. */
int mapping_open(struct mapping *mapping, const char *path, struct err *e);
void mapping_done(struct mapping *mapping);

/* --- kinds --- */
struct dataset_ops {
    const char *kind;  /* "tfrecord" */
    const char *name;  /* of the dataset: "imagenet" */
    const char *looks; /* for messages: what such a folder holds */
    /* Is the folder of this kind?  Looks at names only. */
    bool (*is_like)(const char *folder);
    int (*open)(const struct dataset_options *options,
                struct dataset **ret_dataset,
                struct err *e);
    void (*free)(struct dataset *dataset);
    int (*decode)(const struct dataset *dataset,
                  int64_t number,
                  const struct decode_options *options,
                  struct rng *rng,
                  uint8_t *pixels,
                  int32_t *ret_label,
                  struct err *e);
};

struct dataset {                   /* every kind's own struct begins with it */
    const struct dataset_ops *ops; /* NULL = synthetic */
    struct dataset_facts facts;
    uint64_t seed;
};

extern const struct dataset_ops dataset_cifar, dataset_folder, dataset_mnist, dataset_records;

/* Is there such a file or folder? */
bool data_has(const char *folder, const char *name);

/* --- one tf.Example of ImageNet (example.c) --- */
enum {
    EXAMPLE_MOST_BOXES = 64, /* more than that in a picture: the first ones count */
};
struct example_box { /* shares of height and width */
    float ymin, xmin, ymax, xmax;
};
struct example {
    const uint8_t *encoded; /* borrowed */
    size_t encoded_len;
    int64_t label; /* -1 = none */
    struct example_box boxes[EXAMPLE_MOST_BOXES];
    int box_count;
};
int example_parse(struct example *example, const void *bytes, size_t len, struct err *e);

/* --- pictures (picture.c, resize.c) --- */
struct picture { /* u8, H W C, rows without gaps */
    const uint8_t *pixels;
    int height, width, channels;
};
/* Resize into o's size and channels (grey becomes RGB and the other way round); `method` is
 * none of ROUND_ROBIN and CROP. */
void resize_picture(const struct picture *from,
                    enum resize method,
                    bool is_mirrored,
                    const struct decode_options *o,
                    uint8_t *pixels);
/* A JPEG cropped, resized, mirrored and distorted as ImageNet's are. */
int picture_from_jpeg(const void *bytes,
                      size_t len,
                      const struct example_box *boxes,
                      int box_count,
                      int64_t number,
                      const struct decode_options *o,
                      struct rng *rng,
                      uint8_t *pixels,
                      struct err *e);
/* A small picture that is there decoded: CIFAR (crops of the padded picture, mirrored) and
 * MNIST (as it is; moved a little when distorted). */
void picture_from_pixels(const struct picture *from,
                         int pad,
                         bool mirrors,
                         const struct decode_options *o,
                         struct rng *rng,
                         uint8_t *pixels);

#endif
