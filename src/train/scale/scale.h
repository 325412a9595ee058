/* scale.h - `yardbench scale --max-ranks N [--network NAME] [--json FILE] [-- flags of the
 * run]`.
 *
 * Runs the same thing with 1, 2, 4, ... N ranks on this host (comm.h's way "local"; each child
 * is this very program with --json, pinned, with cores / N threads in every run, so that a rank
 * has the same means whatever their number), reads their reports and prints a table: ranks,
 * images/sec, efficiency against one rank, ms in compute, ms reduced, ms exposed; then the
 * prediction for 8, 64, 512 and 4096 nodes of the stated network, with what was assumed. --json
 * for programs.  A child that fails ends the report with its message.
 *
 * Under mpirun it is refused: it launches by itself.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_SCALE_SCALE_H
#define TRAIN_SCALE_SCALE_H

#include "base/err.h"

/* words: what follows "scale".  Returns the exit status of the program through ret_status. */
int scale_main(
    const char *self, int count, char *const words[], int *ret_status, struct err *e);

/* Start `ranks` copies of argv on this host and wait for all; the first that fails ends the
 * others and is named.  Also used by tests.  log_folder gets rank-<r>.out and .err; NULL =
 * errors go to our stderr, and rank 0's stdout to ours, the others' nowhere. */
int scale_launch(char *const argv[], int ranks, const char *log_folder, struct err *e);

#endif
