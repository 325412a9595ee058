/* bert.c - see bert.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/model/bert.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/graph/build.h"
#include "train/model/layers.h"

#include <string.h>

enum {
    NEXT_CLASSES = 2,
};

static const float stddev = 0.02F;   /* of all weights at the start */
static const float epsilon = 1e-12F; /* of the LayerNorms */

struct build {
    struct graph *g;
    const struct bert_size *size;
    int in[BERT_INPUTS];
};

static int dense(const struct build *b, const char *name, int x, int64_t width)
{
    return graph_linear(b->g, name, x, width, init_normal(stddev), true);
}

static void make_inputs(struct build *b, const struct bert_options *o)
{
    const int64_t tokens[2] = {o->batch, o->sequence}, rows = o->batch * o->predictions;
    struct graph *g = b->g;

    b->in[BERT_IDS] = graph_input(g, "ids", DTYPE_I32, 2, tokens);
    b->in[BERT_TYPES] = graph_input(g, "types", DTYPE_I32, 2, tokens);
    b->in[BERT_MASK] = graph_input(g, "mask", DTYPE_I32, 2, tokens);
    b->in[BERT_ROWS] = graph_input(g, "rows", DTYPE_I32, 1, &rows);
    b->in[BERT_LABELS] = graph_input(g, "labels", DTYPE_I32, 1, &rows);
    b->in[BERT_FIRST] = graph_input(g, "first", DTYPE_I32, 1, &o->batch);
    b->in[BERT_NEXT] = graph_input(g, "next", DTYPE_I32, 1, &o->batch);
}

static int embeddings(const struct build *b)
{
    const struct bert_size *s = b->size;
    int x = graph_embed(b->g, "bert.embeddings", b->in[BERT_IDS], b->in[BERT_TYPES],
                        s->vocabulary, s->positions, s->width, stddev);

    x = graph_layernorm(b->g, "bert.embeddings.LayerNorm", x, epsilon);
    return graph_dropout(b->g, "bert.embeddings.dropout", x, s->dropout);
}

/* What ends both halves of a layer: product, dropout, sum with what went in, LayerNorm. */
static int residual(const struct build *b, const char *name, int y, int x)
{
    struct graph *g = b->g;

    y = dense(b, name_in(g, name, "dense"), y, b->size->width);
    y = graph_dropout(g, name_in(g, name, "dropout"), y, b->size->dropout);
    return graph_layernorm(g, name_in(g, name, "LayerNorm"), graph_add(g, y, x), epsilon);
}

static int layer(const struct build *b, int number, int x)
{
    struct graph *g = b->g;
    const char *name = name_number(g, "bert.encoder.layer", number);
    int y = dense(b, name_in(g, name, "attention.self.qkv"), x, 3 * b->size->width);

    y = graph_attention(g, name_in(g, name, "attention.self"), y, b->in[BERT_MASK],
                        (int)b->size->heads, b->size->dropout);
    x = residual(b, name_in(g, name, "attention.output"), y, x);
    y = graph_act(g, dense(b, name_in(g, name, "intermediate.dense"), x, b->size->between),
                  ACT_GELU);
    return residual(b, name_in(g, name, "output"), y, x);
}

/* Masked words: their rows alone go through the product with the vocabulary. */
static int masked_loss(const struct build *b, int x)
{
    struct graph *g = b->g;
    int words = graph_find(g, "bert.embeddings.word_embeddings.weight");

    x = graph_gather_rows(g, x, b->in[BERT_ROWS]);
    x = graph_act(g, dense(b, "cls.predictions.transform.dense", x, b->size->width), ACT_GELU);
    x = graph_layernorm(g, "cls.predictions.transform.LayerNorm", x, epsilon);
    x = graph_linear_tied(g, "cls.predictions", x, words, true);
    return graph_xent(g, x, b->in[BERT_LABELS], b->size->vocabulary, 0);
}

static int next_loss(const struct build *b, int x)
{
    x = graph_gather_rows(b->g, x, b->in[BERT_FIRST]);
    x = graph_act(b->g, dense(b, "bert.pooler.dense", x, b->size->width), ACT_TANH);
    x = dense(b, "cls.seq_relationship", x, NEXT_CLASSES);
    return graph_xent(b->g, x, b->in[BERT_NEXT], NEXT_CLASSES, 0);
}

static void put_losses_together(const struct build *b, int x)
{
    struct graph *g = b->g;
    int losses[2];

    losses[0] = masked_loss(b, x);
    losses[1] = next_loss(b, x);
    g->values[VALUE_MLM_LOSS] = losses[0];
    g->values[VALUE_NSP_LOSS] = losses[1];
    g->values[VALUE_LOSS] = graph_weighted_sum(g, losses, (const float[]){1, 1}, 2);
}

static void set_decay(struct graph *g)
{
    for (int t = 0; t < g->tensor_count; t++) {
        struct tensor *tensor = &g->tensors[t];

        if (tensor->role == ROLE_PARAM &&
            (str_ends(tensor->name, ".bias") || strstr(tensor->name, "LayerNorm")))
            tensor->decays = false;
    }
}

int bert_graph(const struct bert_size *size,
               enum graph_mode mode,
               const struct bert_options *options,
               struct graph **ret_graph,
               struct err *e)
{
    struct build b = {.g = graph_new("bert", mode, options->batch), .size = size};
    int x;

    if (options->batch * options->sequence > INT32_MAX) /* rows are counted in int32 */
        graph_fail(b.g, ERR_INVALID, "%lld sequences of %lld tokens are too many",
                   (long long)options->batch, (long long)options->sequence);
    if (options->sequence > size->positions)
        graph_fail(b.g, ERR_INVALID, "has %lld positions, fewer than the %lld of a sequence",
                   (long long)size->positions, (long long)options->sequence);
    make_inputs(&b, options);
    x = embeddings(&b);
    for (int i = 0; i < size->layers; i++)
        x = layer(&b, i, x);
    put_losses_together(&b, x);
    set_decay(b.g);
    if (graph_check(b.g, e) < 0) {
        graph_free(b.g);
        return -1;
    }
    *ret_graph = b.g;
    return 0;
}
