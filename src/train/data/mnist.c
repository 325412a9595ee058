/* mnist.c - MNIST's idx files, big-endian:
 *
 *   images: 0 magic 0x00000803, 4 count, 8 rows, 12 columns, 16 pixels (u8)
 *   labels: 0 magic 0x00000801, 4 count, 8 labels (u8)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/data-internal.h"

#include <endian.h>
#include <string.h>

enum {
    IMAGES_MAGIC = 0x803,
    LABELS_MAGIC = 0x801,
    IMAGES_HEAD = 16,
    LABELS_HEAD = 8,
    MOST_SIDE = 4096,
    CLASSES = 10,
    SHIFT = 2, /* pixels in each direction that --distortions moves a digit */
};

struct mnist {
    struct dataset base;
    struct mapping images, labels;
    char *images_name, *labels_name;
};

static uint32_t u32_at(const struct mapping *m, size_t at)
{
    uint32_t big;

    memcpy(&big, m->bytes + at, sizeof(big));
    return be32toh(big);
}

static bool mnist_is_like(const char *folder)
{
    return data_has(folder, "train-images-idx3-ubyte") ||
           data_has(folder, "t10k-images-idx3-ubyte");
}

static void mnist_free(struct dataset *dataset)
{
    struct mnist *m = (struct mnist *)dataset;

    mapping_done(&m->images);
    mapping_done(&m->labels);
    free(m->images_name);
    free(m->labels_name);
    free(m);
}

static int check_head(
    const struct mapping *m, const char *name, uint32_t magic, size_t head, struct err *e)
{
    if (m->len < head || u32_at(m, 0) != magic)
        return err_set(e, ERR_INVALID, "\"%s\" is no idx file of this kind", name);
    return 0;
}

static int check_files(struct mnist *m, struct err *e)
{
    struct dataset_facts *f = &m->base.facts;
    uint64_t count, rows, columns;

    if (check_head(&m->images, m->images_name, IMAGES_MAGIC, IMAGES_HEAD, e) < 0 ||
        check_head(&m->labels, m->labels_name, LABELS_MAGIC, LABELS_HEAD, e) < 0)
        return -1;
    count = u32_at(&m->images, 4);
    rows = u32_at(&m->images, 8);
    columns = u32_at(&m->images, 12);
    if (!rows || !columns || rows > MOST_SIDE || columns > MOST_SIDE ||
        m->images.len - IMAGES_HEAD != count * rows * columns)
        return err_set(e, ERR_INVALID, "\"%s\" is cut short or damaged", m->images_name);
    if (u32_at(&m->labels, 4) != count || m->labels.len - LABELS_HEAD != count)
        return err_set(e, ERR_INVALID, "\"%s\" does not fit its images", m->labels_name);
    *f = (struct dataset_facts){.count = (int64_t)count,
                                .classes = CLASSES,
                                .height = (int64_t)rows,
                                .width = (int64_t)columns,
                                .channels = 1};
    return 0;
}

static int open_files(struct mnist *m, const struct dataset_options *o, struct err *e)
{
    const char *split = o->split == DATASET_TRAIN ? "train" : "t10k";
    auto_free char *images = NULL, *labels = NULL;

    m->images_name = xasprintf("%s-images-idx3-ubyte", split);
    m->labels_name = xasprintf("%s-labels-idx1-ubyte", split);
    images = xasprintf("%s/%s", o->folder, m->images_name);
    labels = xasprintf("%s/%s", o->folder, m->labels_name);
    if (mapping_open(&m->images, images, e) < 0 || mapping_open(&m->labels, labels, e) < 0)
        return -1;
    return check_files(m, e);
}

static int
mnist_open(const struct dataset_options *options, struct dataset **ret_dataset, struct err *e)
{
    struct mnist *m = xcalloc(1, sizeof(*m));

    if (open_files(m, options, e) < 0) {
        mnist_free(&m->base);
        return -1;
    }
    *ret_dataset = &m->base;
    return 0;
}

static int mnist_decode(const struct dataset *dataset,
                        int64_t number,
                        const struct decode_options *o,
                        struct rng *rng,
                        uint8_t *pixels,
                        int32_t *ret_label,
                        struct err *e)
{
    const struct mnist *m = (const struct mnist *)dataset;
    const struct dataset_facts *f = &m->base.facts;
    size_t size = (size_t)(f->height * f->width);
    struct picture picture = {m->images.bytes + IMAGES_HEAD + (size_t)number * size,
                              (int)f->height, (int)f->width, 1};
    uint8_t label = m->labels.bytes[LABELS_HEAD + number];

    if (label >= CLASSES)
        return err_set(e, ERR_INVALID, "%s, offset %lld: label %d", m->labels_name,
                       (long long)(LABELS_HEAD + number), label);
    *ret_label = label;
    picture_from_pixels(&picture, o->distorts ? SHIFT : 0, false, o, rng, pixels);
    return 0;
}

const struct dataset_ops dataset_mnist = {
    .kind = "mnist",
    .name = "mnist",
    .looks = "train-images-idx3-ubyte",
    .is_like = mnist_is_like,
    .open = mnist_open,
    .free = mnist_free,
    .decode = mnist_decode,
};
