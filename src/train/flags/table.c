/* table.c - words of a command line into a struct, by a table: see table.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/flags/table.h"

#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *place(void *values, size_t offset)
{
    return (char *)values + offset;
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
parse_list(void *values, const struct flag_row *row, const char *value, struct err *e)
{
    double *numbers = place(values, row->offset);
    int *count = place(values, row->count_offset);

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

static int set_value(void *values, const struct flag_row *row, const char *value, struct err *e)
{
    union nowhere nowhere;
    void *at = row->offset == FLAG_NOWHERE ? (void *)&nowhere : place(values, row->offset);

    switch (row->type) {
    case FLAG_INT:
        return parse_int(row, value, at, e);
    case FLAG_REAL:
        return parse_real(row, value, strlen(value), at, e);
    case FLAG_BOOL:
        return parse_bool(row, value, at, e);
    case FLAG_LIST:
        return parse_list(values, row, value, e);
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
static void set_none(void *values, const struct flag_row *row)
{
    if (row->offset == FLAG_NOWHERE)
        return;
    if (row->type == FLAG_INT)
        *(int64_t *)place(values, row->offset) = FLAG_NONE;
    else if (row->type == FLAG_REAL)
        *(double *)place(values, row->offset) = NAN;
}

void flag_table_defaults(const struct flag_table *table, void *values)
{
    for (int i = 0; i < table->count; i++) {
        const struct flag_row *row = &table->rows[i];

        if (row->initial)
            (void)set_value(values, row, row->initial, NULL);
        else if (!row->is_ours || row->type != FLAG_INT) /* an alias shares its place */
            set_none(values, row);
    }
}

static int row_of(const struct flag_table *table, const char *name, size_t len)
{
    for (int i = 0; i < table->count; i++)
        if (strlen(table->rows[i].name) == len && memcmp(table->rows[i].name, name, len) == 0)
            return i;
    return -1;
}

static int
unknown_flag(const struct flag_table *table, const char *name, size_t len, struct err *e)
{
    auto_free char *copy = xstrndup(name, len);
    const char *nearest = NULL;
    size_t best = len / 3 + 2;

    for (int i = 0; i < table->count; i++) {
        size_t distance = str_distance(copy, table->rows[i].name);

        if (distance < best) {
            best = distance;
            nearest = table->rows[i].name;
        }
    }
    if (nearest)
        return err_set(e, ERR_INVALID, "there is no flag --%.60s; did you mean --%s?", copy,
                       nearest);
    return err_set(e, ERR_INVALID, "there is no flag --%.60s; --help lists them", copy);
}

/* A command line while it is read. */
struct reading {
    const struct flag_table *table;
    void *values;
    struct flags_given *given;
    struct str *notes;
    int at, count;
    char *const *word;
    const struct flag_row *last; /* the flag before */
};

static bool
is_negated(const struct flag_table *table, const char *name, size_t len, int *ret_row)
{
    if (!table->negates || len < 3 || memcmp(name, "no", 2) != 0)
        return false;
    *ret_row = row_of(table, name + 2, len - 2);
    return *ret_row >= 0 && table->rows[*ret_row].type == FLAG_BOOL;
}

/* The value of a flag: behind "=", or of a boolean none, or the next word. */
static int take_value(struct reading *r,
                      const struct flag_row *row,
                      const char *equals,
                      const char **ret_value,
                      struct err *e)
{
    if (equals) {
        *ret_value = equals + 1;
    } else if (row->type == FLAG_BOOL) {
        *ret_value = "true";
    } else if (r->at < r->count) {
        *ret_value = r->word[r->at++];
    } else {
        err_set(e, ERR_INVALID, "--%s needs a value", row->name);
        return err_target(e, row->name);
    }
    return 0;
}

static void mark(struct reading *r, int index)
{
    const struct flag_row *row = &r->table->rows[index];

    if (row->why && !flag_table_given(r->table, r->given, row->name))
        str_addf(r->notes, "--%s does nothing here: %s\n", row->name, row->why);
    r->given->bits[index / 64] |= 1ULL << (index % 64);
    r->last = row;
}

static int take_flag(struct reading *r, struct err *e)
{
    const struct flag_table *table = r->table;
    const char *word = r->word[r->at++];
    const char *name = word + (word[1] == '-' ? 2 : 1);
    const char *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const char *value = "false";
    int row = row_of(table, name, len);

    if (row < 0 && (equals || !is_negated(table, name, len, &row)))
        return unknown_flag(table, name, len, e);
    if (row_of(table, name, len) == row &&
        take_value(r, &table->rows[row], equals, &value, e) < 0)
        return -1;
    if (set_value(r->values, &table->rows[row], value, e) < 0)
        return -1;
    mark(r, row);
    return 0;
}

static int positional(const struct reading *r, const char *word, struct err *e)
{
    if (r->last && r->last->type == FLAG_BOOL)
        return err_set(e, ERR_INVALID,
                       "received unknown positional argument \"%.100s\"; a value for --%s is "
                       "written --%s=%.100s",
                       word, r->last->name, r->last->name, word);
    return err_set(e, ERR_INVALID, "received unknown positional argument \"%.100s\"", word);
}

int flag_table_parse(const struct flag_table *table,
                     void *values,
                     struct flags_given *given,
                     int count,
                     char *const words[],
                     struct str *notes,
                     struct err *e)
{
    struct reading r = {.table = table,
                        .values = values,
                        .given = given,
                        .notes = notes,
                        .count = count,
                        .word = words};
    bool has_ended = false;

    assert(table->count <= FLAGS_MOST);
    while (r.at < r.count) {
        const char *word = r.word[r.at];

        if (!has_ended && str_equal(word, "--")) {
            has_ended = true;
            r.at++;
        } else if (has_ended || word[0] != '-' || !word[1]) {
            return positional(&r, word, e);
        } else if (take_flag(&r, e) < 0) {
            return -1;
        }
    }
    return 0;
}

bool flag_table_given(const struct flag_table *table,
                      const struct flags_given *given,
                      const char *name)
{
    int row = row_of(table, name, strlen(name));

    assert(row >= 0);
    return given->bits[row / 64] >> (row % 64) & 1;
}
