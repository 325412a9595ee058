/* The built-in functions, a row each; those that put values in order are in jmespath-order.c.
 *
 * A function sees arguments whose number and types have been checked against its row.  To add
 * one: the row, the function, a case in test/jmespath-functions.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/jmespath-internal.h"

#include "base/json.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

/* -- numbers ---------------------------------------------------------------------------------
 */

/* JSON has no infinity. */
static int return_real(struct jmes_call *call, double real, json_t **ret_value, struct err *e)
{
    if (!isfinite(real))
        return jmes_fail(e, call->run->path->expression, call->node->offset, jmes_invalid_value,
                         "%s() is too large for a number", call->node->function->name);
    *ret_value = jmes_have(json_real(real));
    return 0;
}

static int return_whole(struct jmes_call *call, double whole, json_t **ret_value, struct err *e)
{
    if (whole < -0x1p63 || whole >= 0x1p63)
        return return_real(call, whole, ret_value, e);
    *ret_value = jmes_have(json_integer((json_int_t)whole));
    return 0;
}

static int run_abs(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    json_t *number = call->arguments[0].value;
    json_int_t negated;

    if (json_is_real(number) || __builtin_sub_overflow(0, json_integer_value(number), &negated))
        return return_real(call, fabs(json_number_value(number)), ret_value, e);
    *ret_value = negated < 0 ? json_incref(number) : jmes_have(json_integer(negated));
    return 0;
}

static int run_ceil(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    json_t *number = call->arguments[0].value;

    if (json_is_real(number))
        return return_whole(call, ceil(json_real_value(number)), ret_value, e);
    *ret_value = json_incref(number);
    return 0;
}

static int run_floor(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    json_t *number = call->arguments[0].value;

    if (json_is_real(number))
        return return_whole(call, floor(json_real_value(number)), ret_value, e);
    *ret_value = json_incref(number);
    return 0;
}

struct sum {
    bool is_exact; /* then it is in whole, else in real */
    json_int_t whole;
    double real;
};

static struct sum sum_of(const json_t *numbers)
{
    struct sum sum = {.is_exact = true};
    json_t *number;
    size_t i;

    json_array_foreach(numbers, i, number)
    {
        json_int_t whole;

        if (sum.is_exact && json_is_integer(number) &&
            !__builtin_add_overflow(sum.whole, json_integer_value(number), &whole)) {
            sum.whole = whole;
            continue;
        }
        if (sum.is_exact)
            sum.real = (double)sum.whole;
        sum.is_exact = false;
        sum.real += json_number_value(number);
    }
    return sum;
}

static int run_sum(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    struct sum sum = sum_of(call->arguments[0].value);

    if (!sum.is_exact)
        return return_real(call, sum.real, ret_value, e);
    *ret_value = jmes_have(json_integer(sum.whole));
    return 0;
}

static int run_avg(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    size_t count = json_array_size(call->arguments[0].value);
    struct sum sum = sum_of(call->arguments[0].value);

    if (count > 0)
        return return_real(call, (sum.is_exact ? (double)sum.whole : sum.real) / (double)count,
                           ret_value, e);
    *ret_value = json_null();
    return 0;
}

/* -- strings ---------------------------------------------------------------------------------
 */

static int run_starts_with(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    json_t *text = call->arguments[0].value, *prefix = call->arguments[1].value;
    size_t len = json_string_length(prefix);

    (void)e;
    *ret_value =
        json_boolean(json_string_length(text) >= len &&
                     memcmp(json_string_value(text), json_string_value(prefix), len) == 0);
    return 0;
}

static int run_ends_with(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    json_t *text = call->arguments[0].value, *suffix = call->arguments[1].value;
    size_t all = json_string_length(text), len = json_string_length(suffix);

    (void)e;
    *ret_value = json_boolean(all >= len && memcmp(json_string_value(text) + all - len,
                                                   json_string_value(suffix), len) == 0);
    return 0;
}

static int run_join(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    json_t *glue = call->arguments[0].value, *texts = call->arguments[1].value, *text;
    auto_str out = {0};
    size_t i;

    json_array_foreach(texts, i, text)
    {
        if (!jmes_spend_tree(call->run, glue) || !jmes_spend_tree(call->run, text))
            return jmes_fail_spent(call->run, call->node->offset, e);
        if (i > 0)
            str_add_len(&out, json_string_value(glue), json_string_length(glue));
        str_add_len(&out, json_string_value(text), json_string_length(text));
    }
    *ret_value = jmes_have(json_stringn(str_text(&out), out.len));
    return 0;
}

