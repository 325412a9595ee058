/* vec.h - sixteen floats at once, which the compiler cuts to what the machine has.
 *
 * For loops that are compiled for several instruction sets (loops.h): everything here is
 * inlined into them, so that it is compiled for the same one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_ONEDNN_VEC_H
#define TRAIN_BACKEND_ONEDNN_VEC_H

#include <stdint.h>

#ifdef __AVX__
#include <immintrin.h>
#endif

#ifndef __clang__ /* vectors pass between inlined functions alone: their ABI does not matter   \
                   */
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

#define INLINE static inline __attribute__((always_inline))

/* Before a loop whose turns are known: arrays of vectors must become registers. */
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum {
    WIDE = 16,
};

typedef float vec __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t bits __attribute__((vector_size(64)));
typedef uint32_t words __attribute__((vector_size(64)));
typedef double doubles __attribute__((vector_size(128)));

INLINE vec load(const float *from)
{
    return *(const vec *)from;
}

INLINE void store(float *to, vec value)
{
    *(vec *)to = value;
}

/* Past the caches, which saves reading what is overwritten; `to` is a whole line of 64 bytes.
 * Other threads see it after a fence. */
INLINE void stream(float *to, vec value)
{
#if defined(__AVX512F__)
    _mm512_stream_ps(to, (__m512)value);
#elif defined(__AVX__)
    struct {
        __m256 low, high;
    } halves;

    __builtin_memcpy(&halves, &value, sizeof halves);
    _mm256_stream_ps(to, halves.low);
    _mm256_stream_ps(to + WIDE / 2, halves.high);
#else
    store(to, value);
#endif
}

INLINE void fence(void)
{
#ifdef __AVX__
    _mm_sfence();
#endif
}

/* In all sixteen places.  Written as arithmetic because compilers make one instruction of it,
 * and sixteen of a list. */
INLINE vec splat(float value)
{
    return value - (vec){0};
}

INLINE vec only_where(vec value, bits mask)
{
    return (vec)((bits)value & mask);
}

/* a where the mask is set, else b. */
INLINE vec either(bits mask, vec a, vec b)
{
    return (vec)(((bits)a & mask) | ((bits)b & ~mask));
}

/* A NaN in b stays; one in a does not. */
INLINE vec larger(vec a, vec b)
{
    return either((bits)(a > b), a, b);
}

INLINE float sum_of_lanes(vec v)
{
    float sum = 0;

    for (int i = 0; i < WIDE; i++)
        sum += v[i];
    return sum;
}

INLINE float largest_lane(vec v)
{
    float most = v[0];

    for (int i = 1; i < WIDE; i++)
        most = v[i] > most ? v[i] : most;
    return most;
}

/* e^x within two units of the last place; 0 below -87, where it would be denormal.
 * x = n ln 2 + r: the sum with 1.5 * 2^23 leaves n in the low bits of the mantissa. */
INLINE vec vec_exp(vec x)
{
    const float round = 12582912.0f, least = -87.0f, most = 88.7f;
    bits is_tiny = (bits)(x < splat(least));
    vec at = either((bits)(x > splat(most)), splat(most), x);
    vec shifted = at * splat(1.44269504f) + splat(round);
    vec n = shifted - splat(round);
    vec r = at - n * splat(0.693145752f) - n * splat(1.42860677e-6f);
    vec p = splat(1.3888889e-3f);

    p = p * r + splat(8.3333333e-3f);
    p = p * r + splat(4.1666667e-2f);
    p = p * r + splat(1.6666667e-1f);
    p = p * r + splat(0.5f);
    p = p * r * r + r + splat(1);
    p = (vec)((words)p + ((words)shifted << 23));
    return only_where(p, ~is_tiny);
}

/* The normal distribution: `below` is the share of it below x, `at` its density there.  By
 * Abramowitz and Stegun 7.1.26, within 1.5e-7, and relatively so in the left tail. */
struct normal {
    vec below, at;
};

INLINE struct normal vec_normal(vec x)
{
    bits is_left = (bits)(x < splat(0));
    vec size = either(is_left, -x, x);
    vec t = splat(1) / (splat(1) + splat(0.23164189f) * size); /* 0.3275911 / sqrt(2) */
    vec e = vec_exp(splat(-0.5f) * x * x);
    vec q = splat(0.5307027145f); /* the five numbers of the book, halved */

    q = q * t + splat(-0.7265760135f);
    q = q * t + splat(0.7107068705f);
    q = q * t + splat(-0.142248368f);
    q = q * t + splat(0.127414796f);
    q = q * t * e;
    return (struct normal){either(is_left, q, splat(1) - q), e * splat(0.39894228f)};
}

#endif
