/* stats.c - see stats.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/num/stats.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

double stats_mean(const double *values, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

double stats_stddev(const double *values, size_t count)
{
    double mean = stats_mean(values, count), sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return sqrt(sum / (double)count);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double stats_quantile(const double *values, size_t count, double share)
{
    auto_free double *sorted = xreallocarray(NULL, count, sizeof *sorted);
    double at = share * (double)(count - 1);
    size_t below = (size_t)at;

    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_size);
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

double stats_median(const double *values, size_t count)
{
    return stats_quantile(values, count, 0.5);
}

double stats_median_deviation(const double *values, size_t count)
{
    auto_free double *away = xreallocarray(NULL, count, sizeof *away);
    double median = stats_median(values, count);

    for (size_t i = 0; i < count; i++)
        away[i] = fabs(values[i] - median);
    return stats_median(away, count);
}
