/* flags.c - words of a command line into struct flags, by the table.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/flags/flags.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/flags/flags-internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *place(struct flags *flags, size_t offset)
{
    return (char *)flags + offset;
}

static int
bad_value(const struct flag_row *row, const char *value, const char *wanted, struct err *e)
{
    err_set(e, ERR_INVALID, "--%s: \"%.100s\" is not %s", row->name, value, wanted);
    return err_target(e, row->name);
}

static int
check_bounds(const struct flag_row *row, double number, const char *value, struct err *e)
{
    auto_str wanted = {0};

    if ((row->least == 0 && row->most == 0) || (number >= row->least && number <= row->most))
        return 0;
    if (row->most > 1e15)
        str_addf(&wanted, "at least %g", row->least);
    else
        str_addf(&wanted, "within %.10g and %.10g", row->least, row->most);
    return bad_value(row, value, str_text(&wanted), e);
}

static int
parse_int(const struct flag_row *row, const char *value, int64_t *ret_number, struct err *e)
{
    char *end;
    int64_t number;

    errno = 0;
    number = strtoll(value, &end, 10);
    if (errno || end == value || *end)
        return bad_value(row, value, "a whole number", e);
    if (check_bounds(row, (double)number, value, e) < 0)
        return -1;
    *ret_number = number;
    return 0;
}

static int parse_real(const struct flag_row *row,
                      const char *value,
                      size_t len,
                      double *ret_number,
                      struct err *e)
{
    auto_free char *copy = xstrndup(value, len);
    char *end;
    double number = strtod(copy, &end);

    if (end == copy || *end || !isfinite(number))
        return bad_value(row, copy, "a number", e);
    if (check_bounds(row, number, copy, e) < 0)
        return -1;
    *ret_number = number;
    return 0;
}

static int
parse_bool(const struct flag_row *row, const char *value, bool *ret_is_on, struct err *e)
{
    static const char *const on[] = {"true", "t", "1"}, *const off[] = {"false", "f", "0"};

    for (size_t i = 0; i < ARRAY_SIZE(on); i++) {
        bool is_on = str_equal_nocase(value, on[i]);

        if (is_on || str_equal_nocase(value, off[i])) {
            *ret_is_on = is_on;
            return 0;
        }
    }
    return bad_value(row, value, "true or false", e);
}

static bool is_word(const char *words, const char *value)
{
    size_t len = strlen(value);

    for (const char *p = words;; p++) {
        size_t word = strcspn(p, "|");

        if (word == len && memcmp(p, value, len) == 0)
            return true;
        p += word;
        if (!*p)
            return false;
    }
}

static int check_word(const struct flag_row *row, const char *value, struct err *e)
{
    auto_str wanted = {0};

    if (is_word(row->words, value))
        return 0;
    str_add(&wanted, "one of ");
    for (const char *p = row->words; *p; p++) {
        if (*p != '|')
            str_add_char(&wanted, *p);
        else if (p > row->words)
            str_add(&wanted, ", ");
    }
    return bad_value(row, value, str_text(&wanted), e);
}

static int
parse_list(struct flags *flags, const struct flag_row *row, const char *value, struct err *e)
{
    double *numbers = place(flags, row->offset);
    int *count = place(flags, row->count_offset);

    *count = 0;
    for (const char *p = value; *p;) {
        size_t len = strcspn(p, ",");

        if (*count == FLAGS_MOST_POINTS)
            return err_set(e, ERR_INVALID, "--%s: more than %d numbers", row->name,
                           FLAGS_MOST_POINTS);
        if (parse_real(row, p, len, &numbers[*count], e) < 0)
            return -1;
        *count += 1;
        p += len + (p[len] == ',');
    }
    return 0;
}

/* Where a value goes that nobody reads. */
union nowhere {
    int64_t whole;
    double real;
    bool is_on;
    const char *text;
};

static int
set_value(struct flags *flags, const struct flag_row *row, const char *value, struct err *e)
{
    union nowhere nowhere;
    void *at = row->offset == FLAG_NOWHERE ? (void *)&nowhere : place(flags, row->offset);

    switch (row->type) {
    case FLAG_INT:
        return parse_int(row, value, at, e);
    case FLAG_REAL:
        return parse_real(row, value, strlen(value), at, e);
    case FLAG_BOOL:
        return parse_bool(row, value, at, e);
    case FLAG_LIST:
        return parse_list(flags, row, value, e);
    case FLAG_WORD:
        if (check_word(row, value, e) < 0)
            return -1;
        break;
    case FLAG_TEXT:
        break;
    }
    *(const char **)at = value;
    return 0;
}

