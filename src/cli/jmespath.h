/* jmespath.h - JMESPath: an expression that picks and reshapes JSON.
 *
 * The whole of the language of jmespath.org, over Jansson values: parse once, search any number
 * of documents.  Where the specification leaves room, this is what holds here:
 *   1. Keys and values of an object come in their order of insertion.
 *   2. An integer stays an integer (64 bits) wherever the mathematics allow; 1 equals 1.0; a
 * sum that leaves 64 bits goes on as a fraction.
 *   3. Strings are Unicode: length, reverse and order go by code point.
 *   4. Two strings have an order under < <= > >=, so that dates compare; any other mix gives
 * null.
 *   5. A literal that is not JSON, `foo`, is the string "foo", as older versions had it.
 *   6. "!" takes a whole path: !a.b is !(a.b), while !a == b is (!a) == b.
 *   7. What can be known without a document fails in jmespath_parse: unknown functions, wrong
 * numbers of arguments, a value where an &expression is due, a slice with step 0.
 *
 * Errors are ERR_INVALID.  The reason is the specification's word: "syntax", "invalid-type",
 * "invalid-arity", "invalid-value" or "unknown-function".  The message has the position,
 * counted in characters from 1, and the expression: unexpected "]" at position 7 of "foo[*]]".
 *
 * Bounds: an expression is at most JMESPATH_MOST_BYTES long and JMESPATH_MOST_DEPTH deep
 * ("syntax" otherwise), so no recursion here is deeper than that; a search makes at most
 * JMESPATH_MOST_VALUES values and so does its result when written out ("invalid-value"
 * otherwise): thirty times "[@, @] |" would else fill any memory.
 *
 * Threads: a parsed expression is not changed by a search, but Jansson's values are not shared
 * between threads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_JMESPATH_H
#define CLI_JMESPATH_H

#include "base/err.h"
#include "base/mem.h"

#include <jansson.h>

enum {
    JMESPATH_MOST_BYTES = 64 * 1024,
    JMESPATH_MOST_DEPTH = 512,       /* about 300 KiB of stack at worst */
    JMESPATH_MOST_VALUES = 32 << 20, /* 256 MiB of array slots at worst */
};

struct jmespath; /* opaque */

/* The caller frees *ret_path with jmespath_free. */
int jmespath_parse(const char *expression, struct jmespath **ret_path, struct err *e);

/* What the expression finds in the document; json_null() when that is nothing.  The caller owns
 * the reference *ret_value.  The value shares parts with the document and the expression: read
 * it, write it out, but do not change it. */
int jmespath_search(const struct jmespath *path,
                    json_t *document,
                    json_t **ret_value,
                    struct err *e);

void jmespath_free(struct jmespath *path);

DEFINE_AUTOPTR(jmespath)

#endif
