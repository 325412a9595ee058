/* json-read.c - RFC 8259 to the letter: no comments, no trailing commas, no second value.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "train/record/json-plain.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_LEVELS = 64,
};

struct reader {
    struct arena *arena;
    const char *at, *end, *begin;
    int level;
    struct err *e;
};

static int fail(struct reader *r, const char *what)
{
    return err_set(r->e, ERR_INVALID, "%s at byte %td", what, r->at - r->begin);
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end &&
           (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
}

static bool next_is(struct reader *r, char c)
{
    skip_blanks(r);
    return r->at < r->end && *r->at == c;
}

static bool take(struct reader *r, char c)
{
    if (!next_is(r, c))
        return false;
    r->at++;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four digits behind \u. */
static int take_unit(struct reader *r, uint32_t *ret_unit)
{
    uint32_t unit = 0;

    if (r->end - r->at < 4)
        return fail(r, "a cut escape");
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(*r->at);

        if (digit < 0)
            return fail(r, "a bad escape");
        unit = unit * 16 + (uint32_t)digit;
        r->at++;
    }
    *ret_unit = unit;
    return 0;
}

static void add_utf8(struct str *out, uint32_t c)
{
    if (c < 0x80) {
        str_add_char(out, (char)c);
    } else if (c < 0x800) {
        str_add_char(out, (char)(0xc0 | c >> 6));
        str_add_char(out, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        str_add_char(out, (char)(0xe0 | c >> 12));
        str_add_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
        str_add_char(out, (char)(0x80 | (c & 0x3f)));
    } else {
        str_add_char(out, (char)(0xf0 | c >> 18));
        str_add_char(out, (char)(0x80 | (c >> 12 & 0x3f)));
        str_add_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
        str_add_char(out, (char)(0x80 | (c & 0x3f)));
    }
}

static int take_unicode(struct reader *r, struct str *out)
{
    uint32_t unit, low;

    if (take_unit(r, &unit) < 0)
        return -1;
    if (unit >= 0xd800 && unit < 0xdc00) { /* the first half of a pair */
        if (r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u')
            return fail(r, "half a character");
        r->at += 2;
        if (take_unit(r, &low) < 0)
            return -1;
        if (low < 0xdc00 || low > 0xdfff)
            return fail(r, "half a character");
        unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    } else if (unit >= 0xdc00 && unit < 0xe000) {
        return fail(r, "half a character");
    }
    if (!unit)
        return fail(r, "a NUL");
    add_utf8(out, unit);
    return 0;
}

static int take_escape(struct reader *r, struct str *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *found;

    if (r->at == r->end)
        return fail(r, "a cut escape");
    if (*r->at == 'u') {
        r->at++;
        return take_unicode(r, out);
    }
    found = *r->at ? strchr(from, *r->at) : NULL;
    if (!found)
        return fail(r, "a bad escape");
    str_add_char(out, to[found - from]);
    r->at++;
    return 0;
}

static int take_text(struct reader *r, const char **ret_text)
{
    auto_str out = {0};

    if (!take(r, '"'))
        return fail(r, "no text");
    while (r->at < r->end && *r->at != '"') {
        if ((unsigned char)*r->at < 0x20)
            return fail(r, "a control character");
        if (*r->at != '\\') {
            str_add_char(&out, *r->at++);
            continue;
        }
        r->at++;
        if (take_escape(r, &out) < 0)
            return -1;
    }
    if (r->at == r->end)
        return fail(r, "a text without an end");
    r->at++;
    *ret_text = arena_strndup(r->arena, str_text(&out), out.len);
    return 0;
}

static size_t digits_at(const struct reader *r, const char *p)
{
    size_t count = 0;

    while (p + count < r->end && p[count] >= '0' && p[count] <= '9')
        count++;
    return count;
}

/* -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)? */
static int take_number(struct reader *r, struct jsonr *value)
{
    const char *p = r->at;
    size_t digits;

    if (*p == '-')
        p++;
    digits = digits_at(r, p);
    if (!digits || (digits > 1 && *p == '0'))
        return fail(r, "no value");
    p += digits;
    if (p < r->end && *p == '.') {
        digits = digits_at(r, ++p);
        if (!digits)
            return fail(r, "a number without an end");
        p += digits;
    }
    if (p < r->end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < r->end && (*p == '+' || *p == '-'))
            p++;
        digits = digits_at(r, p);
        if (!digits)
            return fail(r, "a number without an end");
        p += digits;
    }
    value->type = JSONR_NUMBER;
    value->text = arena_strndup(r->arena, r->at, (size_t)(p - r->at));
    value->number = strtod(value->text, NULL);
    r->at = p;
    return isfinite(value->number) ? 0 : fail(r, "a number that is too large");
}

static bool take_word(struct reader *r, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
        return false;
    r->at += len;
    return true;
}

static int take_value(struct reader *r, struct jsonr *value);

static struct jsonr *append(struct reader *r, struct jsonr *parent, struct jsonr *last)
{
    struct jsonr *child = arena_alloc(r->arena, sizeof(*child));

    if (last)
        last->next = child;
    else
        parent->first = child;
    return child;
}

static int take_array(struct reader *r, struct jsonr *value)
{
    struct jsonr *child = NULL;

    value->type = JSONR_ARRAY;
    r->at++;
    if (take(r, ']'))
        return 0;
    do {
        child = append(r, value, child);
        if (take_value(r, child) < 0)
            return -1;
    } while (take(r, ','));
    return take(r, ']') ? 0 : fail(r, "an array without an end");
}

static int by_key(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, since headers of large models have thousands of keys. */
static int refuse_twins(struct reader *r, const struct jsonr *object, size_t count)
{
    const char **keys = xreallocarray(NULL, count, sizeof(*keys));
    size_t n = 0;
    int rc = 0;

    for (const struct jsonr *c = object->first; c; c = c->next)
        keys[n++] = c->key;
    qsort(keys, n, sizeof(*keys), by_key);
    for (size_t i = 1; i < n && rc == 0; i++)
        if (str_equal(keys[i - 1], keys[i]))
            rc = err_set(r->e, ERR_INVALID, "the key \"%.100s\" is there twice", keys[i]);
    free(keys);
    return rc;
}

static int take_object(struct reader *r, struct jsonr *value)
{
    struct jsonr *child = NULL;
    size_t count = 0;

    value->type = JSONR_OBJECT;
    r->at++;
    if (take(r, '}'))
        return 0;
    do {
        child = append(r, value, child);
        if (take_text(r, &child->key) < 0)
            return -1;
        if (!take(r, ':'))
            return fail(r, "no colon");
        if (take_value(r, child) < 0)
            return -1;
        count++;
    } while (take(r, ','));
    if (!take(r, '}'))
        return fail(r, "an object without an end");
    return refuse_twins(r, value, count);
}

static int take_nested(struct reader *r, struct jsonr *value)
{
    int rc;

    if (r->level == MOST_LEVELS)
        return fail(r, "too many levels");
    r->level++;
    rc = *r->at == '[' ? take_array(r, value) : take_object(r, value);
    r->level--;
    return rc;
}

static int take_value(struct reader *r, struct jsonr *value)
{
    skip_blanks(r);
    if (r->at == r->end)
        return fail(r, "no value");
    if (*r->at == '[' || *r->at == '{')
        return take_nested(r, value);
    if (*r->at == '"') {
        value->type = JSONR_TEXT;
        return take_text(r, &value->text);
    }
    if (take_word(r, "true") || take_word(r, "false")) {
        value->type = JSONR_BOOL;
        value->boolean = r->at[-2] == 'u';
        return 0;
    }
    if (take_word(r, "null")) {
        value->type = JSONR_NULL;
        return 0;
    }
    return take_number(r, value);
}

int jsonr_parse(struct arena *arena,
                const char *text,
                size_t len,
                const struct jsonr **ret_value,
                struct err *e)
{
    struct reader r = {.arena = arena, .begin = text, .at = text, .end = text + len, .e = e};
    struct jsonr *value = arena_alloc(arena, sizeof(*value));

    if (!text_is_utf8(text, len))
        return err_set(e, ERR_INVALID, "the text is not UTF-8");
    if (take_value(&r, value) < 0)
        return -1;
    skip_blanks(&r);
    if (r.at != r.end)
        return fail(&r, "something behind the value");
    *ret_value = value;
    return 0;
}

const struct jsonr *jsonr_get(const struct jsonr *object, const char *key)
{
    if (!object || object->type != JSONR_OBJECT)
        return NULL;
    for (const struct jsonr *c = object->first; c; c = c->next)
        if (str_equal(c->key, key))
            return c;
    return NULL;
}

int jsonr_int(
    const struct jsonr *value, int64_t least, int64_t most, int64_t *ret_value, struct err *e)
{
    char *end;
    int64_t number;

    if (!value || value->type != JSONR_NUMBER || strpbrk(value->text, ".eE"))
        return err_set(e, ERR_INVALID, "no whole number");
    errno = 0;
    number = strtoll(value->text, &end, 10);
    if (errno || *end || number < least || number > most)
        return err_set(e, ERR_INVALID, "%.40s is not within %" PRId64 "..%" PRId64, value->text,
                       least, most);
    *ret_value = number;
    return 0;
}
