/* For people who look at the whole yard: its nodes and what they do, its jobs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "engine/engine.h"
#include "store/work.h"

#include <inttypes.h>
#include <string.h>

enum {
    MOST_SHOWN = 100, /* jobs that wait: nobody reads more */
    MOST_JOBS = 1000,
    DEFAULT_JOBS = 100,
};

static const char *group_key_of(struct call *call, const struct resource *r)
{
    return call_group_key(call, r->arm_id);
}

/* --- jobs --- */

struct rows {
    struct call *call;
    int64_t *ids;
    size_t count;
};

static void keep_id(int64_t id, void *context)
{
    struct rows *rows = context;

    rows->ids[rows->count++] = id;
}

static int list_jobs(struct call *call,
                     struct db *db,
                     const struct job_filter *filter,
                     struct rows *ret,
                     struct err *e)
{
    *ret = (struct rows){.call = call,
                         .ids = arena_alloc(call->arena, filter->most * sizeof(int64_t))};
    return store_each_job(db, filter, keep_id, ret, e);
}

/* "queued", ...; "active" is all that have not ended. */
static int read_states(struct call *call, unsigned *ret_states, struct err *e)
{
    const char *text = http_req_query(call->req, "state");

    *ret_states = (1u << JOB_STATES) - 1;
    if (!text)
        return 0;
    if (str_equal_nocase(text, "active")) {
        *ret_states = 1u << JOB_QUEUED | 1u << JOB_RUNNING | 1u << JOB_TERMINATING;
        return 0;
    }
    for (int state = 0; state < JOB_STATES; state++) {
        if (str_equal_nocase(text, job_state_name((enum job_state)state))) {
            *ret_states = 1u << state;
            return 0;
        }
    }
    err_set(e, ERR_INVALID,
            "state: \"%.40s\" is unknown; take queued, running, terminating, succeeded, failed "
            "or active",
            text);
    err_reason(e, "InvalidParameterValue");
    return err_target(e, "state");
}

static int write_jobs(
    struct call *call, struct db *db, const struct rows *rows, struct str *out, struct err *e)
{
    bool is_first = true;

    for (size_t i = 0; i < rows->count; i++) {
        autoptr(resource) job = NULL;

        if (store_find_resource_by_id(db, rows->ids[i], &job, e) < 0)
            return -1;
        if (!job)
            continue; /* deleted meanwhile */
        if (!is_first)
            str_add_char(out, ',');
        is_first = false;
        if (shape_resource(out, call->api, db, job, e) < 0)
            return -1;
    }
    return 0;
}

void handle_all_jobs(struct call *call)
{
    struct job_filter filter = {.group_key = call->who.scope};
    int64_t most = DEFAULT_JOBS;
    auto_reader reader = {0};
    auto_str out = {0};
    struct err e = {0};
    struct rows rows;

    if (read_states(call, &filter.states, &e) < 0 ||
        call_read_number(call, "maxresults", 1, MOST_JOBS, &most, &e) < 0 ||
        call_read_skip(call, &filter.before_id, &e) < 0) {
        reply_error(call, &e);
        return;
    }
    filter.most = (size_t)most;
    str_add(&out, "{\"value\":[");
    if (store_pool_take(call->api->config.pool, &reader, &e) < 0 ||
        list_jobs(call, reader.db, &filter, &rows, &e) < 0 ||
        write_jobs(call, reader.db, &rows, &out, &e) < 0) {
        reply_error(call, &e);
        return;
    }
    str_add_char(&out, ']');
    if (rows.count == filter.most)
        call_add_next_link(
            call, arena_printf(call->arena, "%" PRId64, rows.ids[rows.count - 1]), &out);
    str_add_char(&out, '}');
    reply_text(call, 200, "application/json; charset=utf-8", str_text(&out));
}

/* --- top --- */

struct top {
    struct call_question question;
    struct call *call;
    struct db *db;    /* while rows are read */
    json_t *holders;  /* attempt -> name of its job */
    json_t *clusters; /* row -> name, null for those that are not the caller's to see */
    int64_t *nodes;   /* rows of result.nodes */
    size_t node_count, node_room;
    struct err e;
};

static const char *row_key(struct top *top, int64_t row)
{
    return arena_printf(top->call->arena, "%" PRId64, row);
}

static json_t *shape_top_job(struct call *call, struct db *db, int64_t id, struct top *top)
{
    autoptr(resource) job = NULL;
    auto_job_work work = {0};
    bool found;
    json_t *row;

    if (store_find_resource_by_id(db, id, &job, &top->e) < 0 || !job ||
        store_find_job_work(db, id, &work, &found, &top->e) < 0 || !found)
        return NULL;
    row = json_pack("{s:s, s:s, s:s, s:s, s:O, s:o}", "id", job->arm_id, "name", job->name,
                    "experiment", resource_name_above(call->arena, job->arm_id, 1), "state",
                    job_state_name(work.job.state), "nodeCount",
                    json_object_get(job->properties, "nodeCount"), "since",
                    shape_time(work.job.state_ms));
    if (work.job.attempt_id)
        json_object_set_new(top->holders, row_key(top, work.job.attempt_id),
                            json_string(job->name));
    return row;
}

