/* memplan.h - where each buffer lies in one block of memory, decided before the first step.
 *
 * A backend lists what it needs (values, gradients, workspaces, saved masks) with its own
 * sizes and the first and last op that touches each; the plan places them so that no two that
 * live at the same time overlap.  Greedy by size, largest first, each at the lowest place that
 * is free for its whole life: within a few per cent of the bound on networks of these kinds
 * (the test prints both).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_GRAPH_MEMPLAN_H
#define TRAIN_GRAPH_MEMPLAN_H

#include <stddef.h>

struct graph;

struct memplan_item {
    size_t bytes;
    int first, last; /* ops, both included */
    int shares;    /* lies in the same place as this earlier item (in place, reshape); or -1 */
    size_t offset; /* result */
};

struct memplan {
    size_t bytes;    /* of the block */
    size_t at_least; /* the most that lives at one op: no plan can do with less */
};

/* `align` is a power of two and holds for every offset. */
void memplan_make(struct memplan_item *items,
                  int count,
                  size_t align,
                  struct memplan *ret_plan);

/* The ops between which a tensor lives by the list: from its producer to its last reader; for
 * inputs, params, states and values the whole program.  A backend that keeps a mask instead of
 * a value shortens what this says. */
void graph_life(const struct graph *graph, int tensor, int *ret_first, int *ret_last);

#endif
