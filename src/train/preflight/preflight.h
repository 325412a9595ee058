/* preflight.h - `yardbench preflight`: is this machine, or this gang of ranks, fit to train?
 *
 * In well under half a minute every rank measures what it was given and reads what the driver
 * knows, each figure is held against what the processor or card should give, and rank 0 prints
 * a line for each check and a verdict for each processor and card.
 *
 *   processor  fma         fused multiply-adds of all threads (report/peak.h)
 *              cores       the slowest core against the median; not when ranks share cores
 *              memory      bandwidth of a triad, all ranks of a host at the same time
 *              all_reduce  with several ranks: sums by the reducer that training uses
 *   card       matrix      16-bit products of 8192^3, for long enough to settle
 *              results     all products equal bit by bit, and right
 *              copy, to_card, from_card   within the card; from and to pinned memory
 *              all_reduce  with several cards: NCCL's sums over all of them
 *              clock, throttle, temperature, power_limit   while the card multiplies
 *              ecc, ecc_history, remapped_rows, pcie_width, memory_in_use
 *
 * Verdicts: "ok"; "look" is odd but no reason to refuse the machine; "BAD" is one; "-" could
 * not be judged (nothing is known of such a card, or the driver does not say).  What a card
 * should give is card.h's table, what a processor processor.h's reckoning, each with its
 * tolerance.
 *
 * Ranks: as comm.h finds them.  The cards of a host are dealt out to its ranks in turn: alone
 * means all of them, one rank a card means one each.
 *
 * Exit status: 0 nothing bad, 1 something is bad (or it failed), 2 a wrong command line, or
 * cards were asked for and a rank has none.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_PREFLIGHT_PREFLIGHT_H
#define TRAIN_PREFLIGHT_PREFLIGHT_H

#include "base/err.h"

struct probe_ops;

/* Finds what measures cards (run/backends.h); fails with the reason when there is none. */
typedef int preflight_find_fn(const struct probe_ops **ret_probe, struct err *e);

/* words: what follows "preflight".  Returns the exit status of the program through ret_status.
 */
int preflight_main(
    int count, char *const words[], preflight_find_fn *find, int *ret_status, struct err *e);

#endif
