/* flags-internal.h - a row of the table of flags.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_FLAGS_FLAGS_INTERNAL_H
#define TRAIN_FLAGS_FLAGS_INTERNAL_H

#include "train/flags/flags.h"

#include <stddef.h>

enum flag_type {
    FLAG_TEXT, /* const char *; NULL = not given */
    FLAG_WORD, /* the same, one of `words` */
    FLAG_INT,  /* int64_t; FLAG_NONE */
    FLAG_REAL, /* double; NaN */
    FLAG_BOOL, /* bool */
    FLAG_LIST, /* double[FLAGS_MOST_POINTS], and an int at count_offset */
};

#define FLAG_NOWHERE SIZE_MAX

struct flag_row {
    const char *name;
    enum flag_type type;
    size_t offset;       /* in struct flags, or FLAG_NOWHERE */
    const char *initial; /* NULL = none */
    size_t count_offset;
    double least, most; /* both 0: no bounds */
    const char *words;  /* "a|b" */
    const char *help;
    const char *why; /* it does nothing here, and why */
    bool is_ours;
};

extern const struct flag_row flag_rows[];
extern const int flag_row_count;

/* Across flags: what the original refuses. */
int flags_check(const struct flags *flags, struct str *notes, struct err *e);

#endif
