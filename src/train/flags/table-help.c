/* table-help.c - the rows of a table as the text of --help.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "train/flags/table.h"

#include <string.h>

enum {
    INDENT = 6,
    WIDTH = 80,
};

/* Words of text, wrapped and indented. */
static void print_wrapped(FILE *out, const char *text)
{
    size_t column = 0;

    while (*text) {
        size_t len = strcspn(text, " ");

        if (!column || column + 1 + len > WIDTH) {
            fprintf(out, "%s%*s", column ? "\n" : "", INDENT, "");
            column = INDENT;
        } else {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", (int)len, text);
        column += len;
        text += len + (text[len] == ' ');
    }
    fputc('\n', out);
}

static const char *kind_of(const struct flag_row *row)
{
    switch (row->type) {
    case FLAG_INT:
        return "=N";
    case FLAG_REAL:
        return "=X";
    case FLAG_LIST:
        return "=X,X,...";
    case FLAG_TEXT:
        return "=TEXT";
    case FLAG_WORD:
        return "=";
    case FLAG_BOOL:
        break;
    }
    return "";
}

static void print_row(FILE *out, const struct flag_row *row)
{
    auto_str text = {0};

    fprintf(out, "  --%s%s%s\n", row->name, kind_of(row),
            row->type == FLAG_WORD ? row->words + (row->words[0] == '|') : "");
    str_add(&text, row->why ? row->why : row->help);
    if (!row->why && row->initial && row->initial[0] &&
        (row->type != FLAG_BOOL || str_equal(row->initial, "true")))
        str_addf(&text, " (default %s)", row->initial);
    print_wrapped(out, str_text(&text));
}

void flag_table_print(FILE *out,
                      const struct flag_table *table,
                      const char *title,
                      bool is_ours,
                      bool without_effect)
{
    fprintf(out, "\n%s\n", title);
    for (int i = 0; i < table->count; i++) {
        const struct flag_row *row = &table->rows[i];

        if (row->is_ours == is_ours && !row->why == !without_effect)
            print_row(out, row);
    }
}
