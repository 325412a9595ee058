/* bert.h - BERT as it is pre-trained: masked words and the next sentence.
 *
 * Sizes come with the name, as the original tools name their model files: any folder before and
 * anything behind is passed over,
 *   /model/bert_L-24_H-1024_A-16_V_30528_optimized_layer_norm
 *   bert-tiny-uncased_L_3_H_128_A_2_V_30528_S_512_Dp_0.1
 * L layers, H width, A heads, V vocabulary, S positions, I width between (4 H), Dp dropout; "-"
 * or "_" before the number.  A word for a size comes first, and what stands behind it changes
 * it: bert-large, bert-base, bert-medium, bert-small, bert-mini, bert-tiny (also
 * "bert_base_uncased", "BERT-Large").  Without a word, L, H and A must be there.
 *
 * Parameters have the names of HuggingFace's BertForPreTraining, but for the one product that
 * makes query, key and value: attention.self.qkv.weight (3H H) is query.weight, key.weight and
 * value.weight one below the other, and so is its bias.  cls.predictions.decoder is tied to the
 * word embeddings and has no weight of its own.  Biases and the LayerNorms' parameters do not
 * decay.
 *
 * Inputs, int32, in this order: "ids", "types", "mask" (N T), "rows" (N*P: where masked words
 * stand, n*T + position), "labels" (N*P; below 0: there is none), "first" (N: n*T, the rows
 * that the pooler takes), "next" (N).  Values: VALUE_LOSS = VALUE_MLM_LOSS + VALUE_NSP_LOSS;
 * VALUE_TOP1, VALUE_TOP5 of the masked words.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_MODEL_BERT_H
#define TRAIN_MODEL_BERT_H

#include "base/err.h"
#include "train/graph/graph.h"

struct bert_size {
    int64_t layers, width, heads, vocabulary, positions, between;
    float dropout; /* of embeddings, attention and both residuals */
};

enum bert_input {
    BERT_IDS,
    BERT_TYPES,
    BERT_MASK,
    BERT_ROWS,
    BERT_LABELS,
    BERT_FIRST,
    BERT_NEXT,
    BERT_INPUTS,
};

/* The error says what a name looks like, and names the nearest size. */
int bert_size_parse(const char *name, struct bert_size *ret_size, struct err *e);

struct bert_options {
    int64_t batch, sequence, predictions; /* N, T, P */
};

/* Forward only, checked.  The caller frees it. */
int bert_graph(const struct bert_size *size,
               enum graph_mode mode,
               const struct bert_options *options,
               struct graph **ret_graph,
               struct err *e);

#endif
