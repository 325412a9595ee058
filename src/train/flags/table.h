/* table.h - a command line by a table: what a flag is called, what it takes, where it goes.
 *
 * A table describes the command line of one program and fills one plain struct.  Grammar:
 * --name value, --name=value, -name; booleans --name and --name=true (absl's --noname where the
 * table says so); "--" ends flags; a positional argument is an error.  A row with `why` is
 * taken and checked and has no effect; that is noted once.  An unknown name is an error that
 * names the nearest; a value that does not parse names flag, value and what would.
 *
 * Calling sequence: flag_table_defaults(), then flag_table_parse().
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_FLAGS_TABLE_H
#define TRAIN_FLAGS_TABLE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct str;

enum {
    FLAGS_MOST_POINTS = 64, /* numbers of a list */
    FLAGS_MOST = 256,       /* rows of a table */
};

#define FLAG_NONE    INT64_MIN /* a number that was not given and has no default (None) */
#define FLAG_NOWHERE SIZE_MAX

enum flag_type {
    FLAG_TEXT, /* const char *; NULL = not given */
    FLAG_WORD, /* the same, one of `words` */
    FLAG_INT,  /* int64_t; FLAG_NONE */
    FLAG_REAL, /* double; NaN */
    FLAG_BOOL, /* bool */
    FLAG_LIST, /* double[FLAGS_MOST_POINTS], and an int at count_offset */
};

struct flag_row {
    const char *name;
    enum flag_type type;
    size_t offset;       /* in the struct, or FLAG_NOWHERE */
    const char *initial; /* NULL = none */
    size_t count_offset;
    double least, most; /* both 0: no bounds */
    const char *words;  /* "a|b" */
    const char *help;
    const char *why; /* it does nothing here, and why */
    bool is_ours;
};

struct flag_table {
    const struct flag_row *rows;
    int count;
    bool negates; /* --noname is known */
};

/* By row of the table: it was on the command line. */
struct flags_given {
    uint64_t bits[FLAGS_MOST / 64];
};

void flag_table_defaults(const struct flag_table *table, void *values);
/* Texts are borrowed from words.  What is said about flags without effect is appended to notes,
 * a line each. */
int flag_table_parse(const struct flag_table *table,
                     void *values,
                     struct flags_given *given,
                     int count,
                     char *const words[],
                     struct str *notes,
                     struct err *e);
/* Was it on the command line?  The name must be in the table. */
bool flag_table_given(const struct flag_table *table,
                      const struct flags_given *given,
                      const char *name);

/* A heading and the rows that are ours or not, without effect or with one. */
void flag_table_print(FILE *out,
                      const struct flag_table *table,
                      const char *title,
                      bool is_ours,
                      bool without_effect);

#endif
