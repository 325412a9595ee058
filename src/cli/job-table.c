/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job-table.h"

#include "base/mem.h"
#include "cli/term.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

enum {
    GAP = 2,
};

void job_table_init(struct job_table *table, const char *const *titles)
{
    *table = (struct job_table){.titles = titles};
    while (titles[table->columns])
        table->columns++;
    assert(table->columns <= JOB_TABLE_COLUMNS);
}

void job_table_done(struct job_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
}

void job_table_add(struct job_table *table, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    table->cells = xreallocarray(table->cells, table->count + 1, sizeof(*table->cells));
    table->cells[table->count++] = xvasprintf(format, args);
    va_end(args);
}

const char *job_table_colour(const char *state)
{
    static const struct row {
        const char *state, *colour;
    } rows[] = {
        {"running", "\x1b[36m"},     {"succeeded", "\x1b[32m"}, {"failed", "\x1b[31m"},
        {"queued", "\x1b[33m"},      {"idle", "\x1b[32m"},      {"unusable", "\x1b[31m"},
        {"terminating", "\x1b[35m"}, {"preparing", "\x1b[33m"}, {"leaving", "\x1b[35m"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (str_equal(rows[i].state, state))
            return rows[i].colour;
    }
    return "";
}

static void measure(const struct job_table *table, size_t widths[JOB_TABLE_COLUMNS])
{
    assert(table->columns);
    for (size_t i = 0; i < table->columns; i++)
        widths[i] = strlen(table->titles[i]);
    for (size_t i = 0; i < table->count; i++) {
        size_t width = term_width(table->cells[i]);

        if (width > widths[i % table->columns])
            widths[i % table->columns] = width;
    }
}

struct line {
    struct str *out;
    const struct job_table_look *look;
    size_t at; /* column */
};

/* A cell, cut where the line ends; the last one is not filled up. */
static void add_cell(struct line *line, const char *text, size_t width, bool is_last)
{
    const char *colour = line->look->colour ? job_table_colour(text) : "";
    auto_str clean = {0};
    size_t have, room;

    term_clean(&clean, text, line->look->clean ? strlen(text) : 0);
    if (line->look->clean)
        text = str_text(&clean);
    have = term_width(text);
    room = line->look->width > line->at ? line->look->width - line->at : 0;
    if (line->look->width && have > room) {
        str_add_len(line->out, text, have == strlen(text) ? room : 0);
        line->at = line->look->width;
        return;
    }
    str_addf(line->out, "%s%s%s", colour, text, *colour ? "\x1b[0m" : "");
    line->at += have;
    for (; !is_last && have < width + GAP; have++, line->at++)
        str_add_char(line->out, ' ');
}

static void end_line(struct str *out)
{
    while (out->len && out->data[out->len - 1] == ' ')
        str_truncate(out, out->len - 1);
    str_add_char(out, '\n');
}

void job_table_format(struct str *out,
                      const struct job_table *table,
                      const struct job_table_look *look)
{
    size_t widths[JOB_TABLE_COLUMNS];
    struct line line = {.out = out, .look = look};

    assert(table->columns);
    measure(table, widths);
    for (size_t i = 0; i < table->columns; i++)
        add_cell(&line, table->titles[i], widths[i], i + 1 == table->columns);
    end_line(out);
    for (size_t i = 0; i < table->count; i++) {
        size_t column = i % table->columns;

        if (column == 0)
            line.at = 0;
        add_cell(&line, table->cells[i], widths[column], column + 1 == table->columns);
        if (column + 1 == table->columns)
            end_line(out);
    }
}
