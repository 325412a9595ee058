/* output-internal.h - the formats, for output.c and their tests.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OUTPUT_INTERNAL_H
#define CLI_OUTPUT_INTERNAL_H

#include "base/err.h"

#include <jansson.h>

struct output;
struct str;

void output_json(struct str *out, json_t *value, bool colour);
int output_yaml(struct str *out, json_t *value, bool colour, struct err *e);
int output_table(struct str *out, const struct output *how, json_t *value, struct err *e);
void output_tsv(struct str *out, json_t *value);

/* The keys of an object in order; the caller frees the array, not the keys. */
const char **output_sorted_keys(json_t *object);

/* A number as Python writes it: the shortest text that reads back as the same value. */
void output_number(struct str *out, const json_t *number);

/* A scalar as Python's str() has it: True, None, 1.5, text. */
void output_scalar(struct str *out, const json_t *value);

enum output_ink {
    INK_KEY,
    INK_STRING,
    INK_NUMBER,
    INK_WORD, /* true, false, null */
    INK_OFF,
};
/* Append the terminal sequence, if colour is set. */
void output_ink(struct str *out, bool colour, enum output_ink ink);

#endif
