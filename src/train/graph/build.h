/* build.h - the forward ops, one function each, as models write them.
 *
 * Each takes tensors and returns its first output; -1 once something went wrong before
 * (graph.h: the first error sticks).  `name` is the layer's; parameters are called name.weight,
 * name.bias, name.running_mean, name.running_var, as torchvision calls them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_GRAPH_BUILD_H
#define TRAIN_GRAPH_BUILD_H

#include "train/graph/graph.h"

/* Something that the host feeds.  Order of calls = order in struct step.feed. */
int graph_input(
    struct graph *g, const char *name, enum dtype dtype, int dims, const int64_t *dim);
int graph_param(struct graph *g,
                const char *name,
                int dims,
                const int64_t *dim,
                struct init init,
                bool decays);
int graph_state(
    struct graph *g, const char *name, int dims, const int64_t *dim, struct init init);

/* images N H W C to N C H W, scaled: the first op of a network of images. */
int graph_image(struct graph *g, int images, const float scale[4], const float shift[4]);
/* Weight K C/groups R S; bias when has_bias.  The caller says how the weight begins. */
int graph_conv(struct graph *g,
               const char *name,
               int x,
               int64_t k,
               const struct window *window,
               int groups,
               struct init weight,
               bool has_bias);
int graph_linear(
    struct graph *g, const char *name, int x, int64_t k, struct init weight, bool has_bias);
/* A product with a weight that another layer owns (BERT's vocabulary): y = x w' + bias. */
int graph_linear_tied(struct graph *g, const char *name, int x, int w, bool has_bias);
/* weight begins at `gamma` (0 for the last one of a residual block, if wanted). */
int graph_bn(struct graph *g,
             const char *name,
             int x,
             float epsilon,
             float decay,
             bool is_unbiased,
             float gamma);
int graph_act(struct graph *g, int x, enum act act);
int graph_add(struct graph *g, int a, int b);
int graph_max_pool(struct graph *g, int x, const struct window *window);
int graph_avg_pool(struct graph *g, int x, const struct window *window, bool counts_padding);
int graph_global_pool(struct graph *g, int x); /* N C H W to N C */
int graph_concat(struct graph *g, const int *x, int count);
int graph_pad_channels(struct graph *g, int x, int before, int after);
int graph_flatten(struct graph *g, int x); /* N C H W to N C*H*W */
int graph_reshape(struct graph *g, int x, int dims, const int64_t *dim);
/* In an eval graph: x itself. */
int graph_dropout(struct graph *g, const char *name, int x, float rate);
/* Sets VALUE_LOSS, VALUE_TOP1, VALUE_TOP5 unless they are set; returns the loss. */
int graph_xent(struct graph *g, int logits, int labels, int64_t classes, float smoothing);

/* The transformer's. */
int graph_embed(struct graph *g,
                const char *name,
                int ids,
                int types,
                int64_t vocabulary,
                int64_t most_positions,
                int64_t width,
                float stddev);
int graph_layernorm(struct graph *g, const char *name, int x, float epsilon);
int graph_attention(
    struct graph *g, const char *name, int qkv, int mask, int heads, float dropout);
int graph_gather_rows(struct graph *g, int x, int rows);
int graph_weighted_sum(struct graph *g, const int *scalars, const float *weights, int count);

/* The usual beginnings. */
struct init init_constant(float value);
struct init init_glorot_uniform(int64_t fan_in, int64_t fan_out);
struct init init_normal(float stddev); /* truncated at two of them */
/* Truncated, drawn with variance 2/fan_in: what is left after the cut has a little less, as
 * tf_cnn_benchmarks' affine layers have it. */
struct init init_he_normal(int64_t fan_in);
/* Truncated, variance 1/fan_in after the cut: TensorFlow's. */
struct init init_variance_scaling(int64_t fan_in);

#endif
