/* observe.c - what is looked at beside the results: times of ops.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert/bert-internal.h"
#include "train/num/par.h"
#include "train/report/peak.h"
#include "train/run/common.h"

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

int bert_observe_batch(struct bert_run *run, struct err *e)
{
    const char *path = run->flags->trace_file;
    auto_free struct trace_span *spans = NULL;
    int count;

    if (!bert_is_observed(run) || run->step <= run->spec.warmup)
        return 0;
    spans = run_spans(run->plan, &count);
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
