/* rng.h - random numbers that depend on what they are for, never on who asked first.
 *
 * All randomness of the trainer is Philox4x32: a function of a key and a counter.  The key
 * is the run's seed, the counter says what the number is for (the stream) and which one it is.
 * So initial weights depend on the parameter's name, an augmentation on (epoch, example), a
 * dropout mask on (op, step, element): not on threads, ranks or the order of calls, and a CUDA
 * kernel draws the very same mask.
 *
 * Streams: rng_stream("init/layer1.0.conv1.weight"), rng_stream("shuffle"), ...
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_NUM_RNG_H
#define TRAIN_NUM_RNG_H

#include <stdint.h>

/* Four words for (key, counter), in ten rounds: Salmon et al., "Parallel random numbers: as
 * easy as 1, 2, 3". hi and lo are the upper and lower 64 bits of the 128-bit counter. */
void rng_philox(uint64_t key, uint64_t hi, uint64_t lo, uint32_t ret_words[4]);

/* The number of a named stream (FNV-1a of its name, 64 bits). */
uint64_t rng_stream(const char *name);

struct rng {
    uint64_t key, stream, at; /* at: the next counter */
    uint32_t words[4];        /* drawn and not yet given out */
    int left;
};

void rng_init(struct rng *rng, uint64_t seed, uint64_t stream);
uint32_t rng_u32(struct rng *rng);
/* 0..below-1 without bias; below > 0. */
uint32_t rng_below(struct rng *rng, uint32_t below);
/* [0, 1) with 24 bits. */
float rng_uniform(struct rng *rng);
float rng_normal(struct rng *rng);
/* Redrawn until within two standard deviations, as TensorFlow's. */
float rng_truncated_normal(struct rng *rng, float mean, float stddev);

/* Dropout draws a number for each activation, so it has a cheaper generator: Philox4x32-7, the
 * fewest rounds that pass BigCrush (Salmon et al.), and 16 bits an element. */
void rng_dropout(uint64_t key, uint64_t hi, uint64_t lo, uint32_t ret_words[4]);

/* Element i of a dropout op is kept when half i%8 of the words of
 *   rng_dropout(seed ^ stream, (pass << 48) | step, i/8)
 * is at least this limit.  Half j is the lower (j even) or upper (j odd) 16 bits of word j/2.
 * seed: plan_options.seed, which has the rank in it; stream: the op's attribute; pass and step:
 * of struct step.  Every backend draws exactly this. */
static inline uint32_t rng_dropout_limit(float rate)
{
    return (uint32_t)((double)rate * 65536.0 + 0.5);
}

static inline uint32_t rng_dropout_half(const uint32_t words[4], uint64_t i)
{
    return words[i % 8 / 2] >> 16 * (i % 2) & 0xFFFFu;
}

#endif
