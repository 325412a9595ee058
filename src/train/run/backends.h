/* backends.h - the one list of backends.
 *
 * `auto`: cuda when --device gpu, or when no device is named and there is a card; else onednn
 * when it is built in, else ref.  CUDA is a file, yardbench-cuda.so, beside the program or in
 * ../lib/yardbench: it exports `const struct backend_ops *yardbench_backend(int abi)` and `int
 * yardbench_cards(void)`.  Missing file, missing library, missing driver, missing card, other
 * abi: each has its own message.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_RUN_BACKENDS_H
#define TRAIN_RUN_BACKENDS_H

#include "base/err.h"

#include <stdio.h>

struct backend_ops;
struct probe_ops;

int backends_find(const char *name,
                  const char *device,
                  const struct backend_ops **ret_ops,
                  struct err *e);
/* What measures cards, from the same file (backend/probe.h). */
int backends_probe(const struct probe_ops **ret_probe, struct err *e);
/* Where measured choices are kept: $YARDBENCH_CACHE, else $XDG_CACHE_HOME/yardbench, else
 * ~/.cache/yardbench.  NULL when there is none of them.  Caller frees. */
char *backends_cache_dir(void);
/* Name, summary and whether it can be used here: for --version. */
void backends_print(FILE *out);

#endif
