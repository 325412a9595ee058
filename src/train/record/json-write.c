/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "base/text.h"
#include "train/record/json-plain.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void push(struct jsonw *w, bool is_array)
{
    assert(w->depth + 1 < JSONW_MOST_DEPTH);
    w->depth++;
    w->has_item[w->depth] = false;
    w->is_array[w->depth] = is_array;
}

/* Bytes that are no UTF-8 become '?': file names may hold anything, JSON may not. */
static void add_quoted(struct str *out, const char *text)
{
    str_add_char(out, '"');
    for (const char *p = text; *p;) {
        unsigned char c = (unsigned char)*p;
        size_t len = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

        if (strnlen(p, len) < len || !text_is_utf8(p, len)) {
            str_add_char(out, '?');
            len = 1;
        } else if (c == '"' || c == '\\') {
            str_addf(out, "\\%c", c);
        } else if (c < 0x20 || c == 0x7f) {
            str_addf(out, "\\u%04x", c);
        } else {
            str_add_len(out, p, len);
        }
        p += len;
    }
    str_add_char(out, '"');
}

static void begin_item(struct jsonw *w, const char *key)
{
    assert(w->depth > 0 && w->is_array[w->depth] == !key);
    if (w->has_item[w->depth])
        str_add(w->out, ", ");
    w->has_item[w->depth] = true;
    if (key) {
        add_quoted(w->out, key);
        str_add(w->out, ": ");
    }
}

void jsonw_begin(struct jsonw *w, struct str *out)
{
    *w = (struct jsonw){.out = out};
    str_add_char(out, '{');
    push(w, false);
}

void jsonw_end(struct jsonw *w)
{
    assert(w->depth == 1);
    jsonw_close(w);
}

void jsonw_open_object(struct jsonw *w, const char *key)
{
    begin_item(w, key);
    str_add_char(w->out, '{');
    push(w, false);
}

void jsonw_open_array(struct jsonw *w, const char *key)
{
    begin_item(w, key);
    str_add_char(w->out, '[');
    push(w, true);
}

void jsonw_close(struct jsonw *w)
{
    assert(w->depth > 0);
    str_add_char(w->out, w->is_array[w->depth] ? ']' : '}');
    w->depth--;
}

void jsonw_text(struct jsonw *w, const char *key, const char *value)
{
    begin_item(w, key);
    if (value)
        add_quoted(w->out, value);
    else
        str_add(w->out, "null");
}

void jsonw_int(struct jsonw *w, const char *key, int64_t value)
{
    begin_item(w, key);
    str_addf(w->out, "%" PRId64, value);
}

void jsonw_double(struct jsonw *w, const char *key, double value)
{
    char text[32];
    int digits = 6;

    begin_item(w, key);
    if (!isfinite(value)) {
        str_add(w->out, "null");
        return;
    }
    do
        snprintf(text, sizeof(text), "%.*g", digits++, value);
    while (digits <= 17 && strtod(text, NULL) != value);
    str_add(w->out, text);
}

void jsonw_bool(struct jsonw *w, const char *key, bool value)
{
    begin_item(w, key);
    str_add(w->out, value ? "true" : "false");
}
