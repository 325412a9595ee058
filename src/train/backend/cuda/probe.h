/* probe.h - NVIDIA's side of train/backend/probe.h: cuBLASLt, copies, NCCL.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_PROBE_H
#define TRAIN_BACKEND_CUDA_PROBE_H

#include "train/backend/probe.h"

/* What yardbench-cuda.so exports (entry.c); NULL for another abi. */
const struct probe_ops *yardbench_probe(int abi);

extern const struct probe_ops probe_cuda;

/* probe-gang.c */
int probe_gang_id(unsigned char ret_id[PROBE_ID_BYTES], struct err *e);
int probe_all_reduce(const struct probe_gang *gang, double *ret_bytes_s, struct err *e);

#endif
