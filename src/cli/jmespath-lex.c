/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/jmespath-internal.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

struct lexer {
    struct arena *arena;
    const char *expression;
    size_t at;
    struct jmes_token *tokens;
    size_t count, room;
};

/* Longest first where one is the beginning of another. */
static const struct sign {
    const char *text;
    enum jmes_token_kind kind;
} signs[] = {
    {"[?", TOKEN_FILTER},     {"[]", TOKEN_FLATTEN},
    {"[", TOKEN_BRACKET},     {"||", TOKEN_OR},
    {"|", TOKEN_PIPE},        {"&&", TOKEN_AND},
    {"==", TOKEN_EQ},         {"&", TOKEN_AMPERSAND},
    {"!=", TOKEN_NE},         {"!", TOKEN_NOT},
    {"<=", TOKEN_LE},         {"<", TOKEN_LT},
    {">=", TOKEN_GE},         {">", TOKEN_GT},
    {".", TOKEN_DOT},         {"*", TOKEN_STAR},
    {"@", TOKEN_CURRENT},     {",", TOKEN_COMMA},
    {":", TOKEN_COLON},       {"]", TOKEN_BRACKET_CLOSE},
    {"{", TOKEN_BRACE},       {"(", TOKEN_PAREN},
    {"}", TOKEN_BRACE_CLOSE}, {")", TOKEN_PAREN_CLOSE},
};

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct jmes_token *add(struct lexer *x, enum jmes_token_kind kind, size_t len)
{
    struct jmes_token *token;

    if (x->count == x->room) {
        x->room = x->room ? 2 * x->room : 32;
        x->tokens = xreallocarray(x->tokens, x->room, sizeof(*x->tokens));
    }
    token = &x->tokens[x->count++];
    *token = (struct jmes_token){.kind = kind, .offset = x->at, .len = len};
    x->at += len;
    return token;
}

static void lex_name(struct lexer *x)
{
    const char *start = x->expression + x->at;
    size_t len = 1;
    struct jmes_token *token;

    while (is_name_start(start[len]) || is_digit(start[len]))
        len++;
    token = add(x, TOKEN_NAME, len);
    token->name = arena_strndup(x->arena, start, len);
}

static int lex_number(struct lexer *x, struct err *e)
{
    const char *start = x->expression + x->at;
    size_t len = 1;
    long long number;

    while (is_digit(start[len]))
        len++;
    if (*start == '-' && len == 1)
        return jmes_fail(e, x->expression, x->at, jmes_syntax, "\"-\" without a number");
    errno = 0;
    number = strtoll(start, NULL, 10);
    if (errno)
        return jmes_fail(e, x->expression, x->at, jmes_syntax, "number too large");
    add(x, TOKEN_NUMBER, len)->number = number;
    return 0;
}

/* Find the closing quote of the text that opens here; a backslash hides what follows it.
 * *ret_len counts both quotes. */
static int find_close(struct lexer *x, const char *what, size_t *ret_len, struct err *e)
{
    const char *start = x->expression + x->at;

    for (size_t i = 1; start[i]; i++) {
        if (start[i] == '\\' && start[i + 1]) {
            i++;
        } else if (start[i] == *start) {
            *ret_len = i + 1;
            return 0;
        }
    }
    return jmes_fail(e, x->expression, x->at, jmes_syntax, "%s without end", what);
}

/* The text between quotes, where backslash and quote stand for the quote.  Every other
 * backslash stays, with what it hides. */
static void unquote(struct str *out, const char *start, size_t len)
{
    for (size_t i = 1; i + 1 < len; i++) {
        if (start[i] == '\\' && start[++i] != *start)
            str_add_char(out, '\\');
        str_add_char(out, start[i]);
    }
}

static int lex_quoted(struct lexer *x, struct err *e)
{
    auto_json json_t *name = NULL;
    size_t len = 0;

    if (find_close(x, "quoted name", &len, e) < 0)
        return -1;
    if (json_parse(x->expression + x->at, len, &name, NULL) < 0)
        return jmes_fail(e, x->expression, x->at, jmes_syntax, "malformed quoted name");
    add(x, TOKEN_QUOTED, len)->name = arena_strdup(x->arena, json_string_value(name));
    return 0;
}

static void drop(void *value)
{
    json_decref(value);
}

static void add_literal(struct lexer *x, size_t len, json_t *value)
{
    arena_defer(x->arena, drop, value);
    add(x, TOKEN_LITERAL, len)->literal = value;
}

static int lex_raw_string(struct lexer *x, struct err *e)
{
    auto_str text = {0};
    size_t len = 0;

    if (find_close(x, "string", &len, e) < 0)
        return -1;
    unquote(&text, x->expression + x->at, len);
    add_literal(x, len, jmes_have(json_stringn(str_text(&text), text.len)));
    return 0;
}

/* What is no JSON is tried as the inside of a JSON string: the language once had it so. */
static int parse_literal(const struct str *text, json_t **ret_value, struct err *e)
{
    const char *start = str_text(text);
    auto_free char *quoted = NULL;

    if (json_parse(start, text->len, ret_value, e) == 0)
        return 0;
    start += strspn(start, " \t\r\n");
    quoted = xasprintf("\"%s\"", start);
    return json_parse(quoted, strlen(quoted), ret_value, NULL);
}

static int lex_literal(struct lexer *x, struct err *e)
{
    auto_str text = {0};
    json_t *value = NULL;
    struct err why = {0};
    size_t len = 0;

    if (find_close(x, "literal", &len, e) < 0)
        return -1;
    unquote(&text, x->expression + x->at, len);
    if (parse_literal(&text, &value, &why) < 0)
        return jmes_fail(e, x->expression, x->at, jmes_syntax, "literal is no JSON (%s)",
                         why.msg);
    add_literal(x, len, value);
    return 0;
}

static int lex_sign(struct lexer *x, struct err *e)
{
    const char *start = x->expression + x->at;
    size_t len = 1;

    for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
        if (str_starts(start, signs[i].text)) {
            add(x, signs[i].kind, strlen(signs[i].text));
            return 0;
        }
    if (*start == '=')
        return jmes_fail(e, x->expression, x->at, jmes_syntax,
                         "unexpected \"=\" (\"==\" compares)");
    while (((unsigned char)start[len] & 0xc0) == 0x80)
        len++;
    return jmes_fail(e, x->expression, x->at, jmes_syntax, "unexpected \"%.*s\"", (int)len,
                     start);
}

static int lex_one(struct lexer *x, struct err *e)
{
    char c = x->expression[x->at];

    if (is_name_start(c)) {
        lex_name(x);
        return 0;
    }
    if (is_digit(c) || c == '-')
        return lex_number(x, e);
    if (c == '"')
        return lex_quoted(x, e);
    if (c == '\'')
        return lex_raw_string(x, e);
    if (c == '`')
        return lex_literal(x, e);
    return lex_sign(x, e);
}

int jmes_lex(struct arena *arena,
             const char *expression,
             struct jmes_token **ret_tokens,
             struct err *e)
{
    struct lexer x = {.arena = arena, .expression = expression};

    for (;;) {
        x.at += strspn(expression + x.at, " \t\r\n");
        if (!expression[x.at])
            break;
        if (lex_one(&x, e) < 0) {
            free(x.tokens);
            return -1;
        }
    }
    add(&x, TOKEN_END, 0);
    *ret_tokens = x.tokens;
    return 0;
}
