/* SPDX-License-Identifier: Apache-2.0 */
#include "train/run/common.h"

#include "base/mem.h"
#include "train/backend/backend.h"
#include "train/comm/comm.h"
#include "train/report/trace.h"

#include <pthread.h>
#include <signal.h>

enum { /* of struct plan_span */
       TRACK_COMPUTE = 0,
       TRACK_REORDER = 1,
};

void run_block_signals(void)
{
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
}

bool run_was_signalled(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM));
}

int run_pending_signal(void)
{
    sigset_t pending;

    sigpending(&pending);
    return sigismember(&pending, SIGINT) ? SIGINT : SIGTERM;
}

static bool is_kept(const struct tensor *t)
{
    return t->role == ROLE_PARAM || t->role == ROLE_STATE;
}

int run_broadcast(struct plan *plan, struct comm *comm, struct err *e)
{
    const struct graph *g = plan_graph(plan);

    for (int t = 0; t < g->tensor_count; t++) {
        size_t bytes = (size_t)tensor_elements(&g->tensors[t]) * sizeof(float);
        auto_free float *values = NULL;

        if (!is_kept(&g->tensors[t]))
            continue;
        values = xmalloc(bytes);
        if (plan_read(plan, t, values, bytes, e) < 0 ||
            comm_broadcast(comm, values, bytes, 0, e) < 0 ||
            plan_write(plan, t, values, bytes, e) < 0)
            return err_wrap(e, "could not broadcast \"%.100s\"", g->tensors[t].name);
    }
    return 0;
}

struct trace_span *run_spans(struct plan *plan, int *ret_count)
{
    const struct graph *g = plan_graph(plan);
    const struct plan_span *spans = plan_spans(plan, ret_count);
    struct trace_span *all = xcalloc((size_t)*ret_count + 1, sizeof(*all));

    for (int i = 0; i < *ret_count; i++) {
        const struct op *op = &g->ops[spans[i].op];

        all[i] = (struct trace_span){
            .name = spans[i].label && spans[i].label[0] ? spans[i].label : op->name,
            .kind = spans[i].track == TRACK_REORDER ? "reorder" : op_info(op->kind)->name,
            .track = spans[i].track,
            .begin_ns = spans[i].begin_ns,
            .end_ns = spans[i].end_ns,
            .flops = spans[i].track == TRACK_COMPUTE ? op_flops(g, op) : 0,
        };
    }
    return all;
}
