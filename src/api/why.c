/* Why does a job wait, or how did it end?  One line for a person.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "base/clock.h"
#include "store/work.h"

#include <string.h>

struct why {
    struct call_question question;
    int64_t job_id;
    const char *scope;          /* of who asks */
    struct store_reader reader; /* for the names of other jobs, while control is asked */
    struct arena *arena;
};

/* Who holds the nodes may be told by name only to those who may see it. */
static const char *name_of(int64_t job_id, void *context)
{
    struct why *why = context;
    autoptr(resource) job = NULL;

    if (store_find_resource_by_id(why->reader.db, job_id, &job, NULL) < 0 || !job)
        return "a job that is gone";
    if (!access_sees(why->scope, resource_group_key(why->arena, job->arm_id)))
        return "a job of another group";
    return arena_strdup(why->arena, job->name);
}

static void ask(struct call_question *question, const struct control_view *view)
{
    struct why *why = container_of(question, struct why, question);
    autoptr(arena) arena = arena_new();
    auto_reader reader = {0};
    auto_str line = {0};

    if (store_pool_take(question->call->api->config.pool, &reader, &question->e) < 0)
        return;
    why->reader = reader;
    why->arena = arena;
    if (view->yard && yard_job(view->yard, why->job_id))
        yard_why(view->yard, why->job_id, clock_wall_ms(), name_of, why, &line);
    if (line.len)
        question->result = json_pack("{s:s}", "why", str_text(&line));
}

/* What is recorded, for a job that the mind has let go of. */
static int read_verdict(struct call *call, int64_t job_id, json_t **ret, struct err *e)
{
    auto_job_work work = {0};
    auto_reader reader = {0};
    bool found;

    if (store_pool_take(call->api->config.pool, &reader, e) < 0 ||
        store_find_job_work(reader.db, job_id, &work, &found, e) < 0)
        return -1;
    if (found && work.job.verdict)
        *ret = json_pack("{s:s}", "why", work.job.verdict);
    else if (found && work.job.state == JOB_SUCCEEDED)
        *ret = json_pack("{s:s}", "why", "it ended with exit code 0");
    else if (found && work.job.error_message)
        *ret = json_pack("{s:s}", "why", work.job.error_message);
    else
        *ret =
            json_pack("{s:o}", "why", json_sprintf("it is %s", job_state_name(work.job.state)));
    return 0;
}

static void answer(struct call_question *question)
{
    struct why *why = container_of(question, struct why, question);

    /* It ended between the two questions, or there is nobody to ask. */
    if (!question->result &&
        read_verdict(question->call, why->job_id, &question->result, &question->e) < 0)
        reply_error(question->call, &question->e);
    else
        reply_json(question->call, 200, json_incref(question->result));
}

void handle_job_why(struct call *call)
{
    autoptr(resource) job = NULL;
    struct err e = {0};
    struct why *why;

    if (call_find(call, RESOURCE_JOB, &job, &e) < 0) {
        reply_error(call, &e);
        return;
    }
    why = arena_alloc(call->arena, sizeof(*why));
    why->question = (struct call_question){.call = call, .ask = ask, .answer = answer};
    why->job_id = job->id;
    why->scope = call->who.scope;
    call_ask(&why->question);
}
