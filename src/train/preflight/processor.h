/* processor.h - what the cores of a rank should give at the least.  Pure, but for
 * processor_read().
 *
 * fma: cores x nominal clock x 32 FLOPs a cycle, which every core with AVX2 or AVX-512 reaches
 * (two units of eight lanes; 8 FLOPs without fused multiply-add), of that PROCESSOR_FMA_SHARE:
 * hyper-threads that a virtual machine calls cores give half of a core, and less than that is
 * a core that others use too or that is throttled.  Boost clocks only add to it.
 *
 * memory: PROCESSOR_THREAD_GB_S for each thread up to PROCESSOR_HOST_GB_S: every server since
 * DDR4 gives more, whatever its number of channels.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_PREFLIGHT_PROCESSOR_H
#define TRAIN_PREFLIGHT_PROCESSOR_H

#define PROCESSOR_FMA_SHARE   0.45
#define PROCESSOR_THREAD_GB_S 4.0
#define PROCESSOR_HOST_GB_S   40.0

struct processor {
    char name[64];
    double nominal_hz; /* NaN = not known */
    int flops_per_cycle;
};

/* From the text of /proc/cpuinfo. */
void processor_parse(const char *cpuinfo, struct processor *ret_processor);
/* Of this machine. */
void processor_read(struct processor *ret_processor);

/* FLOP/s of that many cores; NaN when the clock is not known. */
double processor_fma_floor(const struct processor *processor, int cores);
/* Bytes/s of that many threads, when `on_host` threads of all ranks do the same. */
double processor_memory_floor(int threads, int on_host);

#endif
