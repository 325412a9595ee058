/* half.c - see half.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/num/half.h"

#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Drop `drop` low bits, to the nearest, ties to even. */
static uint32_t round_off(uint32_t bits, unsigned drop)
{
    uint32_t odd = (bits >> drop) & 1u;

    return (bits + (1u << (drop - 1)) - 1u + odd) >> drop;
}

uint16_t half_from_float(float value)
{
    uint32_t bits = bits_of(value);
    uint16_t sign = (uint16_t)((bits >> 16) & 0x8000u);
    uint32_t size = bits & 0x7fffffffu;

    if (size > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (size >= 0x477ff000u) /* 65520: rounds past the largest half, 65504 */
        return (uint16_t)(sign | 0x7c00u);
    if (size >= 0x38800000u) /* 2^-14: normal */
        return (uint16_t)(sign | round_off(size - 0x38000000u, 13));
    if (size < 0x33000000u) /* below half of the smallest denormal */
        return sign;

    uint32_t mantissa = (size & 0x7fffffu) | 0x800000u;
    return (uint16_t)(sign | round_off(mantissa, 126u - (size >> 23)));
}

float half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t size = half & 0x7fffu;

    if (size >= 0x7c00u)
        return float_of(sign | 0x7f800000u | (size & 0x3ffu) << 13);
    if (size >= 0x400u)
        return float_of(sign | ((size << 13) + 0x38000000u));
    return float_of(sign | bits_of((float)size * 0x1p-24f));
}

uint16_t bf16_from_float(float value)
{
    uint32_t bits = bits_of(value);

    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits >> 16) | 0x40u); /* stays a quiet NaN */
    return (uint16_t)round_off(bits, 16);
}

float bf16_to_float(uint16_t bf16)
{
    return float_of((uint32_t)bf16 << 16);
}

void half_from_floats(uint16_t *to, const float *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = half_from_float(from[i]);
}

void half_to_floats(float *to, const uint16_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = half_to_float(from[i]);
}

void bf16_from_floats(uint16_t *to, const float *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = bf16_from_float(from[i]);
}

void bf16_to_floats(float *to, const uint16_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = bf16_to_float(from[i]);
}
