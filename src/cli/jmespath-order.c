/* The functions that put values in order: max, min, sort, and the same by an &expression.
 *
 * Each goes by keys: a value's key is the value itself or what the expression makes of it.  The
 * keys of one call are all numbers or all strings.  Values with equal keys keep their order,
 * and of several greatest or least ones the first is taken.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/jmespath-internal.h"

#include "base/json.h"

struct entry {
    json_t *key; /* owned */
    json_t *value;
    size_t index;
};

static int compare_keys(const json_t *a, const json_t *b)
{
    return json_is_string(a) ? jmes_compare_strings(a, b) : jmes_compare_numbers(a, b);
}

/* The index settles ties, for qsort need not be stable. */
static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = compare_keys(x->key, y->key);

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int
check_key(struct jmes_call *call, const json_t *first, const json_t *key, struct err *e)
{
    const struct jmes_function *f = call->node->function;
    size_t offset = call->node->offset;
    unsigned bit = jmes_type_bit(key);

    if (!(bit & (JMES_NUMBER | JMES_STRING)))
        return jmes_fail(e, call->run->path->expression, offset, jmes_invalid_type,
                         "%s() goes by numbers or strings, got %s", f->name, jmes_type(key));
    if (bit != jmes_type_bit(first))
        return jmes_fail(e, call->run->path->expression, offset, jmes_invalid_type,
                         "%s() cannot go by %s and %s at once", f->name, jmes_type(first),
                         jmes_type(key));
    return 0;
}

static int make_key(struct jmes_call *call, json_t *value, json_t **ret_key, struct err *e)
{
    if (call->count == 2)
        return jmes_eval(call->run, call->arguments[1].expression, value, ret_key, e);
    *ret_key = json_incref(value);
    return 0;
}

static int
sort_entries(struct jmes_call *call, struct entry *entries, json_t **ret_value, struct err *e)
{
    json_t *array = call->arguments[0].value, *value, *out;
    size_t i;

    json_array_foreach(array, i, value)
    {
        entries[i].value = value;
        entries[i].index = i;
        if (make_key(call, value, &entries[i].key, e) < 0 ||
            check_key(call, entries[0].key, entries[i].key, e) < 0)
            return -1;
    }
    qsort(entries, i, sizeof(*entries), compare_entries);
    out = jmes_have(json_array());
    for (size_t j = 0; j < i; j++)
        jmes_append_new(out, json_incref(entries[j].value));
    *ret_value = out;
    return 0;
}

int jmes_sort(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    size_t count = json_array_size(call->arguments[0].value);
    auto_free struct entry *entries = NULL;
    int result;

    if (!jmes_spend(call->run, count + 1))
        return jmes_fail_spent(call->run, call->node->offset, e);
    entries = xcalloc(count, sizeof(*entries));
    result = sort_entries(call, entries, ret_value, e);
    for (size_t i = 0; i < count; i++)
        json_decref(entries[i].key);
    return result;
}

/* The first value whose key is greatest, or least for sign -1; null of none. */
static int pick(struct jmes_call *call, int sign, json_t **ret_value, struct err *e)
{
    auto_json json_t *best_key = NULL;
    json_t *best = NULL, *value;
    size_t i;

    json_array_foreach(call->arguments[0].value, i, value)
    {
        auto_json json_t *key = NULL;

        if (make_key(call, value, &key, e) < 0 ||
            check_key(call, best_key ? best_key : key, key, e) < 0)
            return -1;
        if (best && compare_keys(key, best_key) * sign <= 0)
            continue;
        json_decref(best_key);
        best_key = take_ptr(&key);
        best = value;
    }
    *ret_value = best ? json_incref(best) : json_null();
    return 0;
}

int jmes_max(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    return pick(call, 1, ret_value, e);
}

int jmes_min(struct jmes_call *call, json_t **ret_value, struct err *e)
{
    return pick(call, -1, ret_value, e);
}
