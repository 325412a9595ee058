/* cifar.c - CIFAR-10 in its binary form: records of a label and 32 x 32 pixels of red, then of
 * green, then of blue.
 *
 *   offset  bytes  what
 *   0       1      label, 0..9
 *   1       3072   pixels, C H W
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/data-internal.h"

#include <string.h>

enum {
    SIDE = 32,
    PLANE = SIDE * SIDE,
    RECORD = 1 + 3 * PLANE,
    CLASSES = 10,
    TRAIN_FILES = 5,
    PAD = 4, /* random crops of the picture with four black pixels around it */
};

struct cifar {
    struct dataset base;
    struct mapping files[TRAIN_FILES];
    char *names[TRAIN_FILES];
    int file_count;
};

/* The archive unpacks into a folder of its own. */
static const char *inner(const char *folder)
{
    return data_has(folder, "cifar-10-batches-bin") ? "cifar-10-batches-bin/" : "";
}

static bool cifar_is_like(const char *folder)
{
    return data_has(folder, "cifar-10-batches-bin") || data_has(folder, "data_batch_1.bin") ||
           data_has(folder, "test_batch.bin");
}

static void cifar_free(struct dataset *dataset)
{
    struct cifar *c = (struct cifar *)dataset;

    for (int i = 0; i < c->file_count; i++) {
        mapping_done(&c->files[i]);
        free(c->names[i]);
    }
    free(c);
}

static int add_file(struct cifar *c, const char *folder, const char *name, struct err *e)
{
    auto_free char *path = xasprintf("%s/%s%s", folder, inner(folder), name);
    struct mapping *m = &c->files[c->file_count];

    if (mapping_open(m, path, e) < 0)
        return -1;
    c->names[c->file_count++] = xstrdup(name);
    if (m->len % RECORD)
        return err_set(e, ERR_INVALID,
                       "\"%.200s\" is cut short: %zu bytes are no multiple of %d", path, m->len,
                       RECORD);
    c->base.facts.count += (int64_t)(m->len / RECORD);
    return 0;
}

static int add_files(struct cifar *c, const struct dataset_options *o, struct err *e)
{
    if (o->split == DATASET_EVAL)
        return add_file(c, o->folder, "test_batch.bin", e);
    for (int i = 1; i <= TRAIN_FILES; i++) {
        auto_free char *name = xasprintf("data_batch_%d.bin", i);

        if (add_file(c, o->folder, name, e) < 0)
            return -1;
    }
    return 0;
}

static int
cifar_open(const struct dataset_options *options, struct dataset **ret_dataset, struct err *e)
{
    struct cifar *c = xcalloc(1, sizeof(*c));

    c->base.facts = (struct dataset_facts){
        .classes = CLASSES, .height = SIDE, .width = SIDE, .channels = 3};
    if (add_files(c, options, e) < 0) {
        cifar_free(&c->base);
        return -1;
    }
    *ret_dataset = &c->base;
    return 0;
}

static const uint8_t *record_of(const struct cifar *c, int64_t number, int *ret_file)
{
    size_t at = (size_t)number;
    int file = 0;

    while (at >= c->files[file].len / RECORD)
        at -= c->files[file++].len / RECORD;
    *ret_file = file;
    return c->files[file].bytes + at * RECORD;
}

static int cifar_decode(const struct dataset *dataset,
                        int64_t number,
                        const struct decode_options *o,
                        struct rng *rng,
                        uint8_t *pixels,
                        int32_t *ret_label,
                        struct err *e)
{
    const struct cifar *c = (const struct cifar *)dataset;
    uint8_t rgb[3 * PLANE];
    struct picture picture = {rgb, SIDE, SIDE, 3};
    int file;
    const uint8_t *record = record_of(c, number, &file);

    if (record[0] >= CLASSES)
        return err_set(e, ERR_INVALID, "%s, offset %td: label %d", c->names[file],
                       record - c->files[file].bytes, record[0]);
    for (int i = 0; i < PLANE; i++)
        for (int channel = 0; channel < 3; channel++)
            rgb[3 * i + channel] = record[1 + channel * PLANE + i];
    *ret_label = record[0];
    picture_from_pixels(&picture, PAD, true, o, rng, pixels);
    return 0;
}

const struct dataset_ops dataset_cifar = {
    .kind = "cifar10",
    .name = "cifar10",
    .looks = "data_batch_1.bin",
    .is_like = cifar_is_like,
    .open = cifar_open,
    .free = cifar_free,
    .decode = cifar_decode,
};
