/* characters.h - what BERT's tokenizer wants to know about a character.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BERT_DATA_CHARACTERS_H
#define TRAIN_BERT_DATA_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHARACTER_BAD = 0xFFFD,   /* what stands for bytes that are no UTF-8 */
    CHARACTER_MOST_BYTES = 4, /* of one in UTF-8 */
};

/* The character at the beginning of len > 0 bytes; *ret_bytes is how many it takes.  A byte
 * that belongs to none is CHARACTER_BAD. */
uint32_t character_read(const char *bytes, size_t len, size_t *ret_bytes);
/* Into at most CHARACTER_MOST_BYTES; returns how many. */
size_t character_write(uint32_t c, char *bytes);

/* Things that leave no trace in a token: control characters, characters of private use and what
 * stood for bad bytes; tabs and ends of lines are white space, not control characters. */
bool character_is_nothing(uint32_t c);
bool character_is_space(uint32_t c);
/* Unicode's, and every sign of ASCII that is neither letter nor digit. */
bool character_is_punctuation(uint32_t c);
bool character_is_mark(uint32_t c); /* an accent that stands by itself */
/* Of Chinese writing, where each is a word. */
bool character_is_ideograph(uint32_t c);
/* Lower case without accents: Latin, Greek, Cyrillic and Armenian letters; others are left. */
uint32_t character_fold(uint32_t c);

#endif
