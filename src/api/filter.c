/* The little of OData's $filter that Azure's clients write: comparisons with eq, joined by and.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static void skip_spaces(const char **p)
{
    while (isspace((unsigned char)**p))
        (*p)++;
}

static bool word(const char **p, const char *expected)
{
    size_t len = strlen(expected);

    skip_spaces(p);
    if (strncasecmp(*p, expected, len) != 0 || isalnum((unsigned char)(*p)[len]))
        return false;
    *p += len;
    return true;
}

/* 'text', with '' for a quote. */
static bool quoted(struct arena *arena, const char **p, const char **ret)
{
    auto_str out = {0};

    skip_spaces(p);
    if (**p != '\'')
        return false;
    for ((*p)++;; (*p)++) {
        if (!**p)
            return false;
        if (**p == '\'' && (*p)[1] == '\'')
            (*p)++;
        else if (**p == '\'')
            break;
        str_add_char(&out, **p);
    }
    (*p)++;
    *ret = arena_strdup(arena, str_text(&out));
    return true;
}

static bool comparison(struct arena *arena, const char **p, struct odata_filter *f)
{
    const struct {
        const char *name;
        const char **to;
    } fields[] = {
        {"tagName", &f->tag},
        {"tagValue", &f->tag_value},
        {"resourceType", &f->type},
        {"name", &f->name},
    };

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        if (word(p, fields[i].name))
            return word(p, "eq") && quoted(arena, p, fields[i].to);
    }
    return false;
}

int odata_parse(struct arena *arena, const char *text, struct odata_filter *ret, struct err *e)
{
    struct odata_filter f = {0};
    const char *p = text;
    bool ok;

    do
        ok = comparison(arena, &p, &f);
    while (ok && word(&p, "and"));
    skip_spaces(&p);
    if (!ok || *p || (f.tag_value && !f.tag)) {
        err_set(e, ERR_INVALID,
                "$filter: \"%.100s\" is not understood; write tagName eq 'x' and tagValue eq "
                "'y', or resourceType eq 'Microsoft.BatchAI/workspaces'",
                text);
        err_reason(e, "InvalidFilterInQueryString");
        return err_target(e, "$filter");
    }
    *ret = f;
    return 0;
}
