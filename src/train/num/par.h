/* par.h - loops over the threads of one rank.
 *
 * There is one team of threads in a process, the one that oneDNN uses too (OpenMP's): a second
 * team would fight with it for the cores.  par.c is the only file that knows OpenMP; where the
 * compiler has none, or a sanitizer cannot follow it, loops run on the caller's thread.
 *
 * Invariant: how a loop is cut depends on (count, grain, threads) alone, so sums that are made
 * per piece and then in the order of the pieces are the same bits in every run.
 * Threads: par_for is called from the step thread only; loader and progress threads are plain
 * pthreads of their owners and never call it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_NUM_PAR_H
#define TRAIN_NUM_PAR_H

#include <stdint.h>

/* Once at the start of the process.  0 = as many as this process may use cores.  Every thread
 * of the team flushes denormals (FTZ and DAZ): they cost a hundredfold and mean nothing here.
 */
void par_init(int threads);
int par_threads(void);

/* Does the work of items from..to-1. */
typedef void par_fn(void *arg, int64_t from, int64_t to);

/* Call fn on pieces that cover 0..count-1, each of at least `grain` items (the last may have
 * fewer); return when all are done.  A count below two grains does not leave this thread. */
void par_for(int64_t count, int64_t grain, par_fn *fn, void *arg);

/* The piece that par_for would give to `piece` of par_pieces(): for sums per piece. */
int par_pieces(int64_t count, int64_t grain);
void par_piece(int64_t count, int64_t grain, int piece, int64_t *ret_from, int64_t *ret_to);

#endif
