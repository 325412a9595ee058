/* peak.c - prints what the cores and the memory can do: FLOP/s of fused multiply-adds and
 * bytes/s of a triad, for the number of threads given.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/report/peak.h"

#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words)
{
    int threads = count > 1 ? atoi(words[1]) : 1;

    printf("%.0f %.0f\n", peak_flops(threads), peak_bandwidth(threads));
    return 0;
}
