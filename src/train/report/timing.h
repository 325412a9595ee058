/* timing.h - images per second with their uncertainty, as tf_cnn_benchmarks computes them.
 *
 * Over all timed steps so far, with t their wall times and speeds = batch / t:
 *   mean    batch / mean(t); with an EWMA share a, weights (1-a)^(n-1), ..., (1-a)^0
 *   +/-     stddev(speeds, of the population) / sqrt(n)
 *   jitter  1.4826 * median(|speeds - median(speeds)|)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_TIMING_H
#define TRAIN_REPORT_TIMING_H

#include <stddef.h>

struct timing {
    double *seconds; /* of each step */
    size_t count, room;
};

struct timing_speed {
    double mean, uncertainty, jitter; /* images/sec */
};

void timing_add(struct timing *timing, double seconds);
void timing_done(struct timing *timing);
/* batch: of this rank.  ewma: NaN = plain mean. */
void timing_speed(const struct timing *timing,
                  double batch,
                  double ewma,
                  struct timing_speed *ret_speed);

#endif
