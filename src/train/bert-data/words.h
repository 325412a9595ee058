/* words.h - words and their numbers, in the order in which they came: a set of strings.
 *
 * A zeroed struct is an empty set.  Words may hold any byte but NUL.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BERT_DATA_WORDS_H
#define TRAIN_BERT_DATA_WORDS_H

#include <stddef.h>
#include <stdint.h>

struct words {
    char *text; /* all words, each with a NUL behind it */
    size_t len, room;
    size_t *at; /* by number: where it begins */
    int32_t count;
    int32_t *slots; /* hash table of numbers + 1; a power of two of them, at most half full */
    size_t slot_count;
};

void words_done(struct words *words);
/* The word's number, a new one when it was not there. */
int32_t words_add(struct words *words, const char *word, size_t len);
/* -1 when it is not there. */
int32_t words_find(const struct words *words, const char *word, size_t len);
/* Borrowed until the next word is added. */
const char *words_text(const struct words *words, int32_t number);

#endif
