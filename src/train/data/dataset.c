/* SPDX-License-Identifier: Apache-2.0 */
#include "train/data/dataset.h"

#include "train/data/data-internal.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

/* The kinds, in the order in which a folder is looked at. */
static const struct dataset_ops *const kinds[] = {
    &dataset_cifar,
    &dataset_mnist,
    &dataset_records,
    &dataset_folder,
};

/* The sizes of the real things, for synthetic data. */
static const struct size {
    const char *name;
    int64_t train, eval, classes, side, channels;
} sizes[] = {
    {"imagenet", 1281167, 50000, 1001, 0, 3},
    {"cifar10", 50000, 10000, 10, 32, 3},
    {"mnist", 60000, 10000, 10, 28, 1},
};

static const struct size *size_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        if (str_equal(sizes[i].name, name))
            return &sizes[i];
    return NULL;
}

static int no_such_dataset(const char *name, struct err *e)
{
    return err_set(e, ERR_NOT_FOUND,
                   "there is no dataset \"%.60s\"; there are imagenet, cifar10, mnist", name);
}

static int open_synthetic(const struct dataset_options *options,
                          struct dataset **ret_dataset,
                          struct err *e)
{
    const struct size *size = size_of(options->name ? options->name : "imagenet");
    struct dataset *dataset;

    if (!size)
        return no_such_dataset(options->name, e);
    dataset = xcalloc(1, sizeof(*dataset));
    dataset->seed = options->seed;
    dataset->facts = (struct dataset_facts){
        .name = size->name,
        .is_synthetic = true,
        .count = options->split == DATASET_TRAIN ? size->train : size->eval,
        .classes = size->classes,
        .height = size->side,
        .width = size->side,
        .channels = size->channels,
    };
    *ret_dataset = dataset;
    return 0;
}

/* 1 = something is in it, 0 = nothing. */
static int has_content(const char *folder, struct err *e)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int found = 0;

    if (!dir && errno == ENOENT)
        return err_set(e, ERR_NOT_FOUND, "there is no data folder \"%.200s\"", folder);
    if (!dir)
        return err_sys(e, errno, "could not read the data folder \"%.200s\"", folder);
    while (!found && (entry = readdir(dir)))
        found = entry->d_name[0] != '.';
    closedir(dir);
    return found;
}

static int
find_kind(const struct dataset_options *o, const struct dataset_ops **ret_ops, struct err *e)
{
    auto_str looks = {0};
    int content = has_content(o->folder, e);

    if (content < 0)
        return -1;
    if (!content)
        return err_set(e, ERR_NOT_FOUND, "the data folder \"%.200s\" is empty", o->folder);
    if (o->name && !size_of(o->name))
        return no_such_dataset(o->name, e);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (o->name && !str_equal(o->name, kinds[i]->name))
            continue;
        if (kinds[i]->is_like(o->folder)) {
            *ret_ops = kinds[i];
            return 0;
        }
        str_addf(&looks, "%s%s", looks.len ? " or " : "", kinds[i]->looks);
    }
    return err_set(e, ERR_INVALID, "the data folder \"%.150s\" does not hold %s", o->folder,
                   str_text(&looks));
}

int dataset_open(const struct dataset_options *options,
                 struct dataset **ret_dataset,
                 struct err *e)
{
    const struct dataset_ops *ops;
    struct dataset *dataset;

    if (!options->folder)
        return open_synthetic(options, ret_dataset, e);
    if (find_kind(options, &ops, e) < 0 || ops->open(options, &dataset, e) < 0)
        return -1;
    dataset->ops = ops;
    dataset->seed = options->seed;
    dataset->facts.name = ops->name;
    if (!dataset->facts.count) {
        dataset_free(dataset);
        return err_set(e, ERR_NOT_FOUND, "the data folder \"%.200s\" has no examples for %s",
                       options->folder,
                       options->split == DATASET_TRAIN ? "training" : "evaluation");
    }
    *ret_dataset = dataset;
    return 0;
}

void dataset_free(struct dataset *dataset)
{
    if (!dataset)
        return;
    if (dataset->ops)
        dataset->ops->free(dataset);
    else
        free(dataset);
}

void dataset_facts(const struct dataset *dataset, struct dataset_facts *ret_facts)
{
    *ret_facts = dataset->facts;
}

uint64_t dataset_seed(const struct dataset *dataset)
{
    return dataset->seed;
}

int dataset_decode(const struct dataset *dataset,
                   int64_t number,
                   int64_t epoch,
                   const struct decode_options *options,
                   uint8_t *pixels,
                   int32_t *ret_label,
                   struct err *e)
{
    struct rng rng;

    rng_init(&rng, dataset->seed,
             rng_stream("picture") ^ ((uint64_t)epoch << 40) ^ (uint64_t)number);
    return dataset->ops->decode(dataset, number, options, &rng, pixels, ret_label, e);
}

static const char *const resize_names[] = {
    [RESIZE_BILINEAR] = "bilinear", [RESIZE_NEAREST] = "nearest",
    [RESIZE_BICUBIC] = "bicubic",   [RESIZE_AREA] = "area",
    [RESIZE_CROP] = "crop",         [RESIZE_ROUND_ROBIN] = "round_robin",
};

int resize_parse(const char *text, enum resize *ret_resize, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(resize_names); i++) {
        if (str_equal(resize_names[i], text)) {
            *ret_resize = (enum resize)i;
            return 0;
        }
    }
    return err_set(e, ERR_INVALID, "there is no way to resize called \"%.40s\"", text);
}
