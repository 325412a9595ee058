/* vocab.h - a WordPiece vocabulary: pieces of words and their numbers.
 *
 * A file has one piece a line, its number is that of the line, from 0.  Pieces that go on
 * inside a word begin with "##".  [UNK], [CLS], [SEP] and [MASK] must be there; padding is
 * number 0, whatever that is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BERT_DATA_VOCAB_H
#define TRAIN_BERT_DATA_VOCAB_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct str;
struct vocab; /* opaque */

enum {
    VOCAB_MOST_PIECE = 1024, /* bytes */
};

struct vocab_special {
    int32_t unknown, begin, end, mask; /* [UNK] [CLS] [SEP] [MASK] */
};

/* The text of a vocabulary's file.  A piece that is there twice, one that is empty or too long
 * and special pieces that are missing are ERR_INVALID, with the line. */
int vocab_parse(const char *text, size_t len, struct vocab **ret_vocab, struct err *e);
int vocab_read(const char *path, struct vocab **ret_vocab, struct err *e);
void vocab_free(struct vocab *vocab);

int32_t vocab_count(const struct vocab *vocab);
const struct vocab_special *vocab_special(const struct vocab *vocab);
/* -1 when it is not there. */
int32_t vocab_find(const struct vocab *vocab, const char *piece, size_t len);
/* Borrowed; number 0..count-1. */
const char *vocab_piece(const struct vocab *vocab, int32_t number);
/* As a file. */
void vocab_format(const struct vocab *vocab, struct str *out);

#endif