/* What a flag is when nobody gave it and it has no default. */
static void set_none(struct flags *flags, const struct flag_row *row)
{
    if (row->offset == FLAG_NOWHERE)
        return;
    if (row->type == FLAG_INT)
        *(int64_t *)place(flags, row->offset) = FLAG_NONE;
    else if (row->type == FLAG_REAL)
        *(double *)place(flags, row->offset) = NAN;
}

static void set_defaults(struct flags *flags)
{
    *flags = (struct flags){.arena = arena_new()};
    for (int i = 0; i < flag_row_count; i++) {
        const struct flag_row *row = &flag_rows[i];

        if (row->initial)
            (void)set_value(flags, row, row->initial, NULL);
        else if (!row->is_ours || row->type != FLAG_INT) /* --seed shares its place */
            set_none(flags, row);
    }
}

static int row_of(const char *name, size_t len)
{
    for (int i = 0; i < flag_row_count; i++)
        if (strlen(flag_rows[i].name) == len && memcmp(flag_rows[i].name, name, len) == 0)
            return i;
    return -1;
}

static int unknown_flag(const char *name, size_t len, struct err *e)
{
    auto_free char *copy = xstrndup(name, len);
    const char *nearest = NULL;
    size_t best = len / 3 + 2;

    for (int i = 0; i < flag_row_count; i++) {
        size_t distance = str_distance(copy, flag_rows[i].name);

        if (distance < best) {
            best = distance;
            nearest = flag_rows[i].name;
        }
    }
    if (nearest)
        return err_set(e, ERR_INVALID, "there is no flag --%.60s; did you mean --%s?", copy,
                       nearest);
    return err_set(e, ERR_INVALID, "there is no flag --%.60s; --help lists them", copy);
}

struct words {
    int at, count;
    char *const *word;
};

static bool is_negated(const char *name, size_t len, int *ret_row)
{
    if (len < 3 || memcmp(name, "no", 2) != 0)
        return false;
    *ret_row = row_of(name + 2, len - 2);
    return *ret_row >= 0 && flag_rows[*ret_row].type == FLAG_BOOL;
}

/* The value of flag `row`: behind "=", or of a boolean none, or the next word. */
static int take_value(struct words *words,
                      const struct flag_row *row,
                      const char *equals,
                      const char **ret_value,
                      struct err *e)
{
    if (equals) {
        *ret_value = equals + 1;
    } else if (row->type == FLAG_BOOL) {
        *ret_value = "true";
    } else if (words->at < words->count) {
        *ret_value = words->word[words->at++];
    } else {
        err_set(e, ERR_INVALID, "--%s needs a value", row->name);
        return err_target(e, row->name);
    }
    return 0;
}

static void note_without_effect(struct flags *flags, int index, struct str *notes)
{
    const struct flag_row *row = &flag_rows[index];

    if (row->why && !flags_given(flags, row->name))
        str_addf(notes, "--%s does nothing here: %s\n", row->name, row->why);
}

static int take_flag(struct flags *flags, struct words *words, struct str *notes, struct err *e)
{
    const char *word = words->word[words->at++];
    const char *name = word + (word[1] == '-' ? 2 : 1);
    const char *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const char *value = "false";
    int row = row_of(name, len);

    if (row < 0 && (equals || !is_negated(name, len, &row)))
        return unknown_flag(name, len, e);
    if (row_of(name, len) == row && take_value(words, &flag_rows[row], equals, &value, e) < 0)
        return -1;
    if (set_value(flags, &flag_rows[row], value, e) < 0)
        return -1;
    note_without_effect(flags, row, notes);
    flags->given[row / 64] |= 1ULL << (row % 64);
    return 0;
}

int flags_parse(
    struct flags *flags, int count, char *const words[], struct str *notes, struct err *e)
{
    struct words w = {.count = count, .word = words};
    bool has_ended = false;

    assert(flag_row_count <= FLAGS_MOST);
    set_defaults(flags);
    while (w.at < w.count) {
        const char *word = w.word[w.at];

        if (!has_ended && str_equal(word, "--")) {
            has_ended = true;
            w.at++;
        } else if (has_ended || word[0] != '-' || !word[1]) {
            return err_set(e, ERR_INVALID, "received unknown positional argument \"%.100s\"",
                           word);
        } else if (take_flag(flags, &w, notes, e) < 0) {
            return -1;
        }
    }
    if (flags->wants_help || flags->wants_helpfull || flags->wants_version)
        return 0;
    return flags_check(flags, notes, e);
}

void flags_done(struct flags *flags)
{
    arena_free(flags->arena);
    flags->arena = NULL;
}

bool flags_given(const struct flags *flags, const char *name)
{
    int row = row_of(name, strlen(name));

    assert(row >= 0);
    return flags->given[row / 64] >> (row % 64) & 1;
}
