/* graph-internal.h - what the files of this folder share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_GRAPH_GRAPH_INTERNAL_H
#define TRAIN_GRAPH_GRAPH_INTERNAL_H

#include "train/graph/graph.h"

/* As graph_add_op, for a gradient: its shapes follow from the op it belongs to. */
int graph_add_grad(struct graph *graph,
                   enum op_kind kind,
                   const union op_attrs *attrs,
                   const int *in,
                   int in_count,
                   int forward);

/* Make the next output of an op that is being inferred. */
int op_output(struct graph *graph, struct op *op, enum role role, int dims, const int64_t *dim);
/* One with the dims of another tensor. */
int op_output_like(struct graph *graph, struct op *op, enum role role, int tensor);

/* The input in a slot, or -1. */
int op_in(const struct op *op, int slot);
int op_out(const struct op *op, int slot);

/* infer.c and grad.c: the functions that op.c's table names. */
int infer_image(struct graph *graph, struct op *op);
int infer_conv(struct graph *graph, struct op *op);
int infer_linear(struct graph *graph, struct op *op);
int infer_bn(struct graph *graph, struct op *op);
int infer_same(struct graph *graph, struct op *op);
int infer_pool(struct graph *graph, struct op *op);
int infer_concat(struct graph *graph, struct op *op);
int infer_pad_channels(struct graph *graph, struct op *op);
int infer_reshape(struct graph *graph, struct op *op);
int infer_xent(struct graph *graph, struct op *op);
int infer_embed(struct graph *graph, struct op *op);
int infer_layernorm(struct graph *graph, struct op *op);
int infer_attention(struct graph *graph, struct op *op);
int infer_gather_rows(struct graph *graph, struct op *op);
int infer_weighted_sum(struct graph *graph, struct op *op);
int infer_data_grad(struct graph *graph, struct op *op);
int infer_weight_grad(struct graph *graph, struct op *op);
int infer_bn_grad(struct graph *graph, struct op *op);
int infer_each_grad(struct graph *graph, struct op *op);
int infer_embed_grad(struct graph *graph, struct op *op);
int infer_layernorm_grad(struct graph *graph, struct op *op);
int infer_grad_norm(struct graph *graph, struct op *op);
int infer_nothing(struct graph *graph, struct op *op);

int grad_conv(struct graph *graph, int n, const int *dy, int *ret_dx);
int grad_linear(struct graph *graph, int n, const int *dy, int *ret_dx);
int grad_bn(struct graph *graph, int n, const int *dy, int *ret_dx);
int grad_act(struct graph *graph, int n, const int *dy, int *ret_dx);
int grad_add(struct graph *graph, int n, const int *dy, int *ret_dx);
int grad_max_pool(struct graph *graph, int n, const int *dy, int *ret_dx);
int grad_avg_pool(struct graph *graph, int n, const int *dy, int *ret_dx);
int grad_concat(struct graph *graph, int n, const int *dy, int *ret_dx);
int grad_pad_channels(struct graph *graph, int n, const int *dy, int *ret_dx);
int grad_reshape(struct graph *graph, int n, const int *dy, int *ret_dx);
int grad_dropout(struct graph *graph, int n, const int *dy, int *ret_dx);
int grad_xent(struct graph *graph, int n, const int *dy, int *ret_dx);
int grad_embed(struct graph *graph, int n, const int *dy, int *ret_dx);
int grad_layernorm(struct graph *graph, int n, const int *dy, int *ret_dx);
int grad_attention(struct graph *graph, int n, const int *dy, int *ret_dx);
int grad_gather_rows(struct graph *graph, int n, const int *dy, int *ret_dx);

#endif
