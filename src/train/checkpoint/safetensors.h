/* safetensors.h - the file format, alone: named tensors that Python reads without pickling.
 *
 *   offset  bytes  what
 *   0       8      n, length of the header, little-endian, at most 100 MB
 *   8       n      JSON: {"name": {"dtype": "F32", "shape": [64,3,7,7],
 *                  "data_offsets": [begin, end]}, ..., "__metadata__": {"key": "text"}},
 *                  padded with spaces to a multiple of 8
 *   8+n     ...    data; offsets count from here, have no holes and do not overlap
 *
 * Writing is durable: a temporary file beside it, fsync, rename, fsync of the folder; a full
 * disk (ERR_NO_SPACE) leaves the old file as it was and no temporary one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_CHECKPOINT_SAFETENSORS_H
#define TRAIN_CHECKPOINT_SAFETENSORS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum {
    SAFETENSORS_MOST_DIMS = 8,
};

struct safetensor {
    const char *name;
    const char *dtype; /* "F32", "F16", "BF16", "I32", "I64", "U8", ... */
    int dims;
    int64_t dim[SAFETENSORS_MOST_DIMS];
    const void *data; /* reading: borrowed from the mapped file */
    size_t bytes;
};

struct safetensors_pair {
    const char *key, *text; /* of __metadata__ */
};

/* Called for each tensor, in order, to get its bytes: whole models are never held twice. */
typedef int safetensors_fill(void *arg, int index, void *data, size_t bytes, struct err *e);

/* Write a file of the tensors described (data is not looked at). */
int safetensors_write(const char *path,
                      const struct safetensor *tensors,
                      int count,
                      const struct safetensors_pair *pairs,
                      int pair_count,
                      safetensors_fill *fill,
                      void *arg,
                      struct err *e);

struct safetensors; /* an open file, mapped */

/* Strict: every rule above is checked before anything is believed. */
int safetensors_open(const char *path, struct safetensors **ret_file, struct err *e);
void safetensors_free(struct safetensors *file);
int safetensors_count(const struct safetensors *file);
const struct safetensor *safetensors_at(const struct safetensors *file, int index);
const struct safetensor *safetensors_find(const struct safetensors *file, const char *name);
const char *safetensors_meta(const struct safetensors *file, const char *key); /* or NULL */

#endif
