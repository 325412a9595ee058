/* wordpiece.h - text to tokens as BERT does it.
 *
 * First words: control characters and bytes that are no UTF-8 vanish, white space parts words,
 * so does every sign of punctuation and every ideograph, which are words of their own; letters
 * become lower case without accents unless the text is cased.  Then pieces: the longest piece
 * of the vocabulary that begins the word, the longest that goes on ("##"), and so on; a word
 * for which that comes to no end, or of more than WORDPIECE_MOST_CHARACTERS, is [UNK].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BERT_DATA_WORDPIECE_H
#define TRAIN_BERT_DATA_WORDPIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vocab;

enum {
    WORDPIECE_MOST_CHARACTERS = 200, /* as the original has it */
};

/* A word in UTF-8, without a NUL behind it; borrowed during the call.  is_long: it has more
 * than WORDPIECE_MOST_CHARACTERS characters, of which these are the first. */
typedef void wordpiece_word_fn(void *arg, const char *word, size_t len, bool is_long);

/* The words of a text, in order. */
void wordpiece_words(
    const char *text, size_t len, bool is_cased, wordpiece_word_fn *fn, void *arg);

/* A growing list of tokens; a zeroed one is empty. */
struct tokens {
    int32_t *ids;
    size_t count, room;
};
void tokens_done(struct tokens *tokens);
void tokens_add(struct tokens *tokens, int32_t id);

/* Append the tokens of a text. */
void wordpiece_tokens(const struct vocab *vocab,
                      const char *text,
                      size_t len,
                      bool is_cased,
                      struct tokens *tokens);

#endif
