/* Jobs and their attempts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/work.h"

#include "base/json.h"
#include "base/str.h"
#include "store/store-internal.h"

#include <string.h>

int store_add_job(struct db *db,
                  int64_t id,
                  int64_t cluster_id,
                  const char *uuid,
                  int64_t now_ms,
                  struct err *e)
{
    return db_run(db, e,
                  "INSERT INTO job_state (resource_id, cluster_id, uuid, is_unwanted, state,"
                  " state_ms, attempts, losses, attempt_id, started_ms, ended_ms, exit_code,"
                  " excluded) VALUES (?, ?, ?, 0, ?, ?, 0, 0, 0, 0, 0, -1, '[]')",
                  "iitii", id, cluster_id, uuid, (int64_t)JOB_QUEUED, now_ms);
}

int store_end_job(struct db *db, int64_t id, struct err *e)
{
    return db_run(db, e, "UPDATE job_state SET is_unwanted = 1 WHERE resource_id = ?", "i", id);
}

/* Whole numbers as a JSON array, and back. */
static char *write_ids(const int64_t *ids, size_t count)
{
    auto_json json_t *list = json_array();
    auto_str out = {0};

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_integer(ids[i]));
    json_write(&out, list);
    return xstrdup(str_text(&out));
}

static int read_ids(const char *text, int64_t **ret_ids, size_t *ret_count, struct err *e)
{
    auto_json json_t *list = NULL;

    if (json_parse(text, strlen(text), &list, e) < 0)
        return -1;
    *ret_count = json_array_size(list);
    *ret_ids = *ret_count ? xcalloc(*ret_count, sizeof(**ret_ids)) : NULL;
    for (size_t i = 0; i < *ret_count; i++)
        (*ret_ids)[i] = json_integer_value(json_array_get(list, i));
    return 0;
}

int store_put_job(struct db *db, const struct yard_job *j, struct err *e)
{
    auto_free char *excluded = write_ids(j->excluded, j->excluded_count);

    return db_run(db, e,
                  "UPDATE job_state SET state = ?, state_ms = ?, attempts = ?, losses = ?, "
                  "attempt_id = ?,"
                  " started_ms = ?, ended_ms = ?, exit_code = ?, error_code = ?,"
                  " error_message = ?, error_info = ?, verdict = ?, excluded = ?"
                  " WHERE resource_id = ?",
                  "iiiiiiiitttt" /* state .. verdict */
                  "ti",
                  (int64_t)j->state, j->state_ms, (int64_t)j->attempts, (int64_t)j->losses,
                  j->attempt_id, j->started_ms, j->ended_ms, (int64_t)j->exit_code,
                  j->error_code, j->error_message, j->error_info, j->verdict, excluded, j->id);
}

void job_work_done(struct job_work *work)
{
    yard_job_done(&work->job);
}

static void copy(char *to, size_t room, const char *text)
{
    snprintf(to, room, "%s", text ? text : "");
}

#define COLUMNS                                                                                \
    "resource_id, cluster_id, uuid, is_unwanted, state, state_ms, attempts, losses, "          \
    "attempt_id,"                                                                              \
    " started_ms, ended_ms, exit_code, error_code, error_message, error_info, verdict,"        \
    " excluded"

static int read_job(struct db_query *q, struct job_work *ret_work, struct err *e)
{
    struct yard_job *j = &ret_work->job;

    *ret_work = (struct job_work){
        .job =
            {
                .id = db_int(q, 0),
                .cluster_id = db_int(q, 1),
                .is_unwanted = db_int(q, 3) != 0,
                .state = (enum job_state)db_int(q, 4),
                .state_ms = db_int(q, 5),
                .attempts = (int)db_int(q, 6),
                .losses = (int)db_int(q, 7),
                .attempt_id = db_int(q, 8),
                .started_ms = db_int(q, 9),
                .ended_ms = db_int(q, 10),
                .exit_code = (int)db_int(q, 11),
                .error_code = store_dup(q, 12),
                .error_message = store_dup(q, 13),
                .error_info = store_dup(q, 14),
                .verdict = store_dup(q, 15),
            },
    };
    copy(ret_work->uuid, sizeof(ret_work->uuid), db_text(q, 2));
    return read_ids(db_text(q, 16), &j->excluded, &j->excluded_count, e);
}

int store_find_job_work(
    struct db *db, int64_t id, struct job_work *ret_work, bool *ret_found, struct err *e)
{
    auto_query q = {0};
    int rows;

    *ret_found = false;
    if (db_select(db, &q, e, "SELECT " COLUMNS " FROM job_state WHERE resource_id = ?", "i",
                  id) < 0 ||
        (rows = db_next(&q, e)) < 0)
        return -1;
    if (rows == 0)
        return 0;
    *ret_found = true;
    return read_job(&q, ret_work, e);
}

int store_each_unfinished_job(struct db *db,
                              void (*each)(const struct job_work *work, void *context),
                              void *context,
                              struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e,
                  "SELECT " COLUMNS " FROM job_state WHERE state < 3 ORDER BY resource_id",
                  "") < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0) {
        auto_job_work work = {0};

        if (read_job(&q, &work, e) < 0)
            return -1;
        each(&work, context);
    }
    return rows;
}

