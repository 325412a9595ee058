/* show.c - the rows for people and for programs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "train/preflight/preflight-internal.h"
#include "train/record/json-plain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum verdict preflight_worst(const struct check *rows, int count)
{
    enum verdict worst = VERDICT_UNKNOWN;

    for (int i = 0; i < count; i++)
        if (rows[i].verdict > worst)
            worst = rows[i].verdict;
    return worst;
}

static const char *sum_up(enum verdict worst)
{
    static const char *const words[] = {"not judged", "good", "good, with something to look at",
                                        "BAD"};

    return words[worst];
}

/* --- for people ------------------------------------------------------------------------------
 */

bool preflight_is_coloured(FILE *out)
{
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

    return isatty(fileno(out)) && term && *term && !str_equal(term, "dumb") && !(no && *no);
}

/* A word of the verdict's colour: green, yellow, red on a terminal. */
static void
put_word(enum verdict verdict, const char *word, int width, bool has_colour, FILE *out)
{
    static const char *const codes[] = {"", "\033[32m", "\033[33m", "\033[1;31m"};

    if (has_colour)
        fputs(codes[verdict], out);
    fprintf(out, "%-*s", width, word);
    if (has_colour)
        fputs("\033[0m", out);
}

/* Three digits, and whole numbers as such. */
static void format_number(char *text, size_t room, double value)
{
    if (isnan(value))
        snprintf(text, room, "%s", "");
    else if (value >= 1000 || value == rint(value))
        snprintf(text, room, "%.0f", value);
    else
        snprintf(text, room, value >= 100 ? "%.1f" : value >= 1 ? "%.2f" : "%.3f", value);
}

static void print_row(const struct check *row, bool has_colour, FILE *out)
{
    char value[32], least[32];

    format_number(value, sizeof value, row->value);
    format_number(least, sizeof least, row->least);
    fputs("  ", out);
    put_word(row->verdict, verdict_word(row->verdict), 5, has_colour, out);
    fprintf(out, "%-15s %9s %-8s", row->name, value, row->unit);
    if (least[0])
        fprintf(out, " at least %s (%s)", least, row->note);
    else
        fprintf(out, " %s", row->note);
    fputc('\n', out);
}

static void print_subject(
    const struct check *rows, int from, int to, enum verdict worst, bool has_colour, FILE *out)
{
    fprintf(out, "%s: %s\n", rows[from].subject, rows[from].device);
    for (int i = from; i < to; i++)
        print_row(&rows[i], has_colour, out);
    fputs("  ", out);
    put_word(worst, sum_up(worst), 0, has_colour, out);
    fputs("\n\n", out);
}

void preflight_print(
    const struct check *rows, int count, double seconds, bool has_colour, FILE *out)
{
    int subjects = 0, bad = 0;

    for (int i = 0, next; i < count; i = next) {
        enum verdict worst = check_worst(rows, count, i, &next);

        print_subject(rows, i, next, worst, has_colour, out);
        subjects++;
        bad += worst == VERDICT_BAD;
    }
    if (bad > 0)
        fprintf(out, "%d of %d bad", bad, subjects);
    else
        fprintf(out, "none of %d bad", subjects);
    fprintf(out, ", %.1f s\n", seconds);
}

/* --- for programs ----------------------------------------------------------------------------
 */

static const char *word_for_programs(enum verdict verdict)
{
    static const char *const words[] = {"unknown", "ok", "look", "bad"};

    return words[verdict];
}

static void add_check(struct jsonw *w, const struct check *row)
{
    jsonw_open_object(w, NULL);
    jsonw_text(w, "name", row->name);
    jsonw_text(w, "verdict", word_for_programs(row->verdict));
    jsonw_double(w, "value", row->value);
    jsonw_double(w, "least", row->least);
    jsonw_text(w, "unit", row->unit);
    jsonw_text(w, "note", row->note);
    jsonw_close(w);
}

static int add_subject(struct jsonw *w, const struct check *rows, int count, int from)
{
    int next;
    enum verdict worst = check_worst(rows, count, from, &next);

    jsonw_open_object(w, NULL);
    jsonw_text(w, "subject", rows[from].subject);
    jsonw_text(w, "device", rows[from].device);
    jsonw_text(w, "verdict", word_for_programs(worst));
    jsonw_open_array(w, "checks");
    for (int i = from; i < next; i++)
        add_check(w, &rows[i]);
    jsonw_close(w);
    jsonw_close(w);
    return next;
}

void preflight_print_json(const struct check *rows, int count, double seconds, FILE *out)
{
    auto_str text = {0};
    struct jsonw w;

    jsonw_begin(&w, &text);
    jsonw_text(&w, "verdict", word_for_programs(preflight_worst(rows, count)));
    jsonw_double(&w, "seconds", seconds);
    jsonw_open_array(&w, "subjects");
    for (int i = 0; i < count;)
        i = add_subject(&w, rows, count, i);
    jsonw_close(&w);
    jsonw_end(&w);
    fprintf(out, "%s\n", str_text(&text));
}