static json_t *reverse_text(const json_t *text)
{
    const char *from = json_string_value(text);
    auto_str out = {0};

    for (size_t end = json_string_length(text), at = end; at > 0; end = at) {
        do
            at--;
        while (at > 0 && ((unsigned char)from[at] & 0xc0) == 0x80);
        str_add_len(&out, from + at, end - at);
    }
    return jmes_have(json_stringn(str_text(&out), out.len));
}

static int run_to_string(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    json_t *value = call->arguments[0].value;
    auto_str out = {0};

    if (json_is_string(value)) {
        *ret_value = json_incref(value);
        return 0;
    }
    if (!jmes_spend_tree(call->run, value))
        return jmes_fail_spent(call->run, call->node->offset, e);
    json_write(&out, value);
    *ret_value = jmes_have(json_stringn(str_text(&out), out.len));
    return 0;
}

/* A number as JSON writes it, whole and without spaces; one beyond 64 bits becomes a fraction.
 */
static json_t *parse_number(const char *text, size_t len)
{
    const char digits[] = "0123456789";
    json_t *number;

    if (len == 0 || !strchr("-0123456789", text[0]) || !strchr(digits, text[len - 1]))
        return NULL;
    number = json_loadb(text, len, JSON_DECODE_ANY, NULL);
    if (!number)
        number = json_loadb(text, len, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
    return number;
}

static int run_to_number(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    json_t *value = call->arguments[0].value;
    json_t *number = NULL;

    (void)e;
    if (json_is_number(value))
        number = json_incref(value);
    else if (json_is_string(value))
        number = parse_number(json_string_value(value), json_string_length(value));
    *ret_value = number ? number : json_null();
    return 0;
}

/* -- arrays and objects ----------------------------------------------------------------------
 */

static bool contains_element(struct jmes_run *run, const json_t *array, const json_t *wanted)
{
    json_t *element;
    size_t i;

    json_array_foreach(array, i, element) if (jmes_equal(run, element, wanted)) return true;
    return false;
}

static int run_contains(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    json_t *all = call->arguments[0].value, *wanted = call->arguments[1].value;
    bool is_there;

    (void)e;
    if (json_is_array(all))
        is_there = contains_element(call->run, all, wanted);
    else
        is_there = json_is_string(wanted) &&
                   memmem(json_string_value(all), json_string_length(all),
                          json_string_value(wanted), json_string_length(wanted));
    *ret_value = json_boolean(is_there);
    return 0;
}

static int run_length(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    json_t *value = call->arguments[0].value;
    size_t length;

    (void)e;
    if (json_is_string(value))
        length = jmes_characters(json_string_value(value), json_string_length(value));
    else
        length = json_is_array(value) ? json_array_size(value) : json_object_size(value);
    *ret_value = jmes_have(json_integer((json_int_t)length));
    return 0;
}

static int run_reverse(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    json_t *value = call->arguments[0].value;
    size_t count = json_array_size(value);
    json_t *out;

    if (!jmes_spend(call->run, count + 1))
        return jmes_fail_spent(call->run, call->node->offset, e);
    if (json_is_string(value)) {
        *ret_value = reverse_text(value);
        return 0;
    }
    out = jmes_have(json_array());
    while (count-- > 0)
        jmes_append_new(out, json_incref(json_array_get(value, count)));
    *ret_value = out;
    return 0;
}

static int run_keys(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    json_t *object = call->arguments[0].value, *value, *out;
    const char *key;

    if (!jmes_spend(call->run, json_object_size(object) + 1))
        return jmes_fail_spent(call->run, call->node->offset, e);
    out = jmes_have(json_array());
    json_object_foreach(object, key, value) jmes_append_new(out, jmes_have(json_string(key)));
    *ret_value = out;
    return 0;
}

static int run_values(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    json_t *object = call->arguments[0].value, *value, *out;
    const char *key;

    if (!jmes_spend(call->run, json_object_size(object) + 1))
        return jmes_fail_spent(call->run, call->node->offset, e);
    out = jmes_have(json_array());
    json_object_foreach(object, key, value) jmes_append_new(out, json_incref(value));
    *ret_value = out;
    return 0;
}

static int run_merge(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    auto_json json_t *out = jmes_have(json_object());

    for (size_t i = 0; i < call->count; i++) {
        json_t *object = call->arguments[i].value;

        if (!jmes_spend(call->run, json_object_size(object) + 1))
            return jmes_fail_spent(call->run, call->node->offset, e);
        if (json_object_update(out, object) < 0)
            jmes_have(NULL);
    }
    *ret_value = take_ptr(&out);
    return 0;
}

static int run_map(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    auto_json json_t *out = jmes_have(json_array());
    json_t *element;
    size_t i;

    json_array_foreach(call->arguments[1].value, i, element)
    {
        json_t *result = NULL;

        if (jmes_eval(call->run, call->arguments[0].expression, element, &result, e) < 0)
            return -1;
        jmes_append_new(out, result);
    }
    *ret_value = take_ptr(&out);
    return 0;
}

static int run_to_array(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    json_t *value = call->arguments[0].value;

    (void)e;
    if (json_is_array(value)) {
        *ret_value = json_incref(value);
        return 0;
    }
    *ret_value = jmes_have(json_array());
    jmes_append_new(*ret_value, json_incref(value));
    return 0;
}

/* -- any value -------------------------------------------------------------------------------
 */

static int run_type(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    (void)e;
    *ret_value = jmes_have(json_string(jmes_type(call->arguments[0].value)));
    return 0;
}

static int run_not_null(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    size_t i = 0;

    (void)e;
    while (i + 1 < call->count && json_is_null(call->arguments[i].value))
        i++;
    *ret_value = json_incref(call->arguments[i].value);
    return 0;
}

/* -- the table -------------------------------------------------------------------------------
 */

static const struct jmes_function functions[] = {
    {"abs", run_abs, 1, {JMES_NUMBER}, false},
    {"avg", run_avg, 1, {JMES_NUMBERS}, false},
    {"ceil", run_ceil, 1, {JMES_NUMBER}, false},
    {"contains", run_contains, 2, {JMES_ARRAY | JMES_STRING, JMES_ANY}, false},
    {"ends_with", run_ends_with, 2, {JMES_STRING, JMES_STRING}, false},
    {"floor", run_floor, 1, {JMES_NUMBER}, false},
    {"join", run_join, 2, {JMES_STRING, JMES_STRINGS}, false},
    {"keys", run_keys, 1, {JMES_OBJECT}, false},
    {"length", run_length, 1, {JMES_STRING | JMES_ARRAY | JMES_OBJECT}, false},
    {"map", run_map, 2, {JMES_EXPRESSION, JMES_ARRAY}, false},
    {"max", jmes_max, 1, {JMES_NUMBERS | JMES_STRINGS}, false},
    {"max_by", jmes_max, 2, {JMES_ARRAY, JMES_EXPRESSION}, false},
    {"merge", run_merge, 1, {JMES_OBJECT}, true},
    {"min", jmes_min, 1, {JMES_NUMBERS | JMES_STRINGS}, false},
    {"min_by", jmes_min, 2, {JMES_ARRAY, JMES_EXPRESSION}, false},
    {"not_null", run_not_null, 1, {JMES_ANY}, true},
    {"reverse", run_reverse, 1, {JMES_STRING | JMES_ARRAY}, false},
    {"sort", jmes_sort, 1, {JMES_NUMBERS | JMES_STRINGS}, false},
    {"sort_by", jmes_sort, 2, {JMES_ARRAY, JMES_EXPRESSION}, false},
    {"starts_with", run_starts_with, 2, {JMES_STRING, JMES_STRING}, false},
    {"sum", run_sum, 1, {JMES_NUMBERS}, false},
    {"to_array", run_to_array, 1, {JMES_ANY}, false},
    {"to_number", run_to_number, 1, {JMES_ANY}, false},
    {"to_string", run_to_string, 1, {JMES_ANY}, false},
    {"type", run_type, 1, {JMES_ANY}, false},
    {"values", run_values, 1, {JMES_OBJECT}, false},
};

const struct jmes_function *jmes_function_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
        if (str_equal(functions[i].name, name))
            return &functions[i];
    return NULL;
}

const struct jmes_function *jmes_function_guess(const char *name)
{
    const struct jmes_function *best = NULL;
    size_t least = 3; /* edits; more is another word */

    for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
        size_t distance = str_distance(functions[i].name, name);

        if (distance < least) {
            least = distance;
            best = &functions[i];
        }
    }
    return best;
}
