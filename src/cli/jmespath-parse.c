/* A Pratt parser: each token binds its left side with a certain strength, and parse_expression
 * goes on to the right as long as the next token binds stronger than the one that called it.
 *
 * A projection (a[*], a.*, a[1:], a[?c], a[]) takes all that follows as the expression for each
 * element, until a token that binds weaker than PROJECTION_STOP: foo[*].a.b maps a.b over foo,
 * while foo[*].a | b takes b of the list.
 *
 * Every function returns the node, or NULL with the parser's error set.  The nodes are the
 * arena's.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/jmespath-internal.h"

#include "base/mem.h"
#include "base/text.h"

#include <string.h>

struct parser {
    struct arena *arena;
    const char *expression;
    const struct jmes_token *at; /* next to read; END stays */
    unsigned depth;
    struct err *e;
};

enum {
    BIND_PIPE = 1,
    BIND_OR = 2,
    BIND_AND = 3,
    BIND_COMPARE = 5,
    BIND_NOT = 7,
    BIND_FLATTEN = 9,
    PROJECTION_STOP = 10,
    BIND_STAR = 20,
    BIND_FILTER = 21,
    BIND_DOT = 40,
    BIND_BRACKET = 55,
};

/* How strongly a token takes what is left of it; 0: it does not. */
static const int binding[] = {
    [TOKEN_PIPE] = BIND_PIPE,       [TOKEN_OR] = BIND_OR,         [TOKEN_AND] = BIND_AND,
    [TOKEN_EQ] = BIND_COMPARE,      [TOKEN_NE] = BIND_COMPARE,    [TOKEN_LT] = BIND_COMPARE,
    [TOKEN_LE] = BIND_COMPARE,      [TOKEN_GT] = BIND_COMPARE,    [TOKEN_GE] = BIND_COMPARE,
    [TOKEN_FLATTEN] = BIND_FLATTEN, [TOKEN_FILTER] = BIND_FILTER, [TOKEN_DOT] = BIND_DOT,
    [TOKEN_BRACKET] = BIND_BRACKET, [TOKEN_PAREN_CLOSE] = 0, /* the last kind */
};

static struct jmes_node *parse_expression(struct parser *p, int strength);
static struct jmes_node *parse_projected(struct parser *p, int strength);

/* -- tokens and nodes ------------------------------------------------------------------------
 */

static void *unexpected(struct parser *p, const char *wanted)
{
    const struct jmes_token *token = p->at;
    auto_free char *hint = wanted ? xasprintf(" (wanted %s)", wanted) : xstrdup("");

    if (token->kind == TOKEN_END)
        jmes_fail(p->e, p->expression, token->offset, jmes_syntax, "unexpected end%s", hint);
    else
        jmes_fail(p->e, p->expression, token->offset, jmes_syntax, "unexpected %s%.*s%s%s",
                  token->kind == TOKEN_QUOTED ? "" : "\"",
                  token->len > 40 ? 40 : (int)token->len, p->expression + token->offset,
                  token->kind == TOKEN_QUOTED ? "" : "\"", hint);
    return NULL;
}

static const struct jmes_token *next(struct parser *p)
{
    return p->at->kind == TOKEN_END ? p->at : p->at++;
}

static bool accept(struct parser *p, enum jmes_token_kind kind)
{
    if (p->at->kind != kind)
        return false;
    next(p);
    return true;
}

static bool expect(struct parser *p, enum jmes_token_kind kind, const char *wanted)
{
    if (accept(p, kind))
        return true;
    unexpected(p, wanted);
    return false;
}

static void deepen(struct jmes_node *node, const struct jmes_node *child)
{
    if (child && child->depth >= node->depth)
        node->depth = child->depth + 1;
}

static struct jmes_node *make(struct parser *p, enum jmes_kind kind, size_t offset)
{
    struct jmes_node *node = arena_alloc(p->arena, sizeof(*node));

    node->kind = kind;
    node->offset = offset;
    node->depth = 1;
    return node;
}

/* A node over two others; NULL when one of them is. */
static struct jmes_node *join(struct parser *p,
                              enum jmes_kind kind,
                              size_t offset,
                              struct jmes_node *left,
                              struct jmes_node *right)
{
    struct jmes_node *node;

    if (!left || !right)
        return NULL;
    node = make(p, kind, offset);
    node->left = left;
    node->right = right;
    deepen(node, left);
    deepen(node, right);
    return node;
}

static void add_item(struct parser *p,
                     struct jmes_node *node,
                     struct jmes_item ***tail,
                     const char *key,
                     struct jmes_node *child)
{
    struct jmes_item *item = arena_alloc(p->arena, sizeof(*item));

