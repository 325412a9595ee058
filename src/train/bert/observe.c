/* observe.c - what is looked at beside the results: times of ops.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert/bert-internal.h"
#include "train/num/par.h"
#include "train/report/peak.h"

enum { /* of struct plan_span */
       TRACK_COMPUTE = 0,
       TRACK_REORDER = 1,
};

bool bert_is_observed(const struct bert_run *run)
{
    return run->flags->profile || run->flags->trace_file[0];
}

int bert_observe(struct bert_run *run, bool is_on, struct err *e)
{
    if (!bert_is_observed(run))
        return 0;
    if (is_on && run->flags->profile && !run->profile)
        run->profile = profile_new();
    return plan_time(run->plan, is_on, e);
}

static struct trace_span *spans_of(const struct bert_run *run, int *ret_count)
{
    const struct graph *g = run->graph;
    const struct plan_span *spans = plan_spans(run->plan, ret_count);
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

int bert_observe_batch(struct bert_run *run, struct err *e)
{
    const char *path = run->flags->trace_file;
    auto_free struct trace_span *spans = NULL;
    int count;

    if (!bert_is_observed(run) || run->step <= run->spec.warmup)
        return 0;
    spans = spans_of(run, &count);
    if (run->profile) {
        profile_add(run->profile, spans, count);
        run->profiled++;
    }
    if (!path[0] || run->has_traced || !bert_speaks(run))
        return 0;
    run->has_traced = true;
    return trace_write(path, run->ranks->rank, spans, count, e);
}

/* Of the peak of the cores, which is measured now: the run is over. */
void bert_print_profile(const struct bert_run *run)
{
    bool is_gpu = str_equal(run->backend->name, "cuda");

    if (run->profile && run->profiled > 0 && bert_speaks(run))
        profile_print(run->profile, run->profiled, is_gpu ? 0 : peak_flops(par_threads()),
                      stderr);
}
