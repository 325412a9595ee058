/* A function call against the function's row: number of arguments and &expressions when it is
 * parsed, types of values when it is made.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/jmespath-internal.h"

#include "base/str.h"

static int
find_function(const char *expression, struct jmes_node *call, const char *name, struct err *e)
{
    const struct jmes_function *guess;

    call->function = jmes_function_find(name);
    if (call->function)
        return 0;
    guess = jmes_function_guess(name);
    if (guess)
        return jmes_fail(e, expression, call->offset, jmes_unknown_function,
                         "unknown function \"%.64s\" (did you mean \"%s\"?)", name,
                         guess->name);
    return jmes_fail(e, expression, call->offset, jmes_unknown_function,
                     "unknown function \"%.64s\"", name);
}

static int check_arity(const char *expression, const struct jmes_node *call, struct err *e)
{
    const struct jmes_function *f = call->function;

    if (call->count == f->parameters || (f->repeats && call->count > f->parameters))
        return 0;
    return jmes_fail(e, expression, call->offset, jmes_invalid_arity,
                     "%s() takes %s%zu argument%s, got %zu", f->name,
                     f->repeats ? "at least " : "", f->parameters,
                     f->parameters == 1 ? "" : "s", call->count);
}

static unsigned types_of(const struct jmes_function *f, size_t argument)
{
    return f->types[argument < f->parameters ? argument : f->parameters - 1];
}

/* Whether an argument is an &expression shows in the text. */
static int
check_expressions(const char *expression, const struct jmes_node *call, struct err *e)
{
    const struct jmes_function *f = call->function;
    size_t i = 0;

    for (const struct jmes_item *item = call->items; item; item = item->next, i++) {
        bool is = item->node->kind == NODE_EXPRESSION;

        if (is != (types_of(f, i) == JMES_EXPRESSION))
            return jmes_fail(e, expression, item->node->offset, jmes_invalid_type,
                             is ? "%s() takes a value as argument %zu, got an &expression"
                                : "%s() takes an &expression as argument %zu, got a value",
                             f->name, i + 1);
    }
    return 0;
}

int jmes_call_check(const char *expression,
                    struct jmes_node *call,
                    const char *name,
                    struct err *e)
{
    if (find_function(expression, call, name, e) < 0 || check_arity(expression, call, e) < 0)
        return -1;
    return check_expressions(expression, call, e);
}

static const struct type_word {
    unsigned bit;
    const char *word;
} type_words[] = {
    {JMES_NUMBER, "a number"},
    {JMES_STRING, "a string"},
    {JMES_ARRAY, "an array"},
    {JMES_OBJECT, "an object"},
    {JMES_NUMBERS, "an array of numbers"},
    {JMES_STRINGS, "an array of strings"},
};

static char *words_for(unsigned types)
{
    auto_str out = {0};

    for (size_t i = 0; i < ARRAY_SIZE(type_words); i++)
        if (types & type_words[i].bit)
            str_addf(&out, "%s%s", out.len ? " or " : "", type_words[i].word);
    return str_take(&out);
}

/* The first element that is not of the type of the first; NULL when they are all alike. */
static const json_t *find_stranger(const json_t *array, unsigned bit)
{
    json_t *element;
    size_t i;

    json_array_foreach(array, i, element) if (jmes_type_bit(element) != bit) return element;
    return NULL;
}

/* Is it an array of one of the wanted kinds?  An empty one is of every kind. */
static bool is_array_of(unsigned types, const json_t *value, const json_t **ret_stranger)
{
    unsigned bit;

    if (!json_is_array(value) || !(types & (JMES_NUMBERS | JMES_STRINGS)))
        return false;
    if (json_array_size(value) == 0)
        return true;
    *ret_stranger = json_array_get(value, 0);
    bit = jmes_type_bit(*ret_stranger);
    if (!((bit == JMES_NUMBER && (types & JMES_NUMBERS)) ||
          (bit == JMES_STRING && (types & JMES_STRINGS))))
        return false;
    *ret_stranger = find_stranger(value, bit);
    return !*ret_stranger;
}

static int
check_type(const struct jmes_call *call, const struct jmes_item *item, size_t i, struct err *e)
{
    const struct jmes_function *f = call->node->function;
    unsigned types = types_of(f, i);
    const json_t *value = call->arguments[i].value;
    const json_t *stranger = NULL;
    auto_free char *words = NULL;

    if ((types & jmes_type_bit(value)) || is_array_of(types, value, &stranger))
        return 0;
    words = words_for(types);
    return jmes_fail(e, call->run->path->expression, item->node->offset, jmes_invalid_type,
                     "%s() takes %s as argument %zu, got %s%s%s", f->name, words, i + 1,
                     jmes_type(value), stranger ? " with " : "",
                     stranger ? jmes_type(stranger) : "");
}

static int evaluate_arguments(struct jmes_call *call, json_t *value, struct err *e)
{
    size_t i = 0;

    for (const struct jmes_item *item = call->node->items; item; item = item->next, i++) {
        struct jmes_argument *argument = &call->arguments[i];

        if (item->node->kind == NODE_EXPRESSION) {
            argument->expression = item->node->left;
            continue;
        }
        if (jmes_eval(call->run, item->node, value, &argument->value, e) < 0 ||
            check_type(call, item, i, e) < 0)
            return -1;
    }
    return 0;
}

int jmes_call_run(struct jmes_run *run,
                  const struct jmes_node *node,
                  json_t *value,
                  json_t **ret_value,
                  struct err *e)
{
    auto_free struct jmes_argument *arguments = xcalloc(node->count, sizeof(*arguments));
    struct jmes_call call = {
        .run = run, .node = node, .arguments = arguments, .count = node->count};
    int result = evaluate_arguments(&call, value, e);

    if (result == 0)
        result = node->function->run(&call, ret_value, e);
    for (size_t i = 0; i < node->count; i++)
        json_decref(arguments[i].value);
    return result;
}