    item->key = key;
    item->node = child;
    **tail = item;
    *tail = &item->next;
    node->count++;
    deepen(node, child);
}

/* -- brackets --------------------------------------------------------------------------------
 */

static struct jmes_node *
parse_project(struct parser *p, enum jmes_kind kind, struct jmes_node *left, int strength)
{
    size_t offset = p->at->offset;

    return join(p, kind, offset, left, parse_projected(p, strength));
}

/* [start:stop:step], each of them optional, from after the bracket. */
static struct jmes_node *parse_slice(struct parser *p)
{
    struct jmes_node *node = make(p, NODE_SLICE, p->at->offset);
    int64_t parts[3] = {0, 0, 1};
    bool has[3] = {false, false, false};
    size_t part = 0;

    for (;;) {
        if (p->at->kind == TOKEN_NUMBER) {
            has[part] = true;
            parts[part] = next(p)->number;
        }
        if (p->at->kind != TOKEN_COLON || ++part == ARRAY_SIZE(parts))
            break;
        next(p);
    }
    if (!expect(p, TOKEN_BRACKET_CLOSE, "\"]\""))
        return NULL;
    if (parts[2] == 0) {
        jmes_fail(p->e, p->expression, node->offset, jmes_invalid_value, "slice with step 0");
        return NULL;
    }
    node->slice = (struct jmes_slice){.has_start = has[0],
                                      .has_stop = has[1],
                                      .start = parts[0],
                                      .stop = parts[1],
                                      .step = parts[2]};
    return node;
}

static bool is_index(const struct parser *p)
{
    return p->at->kind == TOKEN_NUMBER || p->at->kind == TOKEN_COLON;
}

/* [number] or a slice of left, from after the bracket.  A slice projects. */
static struct jmes_node *parse_index(struct parser *p, struct jmes_node *left)
{
    size_t offset = p->at->offset;
    struct jmes_node *node;

    if (p->at->kind == TOKEN_COLON || p->at[1].kind == TOKEN_COLON) {
        node = join(p, NODE_CHAIN, offset, left, parse_slice(p));
        return node ? parse_project(p, NODE_PROJECT_LIST, node, BIND_STAR) : NULL;
    }
    node = make(p, NODE_INDEX, offset);
    node->number = next(p)->number;
    if (!expect(p, TOKEN_BRACKET_CLOSE, "\"]\""))
        return NULL;
    return join(p, NODE_CHAIN, offset, left, node);
}

static struct jmes_node *parse_filter(struct parser *p, struct jmes_node *left)
{
    struct jmes_node *condition = parse_expression(p, 0);
    struct jmes_node *node;

    if (!condition || !expect(p, TOKEN_BRACKET_CLOSE, "\"]\""))
        return NULL;
    node = parse_project(p, NODE_PROJECT_FILTER, left, BIND_FILTER);
    if (node) {
        node->condition = condition;
        deepen(node, condition);
    }
    return node;
}

static struct jmes_node *parse_flatten(struct parser *p, struct jmes_node *left, size_t offset)
{
    struct jmes_node *flat = make(p, NODE_FLATTEN, offset);

    flat->left = left;
    deepen(flat, left);
    return parse_project(p, NODE_PROJECT_LIST, flat, BIND_FLATTEN);
}

/* [a, b], from after the bracket. */
static struct jmes_node *parse_pick_list(struct parser *p)
{
    struct jmes_node *node = make(p, NODE_PICK_LIST, p->at->offset);
    struct jmes_item **tail = &node->items;

    do {
        struct jmes_node *child = parse_expression(p, 0);

        if (!child)
            return NULL;
        add_item(p, node, &tail, NULL, child);
    } while (accept(p, TOKEN_COMMA));
    return expect(p, TOKEN_BRACKET_CLOSE, "\",\" or \"]\"") ? node : NULL;
}

/* {a: b, "c": d}, from after the brace. */
static struct jmes_node *parse_pick_object(struct parser *p)
{
    struct jmes_node *node = make(p, NODE_PICK_OBJECT, p->at->offset);
    struct jmes_item **tail = &node->items;

    do {
        const char *key = p->at->name;
        struct jmes_node *child;

        if (!key)
            return unexpected(p, "a key");
        next(p);
        if (!expect(p, TOKEN_COLON, "\":\""))
            return NULL;
        child = parse_expression(p, 0);
        if (!child)
            return NULL;
        add_item(p, node, &tail, key, child);
    } while (accept(p, TOKEN_COMMA));
    return expect(p, TOKEN_BRACE_CLOSE, "\",\" or \"}\"") ? node : NULL;
}

/* -- functions -------------------------------------------------------------------------------
 */

static struct jmes_node *parse_argument(struct parser *p)
{
    size_t offset = p->at->offset;
    struct jmes_node *node, *inner;

