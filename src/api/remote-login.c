/* How to log in to the nodes of a cluster or of a job.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "engine/engine.h"
#include "store/work.h"

#include <string.h>

struct login {
    struct call_question question;
    int64_t cluster_id;   /* all of its nodes, or */
    const int64_t *nodes; /* these */
    size_t node_count;
    struct engine *engine; /* while it is asked */
};

static struct login *login_of(struct call_question *question)
{
    return container_of(question, struct login, question);
}

/* A node that cannot be logged in to is left out: clients take every row for an address. */
static void add_node(const struct yard_node *node, void *context)
{
    struct login *login = context;
    struct engine_login how = {0};

    if (login->engine->ops->node_login(login->engine, node->id, &how, NULL) < 0)
        return;
    json_array_append_new(login->question.result,
                          json_pack("{s:s, s:s, s:i}", "nodeId", node->name, "ipAddress",
                                    how.address, "port", how.port));
}

static void ask(struct call_question *question, const struct control_view *view)
{
    struct login *login = login_of(question);

    if (!view->engine)
        return;
    login->engine = view->engine;
    if (login->cluster_id)
        yard_each_node(view->yard, login->cluster_id, add_node, login);
    for (size_t i = 0; i < login->node_count; i++) {
        const struct yard_node *node = yard_node(view->yard, login->nodes[i]);

        if (node)
            add_node(node, login);
    }
}

static void answer(struct call_question *question)
{
    reply_json(question->call, 200, json_pack("{s:O}", "value", question->result));
}

static struct login *login_new(struct call *call)
{
    struct login *login = arena_alloc(call->arena, sizeof(*login));

    login->question = (struct call_question){
        .call = call, .ask = ask, .answer = answer, .result = json_array()};
    return login;
}

void handle_cluster_login(struct call *call)
{
    autoptr(resource) cluster = NULL;
    struct login *login;
    struct err e = {0};

    if (call_find(call, RESOURCE_CLUSTER, &cluster, &e) < 0) {
        reply_error(call, &e);
        return;
    }
    login = login_new(call);
    login->cluster_id = cluster->id;
    call_ask(&login->question);
}

struct last_attempt {
    struct arena *arena;
    int64_t *nodes;
    size_t count;
};

/* In order of their numbers: the last one stays. */
static void keep_nodes(const struct yard_attempt *attempt, void *context)
{
    struct last_attempt *last = context;
    size_t bytes = attempt->node_count * sizeof(*last->nodes);

    last->nodes = arena_alloc(last->arena, bytes + 1);
    last->count = attempt->node_count;
    if (bytes)
        memcpy(last->nodes, attempt->nodes, bytes);
}

void handle_job_login(struct call *call)
{
    struct last_attempt last = {.arena = call->arena};
    autoptr(resource) job = NULL;
    auto_reader reader = {0};
    struct login *login;
    struct err e = {0};

    if (call_find(call, RESOURCE_JOB, &job, &e) < 0 ||
        store_pool_take(call->api->config.pool, &reader, &e) < 0 ||
        store_each_attempt(reader.db, job->id, keep_nodes, &last, &e) < 0) {
        reply_error(call, &e);
        return;
    }
    login = login_new(call);
    login->nodes = last.nodes;
    login->node_count = last.count;
    call_ask(&login->question);
}
