/* stats.h - the few statistics that reports give, as NumPy computes them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_NUM_STATS_H
#define TRAIN_NUM_STATS_H

#include <stddef.h>

/* All take count > 0 values; none of them changes what it is given. */
double stats_mean(const double *values, size_t count);
/* Of the population: ddof = 0. */
double stats_stddev(const double *values, size_t count);
/* The mean of the two in the middle when the count is even. */
double stats_median(const double *values, size_t count);
/* median(|value - median|), unscaled. */
double stats_median_deviation(const double *values, size_t count);
/* By linear interpolation; share in 0..1. */
double stats_quantile(const double *values, size_t count, double share);

#endif
