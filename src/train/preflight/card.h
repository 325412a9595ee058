/* card.h - what a card should give: facts by name, and the verdict on one.  Pure.
 *
 * Figures are the makers' data sheets' (dense 16-bit products, no sparsity); the shares say
 * how much of them a healthy card reaches at the least in preflight's own measurements.  A
 * share is set some 15 % below what such cards are seen to give: a lower figure means
 * something is wrong, not that the day is bad.  Cards that their power limit holds back in
 * long products (PCIe cards, L4, T4) have low shares of a data sheet that counts on full
 * clocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_PREFLIGHT_CARD_H
#define TRAIN_PREFLIGHT_CARD_H

#include "train/preflight/check.h"

#include <stdint.h>

struct nvml_state;
struct probe_figures;

struct card_facts {
    const char *name; /* how the driver's name for it begins, without "NVIDIA " or "Tesla " */
    double matrix_tflops, matrix_share;
    double copy_gb_s, copy_share;
    int pcie_generation, pcie_width;
    double link_gb_s; /* NVLink, one direction, all links; 0 = none */
};

/* The row with the longest name that fits; NULL when the card is not known. */
const struct card_facts *card_find(const char *name);

/* GB/s that a PCIe link can carry in one direction, after its line code. */
double card_pcie_gb_s(int generation, int width);

/* Checks of what was measured on one card. */
void card_judge_figures(struct checks *checks, const struct probe_figures *figures);
/* Checks of what the driver says: `idle` was read before, `busy` while it multiplied; NULL when
 * it did not. */
void card_judge_state(struct checks *checks,
                      const char *name,
                      const struct nvml_state *idle,
                      const struct nvml_state *busy);
/* The floor of a sum's bus bandwidth over cards of that name in one machine; NaN when it is not
 * known. */
double card_sum_floor(const char *name);

#endif
