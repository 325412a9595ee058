/* Jobs and nodes for those who look at all of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/work.h"

#include "store/store-internal.h"

/* The rows that have not ended have an index of their own, which the words "state < 3" call
 * for: among a hundred thousand that have, they would be looked for in vain. */
#define JOBS                                                                                   \
    "SELECT j.resource_id FROM job_state j JOIN resource r ON r.id = j.resource_id"            \
    " WHERE (?1 = '' OR r.group_id = (SELECT id FROM resource WHERE key = ?1)) AND (?2 >> "    \
    "j.state) & 1"                                                                             \
    " AND (?3 = 0 OR j.resource_id < ?3)"

static const char *job_sql(const struct job_filter *filter)
{
    bool is_unfinished = filter->states >> JOB_SUCCEEDED == 0;

    if (filter->oldest_first)
        return is_unfinished ? JOBS " AND j.state < 3 ORDER BY j.resource_id LIMIT ?4"
                             : JOBS " ORDER BY j.resource_id LIMIT ?4";
    return is_unfinished ? JOBS " AND j.state < 3 ORDER BY j.resource_id DESC LIMIT ?4"
                         : JOBS " ORDER BY j.resource_id DESC LIMIT ?4";
}

int store_each_job(struct db *db,
                   const struct job_filter *filter,
                   void (*each)(int64_t id, void *context),
                   void *context,
                   struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, job_sql(filter), "tiii", filter->group_key,
                  (int64_t)filter->states, filter->before_id, (int64_t)filter->most) < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0)
        each(db_int(&q, 0), context);
    return rows;
}

int store_each_job_below(struct db *db,
                         const char *key,
                         void (*each)(int64_t id, void *context),
                         void *context,
                         struct err *e)
{
    /* A prefix as a span of keys: '0' is the character after '/'. */
    auto_free char *low = xasprintf("%s/", key);
    auto_free char *high = xasprintf("%s0", key);
    auto_query q = {0};
    int rows;

    /* CROSS: from those that have not ended to their resources, not the other way round. */
    if (db_select(db, &q, e,
                  "SELECT j.resource_id FROM job_state j CROSS JOIN resource r"
                  " ON r.id = j.resource_id WHERE j.state < 3 AND r.key >= ? AND r.key < ?",
                  "tt", low, high) < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0)
        each(db_int(&q, 0), context);
    return rows;
}

static int count_jobs(struct db *db, struct work_counts *counts, struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e,
                  "SELECT state, count(*), min(state_ms) FROM job_state WHERE state < 3"
                  " GROUP BY state",
                  "") < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0) {
        int64_t state = db_int(&q, 0);

        if (state < 0 || state >= JOB_STATES)
            continue;
        counts->jobs[state] = db_int(&q, 1);
        if (state == JOB_QUEUED)
            counts->oldest_queued_ms = db_int(&q, 2);
    }
    return rows;
}

int store_count_work(struct db *db, struct work_counts *ret_counts, struct err *e)
{
    auto_query q = {0};
    int rows;

    *ret_counts = (struct work_counts){0};
    if (count_jobs(db, ret_counts, e) < 0 ||
        db_select(db, &q, e, "SELECT state, count(*) FROM node GROUP BY state", "") < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0) {
        int64_t state = db_int(&q, 0);

        if (state >= 0 && state < NODE_STATES)
            ret_counts->nodes[state] = db_int(&q, 1);
    }
    return rows;
}
