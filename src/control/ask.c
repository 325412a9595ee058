/* Questions to the mind and the engine, from any thread, answered on control's.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "control/conductor.h"
#include "control/control-internal.h"

struct question {
    struct question *next;
    void (*ask)(const struct control_view *view, void *context);
    void *context;
};

static void answer_all(struct control *control, const struct control_view *view)
{
    struct question *q, *next;

    pthread_mutex_lock(&control->questions_lock);
    q = take_ptr(&control->questions);
    pthread_mutex_unlock(&control->questions_lock);
    for (; q; q = next) {
        next = q->next;
        q->ask(view, q->context);
        free(q);
    }
}

static void answer(void *arg)
{
    struct control *control = arg;
    struct control_view view = {0};

    if (control->conductor) {
        view.yard = conductor_yard(control->conductor);
        view.engine = conductor_engine(control->conductor);
    }
    answer_all(control, &view);
}

void control_answer_last(struct control *control)
{
    answer_all(control, &(struct control_view){0});
}

void control_ask(struct control *control,
                 void (*ask)(const struct control_view *view, void *context),
                 void *context)
{
    struct question *q = xmalloc(sizeof(*q));

    *q = (struct question){.ask = ask, .context = context};
    pthread_mutex_lock(&control->questions_lock);
    q->next = control->questions;
    control->questions = q;
    pthread_mutex_unlock(&control->questions_lock);
    loop_post(control->loop, answer, control);
}
