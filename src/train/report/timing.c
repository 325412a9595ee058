/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/timing.h"

#include "base/mem.h"
#include "train/num/stats.h"

#include <math.h>

void timing_add(struct timing *timing, double seconds)
{
    if (timing->count == timing->room) {
        timing->room = timing->room ? 2 * timing->room : 1024;
        timing->seconds =
            xreallocarray(timing->seconds, timing->room, sizeof(*timing->seconds));
    }
    timing->seconds[timing->count++] = seconds;
}

void timing_done(struct timing *timing)
{
    free(timing->seconds);
    *timing = (struct timing){0};
}

static double weighted_mean(const struct timing *timing, double ewma)
{
    double sum = 0, weights = 0;

    for (size_t i = 0; i < timing->count; i++) {
        double weight = pow(1 - ewma, (double)(timing->count - 1 - i));

        sum += weight * timing->seconds[i];
        weights += weight;
    }
    return sum / weights;
}

void timing_speed(const struct timing *timing,
                  double batch,
                  double ewma,
                  struct timing_speed *ret_speed)
{
    size_t count = timing->count;
    auto_free double *speeds = xreallocarray(NULL, count ? count : 1, sizeof(*speeds));
    bool has_weights = !isnan(ewma) && ewma != 0;

    *ret_speed = (struct timing_speed){0};
    if (!count)
        return;
    for (size_t i = 0; i < count; i++)
        speeds[i] = batch / timing->seconds[i];
    ret_speed->mean = batch / (has_weights ? weighted_mean(timing, ewma)
                                           : stats_mean(timing->seconds, count));
    ret_speed->uncertainty = stats_stddev(speeds, count) / sqrt((double)count);
    ret_speed->jitter = 1.4826 * stats_median_deviation(speeds, count);
}
