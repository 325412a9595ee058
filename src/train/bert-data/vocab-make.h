/* vocab-make.h - a vocabulary from a text, for those who have none.
 *
 * Words are counted; each is the row of its characters; then, again and again, the two
 * neighbours that stand beside each other most often become one piece, until the vocabulary is
 * full or no pair is there twice.  Ties go to the pair whose pieces are older, so a text gives
 * one vocabulary.
 *
 *   vocab_maker_new(), vocab_maker_add() for each line, vocab_maker_finish(),
 * vocab_maker_free()
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BERT_DATA_VOCAB_MAKE_H
#define TRAIN_BERT_DATA_VOCAB_MAKE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct str;
struct vocab_maker; /* opaque */

enum {
    VOCAB_MAKE_LEAST = 16,
};

struct vocab_maker *vocab_maker_new(bool is_cased);
void vocab_maker_free(struct vocab_maker *maker);
void vocab_maker_add(struct vocab_maker *maker, const char *text, size_t len);
/* The text of a vocabulary's file of at most `most` pieces (VOCAB_MAKE_LEAST..
 * BERT_DATA_MOST_VOCABULARY), special ones first.  Once. */
void vocab_maker_finish(struct vocab_maker *maker, int32_t most, struct str *out);

#endif
