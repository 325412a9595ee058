/* json.h - reading JSON from strangers, on top of Jansson.
 *
 * Getters name the field in their errors: "properties.scaleSettings: expected an object, got a
 * string". A missing field and a null are the same thing: both are "not there".
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/err.h"

#include <jansson.h>
#include <stdint.h>

struct str;

void json_done(json_t **value);
/* auto_json json_t *body = ...; dropped at the end of the scope. */
#define auto_json __attribute__((cleanup(json_done)))

enum {
    JSON_MOST_DEPTH = 64,
};

/* Parse a whole text: one value, no duplicate keys, at most JSON_MOST_DEPTH deep.  The error
 * says the line and column.  The caller owns *ret_value. */
int json_parse(const char *text, size_t len, json_t **ret_value, struct err *e);

/* Compact, keys in their order of insertion, fractions with the fewest digits that read back
 * the same. */
void json_write(struct str *out, const json_t *value);
/* The same for one string that is no value yet: quoted, escaped. */
void json_write_string(struct str *out, const char *text, size_t len);
/* Compact, keys sorted: for comparing. */
char *json_canonical(const json_t *value);

/* Fields of an object: borrowed; *ret is NULL (or the default) when the field is not there. */
int json_get_object(const json_t *object, const char *key, json_t **ret, struct err *e);
int json_get_array(const json_t *object, const char *key, json_t **ret, struct err *e);
int json_get_string(const json_t *object, const char *key, const char **ret, struct err *e);
int json_get_int(const json_t *object,
                 const char *key,
                 int64_t least,
                 int64_t most,
                 int64_t *ret,
                 struct err *e);
int json_get_bool(const json_t *object, const char *key, bool *ret, struct err *e);

/* "a string", "an object", ...: for error messages. */
const char *json_type_name(const json_t *value);

#endif
