/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/jmespath-internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

const char jmes_syntax[] = "syntax";
const char jmes_invalid_type[] = "invalid-type";
const char jmes_invalid_arity[] = "invalid-arity";
const char jmes_invalid_value[] = "invalid-value";
const char jmes_unknown_function[] = "unknown-function";

enum {
    AROUND_BYTES =
        80, /* shown on each side of the fault: both, and the words, fit into err.msg */
};

static bool is_middle_of_character(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The expression, or of a long one the part around the fault, on one line. */
static char *excerpt(const char *expression, size_t offset)
{
    size_t len = strlen(expression);
    size_t from = offset > AROUND_BYTES ? offset - AROUND_BYTES : 0;
    size_t to = len - offset > AROUND_BYTES ? offset + AROUND_BYTES : len;
    auto_str out = {0};

    while (from > 0 && is_middle_of_character(expression[from]))
        from--;
    while (to < len && is_middle_of_character(expression[to]))
        to++;
    str_add(&out, from > 0 ? "..." : "");
    for (size_t i = from; i < to; i++)
        str_add_char(&out, (unsigned char)expression[i] < ' ' ? ' ' : expression[i]);
    str_add(&out, to < len ? "..." : "");
    return str_take(&out);
}

int jmes_fail(struct err *e,
              const char *expression,
              size_t offset,
              const char *reason,
              const char *format,
              ...)
{
    auto_free char *text = NULL;
    auto_free char *shown = excerpt(expression, offset);
    va_list args;

    va_start(args, format);
    text = xvasprintf(format, args);
    va_end(args);
    err_set(e, ERR_INVALID, "%s at position %zu of \"%s\"", text,
            jmes_characters(expression, offset) + 1, shown);
    return err_reason(e, reason);
}
