/* permute.c - a keyed permutation of any size: a Feistel network over the next even power of
 * two, walked until it lands inside (at most four tries on average).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/num/permute.h"

#include "train/num/rng.h"

enum {
    ROUNDS = 6, /* four make it pseudorandom; small halves need some more to mix */
};

static uint64_t mix(uint64_t key, uint64_t epoch, int round, uint64_t half)
{
    uint32_t words[4];

    rng_philox(key, epoch, ((uint64_t)round << 48) | half, words);
    return words[0] | (uint64_t)words[1] << 32;
}

uint64_t permute(uint64_t at, uint64_t count, uint64_t seed, uint64_t epoch)
{
    uint64_t key = seed ^ rng_stream("shuffle"), mask;
    int bits = 1; /* of a half */

    while (2 * bits < 62 && (1ULL << (2 * bits)) < count)
        bits++;
    mask = (1ULL << bits) - 1;
    do {
        uint64_t left = at >> bits, right = at & mask;

        for (int round = 0; round < ROUNDS; round++) {
            uint64_t next = left ^ (mix(key, epoch, round, right) & mask);

            left = right;
            right = next;
        }
        at = left << bits | right;
    } while (at >= count);
    return at;
}
