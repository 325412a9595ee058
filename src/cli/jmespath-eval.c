/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/jmespath-internal.h"

#include "base/json.h"

bool jmes_spend(struct jmes_run *run, size_t n)
{
    run->left = n < run->left ? run->left - n : 0;
    return run->left > 0;
}

int jmes_fail_spent(const struct jmes_run *run, size_t offset, struct err *e)
{
    return jmes_fail(e, run->path->expression, offset, jmes_invalid_value,
                     "more than %zu values are made", run->most);
}

static json_t *or_null(json_t *value)
{
    return value ? json_incref(value) : json_null();
}

/* Position of a possibly negative index; out of range gives count, where there is no element.
 */
static size_t resolve_index(int64_t index, size_t count)
{
    if (index < 0)
        index += (int64_t)count;
    return index < 0 ? count : (size_t)index;
}

/* An end of a slice, brought into what a walk in that direction can reach. */
static int64_t clamp(int64_t end, int64_t count, bool down)
{
    int64_t least = down ? -1 : 0;
    int64_t most = down ? count - 1 : count;

    if (end < 0)
        end += count;
    return end < least ? least : end > most ? most : end;
}

static json_t *eval_slice(struct jmes_run *run, const struct jmes_slice *slice, json_t *value)
{
    int64_t count = (int64_t)json_array_size(value);
    bool down = slice->step < 0;
    int64_t i = down ? count - 1 : 0;
    int64_t stop = down ? -1 : count;
    json_t *out;

    if (!json_is_array(value))
        return json_null();
    out = jmes_have(json_array());
    if (slice->has_start)
        i = clamp(slice->start, count, down);
    if (slice->has_stop)
        stop = clamp(slice->stop, count, down);
    while ((down ? i > stop : i < stop) && jmes_spend(run, 1)) {
        jmes_append_new(out, json_incref(json_array_get(value, (size_t)i)));
        if (__builtin_add_overflow(i, slice->step, &i))
            break;
    }
    return out;
}

/* Append what right makes of one element; a null is left out. */
static int project_one(struct jmes_run *run,
                       const struct jmes_node *node,
                       json_t *element,
                       json_t *out,
                       struct err *e)
{
    json_t *result = NULL;

    if (node->kind == NODE_PROJECT_FILTER) {
        auto_json json_t *verdict = NULL;

        if (jmes_eval(run, node->condition, element, &verdict, e) < 0)
            return -1;
        if (!jmes_is_true(verdict))
            return 0;
    }
    if (jmes_eval(run, node->right, element, &result, e) < 0)
        return -1;
    if (!json_is_null(result))
        jmes_append_new(out, result);
    return 0;
}

static int eval_project(struct jmes_run *run,
                        const struct jmes_node *node,
                        json_t *value,
                        json_t **ret_value,
                        struct err *e)
{
    auto_json json_t *base = NULL;
    auto_json json_t *out = jmes_have(json_array());
    json_t *element;
    const char *key;
    size_t i;

    if (jmes_eval(run, node->left, value, &base, e) < 0)
        return -1;
    if (!(node->kind == NODE_PROJECT_OBJECT ? json_is_object(base) : json_is_array(base))) {
        *ret_value = json_null();
        return 0;
    }
    json_array_foreach(base, i,
                       element) if (project_one(run, node, element, out, e) < 0) return -1;
    json_object_foreach(base, key,
                        element) if (project_one(run, node, element, out, e) < 0) return -1;
    *ret_value = take_ptr(&out);
    return 0;
}

static int eval_flatten(struct jmes_run *run,
                        const struct jmes_node *node,
                        json_t *value,
                        json_t **ret_value,
                        struct err *e)
{
    auto_json json_t *base = NULL;
    auto_json json_t *out = NULL;
    json_t *element;
    size_t i;

    if (jmes_eval(run, node->left, value, &base, e) < 0)
        return -1;
    if (!json_is_array(base)) {
        *ret_value = json_null();
        return 0;
    }
    out = jmes_have(json_array());
    json_array_foreach(base, i, element)
    {
        if (!jmes_spend(run, 1 + json_array_size(element)))
            return jmes_fail_spent(run, node->offset, e);
        if (!json_is_array(element))
            jmes_append_new(out, json_incref(element));
        else if (json_array_extend(out, element) < 0)
            jmes_have(NULL);
    }
    *ret_value = take_ptr(&out);
    return 0;
}

static json_t *
compare(struct jmes_run *run, enum jmes_token_kind comparator, const json_t *a, const json_t *b)
{
    int order;

    if (comparator == TOKEN_EQ || comparator == TOKEN_NE)
        return json_boolean(jmes_equal(run, a, b) == (comparator == TOKEN_EQ));
    if (json_is_number(a) && json_is_number(b))
        order = jmes_compare_numbers(a, b);
    else if (json_is_string(a) && json_is_string(b))
        order = jmes_compare_strings(a, b);
    else
        return json_null();
    if (comparator == TOKEN_LT)
        return json_boolean(order < 0);
    if (comparator == TOKEN_LE)
        return json_boolean(order <= 0);
    if (comparator == TOKEN_GT)
        return json_boolean(order > 0);
    return json_boolean(order >= 0);
}

