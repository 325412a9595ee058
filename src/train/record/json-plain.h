/* json-plain.h - JSON without a library, since the trainer also builds where there is none: a
 * writer for --json and trace files, a strict reader for the headers of safetensors files and
 * for the reports of other runs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_RECORD_JSON_PLAIN_H
#define TRAIN_RECORD_JSON_PLAIN_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct str;

/* --- writing ---
 * Commas and quotes come by themselves; nesting is the caller's duty (asserted at the end).  A
 * key is given in objects and NULL in arrays. */
enum {
    JSONW_MOST_DEPTH = 32,
};

struct jsonw {
    struct str *out;
    int depth;
    bool has_item[JSONW_MOST_DEPTH];
    bool is_array[JSONW_MOST_DEPTH];
};

void jsonw_begin(struct jsonw *w, struct str *out); /* opens the outermost object */
void jsonw_end(struct jsonw *w);
void jsonw_open_object(struct jsonw *w, const char *key);
void jsonw_open_array(struct jsonw *w, const char *key);
void jsonw_close(struct jsonw *w); /* the innermost that is open */
void jsonw_text(struct jsonw *w, const char *key, const char *value); /* NULL = null */
void jsonw_int(struct jsonw *w, const char *key, int64_t value);
/* The fewest digits that read back the same; not a number and infinity become null. */
void jsonw_double(struct jsonw *w, const char *key, double value);
void jsonw_bool(struct jsonw *w, const char *key, bool value);

/* --- reading --- */
enum jsonr_type {
    JSONR_NULL,
    JSONR_BOOL,
    JSONR_NUMBER,
    JSONR_TEXT,
    JSONR_ARRAY,
    JSONR_OBJECT,
};

struct jsonr {
    enum jsonr_type type;
    const char *key;  /* in an object */
    const char *text; /* of texts, unescaped; of numbers, as written */
    double number;
    bool boolean;
    struct jsonr *first, *next; /* children of arrays and objects, siblings */
};

/* Parse one value of at most 64 levels, no duplicate keys, valid UTF-8.  All of it lives in the
 * arena.  The caller bounds len before reading the text. */
int jsonr_parse(struct arena *arena,
                const char *text,
                size_t len,
                const struct jsonr **ret_value,
                struct err *e);
/* NULL when there is none. */
const struct jsonr *jsonr_get(const struct jsonr *object, const char *key);
/* A whole number within the bounds, exactly written as one. */
int jsonr_int(
    const struct jsonr *value, int64_t least, int64_t most, int64_t *ret_value, struct err *e);

#endif
