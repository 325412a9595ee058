/* examples.h - documents to training examples, as BERT's authors made theirs.
 *
 * Sentences of a document are taken together until they fill a sequence; they are cut in two at
 * a random place, and half the time the second part is taken from another document instead.
 * What is too long is cut off at either end; then some tokens are masked: of those, 80 % are
 * replaced by [MASK], 10 % by any piece, 10 % are left.
 *
 * What is random depends on (seed, copy, document) alone.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BERT_DATA_EXAMPLES_H
#define TRAIN_BERT_DATA_EXAMPLES_H

#include "train/bert-data/bert-data.h"
#include "train/bert-data/corpus.h"

struct examples_options {
    struct bert_shape shape; /* vocabulary: that of the corpus */
    double masked_share;     /* 0.15 */
    double short_share;      /* 0.1: sequences that are filled to a random length only */
    uint64_t seed;
};

enum {
    EXAMPLES_LEAST_SEQUENCE = 5, /* [CLS] a [SEP] b [SEP] */
};

/* Takes an example, whose arrays are borrowed during the call; -1 ends it. */
typedef int examples_fn(void *arg, const struct bert_record *record, struct err *e);

/* The examples of one document, one copy (0..dup_factor-1) of them. */
int examples_make(const struct corpus *corpus,
                  const struct vocab *vocab,
                  const struct examples_options *options,
                  size_t document,
                  int copy,
                  examples_fn *fn,
                  void *arg,
                  struct err *e);

#endif
