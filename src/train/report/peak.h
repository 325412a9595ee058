/* peak.h - what this machine's cores can do, measured: the denominator of "of peak".
 *
 * Independent chains of fused multiply-adds in the widest vectors the machine has, on the
 * given number of threads, for about 50 ms; the best of several rounds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_PEAK_H
#define TRAIN_REPORT_PEAK_H

/* fp32 FLOP/s of all threads together. */
double peak_flops(int threads);
/* Bytes/s of a triad over memory far larger than the caches. */
double peak_bandwidth(int threads);
/* The same when that many ranks of this host do it at the same time: they share caches and
 * memory, so each takes its part of the arrays. */
double peak_bandwidth_shared(int threads, int ranks);

#endif
