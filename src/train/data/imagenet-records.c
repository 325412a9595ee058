/* imagenet-records.c - ImageNet as TFRecords: train-00000-of-01024, validation-00000-of-00128.
 *
 * The index has the place of every record, found by walking lengths.  Where a length is
 * damaged the rest of the file is lost; the place stays in the index, so that whoever decodes
 * it says so by name.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/data-internal.h"
#include "train/record/tfrecord.h"

#include <glob.h>
#include <inttypes.h>
#include <string.h>

enum {
    CLASSES = 1001, /* 0 is background */
};

struct place {
    uint32_t file;
    uint32_t number; /* of the record within its file */
    uint64_t offset;
};

struct records {
    struct dataset base;
    struct mapping *files;
    char **names;
    size_t file_count;
    struct place *places;
    size_t place_room;
};

static const char *pattern_of(enum dataset_split split)
{
    return split == DATASET_TRAIN ? "train-*-of-*" : "validation-*-of-*";
}

static bool has_files(const char *folder, enum dataset_split split)
{
    auto_free char *pattern = xasprintf("%s/%s", folder, pattern_of(split));
    glob_t found = {0};
    bool has = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;

    globfree(&found);
    return has;
}

static bool records_are_like(const char *folder)
{
    return has_files(folder, DATASET_TRAIN) || has_files(folder, DATASET_EVAL);
}

static void records_free(struct dataset *dataset)
{
    struct records *r = (struct records *)dataset;

    for (size_t i = 0; i < r->file_count; i++) {
        mapping_done(&r->files[i]);
        free(r->names[i]);
    }
    free(r->files);
    free(r->names);
    free(r->places);
    free(r);
}

static void add_place(struct records *r, struct place place)
{
    size_t count = (size_t)r->base.facts.count;

    if (count == r->place_room) {
        r->place_room = r->place_room ? 2 * r->place_room : 4096;
        r->places = xreallocarray(r->places, r->place_room, sizeof(*r->places));
    }
    r->places[count] = place;
    r->base.facts.count++;
}

static void index_file(struct records *r, uint32_t file)
{
    const struct mapping *m = &r->files[file];
    uint32_t number = 0;

    for (size_t at = 0; at < m->len; number++) {
        add_place(r, (struct place){.file = file, .number = number, .offset = at});
        if (tfrecord_skip(m->bytes, m->len, at, &at, NULL) < 0)
            return;
    }
}

static int open_files(struct records *r, const glob_t *found, struct err *e)
{
    r->files = xcalloc(found->gl_pathc, sizeof(*r->files));
    r->names = xcalloc(found->gl_pathc, sizeof(*r->names));
    for (size_t i = 0; i < found->gl_pathc; i++) {
        if (mapping_open(&r->files[i], found->gl_pathv[i], e) < 0)
            return -1;
        r->names[r->file_count++] = xstrdup(found->gl_pathv[i]);
        index_file(r, (uint32_t)i);
    }
    return 0;
}

static int
records_open(const struct dataset_options *options, struct dataset **ret_dataset, struct err *e)
{
    auto_free char *pattern = xasprintf("%s/%s", options->folder, pattern_of(options->split));
    struct records *r = xcalloc(1, sizeof(*r));
    glob_t found = {0};
    int rc = 0;

    r->base.facts = (struct dataset_facts){.classes = CLASSES, .channels = 3};
    if (glob(pattern, 0, NULL, &found) == 0) /* sorted: the order is the names' */
        rc = open_files(r, &found, e);
    globfree(&found);
    if (rc < 0) {
        records_free(&r->base);
        return -1;
    }
    *ret_dataset = &r->base;
    return 0;
}

static int decode_record(const struct records *r,
                         const struct place *place,
                         int64_t number,
                         const struct decode_options *o,
                         struct rng *rng,
                         uint8_t *pixels,
                         int32_t *ret_label,
                         struct err *e)
{
    const struct mapping *m = &r->files[place->file];
    struct example example;
    const void *data;
    size_t len, next;

    if (tfrecord_at(m->bytes, m->len, place->offset, &data, &len, &next, e) < 0 ||
        example_parse(&example, data, len, e) < 0)
        return -1;
    if (example.label >= CLASSES)
        return err_set(e, ERR_INVALID, "its label is %" PRId64 ", beyond %d", example.label,
                       CLASSES - 1);
    *ret_label = (int32_t)example.label;
    return picture_from_jpeg(example.encoded, example.encoded_len, example.boxes,
                             example.box_count, number, o, rng, pixels, e);
}

static int records_decode(const struct dataset *dataset,
                          int64_t number,
                          const struct decode_options *o,
                          struct rng *rng,
                          uint8_t *pixels,
                          int32_t *ret_label,
                          struct err *e)
{
    const struct records *r = (const struct records *)dataset;
    const struct place *place = &r->places[number];
    const char *slash = strrchr(r->names[place->file], '/');

    if (decode_record(r, place, number, o, rng, pixels, ret_label, e) < 0)
        return err_wrap(e, "%.200s, record %" PRIu32, slash ? slash + 1 : r->names[place->file],
                        place->number);
    return 0;
}

const struct dataset_ops dataset_records = {
    .kind = "tfrecord",
    .name = "imagenet",
    .looks = "train-00000-of-... records",
    .is_like = records_are_like,
    .open = records_open,
    .free = records_free,
    .decode = records_decode,
};
