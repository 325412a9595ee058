/* Questions that only control's thread can answer: asked from the request's thread, answered
 * on it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

static void back(struct http_req *req, void *arg)
{
    struct call_question *question = arg;

    (void)req;
    if (question->e.code != ERR_NONE)
        reply_error(question->call, &question->e);
    else
        question->answer(question);
}

static void ask(const struct control_view *view, void *context)
{
    struct call_question *question = context;

    question->ask(question, view);
    http_req_post(question->call->req, back, question);
}

/* Whatever became of the call: its server may have gone while control was asked. */
static void drop(void *arg)
{
    struct call_question *question = arg;

    json_decref(question->result);
}

void call_ask(struct call_question *question)
{
    arena_defer(question->call->arena, drop, question);
    control_ask(question->call->api->config.control, ask, question);
}
