/* jmespath-internal.h - what the files of JMESPath share: tokens, the tree, a running search.
 *
 * jmespath-lex.c cuts the expression into tokens, jmespath-parse.c makes the tree,
 * jmespath-eval.c walks it over a document, jmespath-call.c checks and makes calls of the
 * built-in functions, which are in jmespath-functions.c and jmespath-order.c, jmespath-value.c
 * knows what values are worth, jmespath-error.c words the errors.
 *
 * Everything of a parsed expression lives in its arena.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_JMESPATH_INTERNAL_H
#define CLI_JMESPATH_INTERNAL_H

#include "cli/jmespath.h"

#include <stddef.h>
#include <stdint.h>

/* -- errors ----------------------------------------------------------------------------------
 */

extern const char jmes_syntax[];
extern const char jmes_invalid_type[];
extern const char jmes_invalid_arity[];
extern const char jmes_invalid_value[];
extern const char jmes_unknown_function[];

/* Set "<text> at position N of "expression"" with the reason; offset is in bytes.  Returns -1.
 */
int jmes_fail(struct err *e,
              const char *expression,
              size_t offset,
              const char *reason,
              const char *format,
              ...) PRINTF_LIKE(5, 6);

/* -- tokens ----------------------------------------------------------------------------------
 */

enum jmes_token_kind {
    TOKEN_END,
    TOKEN_NAME,   /* foo */
    TOKEN_QUOTED, /* "foo" */
    TOKEN_LITERAL,
    TOKEN_NUMBER,
    TOKEN_DOT,
    TOKEN_STAR,
    TOKEN_CURRENT, /* @ */
    TOKEN_COMMA,
    TOKEN_COLON,
    TOKEN_AMPERSAND,
    TOKEN_PIPE,
    TOKEN_OR,
    TOKEN_AND,
    TOKEN_NOT,
    TOKEN_EQ,
    TOKEN_NE,
    TOKEN_LT,
    TOKEN_LE,
    TOKEN_GT,
    TOKEN_GE,
    TOKEN_BRACKET, /* [ */
    TOKEN_FILTER,  /* [? */
    TOKEN_FLATTEN, /* [] */
    TOKEN_BRACKET_CLOSE,
    TOKEN_BRACE,
    TOKEN_BRACE_CLOSE,
    TOKEN_PAREN,
    TOKEN_PAREN_CLOSE,
};

struct jmes_token {
    enum jmes_token_kind kind;
    size_t offset, len; /* in the expression */
    const char *name;   /* of a NAME or QUOTED, unescaped */
    json_t *literal;    /* of a LITERAL; owned by the arena */
    int64_t number;
};

/* Tokens of a whole expression, the last of kind END.  The caller frees *ret_tokens; what they
 * point to is the arena's. */
int jmes_lex(struct arena *arena,
             const char *expression,
             struct jmes_token **ret_tokens,
             struct err *e);

/* -- tree ------------------------------------------------------------------------------------
 */

enum jmes_kind {
    NODE_CURRENT, /* the value itself */
    NODE_FIELD,   /* name */
    NODE_INDEX,   /* [number] of the value */
    NODE_SLICE,   /* [slice] of the value */
    NODE_LITERAL,
    NODE_CHAIN,          /* right over the result of left: a.b, a | b, a[0] */
    NODE_PROJECT_LIST,   /* right over each element of left */
    NODE_PROJECT_OBJECT, /* right over each value of left */
    NODE_PROJECT_FILTER, /* right over each element of left for which condition is true */
    NODE_FLATTEN,        /* left, with lists in it opened */
    NODE_OR,
    NODE_AND,
    NODE_NOT,         /* left */
    NODE_COMPARE,     /* left, right, by comparator */
    NODE_PICK_LIST,   /* [items] */
    NODE_PICK_OBJECT, /* {items} */
    NODE_CALL,        /* function(items) */
    NODE_EXPRESSION,  /* &left: only as an argument */
};

struct jmes_slice {
    bool has_start, has_stop;
    int64_t start, stop, step;
};

struct jmes_item {
    struct jmes_item *next;
    const char *key; /* of a PICK_OBJECT */
    struct jmes_node *node;
};

struct jmes_node {
    enum jmes_kind kind;
    unsigned depth; /* of the tree from here down */
    size_t offset;  /* in the expression */
    struct jmes_node *left, *right;
    union {
        const char *name;
        json_t *literal;
        int64_t number;
        struct jmes_slice slice;
        struct jmes_node *condition;
        enum jmes_token_kind comparator;
        struct {
            struct jmes_item *items;
            size_t count;
            const struct jmes_function *function; /* of a CALL */
        };
    };
};

