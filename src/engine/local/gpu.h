/* gpu.h - the machine's GPUs: how many, and which node has which.  A GPU belongs to one node.
 *
 * Counted by NVML, which is loaded when it is there; else by the device files.
 *
 * Threads: any, but for gpus_new and gpus_free.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_GPU_H
#define ENGINE_LOCAL_GPU_H

#include "base/err.h"

enum {
    GPU_MOST = 64,
    GPU_LIST_BYTES = 192, /* "0,1,...,63" */
};

struct gpus; /* opaque */

struct gpus *gpus_new(void);
void gpus_free(struct gpus *gpus);
int gpus_count(const struct gpus *gpus);
/* A list of `count` free ones, "" for none.  ERR_NO_SPACE. */
int gpus_take(struct gpus *gpus, int count, char ret_list[GPU_LIST_BYTES], struct err *e);
/* The listed ones are in use: found after a restart. */
void gpus_claim(struct gpus *gpus, const char *list);
void gpus_give(struct gpus *gpus, const char *list);

#endif