/* --- attempts --- */

static char *write_result(const struct yard_attempt *a)
{
    const struct attempt_result *r = &a->result;
    auto_json json_t *value = NULL;
    auto_str out = {0};

    if (a->state != ATTEMPT_ENDED)
        return NULL;
    value =
        json_pack("{s:i, s:i, s:i, s:b, s:i, s:I, s:s, s:s, s:s%, s:s%, s:s%}", "end",
                  (int)r->end, "exitCode", r->exit_code, "signal", r->signal, "outOfMemory",
                  (int)r->out_of_memory, "rank", r->rank, "badNode", (json_int_t)r->bad_node,
                  "node", r->node, "code", r->code, "message", r->message, strlen(r->message),
                  "info", r->info, strlen(r->info), "tail", r->tail, strlen(r->tail));
    if (!value) /* a text is not UTF-8: the facts still count */
        value =
            json_pack("{s:i, s:i, s:i, s:b, s:i, s:I}", "end", (int)r->end, "exitCode",
                      r->exit_code, "signal", r->signal, "outOfMemory", (int)r->out_of_memory,
                      "rank", r->rank, "badNode", (json_int_t)r->bad_node);
    json_write(&out, value);
    return xstrdup(str_text(&out));
}

static void copy_member(char *to, size_t room, const json_t *object, const char *name)
{
    copy(to, room, json_string_value(json_object_get(object, name)));
}

static int read_result(const char *text, struct attempt_result *r, struct err *e)
{
    auto_json json_t *value = NULL;

    *r = (struct attempt_result){.exit_code = -1, .rank = -1};
    if (!text)
        return 0;
    if (json_parse(text, strlen(text), &value, e) < 0)
        return -1;
    r->end = (enum attempt_end)json_integer_value(json_object_get(value, "end"));
    r->exit_code = (int)json_integer_value(json_object_get(value, "exitCode"));
    r->signal = (int)json_integer_value(json_object_get(value, "signal"));
    r->out_of_memory = json_is_true(json_object_get(value, "outOfMemory"));
    r->rank = (int)json_integer_value(json_object_get(value, "rank"));
    r->bad_node = json_integer_value(json_object_get(value, "badNode"));
    copy_member(r->node, sizeof(r->node), value, "node");
    copy_member(r->code, sizeof(r->code), value, "code");
    copy_member(r->message, sizeof(r->message), value, "message");
    copy_member(r->info, sizeof(r->info), value, "info");
    copy_member(r->tail, sizeof(r->tail), value, "tail");
    return 0;
}

static int remember_attempt(struct db *db, int64_t id, struct err *e)
{
    return db_run(db, e,
                  "INSERT INTO meta (name, value) VALUES ('last_attempt', ?1)"
                  " ON CONFLICT (name) DO UPDATE SET"
                  " value = max(CAST(value AS INTEGER), CAST(?1 AS INTEGER))",
                  "i", id);
}

int store_put_attempt(struct db *db, const struct yard_attempt *a, struct err *e)
{
    auto_free char *nodes = write_ids(a->nodes, a->node_count);
    auto_free char *result = write_result(a);

    if (db_run(db, e,
               "INSERT INTO attempt (id, job_id, number, state, created_ms, started_ms,"
               " ended_ms, stop, nodes, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
               " ON CONFLICT (id) DO UPDATE SET state = excluded.state,"
               " started_ms = excluded.started_ms, ended_ms = excluded.ended_ms,"
               " stop = excluded.stop, result = excluded.result",
               "iiiiiiiitt", a->id, a->job_id, (int64_t)a->number, (int64_t)a->state,
               a->created_ms, a->started_ms, a->ended_ms, (int64_t)a->stop, nodes, result) < 0)
        return -1;
    return a->state == ATTEMPT_ENDED ? remember_attempt(db, a->id, e) : 0;
}

int store_each_attempt(struct db *db,
                       int64_t job_id,
                       void (*each)(const struct yard_attempt *attempt, void *context),
                       void *context,
                       struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e,
                  "SELECT id, job_id, number, state, created_ms, started_ms, ended_ms, stop,"
                  " nodes, result FROM attempt WHERE CASE WHEN ?1 = 0 THEN job_id IN"
                  " (SELECT resource_id FROM job_state WHERE state < 3) ELSE job_id = ?1 END"
                  " ORDER BY id",
                  "i", job_id) < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0) {
        struct yard_attempt a = {
            .id = db_int(&q, 0),
            .job_id = db_int(&q, 1),
            .number = (int)db_int(&q, 2),
            .state = (enum attempt_state)db_int(&q, 3),
            .created_ms = db_int(&q, 4),
            .started_ms = db_int(&q, 5),
            .ended_ms = db_int(&q, 6),
            .stop = (enum stop_reason)db_int(&q, 7),
        };
        int rc = read_result(db_text(&q, 9), &a.result, e);

        if (rc == 0)
            rc = read_ids(db_text(&q, 8), &a.nodes, &a.node_count, e);
        if (rc == 0)
            each(&a, context);
        yard_attempt_done(&a);
        if (rc < 0)
            return -1;
    }
    return rows;
}
