/* permute.h - the order of an epoch: a permutation without a table.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_NUM_PERMUTE_H
#define TRAIN_NUM_PERMUTE_H

#include <stdint.h>

/* Element `at` of the permutation of 0..count-1 that seed and epoch fix. */
uint64_t permute(uint64_t at, uint64_t count, uint64_t seed, uint64_t epoch);

#endif
