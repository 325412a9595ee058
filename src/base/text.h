/* text.h - the text forms of bytes that HTTP and ARM use: hex, base64, percent-encoding.
 *
 * Encoders append to a struct str; decoders fail with ERR_INVALID and add nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/err.h"

#include <stddef.h>

struct str;

void text_hex(struct str *out, const void *bytes, size_t len);

void text_base64(struct str *out, const void *bytes, size_t len);
/* URL-safe alphabet, no padding: for tokens. */
void text_base64url(struct str *out, const void *bytes, size_t len);
/* Both alphabets, padding optional but right when there. */
int text_base64_decode(struct str *out, const char *text, struct err *e);

/* Everything but unreserved characters (RFC 3986) becomes %XX. */
void text_percent(struct str *out, const char *text);
/* The same, but slashes stay. */
void text_percent_path(struct str *out, const char *path);
/* One decoding of %XX; '+' becomes a space when plus is set (query strings).  A NUL or a broken
 * escape is an error. */
int text_percent_decode(
    struct str *out, const char *text, size_t len, bool plus, struct err *e);

/* Is it UTF-8 (no overlong forms, no surrogates)? */
bool text_is_utf8(const char *text, size_t len);

#endif
