/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store-internal.h"

int store_add_event(struct db *db, const struct event *event, struct err *e)
{
    return db_run(db, e,
                  "INSERT INTO event (at_ms, principal, peer, operation, target, request_id,"
                  " outcome, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                  "ittttttt", event->at_ms, event->principal, event->peer, event->operation,
                  event->target, event->request_id, event->outcome, event->detail);
}

int store_each_event(struct db *db,
                     int64_t before_seq,
                     size_t most,
                     void (*each)(const struct event *event, void *context),
                     void *context,
                     struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e,
                  "SELECT seq, at_ms, principal, peer, operation, target, request_id, outcome,"
                  " detail FROM event WHERE seq < ? ORDER BY seq DESC LIMIT ?",
                  "ii", before_seq ? before_seq : INT64_MAX, (int64_t)most) < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0) {
        struct event v = {db_int(&q, 0),  db_int(&q, 1),  db_text(&q, 2),
                          db_text(&q, 3), db_text(&q, 4), db_text(&q, 5),
                          db_text(&q, 6), db_text(&q, 7), db_text(&q, 8)};

        each(&v, context);
    }
    return rows;
}

int store_remove_old_events(struct db *db, int64_t before_ms, struct err *e)
{
    /* Times may go back with the clock; the order is seq's.  So: all before the first that is
     * young.  The newest stays in any case: SQLite gives the next one the number after it. */
    return db_run(
        db, e,
        "DELETE FROM event WHERE seq < coalesce("
        "(SELECT min(seq) FROM event WHERE at_ms >= ?1), (SELECT max(seq) FROM event))",
        "i", before_ms);
}
