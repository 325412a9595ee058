/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/jmespath-internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    BYTES_PER_VALUE = 8, /* of a string, counted like an array slot */
};

json_t *jmes_have(json_t *value)
{
    if (!value) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return value;
}

void jmes_append_new(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) < 0)
        jmes_have(NULL);
}

bool jmes_is_true(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return json_object_size(value) > 0;
    case JSON_ARRAY:
        return json_array_size(value) > 0;
    case JSON_STRING:
        return json_string_length(value) > 0;
    case JSON_INTEGER:
    case JSON_REAL:
    case JSON_TRUE:
        return true;
    case JSON_FALSE:
    case JSON_NULL:
        return false;
    }
    return false;
}

static const struct type {
    const char *name;
    unsigned bit;
} types[] = {
    [JSON_OBJECT] = {"object", JMES_OBJECT},  [JSON_ARRAY] = {"array", JMES_ARRAY},
    [JSON_STRING] = {"string", JMES_STRING},  [JSON_INTEGER] = {"number", JMES_NUMBER},
    [JSON_REAL] = {"number", JMES_NUMBER},    [JSON_TRUE] = {"boolean", JMES_BOOLEAN},
    [JSON_FALSE] = {"boolean", JMES_BOOLEAN}, [JSON_NULL] = {"null", JMES_NULL},
};

const char *jmes_type(const json_t *value)
{
    return types[json_typeof(value)].name;
}

unsigned jmes_type_bit(const json_t *value)
{
    return types[json_typeof(value)].bit;
}

/* A double holds every integer only up to 2^53: compare with the whole part, then look at the
 * rest. */
static int compare_mixed(json_int_t integer, double real)
{
    double whole = trunc(real);
    json_int_t part;

    if (real >= 0x1p63)
        return -1;
    if (real < -0x1p63)
        return 1;
    part = (json_int_t)whole;
    if (integer != part)
        return integer < part ? -1 : 1;
    return (whole > real) - (whole < real);
}

int jmes_compare_numbers(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b)) {
        json_int_t x = json_integer_value(a), y = json_integer_value(b);

        return (x > y) - (x < y);
    }
    if (json_is_real(a) && json_is_real(b)) {
        double x = json_real_value(a), y = json_real_value(b);

        return (x > y) - (x < y);
    }
    if (json_is_integer(a))
        return compare_mixed(json_integer_value(a), json_real_value(b));
    return -compare_mixed(json_integer_value(b), json_real_value(a));
}

/* UTF-8 sorts by bytes as it does by code points. */
int jmes_compare_strings(const json_t *a, const json_t *b)
{
    size_t x = json_string_length(a), y = json_string_length(b);
    int order = memcmp(json_string_value(a), json_string_value(b), x < y ? x : y);

    return order ? (order > 0) - (order < 0) : (x > y) - (x < y);
}

static bool equal_arrays(struct jmes_run *run, const json_t *a, const json_t *b)
{
    size_t count = json_array_size(a);

    if (count != json_array_size(b))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!jmes_equal(run, json_array_get(a, i), json_array_get(b, i)))
            return false;
    return true;
}

static bool equal_objects(struct jmes_run *run, const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;

    if (json_object_size(a) != json_object_size(b))
        return false;
    json_object_foreach((json_t *)a, key, value)
    {
        const json_t *other = json_object_get(b, key);

        if (!other || !jmes_equal(run, value, other))
            return false;
    }
    return true;
}

bool jmes_equal(struct jmes_run *run, const json_t *a, const json_t *b)
{
    if (a == b)
        return true;
    if (!jmes_spend(run, 1))
        return false;
    if (json_is_number(a) && json_is_number(b))
        return jmes_compare_numbers(a, b) == 0;
    if (json_typeof(a) != json_typeof(b))
        return false;
    if (json_is_array(a))
        return equal_arrays(run, a, b);
    if (json_is_object(a))
        return equal_objects(run, a, b);
    if (json_is_string(a))
        return jmes_compare_strings(a, b) == 0;
    return true; /* true, false and null are equal to their like */
}

bool jmes_spend_tree(struct jmes_run *run, const json_t *value)
{
    size_t i;
    const char *key;
    json_t *inner;

    if (!jmes_spend(run, 1 + json_string_length(value) / BYTES_PER_VALUE))
        return false;
    json_array_foreach(value, i, inner) if (!jmes_spend_tree(run, inner)) return false;
    if (json_is_object(value))
        json_object_foreach((json_t *)value, key,
                            inner) if (!jmes_spend_tree(run, inner)) return false;
    return true;
}

size_t jmes_characters(const char *text, size_t len)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}
