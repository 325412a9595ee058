/* str.h - a growing string, and small questions about strings.
 *
 * A struct str is always NUL-terminated once something was added; a zeroed one is an empty
 * string.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include "base/err.h"

#include <stddef.h>

struct str {
    char *data; /* NULL until something was added; see str_text */
    size_t len, room;
};

void str_done(struct str *s);
#define auto_str __attribute__((cleanup(str_done))) struct str

void str_add(struct str *s, const char *text);
void str_add_len(struct str *s, const void *bytes, size_t len);
void str_add_char(struct str *s, char c);
void str_addf(struct str *s, const char *format, ...) PRINTF_LIKE(2, 3);
void str_vaddf(struct str *s, const char *format, va_list args) PRINTF_LIKE(2, 0);
void str_truncate(struct str *s, size_t len);
/* Make room for more bytes after the end and return where they go; then raise len by hand. */
char *str_reserve(struct str *s, size_t more);
/* Never NULL; borrowed until the next change. */
const char *str_text(const struct str *s);
/* The caller frees the text; s is empty afterwards.  Never NULL. */
char *str_take(struct str *s);

bool str_equal(const char *a, const char *b);        /* NULL equals NULL only */
bool str_equal_nocase(const char *a, const char *b); /* ASCII */
bool str_starts(const char *s, const char *prefix);
bool str_starts_nocase(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
/* ASCII lower case, caller frees. */
char *str_lower(const char *s);
/* How many single edits (insert, delete, replace, swap of neighbours) lead from a to b; for
 * did-you-mean.  Strings longer than 64 bytes count as infinitely far. */
size_t str_distance(const char *a, const char *b);

#endif
