/* SPDX-License-Identifier: Apache-2.0 */
#include "core/operation.h"

#include <assert.h>

static const char *const names[OPERATION_STATES] = {
    [OPERATION_RUNNING] = "InProgress",
    [OPERATION_SUCCEEDED] = "Succeeded",
    [OPERATION_FAILED] = "Failed",
};

const char *operation_state_name(enum operation_state state)
{
    assert(state < OPERATION_STATES);
    return names[state];
}

struct operation *operation_new(void)
{
    return xcalloc(1, sizeof(struct operation));
}

void operation_free(struct operation *o)
{
    if (!o)
        return;
    free(o->id);
    free(o->target);
    free(o->error_code);
    free(o->error_message);
    free(o);
}

static const struct edge {
    enum operation_event on;
    enum operation_state from, to;
} edges[] = {
    {OPERATION_DONE, OPERATION_RUNNING, OPERATION_SUCCEEDED},
    {OPERATION_FAIL, OPERATION_RUNNING, OPERATION_FAILED},
};

int operation_apply(struct operation *o,
                    enum operation_event event,
                    int64_t now_ms,
                    struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(edges); i++) {
        if (edges[i].on == event && edges[i].from == o->state) {
            o->state = edges[i].to;
            o->ended_ms = now_ms;
            return 0;
        }
    }
    return err_set(e, ERR_CONFLICT, "the operation %s has ended already", o->id);
}
