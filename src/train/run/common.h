/* common.h - what every training loop does alike: tf_cnn_benchmarks' in run/, BERT's in bert/.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_RUN_COMMON_H
#define TRAIN_RUN_COMMON_H

#include "base/err.h"

#include <stdbool.h>

struct comm;
struct plan;
struct trace_span;

/* SIGINT and SIGTERM wait until the loop looks for them.  Before any thread begins, so that all
 * have it. */
void run_block_signals(void);
bool run_was_signalled(void);
/* Which one: after run_was_signalled(), or when another rank was. */
int run_pending_signal(void);

/* All ranks begin with rank 0's params and states, whatever they made or read themselves. */
int run_broadcast(struct plan *plan, struct comm *comm, struct err *e);

/* The times of the step just done, with the names and FLOPs of its ops.  Caller frees. */
struct trace_span *run_spans(struct plan *plan, int *ret_count);

#endif
