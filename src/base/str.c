/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include "base/mem.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

void str_done(struct str *s)
{
    free(s->data);
    *s = (struct str){0};
}

char *str_reserve(struct str *s, size_t more)
{
    if (s->room - s->len <= more) {
        size_t room = s->room ? s->room * 2 : 64;

        while (room - s->len <= more)
            room *= 2;
        s->data = xrealloc(s->data, room);
        s->room = room;
        s->data[s->len] = '\0';
    }
    return s->data + s->len;
}

void str_add_len(struct str *s, const void *bytes, size_t len)
{
    char *end = str_reserve(s, len);

    if (len)
        memcpy(end, bytes, len);
    s->len += len;
    s->data[s->len] = '\0';
}

void str_add(struct str *s, const char *text)
{
    str_add_len(s, text, strlen(text));
}

void str_add_char(struct str *s, char c)
{
    char *end = str_reserve(s, 1);

    end[0] = c;
    end[1] = '\0';
    s->len++;
}

void str_vaddf(struct str *s, const char *format, va_list args)
{
    size_t room = s->room - s->len; /* 0 when nothing was added yet */
    va_list again;
    int len;

    /* Mostly it fits into what is left; where it does not, the first try has told the length.
     */
    va_copy(again, args);
    len = vsnprintf(room ? s->data + s->len : NULL, room, format, again);
    va_end(again);
    if (len < 0) {
        str_truncate(s, s->len);
        return;
    }
    if ((size_t)len >= room)
        vsnprintf(str_reserve(s, (size_t)len), (size_t)len + 1, format, args);
    s->len += (size_t)len;
}

void str_addf(struct str *s, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    str_vaddf(s, format, args);
    va_end(args);
}

void str_truncate(struct str *s, size_t len)
{
    if (len <= s->len && s->data) {
        s->len = len;
        s->data[len] = '\0';
    }
}

const char *str_text(const struct str *s)
{
    return s->data ? s->data : "";
}

char *str_take(struct str *s)
{
    char *text = s->data ? s->data : xstrdup("");

    *s = (struct str){0};
    return text;
}

bool str_equal(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool str_equal_nocase(const char *a, const char *b)
{
    return a && b ? strcasecmp(a, b) == 0 : a == b;
}

bool str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_starts_nocase(const char *s, const char *prefix)
{
    return strncasecmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
    size_t len = strlen(s), tail = strlen(suffix);

    return len >= tail && memcmp(s + len - tail, suffix, tail) == 0;
}

char *str_lower(const char *s)
{
    char *lower = xstrdup(s);

    for (char *p = lower; *p; p++)
        if (*p >= 'A' && *p <= 'Z') /* tolower() would ask the locale */
            *p = (char)(*p + ('a' - 'A'));
    return lower;
}

/* Optimal string alignment over three rows of the usual table. */
size_t str_distance(const char *a, const char *b)
{
    enum { MOST = 64 };
    size_t rows[3][MOST + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    size_t la = strlen(a), lb = strlen(b);

    if (la > MOST || lb > MOST)
        return SIZE_MAX;
    for (size_t j = 0; j <= lb; j++)
        last[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t *spare = before;

        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);

            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        before = last;
        last = row;
        row = spare;
    }
    return last[lb];
}
