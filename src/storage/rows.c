/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/rows.h"

#include "storage/storage-internal.h"

#include <string.h>
#include <time.h>

enum {
    MOST_STEPS = 16,           /* rows stepped over before a new start is the cheaper way */
    CLOCK_SLACK_NS = 50000000, /* several ticks of the clock that stamps files */
};

void rows_begin(struct rows *rows, struct db *db, int64_t container_id)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    *rows = (struct rows){
        .db = db,
        .container_id = container_id,
        .since_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - CLOCK_SLACK_NS,
    };
}

void rows_done(struct rows *rows)
{
    if (rows->is_open)
        blob_cursor_done(&rows->cursor);
    rows->is_open = rows->has_row = false;
}

static int step(struct rows *rows, struct err *e)
{
    int rc = blob_cursor_next(&rows->cursor, e);

    rows->has_row = rc > 0;
    rows->is_used = false;
    return rc;
}

static int start_at(struct rows *rows, const char *name, struct err *e)
{
    rows_done(rows);
    if (blob_cursor_open(&rows->cursor, rows->db, rows->container_id, name, e) < 0)
        return -1;
    rows->is_open = true;
    return step(rows, e);
}

/* Stand at the first row that is not before the name. */
static int seek(struct rows *rows, const char *name, struct err *e)
{
    if (!rows->is_open)
        return start_at(rows, name, e);
    for (int i = 0; rows->has_row && strcmp(rows->cursor.row.name, name) < 0; i++) {
        if (i == MOST_STEPS)
            return start_at(rows, name, e);
        if (step(rows, e) < 0)
            return -1;
    }
    return 0;
}

static bool is_of(const struct rows *rows, const char *name)
{
    return rows->has_row && strcmp(rows->cursor.row.name, name) == 0;
}

static bool is_changed(const struct blob_row *row, const struct facts *facts)
{
    return row->size_bytes != facts->size_bytes || row->mtime_ns != facts->mtime_ns;
}

int rows_find(struct rows *rows,
              const char *name,
              const struct facts *facts,
              int64_t ctime_ns,
              struct blob **ret_blob,
              struct err *e)
{
    bool has_others = false;

    if (seek(rows, name, e) < 0)
        return -1;
    for (; is_of(rows, name) && !rows->cursor.row.snapshot[0]; has_others = true) {
        const struct blob_row *row = &rows->cursor.row;

        if (row->inode == facts->inode && row->born_ns == facts->born_ns) {
            /* An append under way needs a closer look. */
            rows->is_used = true;
            if (row->type == BLOB_APPEND && is_changed(row, facts))
                return 0;
            *ret_blob = blob_of_row(row, facts, is_changed(row, facts), name, "");
            return 1;
        }
        if (step(rows, e) < 0)
            return -1;
    }
    if (has_others || ctime_ns >= rows->since_ns)
        return 0;
    *ret_blob = blob_of_row(NULL, facts, false, name, "");
    return 1;
}

int rows_next_snapshot(struct rows *rows, const char *name, struct err *e)
{
    for (;;) {
        if (rows->is_used && step(rows, e) < 0)
            return -1;
        if (!is_of(rows, name))
            return 0;
        rows->is_used = true;
        if (rows->cursor.row.snapshot[0])
            return 1;
    }
}
