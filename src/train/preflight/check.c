/* SPDX-License-Identifier: Apache-2.0 */
#include "train/preflight/check.h"

#include "base/mem.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *verdict_word(enum verdict verdict)
{
    static const char *const words[] = {"-", "ok", "look", "BAD"};

    return words[verdict];
}

void checks_done(struct checks *checks)
{
    free(checks->all);
    *checks = (struct checks){0};
}

void checks_subject(struct checks *checks, const char *device, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(checks->subject, sizeof checks->subject, format, args);
    va_end(args);
    snprintf(checks->device, sizeof checks->device, "%s", device);
}

/* A zeroed row of the subject. */
static struct check *add(struct checks *checks, const char *name, const char *unit)
{
    struct check *row;

    if (checks->count == checks->room) {
        checks->room = checks->room ? 2 * checks->room : 32;
        checks->all = xreallocarray(checks->all, (size_t)checks->room, sizeof(*checks->all));
    }
    row = &checks->all[checks->count++];
    memset(row, 0, sizeof *row); /* the padding too: rows travel as bytes */
    memcpy(row->subject, checks->subject, sizeof row->subject);
    memcpy(row->device, checks->device, sizeof row->device);
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->unit, sizeof row->unit, "%s", unit);
    row->value = row->least = NAN;
    return row;
}

void checks_least(struct checks *checks,
                  const char *name,
                  double value,
                  double least,
                  const char *unit,
                  const char *format,
                  ...)
{
    struct check *row = add(checks, name, unit);
    va_list args;

    va_start(args, format);
    vsnprintf(row->note, sizeof row->note, format, args);
    va_end(args);
    row->value = value;
    row->least = least;
    if (!isnan(value) && !isnan(least))
        row->verdict = value >= least ? VERDICT_OK : VERDICT_BAD;
}

void checks_add(struct checks *checks,
                enum verdict verdict,
                const char *name,
                double value,
                const char *unit,
                const char *format,
                ...)
{
    struct check *row = add(checks, name, unit);
    va_list args;

    va_start(args, format);
    vsnprintf(row->note, sizeof row->note, format, args);
    va_end(args);
    row->value = value;
    row->verdict = verdict;
}

enum verdict check_worst(const struct check *rows, int count, int first, int *ret_next)
{
    enum verdict worst = VERDICT_UNKNOWN;
    int i = first;

    for (; i < count && str_equal(rows[i].subject, rows[first].subject); i++)
        if (rows[i].verdict > worst)
            worst = rows[i].verdict;
    *ret_next = i;
    return worst;
}
