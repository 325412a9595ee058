/* safetensors-internal.h - the reader without a file, for the fuzz target.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_CHECKPOINT_SAFETENSORS_INTERNAL_H
#define TRAIN_CHECKPOINT_SAFETENSORS_INTERNAL_H

#include "base/mem.h"
#include "train/checkpoint/safetensors.h"

/* As safetensors_open() over memory that outlives the result. */
int safetensors_parse(const void *bytes,
                      size_t len,
                      struct safetensors **ret_file,
                      struct err *e);
DEFINE_AUTOPTR(safetensors)

#endif