    if (!accept(p, TOKEN_AMPERSAND))
        return parse_expression(p, 0);
    inner = parse_expression(p, 0);
    if (!inner)
        return NULL;
    node = make(p, NODE_EXPRESSION, offset);
    node->left = inner;
    deepen(node, inner);
    return node;
}

/* name(arguments), from after the parenthesis. */
static struct jmes_node *parse_call(struct parser *p, const struct jmes_token *name)
{
    struct jmes_node *node = make(p, NODE_CALL, name->offset);
    struct jmes_item **tail = &node->items;

    if (!accept(p, TOKEN_PAREN_CLOSE)) {
        do {
            struct jmes_node *argument = parse_argument(p);

            if (!argument)
                return NULL;
            add_item(p, node, &tail, NULL, argument);
        } while (accept(p, TOKEN_COMMA));
        if (!expect(p, TOKEN_PAREN_CLOSE, "\",\" or \")\""))
            return NULL;
    }
    return jmes_call_check(p->expression, node, name->name, p->e) < 0 ? NULL : node;
}

/* -- the beginning of an expression ----------------------------------------------------------
 */

static struct jmes_node *parse_name(struct parser *p, const struct jmes_token *token)
{
    struct jmes_node *node;

    if (token->kind == TOKEN_NAME && accept(p, TOKEN_PAREN))
        return parse_call(p, token);
    node = make(p, NODE_FIELD, token->offset);
    node->name = token->name;
    return node;
}

static struct jmes_node *parse_literal(struct parser *p, const struct jmes_token *token)
{
    struct jmes_node *node = make(p, NODE_LITERAL, token->offset);

    node->literal = token->literal;
    return node;
}

static struct jmes_node *parse_not(struct parser *p, const struct jmes_token *token)
{
    struct jmes_node *inner = parse_expression(p, BIND_NOT);
    struct jmes_node *node;

    if (!inner)
        return NULL;
    node = make(p, NODE_NOT, token->offset);
    node->left = inner;
    deepen(node, inner);
    return node;
}

static struct jmes_node *parse_parenthesis(struct parser *p)
{
    struct jmes_node *node = parse_expression(p, 0);

    return node && expect(p, TOKEN_PAREN_CLOSE, "\")\"") ? node : NULL;
}

static struct jmes_node *parse_bracket(struct parser *p, size_t offset)
{
    struct jmes_node *current = make(p, NODE_CURRENT, offset);

    if (is_index(p))
        return parse_index(p, current);
    if (p->at->kind == TOKEN_STAR && p->at[1].kind == TOKEN_BRACKET_CLOSE) {
        p->at += 2;
        return parse_project(p, NODE_PROJECT_LIST, current, BIND_STAR);
    }
    return parse_pick_list(p);
}

static struct jmes_node *parse_first(struct parser *p)
{
    const struct jmes_token *token = p->at;
    struct jmes_node *current;

    if (token->kind == TOKEN_NAME || token->kind == TOKEN_QUOTED)
        return parse_name(p, next(p));
    if (token->kind == TOKEN_LITERAL)
        return parse_literal(p, next(p));
    current = make(p, NODE_CURRENT, token->offset);
    if (accept(p, TOKEN_CURRENT))
        return current;
    if (accept(p, TOKEN_STAR))
        return parse_project(p, NODE_PROJECT_OBJECT, current, BIND_STAR);
    if (accept(p, TOKEN_BRACKET))
        return parse_bracket(p, token->offset);
    if (accept(p, TOKEN_FILTER))
        return parse_filter(p, current);
    if (accept(p, TOKEN_FLATTEN))
        return parse_flatten(p, current, token->offset);
    if (accept(p, TOKEN_BRACE))
        return parse_pick_object(p);
    if (accept(p, TOKEN_PAREN))
        return parse_parenthesis(p);
    if (accept(p, TOKEN_NOT))
        return parse_not(p, token);
    return unexpected(p, "an expression");
}

/* -- the rest of it --------------------------------------------------------------------------
 */

static struct jmes_node *parse_after_dot(struct parser *p, int strength)
{
    enum jmes_token_kind kind = p->at->kind;

    if (kind == TOKEN_NAME || kind == TOKEN_QUOTED || kind == TOKEN_STAR)
        return parse_expression(p, strength);
    if (accept(p, TOKEN_BRACKET))
        return parse_pick_list(p);
    if (accept(p, TOKEN_BRACE))
        return parse_pick_object(p);
    return unexpected(p, "a name, \"*\", \"[\" or \"{\" after the dot");
}

/* What a projection does with each element.  As everywhere, foo[*][a, b] is taken for
 * foo[*].[a, b], though the grammar wants the dot. */
