/* diff.h - the backward pass, appended to the forward pass.
 *
 * Walks the forward ops from the last to the first and lets each kind append its gradient ops
 * (op_info.differentiate).  A value used more than once gets a SUM, inputs in the order in
 * which they were computed: the order is part of the result's bits.  Weight gradients come
 * before data gradients of the same layer when both are ready, so that reduction starts early.
 * Values that lead to no parameter get no gradient (the images).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_GRAPH_DIFF_H
#define TRAIN_GRAPH_DIFF_H

struct graph;
struct err;

/* Afterwards every param has a `grad` (a param that the loss does not reach is an error that
 * names it), and forward_end and backward_end are set. */
int graph_differentiate(struct graph *graph, struct err *e);

#endif
