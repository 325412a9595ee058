/* fuse.h - put neighbours together that a backend runs as one.
 *
 * Runs before differentiation, so that the gradients are fused too (BN_GRAD with relu and add
 * in it).  A producer is taken into its consumer only when nobody else reads what lies
 * between.  Fused or not, the values of the graph are the same within rounding: the tests run
 * both.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_GRAPH_FUSE_H
#define TRAIN_GRAPH_FUSE_H

struct graph;

enum fusion { /* bits; a backend names those it wants */
              FUSE_BN_RELU = 1 << 0,
              FUSE_BN_ADD_RELU = 1 << 1, /* relu(bn(x) + add) */
              FUSE_CONV_RELU = 1 << 2,
              FUSE_CONV_ADD =
                  1 << 3, /* the sum of a residual block in the convolution's store */
              FUSE_LINEAR_ACT = 1 << 4,
              FUSE_DROPOUT_ADD = 1 << 5,
              FUSE_ADD_LAYERNORM = 1 << 6,
};

/* Rewrite the forward ops.  Only on a graph that is not differentiated. */
void graph_fuse(struct graph *graph, unsigned fusions);

#endif
