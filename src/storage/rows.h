/* rows.h - the rows of a container beside a walk through its names.
 *
 * Names are asked for in rising order; the rows are read in that order too, a step at a time,
 * with a new start where the next name is far ahead.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_ROWS_H
#define STORAGE_ROWS_H

#include "base/err.h"
#include "store/blob.h"

#include <stdint.h>

struct blob;
struct facts;

struct rows {
    struct db *db;
    int64_t container_id;
    int64_t since_ns; /* rows committed after this may not be seen */
    struct blob_cursor cursor;
    bool is_open;
    bool has_row, is_used; /* the cursor stands at a row; it was given out already */
};

void rows_begin(struct rows *rows, struct db *db, int64_t container_id);
/* The blob of a file: 1, or 0 when only a new look can tell, or -1. */
int rows_find(struct rows *rows,
              const char *name,
              const struct facts *facts,
              int64_t ctime_ns,
              struct blob **ret_blob,
              struct err *e);
/* After rows_find of the name: its next snapshot is rows->cursor.row.  1, 0 no more, -1. */
int rows_next_snapshot(struct rows *rows, const char *name, struct err *e);
void rows_done(struct rows *rows);

#endif
