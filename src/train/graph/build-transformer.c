/* build-transformer.c - the forward ops of transformers: see build.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/graph/build.h"
#include "train/num/rng.h"

#include <math.h>

static int named(struct graph *g, const char *name, int op)
{
    if (op < 0)
        return -1;
    g->ops[op].name = arena_strdup(g->arena, name);
    return g->ops[op].out[0];
}

static int table(struct graph *g,
                 const char *name,
                 const char *part,
                 int64_t rows,
                 int64_t width,
                 float stddev)
{
    return graph_param(g, arena_printf(g->arena, "%s.%s.weight", name, part), 2,
                       (const int64_t[]){rows, width}, init_normal(stddev), true);
}

int graph_embed(struct graph *g,
                const char *name,
                int ids,
                int types,
                int64_t vocabulary,
                int64_t most_positions,
                int64_t width,
                float stddev)
{
    int in[5] = {ids, types, table(g, name, "word_embeddings", vocabulary, width, stddev),
                 table(g, name, "position_embeddings", most_positions, width, stddev),
                 table(g, name, "token_type_embeddings", 2, width, stddev)};

    return named(g, name, graph_add_op(g, OP_EMBED, NULL, in, 5));
}

int graph_layernorm(struct graph *g, const char *name, int x, float epsilon)
{
    union op_attrs attrs = {.layernorm = {epsilon}};
    int in[3] = {x};

    if (x < 0)
        return -1;
    const int64_t width = g->tensors[x].dim[1];
    in[1] = graph_param(g, arena_printf(g->arena, "%s.weight", name), 1, &width,
                        init_constant(1), false);
    in[2] = graph_param(g, arena_printf(g->arena, "%s.bias", name), 1, &width, init_constant(0),
                        false);
    return named(g, name, graph_add_op(g, OP_LAYERNORM, &attrs, in, 3));
}

int graph_attention(
    struct graph *g, const char *name, int qkv, int mask, int heads, float dropout)
{
    union op_attrs attrs = {.attention = {.heads = heads}};

    if (qkv < 0 || mask < 0)
        return -1;
    if (heads > 0)
        attrs.attention.scale = 1 / sqrtf((float)(g->tensors[qkv].dim[1] / 3 / heads));
    if (g->mode == GRAPH_TRAIN)
        attrs.attention.dropout = dropout;
    attrs.attention.stream = rng_stream(arena_printf(g->arena, "dropout/%s", name));
    return named(g, name, graph_add_op(g, OP_ATTENTION, &attrs, (const int[]){qkv, mask}, 2));
}

int graph_gather_rows(struct graph *g, int x, int rows)
{
    union op_attrs attrs = {0};

    if (x < 0)
        return -1;
    attrs.gather.rows = g->tensors[x].dim[0];
    return named(g, "gather",
                 graph_add_op(g, OP_GATHER_ROWS, &attrs, (const int[]){x, rows}, 2));
}

int graph_weighted_sum(struct graph *g, const int *scalars, const float *weights, int count)
{
    union op_attrs attrs = {0};

    for (int i = 0; i < count && i < OP_MOST_IN; i++)
        attrs.weighted.weight[i] = weights[i];
    return named(g, "loss", graph_add_op(g, OP_WEIGHTED_SUM, &attrs, scalars, count));
}
