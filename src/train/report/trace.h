/* trace.h - one step as a Chrome trace, and the table of where time goes.
 *
 * Trace: {"traceEvents": [{"name", "cat", "ph": "X", "ts", "dur", "pid": rank, "tid": track}]},
 * times in microseconds from the step's beginning; tracks are named by metadata events
 * (compute, reorder, communication, loader).
 *
 * Profile, on stderr after the run:
 *   op                      calls   ms/step   share   GFLOP/s   of peak
 *   conv                       53     812.4   41.2 %     150.1    83.6 %
 * by kind of op, then the twenty dearest layers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_TRACE_H
#define TRAIN_REPORT_TRACE_H

#include "base/err.h"

#include <stdint.h>
#include <stdio.h>

struct jsonw;

struct trace_span {
    const char *name; /* layer */
    const char *kind; /* op */
    int track;        /* as in backend.h's plan_span; 3 = loader */
    int64_t begin_ns, end_ns;
    double flops;
};

int trace_write(
    const char *path, int rank, const struct trace_span *spans, int count, struct err *e);

struct profile; /* opaque: sums over steps */
struct profile *profile_new(void);
void profile_free(struct profile *profile);
void profile_add(struct profile *profile, const struct trace_span *spans, int count);
/* peak: FLOP/s of all threads together; 0 = not known, no last column. */
void profile_print(const struct profile *profile, int steps, double peak, FILE *out);
/* The member "ops" of a report: calls, seconds and FLOPs of each kind in a step. */
void profile_json(const struct profile *profile, int steps, struct jsonw *w);

#endif
