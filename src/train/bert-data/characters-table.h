/* characters-table.h - the tables behind characters.h, made by scripts/make-character-tables.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BERT_DATA_CHARACTERS_TABLE_H
#define TRAIN_BERT_DATA_CHARACTERS_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct range {
    uint32_t first, last;
};

/* Lower case without accents: Latin, Greek to Armenian, the additional Latin and Greek. */
extern const uint16_t character_folded_c0[], character_folded_370[], character_folded_1e00[];
extern const size_t character_folded_c0_count, character_folded_370_count,
    character_folded_1e00_count;

/* In rising order. */
extern const struct range character_punctuation[], character_marks[], character_controls[],
    character_spaces[];
extern const size_t character_punctuation_count, character_marks_count,
    character_controls_count, character_spaces_count;

#endif
