/* sum.c - see sum.h.  One body, compiled for each width of vectors there is; the widest that
 * the machine has is taken.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/sum.h"

#include <stdint.h>
#include <string.h>

enum {
    LANES = 16,
    BLOCK = 4 * LANES, /* four vectors at a time: their additions do not wait for each other */
};

/* Sixteen floats, anywhere in memory; narrower machines do it in parts. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

#define BODY static inline __attribute__((always_inline)) void

BODY spread_block(
    const float *const *from, int from_count, float *const *to, int to_count, size_t at)
{
    lanes sum[4];

    for (int v = 0; v < 4; v++)
        sum[v] = *(const lanes *)(from[0] + at + v * LANES);
    for (int r = 1; r < from_count; r++)
        for (int v = 0; v < 4; v++)
            sum[v] += *(const lanes *)(from[r] + at + v * LANES);
    for (int r = 0; r < to_count; r++)
        for (int v = 0; v < 4; v++)
            *(lanes *)(to[r] + at + v * LANES) = sum[v];
}

BODY spread(
    const float *const *from, int from_count, float *const *to, int to_count, size_t count)
{
    size_t at = 0;

    for (; at + BLOCK <= count; at += BLOCK)
        spread_block(from, from_count, to, to_count, at);
    for (; at < count; at++) {
        float sum = from[0][at];

        for (int r = 1; r < from_count; r++)
            sum += from[r][at];
        for (int r = 0; r < to_count; r++)
            to[r][at] = sum;
    }
}

#if defined(__x86_64__)
#define WIDE(name, isa)                                                                        \
    __attribute__((target(isa))) static void name(const float *const *from, int from_count,    \
                                                  float *const *to, int to_count,              \
                                                  size_t count)                                \
    {                                                                                          \
        spread(from, from_count, to, to_count, count);                                         \
    }
WIDE(spread_avx2, "avx2")
WIDE(spread_avx512, "avx512f")
#endif

static void spread_plain(
    const float *const *from, int from_count, float *const *to, int to_count, size_t count)
{
    spread(from, from_count, to, to_count, count);
}

void sum_spread(
    const float *const *from, int from_count, float *const *to, int to_count, size_t count)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        spread_avx512(from, from_count, to, to_count, count);
    else if (__builtin_cpu_supports("avx2"))
        spread_avx2(from, from_count, to, to_count, count);
    else
        spread_plain(from, from_count, to, to_count, count);
#else
    spread_plain(from, from_count, to, to_count, count);
#endif
}

void sum_add(float *to, const float *from, size_t count)
{
    const float *both[] = {to, from};

    sum_spread(both, 2, &to, 1, count);
}
