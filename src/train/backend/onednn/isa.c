/* isa.c - which of the compiled loops this machine runs (loops.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/loops.h"

const struct loops *loops(void)
{
#ifdef LOOPS_OF_ALL_ISAS
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return &loops_v4;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &loops_v3;
#endif
    return &loops_any;
}
