/* sum.h - one pass that adds the same stretch of several ranks' gradients and gives all of them
 * the result.  Pure.
 *
 * Added in the order given, so the bits do not depend on who does it.  One read and one write
 * of each array: no array is read a second time to be copied.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_SUM_H
#define TRAIN_COMM_SUM_H

#include <stddef.h>

/* to[i][k] = from[0][k] + from[1][k] + ...  The arrays of `to` may be those of `from`; others
 * may not overlap. */
void sum_spread(
    const float *const *from, int from_count, float *const *to, int to_count, size_t count);
/* to[k] += from[k] */
void sum_add(float *to, const float *from, size_t count);

#endif
