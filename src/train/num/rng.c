/* rng.c - see rng.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/num/rng.h"

#include <math.h>

static void philox_round(uint32_t c[4], uint32_t k0, uint32_t k1)
{
    uint64_t a = (uint64_t)0xD2511F53u * c[0];
    uint64_t b = (uint64_t)0xCD9E8D57u * c[2];
    uint32_t c1 = c[1], c3 = c[3];

    c[0] = (uint32_t)(b >> 32) ^ c1 ^ k0;
    c[1] = (uint32_t)b;
    c[2] = (uint32_t)(a >> 32) ^ c3 ^ k1;
    c[3] = (uint32_t)a;
}

static void philox(int rounds, uint64_t key, uint64_t hi, uint64_t lo, uint32_t ret_words[4])
{
    uint32_t c[4] = {(uint32_t)lo, (uint32_t)(lo >> 32), (uint32_t)hi, (uint32_t)(hi >> 32)};
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

    for (int round = 0; round < rounds; round++) {
        philox_round(c, k0, k1);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++)
        ret_words[i] = c[i];
}

void rng_philox(uint64_t key, uint64_t hi, uint64_t lo, uint32_t ret_words[4])
{
    philox(10, key, hi, lo, ret_words);
}

void rng_dropout(uint64_t key, uint64_t hi, uint64_t lo, uint32_t ret_words[4])
{
    philox(7, key, hi, lo, ret_words);
}

uint64_t rng_stream(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        hash = (hash ^ *p) * 0x100000001b3u;
    return hash;
}

void rng_init(struct rng *rng, uint64_t seed, uint64_t stream)
{
    *rng = (struct rng){.key = seed, .stream = stream};
}

uint32_t rng_u32(struct rng *rng)
{
    if (rng->left == 0) {
        rng_philox(rng->key, rng->stream, rng->at++, rng->words);
        rng->left = 4;
    }
    return rng->words[4 - rng->left--];
}

/* The lowest (2^32 mod below) values are drawn again: what is left divides evenly. */
uint32_t rng_below(struct rng *rng, uint32_t below)
{
    uint32_t least = -below % below;
    uint32_t word;

    do
        word = rng_u32(rng);
    while (word < least);
    return word % below;
}

float rng_uniform(struct rng *rng)
{
    return (float)(rng_u32(rng) >> 8) * 0x1p-24f;
}

/* Box and Muller, the cosine alone: the second number would make the order of calls matter. */
float rng_normal(struct rng *rng)
{
    const double turn = 6.283185307179586;
    double u = ((double)rng_u32(rng) + 1.0) * 0x1p-32; /* (0, 1] */
    double v = (double)rng_u32(rng) * 0x1p-32;

    return (float)(sqrt(-2.0 * log(u)) * cos(turn * v));
}

float rng_truncated_normal(struct rng *rng, float mean, float stddev)
{
    float z;

    do
        z = rng_normal(rng);
    while (z < -2.0f || z > 2.0f);
    return mean + stddev * z;
}