static int eval_compare(struct jmes_run *run,
                        const struct jmes_node *node,
                        json_t *value,
                        json_t **ret_value,
                        struct err *e)
{
    auto_json json_t *a = NULL;
    auto_json json_t *b = NULL;

    if (jmes_eval(run, node->left, value, &a, e) < 0 ||
        jmes_eval(run, node->right, value, &b, e) < 0)
        return -1;
    *ret_value = compare(run, node->comparator, a, b);
    return 0;
}

static int eval_logic(struct jmes_run *run,
                      const struct jmes_node *node,
                      json_t *value,
                      json_t **ret_value,
                      struct err *e)
{
    auto_json json_t *left = NULL;

    if (jmes_eval(run, node->left, value, &left, e) < 0)
        return -1;
    if (node->kind == NODE_NOT)
        *ret_value = json_boolean(!jmes_is_true(left));
    else if (jmes_is_true(left) == (node->kind == NODE_OR))
        *ret_value = take_ptr(&left);
    else
        return jmes_eval(run, node->right, value, ret_value, e);
    return 0;
}

static int eval_pick(struct jmes_run *run,
                     const struct jmes_node *node,
                     json_t *value,
                     json_t **ret_value,
                     struct err *e)
{
    bool is_list = node->kind == NODE_PICK_LIST;
    auto_json json_t *out = NULL;

    if (json_is_null(value)) {
        *ret_value = json_null();
        return 0;
    }
    out = jmes_have(is_list ? json_array() : json_object());
    for (const struct jmes_item *item = node->items; item; item = item->next) {
        json_t *result = NULL;

        if (jmes_eval(run, item->node, value, &result, e) < 0)
            return -1;
        if (is_list)
            jmes_append_new(out, result);
        else if (json_object_set_new(out, item->key, result) < 0)
            jmes_have(NULL);
    }
    *ret_value = take_ptr(&out);
    return 0;
}

static int eval_chain(struct jmes_run *run,
                      const struct jmes_node *node,
                      json_t *value,
                      json_t **ret_value,
                      struct err *e)
{
    auto_json json_t *left = NULL;

    if (jmes_eval(run, node->left, value, &left, e) < 0)
        return -1;
    return jmes_eval(run, node->right, left, ret_value, e);
}

static int
eval_leaf(struct jmes_run *run, const struct jmes_node *node, json_t *value, json_t **ret_value)
{
    if (node->kind == NODE_FIELD)
        *ret_value = or_null(json_object_get(value, node->name));
    else if (node->kind == NODE_INDEX)
        *ret_value =
            or_null(json_array_get(value, resolve_index(node->number, json_array_size(value))));
    else if (node->kind == NODE_SLICE)
        *ret_value = eval_slice(run, &node->slice, value);
    else
        *ret_value = json_incref(node->kind == NODE_LITERAL ? node->literal : value);
    return 0;
}

int jmes_eval(struct jmes_run *run,
              const struct jmes_node *node,
              json_t *value,
              json_t **ret_value,
              struct err *e)
{
    if (!jmes_spend(run, 1))
        return jmes_fail_spent(run, node->offset, e);
    switch (node->kind) {
    case NODE_CURRENT:
    case NODE_FIELD:
    case NODE_INDEX:
    case NODE_SLICE:
    case NODE_LITERAL:
        return eval_leaf(run, node, value, ret_value);
    case NODE_CHAIN:
        return eval_chain(run, node, value, ret_value, e);
    case NODE_PROJECT_LIST:
    case NODE_PROJECT_OBJECT:
    case NODE_PROJECT_FILTER:
        return eval_project(run, node, value, ret_value, e);
    case NODE_FLATTEN:
        return eval_flatten(run, node, value, ret_value, e);
    case NODE_OR:
    case NODE_AND:
    case NODE_NOT:
        return eval_logic(run, node, value, ret_value, e);
    case NODE_COMPARE:
        return eval_compare(run, node, value, ret_value, e);
    case NODE_PICK_LIST:
    case NODE_PICK_OBJECT:
        return eval_pick(run, node, value, ret_value, e);
    case NODE_CALL:
        return jmes_call_run(run, node, value, ret_value, e);
    case NODE_EXPRESSION:
        return jmes_eval(run, node->left, value, ret_value, e);
    }
    return err_set(e, ERR_INTERNAL, "unknown kind of node");
}

int jmes_search(const struct jmespath *path,
                json_t *document,
                size_t most_values,
                json_t **ret_value,
                struct err *e)
{
    struct jmes_run run = {.path = path, .most = most_values, .left = most_values};
    auto_json json_t *value = NULL;

    if (jmes_eval(&run, path->root, document, &value, e) < 0)
        return -1;
    if (run.left > 0) /* the result has an allowance of its own: a big document is no fault */
        run.left = most_values;
    if (!jmes_spend_tree(&run, value))
        return jmes_fail_spent(&run, path->root->offset, e);
    *ret_value = take_ptr(&value);
    return 0;
}

int jmespath_search(const struct jmespath *path,
                    json_t *document,
                    json_t **ret_value,
                    struct err *e)
{
    return jmes_search(path, document, JMESPATH_MOST_VALUES, ret_value, e);
}