static struct jmes_node *parse_projected(struct parser *p, int strength)
{
    if (binding[p->at->kind] < PROJECTION_STOP)
        return make(p, NODE_CURRENT, p->at->offset);
    if (accept(p, TOKEN_DOT))
        return parse_after_dot(p, strength);
    return parse_expression(p, strength);
}

static struct jmes_node *
parse_compare(struct parser *p, struct jmes_node *left, const struct jmes_token *token)
{
    struct jmes_node *right = parse_expression(p, BIND_COMPARE);
    struct jmes_node *node = join(p, NODE_COMPARE, token->offset, left, right);

    if (node)
        node->comparator = token->kind;
    return node;
}

static struct jmes_node *parse_dot(struct parser *p, struct jmes_node *left, size_t offset)
{
    if (accept(p, TOKEN_STAR))
        return parse_project(p, NODE_PROJECT_OBJECT, left, BIND_STAR);
    return join(p, NODE_CHAIN, offset, left, parse_after_dot(p, BIND_DOT));
}

static struct jmes_node *parse_bracket_of(struct parser *p, struct jmes_node *left)
{
    if (is_index(p))
        return parse_index(p, left);
    if (!expect(p, TOKEN_STAR, "a number, \":\" or \"*\"") ||
        !expect(p, TOKEN_BRACKET_CLOSE, "\"]\""))
        return NULL;
    return parse_project(p, NODE_PROJECT_LIST, left, BIND_STAR);
}

static struct jmes_node *parse_next(struct parser *p, struct jmes_node *left)
{
    const struct jmes_token *token = next(p);

    if (token->kind == TOKEN_DOT)
        return parse_dot(p, left, token->offset);
    if (token->kind == TOKEN_BRACKET)
        return parse_bracket_of(p, left);
    if (token->kind == TOKEN_FILTER)
        return parse_filter(p, left);
    if (token->kind == TOKEN_FLATTEN)
        return parse_flatten(p, left, token->offset);
    if (token->kind == TOKEN_PIPE)
        return join(p, NODE_CHAIN, token->offset, left, parse_expression(p, BIND_PIPE));
    if (token->kind == TOKEN_OR)
        return join(p, NODE_OR, token->offset, left, parse_expression(p, BIND_OR));
    if (token->kind == TOKEN_AND)
        return join(p, NODE_AND, token->offset, left, parse_expression(p, BIND_AND));
    return parse_compare(p, left, token);
}

static struct jmes_node *too_deep(struct parser *p)
{
    jmes_fail(p->e, p->expression, p->at->offset, jmes_syntax, "more than %d levels deep",
              JMESPATH_MOST_DEPTH);
    return NULL;
}

/* The depth of the calls bounds this parser, the depth of the tree the search: a long chain
 * a.b.c is deep only in the latter. */
static struct jmes_node *parse_expression(struct parser *p, int strength)
{
    struct jmes_node *left;

    if (++p->depth > JMESPATH_MOST_DEPTH)
        return too_deep(p);
    left = parse_first(p);
    while (left && strength < binding[p->at->kind]) {
        left = parse_next(p, left);
        if (left && left->depth > JMESPATH_MOST_DEPTH)
            return too_deep(p);
    }
    p->depth--;
    return left;
}

static struct jmes_node *parse_all(struct parser *p)
{
    struct jmes_node *root = parse_expression(p, 0);

    if (root && p->at->kind != TOKEN_END)
        return unexpected(p, NULL);
    return root;
}

int jmespath_parse(const char *expression, struct jmespath **ret_path, struct err *e)
{
    autoptr(jmespath) path = xcalloc(1, sizeof(*path));
    auto_free struct jmes_token *tokens = NULL;
    size_t len = strlen(expression);
    struct parser p = {.e = e};

    if (len > JMESPATH_MOST_BYTES) {
        err_set(e, ERR_INVALID, "the expression is longer than %d bytes", JMESPATH_MOST_BYTES);
        return err_reason(e, jmes_syntax);
    }
    if (!text_is_utf8(expression, len)) {
        err_set(e, ERR_INVALID, "the expression is not UTF-8");
        return err_reason(e, jmes_syntax);
    }
    path->arena = p.arena = arena_new();
    path->expression = p.expression = arena_strdup(path->arena, expression);
    if (jmes_lex(path->arena, path->expression, &tokens, e) < 0)
        return -1;
    p.at = tokens;
    path->root = parse_all(&p);
    if (!path->root)
        return -1;
    *ret_path = take_ptr(&path);
    return 0;
}

void jmespath_free(struct jmespath *path)
{
    if (!path)
        return;
    arena_free(path->arena);
    free(path);
}