struct jmespath {
    struct arena *arena;
    const char *expression;
    struct jmes_node *root;
};

/* -- search ----------------------------------------------------------------------------------
 */

struct jmes_run {
    const struct jmespath *path;
    size_t most, left; /* values to make; 0 left ends the search */
};

/* jmespath_search with another bound than JMESPATH_MOST_VALUES. */
int jmes_search(const struct jmespath *path,
                json_t *document,
                size_t most_values,
                json_t **ret_value,
                struct err *e);

/* Take n from what is left.  False when that was too much: then nothing is left, and the next
 * jmes_eval fails. */
bool jmes_spend(struct jmes_run *run, size_t n);
int jmes_fail_spent(const struct jmes_run *run, size_t offset, struct err *e);

int jmes_eval(struct jmes_run *run,
              const struct jmes_node *node,
              json_t *value,
              json_t **ret_value,
              struct err *e);

/* -- functions -------------------------------------------------------------------------------
 */

/* Types an argument may have: bits of a set. */
enum {
    JMES_NULL = 1 << 0,
    JMES_BOOLEAN = 1 << 1,
    JMES_NUMBER = 1 << 2,
    JMES_STRING = 1 << 3,
    JMES_ARRAY = 1 << 4,
    JMES_OBJECT = 1 << 5,
    JMES_NUMBERS = 1 << 6, /* an array of nothing but numbers */
    JMES_STRINGS = 1 << 7,
    JMES_EXPRESSION = 1 << 8,
    JMES_ANY = JMES_NULL | JMES_BOOLEAN | JMES_NUMBER | JMES_STRING | JMES_ARRAY | JMES_OBJECT,
};

struct jmes_argument {
    json_t *value;                      /* owned; NULL for an &expression */
    const struct jmes_node *expression; /* NULL for a value */
};

struct jmes_call {
    struct jmes_run *run;
    const struct jmes_node *node;
    struct jmes_argument *arguments;
    size_t count;
};

enum {
    JMES_MOST_PARAMETERS = 2,
};

struct jmes_function {
    const char *name;
    int (*run)(struct jmes_call *call, json_t **ret_value, struct err *e);
    size_t parameters;
    unsigned types[JMES_MOST_PARAMETERS];
    bool repeats; /* the last parameter, any number of times */
};

/* NULL when there is none of that name. */
const struct jmes_function *jmes_function_find(const char *name);
/* The function whose name is most like it; NULL when none is near. */
const struct jmes_function *jmes_function_guess(const char *name);

/* Set the function of a parsed call; fails when there is none of that name, or when the number
 * of arguments or the place of an &expression among them is wrong. */
int jmes_call_check(const char *expression,
                    struct jmes_node *call,
                    const char *name,
                    struct err *e);
int jmes_call_run(struct jmes_run *run,
                  const struct jmes_node *node,
                  json_t *value,
                  json_t **ret_value,
                  struct err *e);

/* In jmespath-order.c; with a second argument, an &expression, they go by what it makes. */
int jmes_max(struct jmes_call *call, json_t **ret_value, struct err *e);
int jmes_min(struct jmes_call *call, json_t **ret_value, struct err *e);
int jmes_sort(struct jmes_call *call, json_t **ret_value, struct err *e);

/* -- values ----------------------------------------------------------------------------------
 */

/* Jansson says "out of memory" with NULL: abort then, as the x allocators do. */
json_t *jmes_have(json_t *value);
void jmes_append_new(json_t *array, json_t *value);

bool jmes_is_true(const json_t *value);
/* The specification's name: "number", "string", ... */
const char *jmes_type(const json_t *value);
/* JMES_NULL to JMES_OBJECT. */
unsigned jmes_type_bit(const json_t *value);

/* Below 0, 0, above 0.  Exact between an integer and a fraction. */
int jmes_compare_numbers(const json_t *a, const json_t *b);
int jmes_compare_strings(const json_t *a, const json_t *b);
/* Deep; spends one for each pair looked at, and says false when nothing is left. */
bool jmes_equal(struct jmes_run *run, const json_t *a, const json_t *b);
/* Spend one for each value in the tree, and for its strings; false when nothing is left. */
bool jmes_spend_tree(struct jmes_run *run, const json_t *value);

/* Code points of a UTF-8 text. */
size_t jmes_characters(const char *text, size_t len);

#endif
