/* backends.h - the one list of backends.
 *
 * `auto`: cuda when --device gpu, else onednn when it is built in, else ref.  CUDA is a file,
 * yardbench-cuda.so, beside the program or in ../lib/yardbench, opened when it is asked for: it
 * exports `const struct backend_ops *yardbench_backend(int abi)`.  Missing file, missing
 * library, missing card, other abi: each has its own message.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_RUN_BACKENDS_H
#define TRAIN_RUN_BACKENDS_H

#include "base/err.h"

#include <stdio.h>

struct backend_ops;

int backends_find(const char *name,
                  const char *device,
                  const struct backend_ops **ret_ops,
                  struct err *e);
/* Name, summary and whether it can be used here: for --version. */
void backends_print(FILE *out);

#endif
