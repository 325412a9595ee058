/* job-table.h - tables for people: a title for each column, cells as wide as they need to be,
 * states in their colours on a terminal.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_JOB_TABLE_H
#define CLI_JOB_TABLE_H

#include "base/str.h"

#include <stddef.h>

enum {
    JOB_TABLE_COLUMNS = 8,
};

struct job_table {
    const char *const *titles; /* ended by NULL */
    char **cells;              /* row by row */
    size_t columns, count;     /* cells so far */
};

void job_table_init(struct job_table *table, const char *const *titles);
void job_table_done(struct job_table *table);
#define auto_job_table __attribute__((cleanup(job_table_done))) struct job_table

/* The next cell.  Foreign text may be in it. */
void job_table_add(struct job_table *table, const char *format, ...) PRINTF_LIKE(2, 3);

struct job_table_look {
    bool colour;  /* states in colours */
    bool clean;   /* for a terminal */
    size_t width; /* lines are cut to this; 0 = never */
};
/* Append it; a table without rows is its titles alone. */
void job_table_format(struct str *out,
                      const struct job_table *table,
                      const struct job_table_look *look);

/* The colour of a state ("\x1b[32m"), or "" for other words. */
const char *job_table_colour(const char *state);

#endif
