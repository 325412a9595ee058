/* entry.c - what yardbench-cuda.so shows to the program that loads it (run/backends.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/backend.h"
#include "train/backend/cuda/cuda.h"
#include "train/backend/cuda/probe.h"

const struct backend_ops *yardbench_backend(int abi);
int yardbench_cards(void);

const struct backend_ops *yardbench_backend(int abi)
{
    return abi == BACKEND_ABI ? &backend_cuda : NULL;
}

int yardbench_cards(void)
{
    return cuda_cards();
}

const struct probe_ops *yardbench_probe(int abi)
{
    return abi == PROBE_ABI ? &probe_cuda : NULL;
}
