/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

void json_done(json_t **value)
{
    json_decref(*value);
}

/* Jansson's own limit is 2048 levels, too deep for our stack in places that recurse: count
 * first. Strings are skipped; anything wrong beyond the depth is left to the parser. */
static bool is_too_deep(const char *text, size_t len)
{
    int depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > JSON_MOST_DEPTH)
                return true;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return false;
}

int json_parse(const char *text, size_t len, json_t **ret_value, struct err *e)
{
    json_error_t where;
    json_t *value;

    if (is_too_deep(text, len)) {
        err_set(e, ERR_INVALID, "the JSON is nested more than %d levels deep", JSON_MOST_DEPTH);
        return err_reason(e, "InvalidRequestContent");
    }
    value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &where);
    if (!value) {
        err_set(e, ERR_INVALID, "the JSON is malformed at line %d, column %d: %s", where.line,
                where.column, where.text);
        return err_reason(e, "InvalidRequestContent");
    }
    *ret_value = value;
    return 0;
}

static int append(const char *bytes, size_t len, void *out)
{
    str_add_len(out, bytes, len);
    return 0;
}

/* Jansson writes 17 digits, 0.1 as 0.10000000000000001: take the fewest that read back the
 * same. */
static void write_real(struct str *out, const json_t *real)
{
    size_t start = out->len;

    for (size_t digits = 15; digits <= 17; digits++) {
        auto_json json_t *again = NULL;

        str_truncate(out, start);
        json_dump_callback(real, append, out, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        again = json_loadb(out->data + start, out->len - start, JSON_DECODE_ANY, NULL);
        if (json_real_value(again) == json_real_value(real))
            return;
    }
}

void json_write_string(struct str *out, const char *text, size_t len)
{
    static const char shorts[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
                                  ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\'};
    size_t done = 0;

    str_reserve(out, len + 2);
    str_add_char(out, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c >= ' ' && c != '"' && c != '\\')
            continue;
        str_add_len(out, text + done, i - done);
        if (shorts[c])
            str_addf(out, "\\%c", shorts[c]);
        else
            str_addf(out, "\\u%04X", c);
        done = i + 1;
    }
    str_add_len(out, text + done, len - done);
    str_add_char(out, '"');
}

static void write_array(struct str *out, const json_t *array)
{
    json_t *element;
    size_t i;

    str_add_char(out, '[');
    json_array_foreach(array, i, element)
    {
        if (i > 0)
            str_add_char(out, ',');
        json_write(out, element);
    }
    str_add_char(out, ']');
}

static void write_object(struct str *out, const json_t *object)
{
    const char *separator = "";
    const char *key;
    json_t *value;

    str_add_char(out, '{');
    json_object_foreach((json_t *)object, key, value)
    {
        str_add(out, separator);
        json_write_string(out, key, strlen(key));
        str_add_char(out, ':');
        json_write(out, value);
        separator = ",";
    }
    str_add_char(out, '}');
}

void json_write(struct str *out, const json_t *value)
{
    if (json_is_object(value))
        write_object(out, value);
    else if (json_is_array(value))
        write_array(out, value);
    else if (json_is_string(value))
        json_write_string(out, json_string_value(value), json_string_length(value));
    else if (json_is_real(value))
        write_real(out, value);
    else
        json_dump_callback(value, append, out, JSON_ENCODE_ANY);
}

char *json_canonical(const json_t *value)
{
    auto_str out = {0};

    json_dump_callback(value, append, &out, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    return str_take(&out);
}

const char *json_type_name(const json_t *value)
{
    if (!value)
        return "nothing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a fraction";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        return "null";
    }
    return "nothing";
}

static int wrong_type(struct err *e, const char *key, const char *want, const json_t *got)
{
    err_set(e, ERR_INVALID, "%s: expected %s, got %s", key, want, json_type_name(got));
    err_reason(e, "InvalidRequestContent");
    return err_target(e, key);
}

/* The field, or NULL when it is absent or null. */
static json_t *field(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    return json_is_null(value) ? NULL : value;
}

int json_get_object(const json_t *object, const char *key, json_t **ret, struct err *e)
{
    json_t *value = field(object, key);

    if (value && !json_is_object(value))
        return wrong_type(e, key, "an object", value);
    *ret = value;
    return 0;
}

int json_get_array(const json_t *object, const char *key, json_t **ret, struct err *e)
{
    json_t *value = field(object, key);

    if (value && !json_is_array(value))
        return wrong_type(e, key, "an array", value);
    *ret = value;
    return 0;
}

int json_get_string(const json_t *object, const char *key, const char **ret, struct err *e)
{
    json_t *value = field(object, key);

    if (value && !json_is_string(value))
        return wrong_type(e, key, "a string", value);
    *ret = json_string_value(value);
    return 0;
}

int json_get_int(const json_t *object,
                 const char *key,
                 int64_t least,
                 int64_t most,
                 int64_t *ret,
                 struct err *e)
{
    json_t *value = field(object, key);
    int64_t number;

    if (!value)
        return 0;
    if (!json_is_integer(value))
        return wrong_type(e, key, "an integer", value);
    number = json_integer_value(value);
    if (number < least || number > most) {
        err_set(e, ERR_INVALID, "%s: %lld is out of range; take %lld to %lld", key,
                (long long)number, (long long)least, (long long)most);
        err_reason(e, "InvalidParameterValue");
        return err_target(e, key);
    }
    *ret = number;
    return 0;
}

int json_get_bool(const json_t *object, const char *key, bool *ret, struct err *e)
{
    json_t *value = field(object, key);

    if (!value)
        return 0;
    if (!json_is_boolean(value))
        return wrong_type(e, key, "a boolean", value);
    *ret = json_is_true(value);
    return 0;
}