static int
add_top_jobs(struct top *top, const char *name, unsigned states, size_t most, struct err *e)
{
    const struct job_filter filter = {.group_key = top->call->who.scope,
                                      .states = states,
                                      .oldest_first = true,
                                      .most = most};
    json_t *list = json_array();
    struct rows rows;

    json_object_set_new(top->question.result, name, list);
    if (list_jobs(top->call, top->db, &filter, &rows, e) < 0)
        return -1;
    for (size_t i = 0; i < rows.count; i++) {
        json_t *row = shape_top_job(top->call, top->db, rows.ids[i], top);

        if (row)
            json_array_append_new(list, row);
    }
    *e = top->e;
    return top->e.code == ERR_NONE ? 0 : -1;
}

/* NULL: not the caller's to see. */
static const char *cluster_name(struct top *top, int64_t row)
{
    const char *key = row_key(top, row);
    json_t *known = json_object_get(top->clusters, key);
    autoptr(resource) cluster = NULL;

    if (known)
        return json_string_value(known);
    if (store_find_resource_by_id(top->db, row, &cluster, &top->e) < 0)
        return NULL;
    known = cluster && access_sees(top->call->who.scope, group_key_of(top->call, cluster))
                ? json_string(cluster->name)
                : json_null();
    json_object_set_new(top->clusters, key, known);
    return json_string_value(known);
}

static void add_top_node(const struct yard_node *node, void *context)
{
    struct top *top = context;
    json_t *list = json_object_get(top->question.result, "nodes"), *row;
    const char *cluster = cluster_name(top, node->cluster_id);

    if (!cluster)
        return;
    row = json_pack("{s:s, s:s, s:s, s:o}", "name", node->name, "cluster", cluster, "state",
                    node_state_name(node->state), "since", shape_time(node->since_ms));
    if (node->attempt_id)
        json_object_set(row, "job",
                        json_object_get(top->holders, row_key(top, node->attempt_id)));
    if (node->error_message[0])
        json_object_set_new(row, "error", json_string(node->error_message));
    json_array_append_new(list, row);
    if (top->node_count == top->node_room) {
        size_t room = top->node_room ? top->node_room * 2 : 64;
        int64_t *more = arena_alloc(top->call->arena, room * sizeof(*more));

        if (top->node_count)
            memcpy(more, top->nodes, top->node_count * sizeof(*more));
        top->nodes = more;
        top->node_room = room;
    }
    top->nodes[top->node_count++] = node->id;
}

static int read_top(struct top *top, struct err *e)
{
    struct work_counts counts;

    if (add_top_jobs(top, "running", 1u << JOB_RUNNING | 1u << JOB_TERMINATING, MOST_JOBS, e) <
            0 ||
        add_top_jobs(top, "queued", 1u << JOB_QUEUED, MOST_SHOWN, e) < 0 ||
        store_count_work(top->db, &counts, e) < 0)
        return -1;
    if (!*top->call->who.scope) /* those of other groups are not the caller's to count */
        json_object_set_new(top->question.result, "queuedCount",
                            json_integer(counts.jobs[JOB_QUEUED]));
    json_object_set_new(top->question.result, "nodes", json_array());
    if (store_each_node(top->db, 0, add_top_node, top, e) < 0)
        return -1;
    *e = top->e;
    return top->e.code == ERR_NONE ? 0 : -1;
}

/* On control's thread: what only the engine knows. */
static void ask_use(struct call_question *question, const struct control_view *view)
{
    struct top *top = container_of(question, struct top, question);
    json_t *list = json_object_get(question->result, "nodes");
    struct engine_capacity capacity = {0};
    struct engine *engine = view->engine;

    if (!engine)
        return;
    engine->ops->capacity(engine, &capacity);
    json_object_set_new(question->result, "machine",
                        json_pack("{s:s, s:i, s:i, s:i}", "engine", engine->ops->name, "cores",
                                  capacity.cores, "memoryMib", capacity.memory_mib, "gpus",
                                  capacity.gpus));
    for (size_t i = 0; i < top->node_count; i++) {
        json_t *row = json_array_get(list, i);
        int64_t memory_bytes;
        double cores;

        if (engine->ops->node_use(engine, top->nodes[i], &cores, &memory_bytes, NULL) < 0)
            continue;
        json_object_set_new(row, "coresUsed", json_real(cores));
        json_object_set_new(row, "memoryBytes", json_integer(memory_bytes));
    }
}

static void tell_top(struct call_question *question)
{
    reply_json(question->call, 200, json_incref(question->result));
}

static void drop_json(void *value)
{
    json_decref(value);
}

void handle_top(struct call *call)
{
    struct top *top = arena_alloc(call->arena, sizeof(*top));
    auto_reader reader = {0};
    struct err e = {0};

    top->call = call;
    top->holders = json_object();
    top->clusters = json_object();
    arena_defer(call->arena, drop_json, top->holders);
    arena_defer(call->arena, drop_json, top->clusters);
    top->question = (struct call_question){
        .call = call, .ask = ask_use, .answer = tell_top, .result = json_object()};
    if (store_pool_take(call->api->config.pool, &reader, &e) == 0) {
        top->db = reader.db;
        if (read_top(top, &e) == 0) {
            call_ask(&top->question);
            return;
        }
    }
    json_decref(top->question.result);
    reply_error(call, &e);
}
